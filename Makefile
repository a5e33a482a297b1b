PYTHON ?= python3
PY := .venv/bin/python
OXLINT := build/oxlint-1.93.0

.PHONY: pictures setup demo test test-exhaustive fuzz-plans fuzz-hosts fuzz-node fuzz-passes fuzz-models fuzz-streams soak soak-map bench-map exports exports-write exports-check audio-realtime bench-sound silero real-models quality baseline bench bench-models bench-exports bench-threads bench-kernels bench-passes bench-node-pools peers scan-study pyodide npm wheels foreign lint lines clean soak-pool bench-pools bench-resampler bench-training bundlers install-check

# Everything a checkout needs. Quick the second time: pip is called only when pyproject.toml changed.
setup: .venv/ready
	@bash .ci/system-packages
	@$(PY) -m wasm_kernels.build --target all
	@if command -v emcc >/dev/null; then $(PY) -m wasm_kernels.build --toolchain emcc --target wasm-scalar wasm-simd pyodide-scalar pyodide-simd --output build/emcc; fi

.venv/ready: pyproject.toml wasm_kernels/hatch_hook.py
	$(PYTHON) -m venv .venv
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[wasm,onnx,bench,dev]'
	touch $@

demo: setup
	$(PY) -m webrnn.cli serve

# The pictures in the README, of the page in headless Chromium
pictures: setup
	$(PY) -m webrnn.cli serve --build-only
	$(PY) -m web_demo.packaging.pictures

.PHONY: site site-check
# The docs, the playground and JupyterLite as a static site in build/site: docs/site.md. SERVE=1 serves it on this machine
site: setup
	$(PY) -m web_demo.site $(if $(SERVE),--serve)

# The site as a whole, in Chromium: `make test`'s part of it, the notebook in JupyterLite, and the time to the first paint
site-check: setup
	$(PY) -m pytest tests/browser/test_site.py tests/browser/test_site_jupyter.py tests/browser/test_quick_start.py -s

# The npm package, packed, in build/npm; nothing is published
npm: setup
	$(PY) -m web_demo.packaging.npm_package

# The packed package in every bundler that docs/web.md names, Next too: three minutes, and 400 MB the first time
bundlers: setup
	$(PY) -m pytest tests/browser/test_bundlers.py

# Wheels for Linux, macOS, Windows and Pyodide, and the sources, in dist/; zig compiles for all of them. Ten minutes the first time
wheels: setup
	$(PY) -m wasm_kernels.wheels

.PHONY: release npm-check sbom-check

# All files of a release in dist/, looked at, with hashes and an SBOM, and the commands that publish them: make release VERSION=0.2.0.
# Nothing is committed, tagged or uploaded. Twenty minutes the first time; OPTIONS=--dry-run only says what it would write
release: setup
	@$(PY) -m wasm_kernels.release $(VERSION) $(OPTIONS)

# The npm package as publint and Are The Types Wrong see it; they are fetched below build/
npm-check: setup
	$(PY) -m web_demo.packaging.npm_check

# The SBOM in dist/ against the schema of CycloneDX 1.6, which gets an environment of its own below build/
sbom-check: build/sbom-check/ready
	build/sbom-check/bin/python tests/wasm_kernels/sbom_check.py dist/*.cdx.json

build/sbom-check/ready: tests/wasm_kernels/sbom-requirements.txt
	$(PYTHON) -m venv build/sbom-check
	build/sbom-check/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# The wheels of dist/, each in an empty environment: pip takes it, a GRU, a stream and an export have the bits of this machine.
# Some minutes; what each needs is in docs/releasing.md
install-check: setup
	$(PY) -m tests.foreign.install

# The libraries of other systems under qemu and wine: plans, kernels and models give the bits of this machine
foreign: setup
	$(PY) -m tests.foreign

test: setup
	$(PY) -m pytest -n 2 --dist worksteal -m "not exhaustive and not browsers and not site"

# exp, tanh and sigmoid over all 2^32 floats: about 20 minutes
test-exhaustive: setup
	$(PY) -m pytest tests/wasm_kernels/test_ulp.py -m exhaustive -s -n 2

# random graphs through the passes, until one of them goes wrong or you stop it
fuzz-passes: .venv/ready
	$(PY) -m tests.passes.fuzz

# Plans on the C functions that check, bind and run them: libFuzzer under AddressSanitizer, then damaged plans under UBSan too
fuzz-plans: setup
	$(PY) -m tests.plan.libfuzzer --runs $(or $(N),1000000)
	$(PY) -m tests.plan.fuzzing --plans 10000 --undefined

# 10,000 mutated models on numpy, native and wasm, and on onnxruntime: verdicts and results; N=200000 for more
fuzz-models: setup
	$(PY) -m tests.onnx.model_fuzzing --models $(or $(N),10000) --seed $(or $(SEED),0)

# 2,000 random stacks of layers over time as streams, natively and on wasmtime: the whole run bit for bit, or refused; N=20000 for more
fuzz-streams: setup
	$(PY) -m tests.along_time.fuzz --count $(or $(N),2000) --seed $(or $(SEED),0)

.PHONY: fuzz-gradients gradients-record
# Gradients of 500 random graphs with loops, with every option, beside finite differences in float64; N=5000 for more. Six minutes
fuzz-gradients: setup
	$(PY) -m tests.gradients.test_random_graphs --count $(or $(N),500) --seed $(or $(SEED),1000)

# Write down anew what torch.autograd gives for tests/gradients; it gets the environment of `make exports`
gradients-record: build/exports/torch/ready
	build/exports/torch/bin/python -m tests.gradients.in_torch

# 20,000 .nam and RTNeural files with changes: read, or refused with a typed error; N=200000 for more
.PHONY: fuzz-formats nam
fuzz-formats: setup
	WEBRNN_FUZZ_CASES=$(or $(N),20000) WEBRNN_FUZZ_SEED=$(or $(SEED),0) $(PY) -m pytest -q tests/formats/test_fuzz.py

# .nam files of every size that Neural Amp Modeler's trainer makes, beside its package; its environment is below build/
nam: setup build/nam/ready
	build/nam/bin/python tests/formats/nam_files.py build/nam/files
	$(PY) -m tests.formats.nam_compare build/nam/files

build/nam/ready: tests/formats/nam-requirements.txt
	$(PYTHON) -m venv build/nam
	build/nam/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# 10,000 damaged plan files through Python's host, natively under AddressSanitizer and on wasmtime; N=300000 for more
fuzz-hosts: setup
	$(PY) -m tests.plan.host_fuzzing --plans $(or $(N),10000)
	$(PY) -m tests.plan.host_fuzzing --plans $(or $(N),10000) --backend wasm:simd

# 10,000 damaged plan files through webrnn.js in Node; N=100000 for more
fuzz-node: setup
	$(PY) -m tests.browser.fuzz_plans --plans $(or $(N),10000)

.PHONY: browsers soak-audio sound

# The host, pools, workers, the audio thread and the page in Firefox and WebKitGTK; `make test` has a shorter form. Two minutes
browsers: setup
	$(PY) -m pytest tests/browser/test_other_browsers.py tests/browser/test_other_browsers_demo.py -v

# Half an hour of sound on the audio thread of Chromium, Firefox and WebKitGTK: every bit as in Python, and no memory that grows
soak-audio: setup
	$(PY) -m tests.browser.audio_soak --minutes $(or $(MINUTES),30)

# A denoised microphone from a new Vite project: from the press to the first clean sample, and the bytes that were loaded
sound: setup
	$(PY) -m tests.browser.built_site

# What silero-vad itself finds in a minute of speech, recorded anew, and webrnn beside it. torch gets an environment of its own below build/
silero: setup build/silero/ready
	$(PY) -c "from tests.models.fetch import speech_path; speech_path()"
	build/silero/bin/python -W ignore -m tests.audio.silero_record .cache/models/speech.wav
	git diff --exit-code tests/audio/silero_segments.json
	$(PY) -m pytest -q tests/audio/test_speech.py

build/silero/ready: tests/audio/silero-requirements.txt
	$(PYTHON) -m venv build/silero
	build/silero/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# From the press of a button to the first clean sample in Chromium, and what a page loads for it. Needs an idle machine
bench-sound: setup
	$(PY) -m bench.sound_start

# DTLN and Silero on the audio thread for half a minute; fails if a quantum is missed. Needs an idle machine
audio-realtime: setup
	$(PY) -m tests.browser.audio_realtime --seconds $(or $(SECONDS),30)

# Real models from public packages, natively, in Node and in Chromium: right, one plan, the same bits
real-models: setup
	$(PY) -m tests.models.real_models $(if $(WEIGHTS),--weights $(WEIGHTS))

# What small weights do to DTLN, NSNet2, Silero and RIANN, on a minute of speech in noise and a simulated motion: docs/small-weights.md
quality: setup
	WEBRNN_MODELS=.cache/models $(PY) -m bench.quality

# `webrnn map` killed at ten random moments: complete, each item once; KILLS=100 for more
soak-map: setup
	$(PY) -m tests.corpora.soak --kills $(or $(KILLS),10)

# How near `webrnn map` comes to bare streams. Needs an idle machine
bench-map: setup
	WEBRNN_MODELS=.cache/models $(PY) -m bench.corpora --files $(or $(FILES),10000)

# A million steps of one stream: memory, state, and the longest ticks
soak: setup
	$(PY) -m bench.soak

# Streams of a pool that open, close, skip, change lengths, are restored and flushed at random, each beside a stream of its own; N=1000 for less
soak-pool: setup
	$(PY) -m tests.engine.streams.pool_soak --ticks $(or $(N),100000) --seed $(or $(SEED),0)

# Recurrent architectures exported by PyTorch and Keras, below build/exports, and what webrnn makes of them: docs/exports.md.
# The frameworks, about 3 GB, get environments of their own below build/; ten minutes on an idle machine
exports: exports-write exports-check

exports-write: build/exports/torch/ready build/exports/keras/ready
	build/exports/torch/bin/python -m tests.exports.write torch
	build/exports/keras/bin/python -m tests.exports.write keras

build/exports/%/ready: tests/exports/%-requirements.txt
	$(PYTHON) -m venv build/exports/$*
	build/exports/$*/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# Fails if a model is wrong or if the list of what is not whole, tests/exports/expected.txt, is not exact
exports-check: setup
	$(PY) -m tests.exports.judge

.PHONY: build-check build-record
# Layers of PyTorch and Keras, 300 random ones too, in the frameworks and in webrnn.build; then 50,000 damaged files of weights.
# The frameworks, about 3 GB, get the environments of `make exports`
build-check: setup build/exports/torch/ready build/exports/keras/ready
	build/exports/torch/bin/python -m tests.build.in_torch --output build/recorded --random $(or $(N),300) --seed $(or $(SEED),0)
	build/exports/keras/bin/python -m tests.build.in_keras --output build/recorded
	WEBRNN_RECORDED=build/recorded $(PY) -m pytest -q tests/build/test_torch_cases.py tests/build/test_keras_cases.py
	$(PY) -m tests.build.damage --files $(or $(FILES),50000)

# Write down anew what tests/build compares with
build-record: build/exports/torch/ready build/exports/keras/ready
	build/exports/torch/bin/python -m tests.build.in_torch
	build/exports/keras/bin/python -m tests.build.in_keras

.PHONY: training-record
# Write down anew what tests/training compares with: losses, optimizers and a task in PyTorch
training-record: build/exports/torch/ready
	build/exports/torch/bin/python -m tests.training.in_torch

# Take the counts and sizes of now as those that tests compare with
baseline: setup
	$(PY) -m tests.counts.baseline --write

# All built-in models on every backend of this machine; `webrnn bench --help` says what else there is
bench: setup
	.venv/bin/webrnn bench

# Real models beside onnxruntime, and in Node and Chromium beside onnxruntime-web: the table of README. Ten minutes on an idle machine
bench-models: setup peers
	$(PY) -m bench.whole_models

# Every export that `make exports-write` wrote beside onnxruntime: what is slower, and why
bench-exports: setup
	$(PY) -m bench.exports

# What threads gain, beside onnxruntime with as many; needs an idle machine
bench-threads: setup
	$(PY) -m bench.threads

bench-kernels: setup
	$(PY) -m bench.kernels --svg docs/kernels.svg

# Ticks of 64 and 256 streams beside onnxruntime batched by hand, in turns; then what a stream costs in larger pools
bench-pools: setup
	$(PY) -m bench.pools
	$(PY) -m bench.pools --alone --streams 256 4096 --rounds 9

# What resampling costs in each quantum of audio, in Node
bench-resampler: setup
	$(PY) -m bench.resampler

# Forward and backward of recurrent layers beside PyTorch, in an environment below build/, and in Node
bench-training: setup
	$(PY) -m bench.training

bench-passes: .venv/ready
	$(PY) -m bench.passes

# Other runtimes to compare with, beside onnxruntime: tract, and onnxruntime-web below build/
peers: .venv/ready
	$(PY) -m pip install --quiet --disable-pip-version-check -r bench/peers/requirements.txt
	PATH="$(CURDIR)/.venv/bin:$$PATH" npm install --loglevel=error --no-audit --no-fund --prefix build/peers onnxruntime-web@1.30.0

# Ticks of pools in Node beside onnxruntime-web batched by hand. A minute on an idle machine
bench-node-pools: setup peers
	$(PY) -m bench.node_pools
	$(PY) -m bench.worker_pools

# Ways to run a recurrent loop, beside each other: docs/scan-study.md. Some minutes on an idle machine
scan-study: setup peers
	$(PY) -m bench.scan_study

# Pyodide with numpy and webrnn, to serve beside a page: docs/pyodide.md
pyodide: setup
	$(PY) -m pyodide_pkg.distribution --output dist/pyodide

.PHONY: pyodide-build
# The wheel for Pyodide by pyodide-build and Emscripten, in a Debian below build/: both kinds of build, the bits of zig's
# side modules, the tests inside Pyodide. Needs root; ten minutes, and 1 GB the first time. `SHORT=--short` is what CI runs
pyodide-build: setup
	$(PY) -m pyodide_pkg.emscripten $(SHORT)

lint: .venv/ready $(OXLINT)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	.venv/bin/clang-format --dry-run -Werror $$(git ls-files '*.c' '*.h')
	PATH="$(CURDIR)/.venv/bin:$$PATH" $(OXLINT)/node_modules/.bin/oxlint
	$(PY) -m mypy

# The JavaScript linter; .oxlintrc.json has its rules
$(OXLINT): | .venv/ready
	PATH="$(CURDIR)/.venv/bin:$$PATH" npm install --loglevel=error --no-audit --no-fund --prefix $@ oxlint@$(@:build/oxlint-%=%)

# How many lines each part has; tests/house/test_lines.py keeps the budgets
lines: .venv/ready
	$(PY) -m tests.house.lines

clean:
	rm -rf .venv build dist runtime/webrnn/_kernels .cache
	find . -name __pycache__ -prune -exec rm -rf {} +
