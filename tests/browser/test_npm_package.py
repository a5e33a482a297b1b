"""The npm package: what is in it, how large it is, and that it runs installed, in a page and in an extension."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser

import webrnn
from pyodide_pkg import core
from wasm_kernels.release import archives, artifacts
from web_demo.packaging import npm_package, plans
from webrnn.engine.kernels.wasm import CORE, FILES, TRAINING, VARIANTS, file_name

from . import webrnn_cases
from .conftest import CHROMIUM, FLAGS, served
from .typescript import compiler

HERE = Path(__file__).parent
LIMIT = 63_800
"""Bytes that a page may load to run plans without anything rare, compressed by brotli."""
TRAINING_LIMIT = 60_000
"""The same with the module for plans that learn."""
FULL_LIMIT = 80_900
"""The same with the full module instead of the core module."""
TARBALL_LIMIT = 10_200_000
"""Nearly all of it are plans, whose weights hardly shrink."""
SCRIPTS_LIMIT = 900_000
POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; img-src data:"
SHARED = (
    "README.md",
    "LICENSE",
    "NOTICE",
    "package.json",
    "webrnn_files.mjs",
    "webrnn.js",
    "webrnn.d.ts",
    "pool.js",
    "pool.d.ts",
    "worker.js",
    "worker.d.ts",
    "worker_thread.js",
    "worker_pool.js",
    "worker_pool.d.ts",
    "worker_pool_worker.js",
    "audio.js",
    "audio_processor.js",
    "audio.d.ts",
    "audio_models.d.ts",
    "audio_source.d.ts",
    "denoise.d.ts",
    "speech.d.ts",
    "wake_word.d.ts",
    "vad.js",
    "vad.d.ts",
)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return npm_package.write(tmp_path_factory.mktemp("npm") / "webrnn")


@pytest.fixture(scope="module")
def tarball(package: Path) -> Path:
    return npm_package.pack(package)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GRU of one step with its state stored."""
    file = tmp_path_factory.mktemp("plan") / "gru.rnn"
    proto = webrnn_cases.recurrent("GRU", np.random.default_rng(5), steps=1, batch=1)
    webrnn.InferenceSession(proto.SerializeToString()).export(file, carry={"h": "y_h"}, about={"name": "gru"})
    return file


@pytest.fixture(scope="module")
def rare_plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("plan") / "determinants.rnn"
    webrnn.InferenceSession(webrnn_cases.determinants().SerializeToString()).export(file)
    return file


@pytest.fixture(scope="module")
def expected(plan: Path) -> list[list[float]]:
    """Three steps on ones, computed by the relaxed build in Python."""
    stream = webrnn.InferenceSession(plan, backend="wasm:relaxed").stream()
    return [stream.step({"x": np.ones((1, 1, 12), np.float32)})[0].ravel().tolist() for _ in range(3)]


STEPS = """
export async function steps(Model, source) {
  const model = await Model.load(source);
  const stream = model.stream();
  const x = new Float32Array(12).fill(1);
  return { variant: model.variant, name: model.about.name, y: [1, 2, 3].map(() => Array.from(stream.step({ x }).y)) };
}
"""


def test_what_is_in_it(tarball: Path) -> None:
    with tarfile.open(tarball) as tar:
        names = {name.removeprefix("package/") for name in tar.getnames()}
        described = json.load(tar.extractfile("package/package.json"))  # type: ignore[arg-type]
    scripts = {name for name in SHARED if name.endswith(".js")}
    sources = {name for name in names if name.startswith("src/")}
    plan_files = {f"plans/{name}" for name in plans.FILES}
    assert names == {*SHARED, *FILES, *(f"{name}.map" for name in scripts), *sources, *plan_files}
    assert {f"./{name}" for name in FILES} <= described["exports"].keys()
    assert described["version"] == webrnn.__version__
    targets = [target for export in described["exports"].values() for target in _targets(export)]
    assert {target.removeprefix("./") for target in targets if "*" not in target} <= names


def test_the_tarball_is_no_larger_than_it_needs_to_be(package: Path, tarball: Path) -> None:
    scripts = [file for file in package.rglob("*") if file.suffix in (".js", ".map", ".ts")]
    assert tarball.stat().st_size <= TARBALL_LIMIT
    assert sum(file.stat().st_size for file in scripts) <= SCRIPTS_LIMIT


def test_the_tarball_without_models_is_small(tarball: Path) -> None:
    assert artifacts.weightless_bytes(archives.contents(tarball)) <= artifacts.NPM_LIMIT


def test_the_package_is_as_a_release_wants_it(tarball: Path) -> None:
    assert list(artifacts.npm_problems(archives.contents(tarball), webrnn.__version__)) == []


def test_the_tarball_is_the_same_in_another_folder(package: Path, tarball: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(package, tmp_path / "elsewhere" / "other"))
    for file in other.rglob("*"):
        os.utime(file, (1_000_000_000, 1_000_000_000))
        file.chmod(0o755 if file.is_dir() else 0o600)
    assert npm_package.pack(other, tmp_path).read_bytes() == tarball.read_bytes()


def test_scripts_with_side_effects_are_named(package: Path) -> None:
    """Bundlers leave out the others if nothing of them is used."""
    described = json.loads((package / "package.json").read_text())
    named = {name.removeprefix("./") for name in described["sideEffects"]}
    assert {*npm_package.loaded_by_address()} <= named
    assert all((package / name).exists() for name in named)


def test_the_repository_is_that_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """npm compares it with where a package with provenance was built."""
    urls = {"Repository": "https://example.invalid/a/webrnn", "Issues": "https://example.invalid/issues"}
    monkeypatch.setattr(npm_package.tomllib, "loads", lambda text: {"project": {"urls": urls}})
    described = npm_package.description()
    assert described["repository"] == {"type": "git", "url": "git+https://example.invalid/a/webrnn.git"}
    assert described["bugs"] == urls["Issues"]
    assert "homepage" not in described


def test_all_licences_of_plans_are_named(package: Path) -> None:
    notice = (package / "NOTICE").read_text()
    for row in plans.ROWS:
        assert row.credit in notice
        assert f"Licence: {row.licence}" in notice
        assert all(f"plans/{name}" in notice for name in row.files)
    assert "The above copyright notice and this permission notice shall be included" in notice
    assert "Apache License" in (package / "LICENSE").read_text()


@pytest.mark.parametrize("name", plans.FILES)
def test_plans_run(package: Path, name: str) -> None:
    session = webrnn.InferenceSession(package / "plans" / name, backend="wasm:simd")
    shape = next(port.shape for port in session.get_inputs() if port.name == "samples")
    size = shape[-1] if isinstance(shape[-1], int) else 1280
    stream = session.stream()
    for _ in range(2):
        assert all(np.isfinite(part).all() for part in stream.step({"samples": np.ones(size, np.float32)}))


def test_maps_name_modules_that_are_there(package: Path) -> None:
    maps = [json.loads(file.read_text()) for file in package.glob("*.js.map")]
    sources = {source for each in maps for source in each["sources"]}
    assert sources == {file.relative_to(package).as_posix() for file in (package / "src").iterdir()}
    for each in maps:
        lines = (package / each["file"]).read_text().splitlines()
        assert lines[-1] == f"//# sourceMappingURL={each['file']}.map"
        assert len(each["mappings"].split(";")) == len(lines) - 1


@pytest.mark.parametrize("name", npm_package.loaded_by_address())
def test_what_is_loaded_by_its_address_needs_nothing_else(package: Path, name: str) -> None:
    """Bundlers copy it as it is, under another name."""
    text = (package / name).read_text()
    assert not re.search(r"^\s*(import|export)\b|\bimport\(\"|import\.meta", text, re.M)


def test_addresses_are_literals(package: Path) -> None:
    """Each file that is loaded by its address is named once, in the form that bundlers look for."""
    texts = [(package / name).read_text() for name in npm_package.entries()]
    named = [name for text in texts for name in re.findall(r'new URL\("\./([^"]+)", import\.meta\.url\)', text)]
    assert sum(text.count("import.meta") for text in texts) == len(named)
    files = {*FILES, *npm_package.loaded_by_address(), *(f"plans/{name}" for name in plans.FILES)}
    assert sorted(named) == sorted(files)


def _targets(export: Any) -> list[str]:
    return [export] if isinstance(export, str) else list(export.values())


@pytest.mark.parametrize(
    ("kind", "limit"), [(CORE, LIMIT), (TRAINING, TRAINING_LIMIT), ("", FULL_LIMIT)], ids=["core", "training", "full"]
)
@pytest.mark.parametrize("variant", VARIANTS)
def test_what_a_page_loads_is_small(package: Path, variant: str, kind: str, limit: int) -> None:
    sizes = npm_package.compressed_bytes([package / "webrnn.js", package / file_name(variant + kind)])
    assert sum(sizes) <= limit, sizes


def test_what_a_denoiser_and_a_detector_of_speech_load(package: Path) -> None:
    """Plans as they are, the rest compressed by brotli."""
    scripts = ["audio.js", "webrnn.js", "audio_processor.js", "wasm_simd_core.wasm"]
    models = sum((package / "plans" / f"{name}_int8.rnn").stat().st_size for name in ("dtln", "silero"))
    assert models + sum(npm_package.compressed_bytes([package / name for name in scripts])) < 1_600_000


def test_installed_in_node(tarball: Path, plan: Path, expected: list[list[float]], tmp_path: Path) -> None:
    npm = str(Path(core.node()).with_name("npm"))
    (tmp_path / "package.json").write_text('{"type": "module", "private": true}')
    options = ["--silent", "--offline", "--no-audit", "--no-fund"]
    subprocess.run([npm, "install", *options, str(tarball)], cwd=tmp_path, check=True, timeout=120)
    shutil.copy(plan, tmp_path)
    main = 'import { Model } from "webrnn"; console.log(JSON.stringify(await steps(Model, "gru.rnn")));'
    (tmp_path / "main.js").write_text(main + STEPS)
    ran = subprocess.run([core.node(), "main.js"], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60)
    assert json.loads(ran.stdout) == {"variant": "relaxed", "name": "gru", "y": expected}


def test_types(package: Path, tmp_path: Path) -> None:
    (tmp_path / "node_modules").mkdir()
    shutil.copytree(package, tmp_path / "node_modules" / "webrnn")
    shutil.copy(HERE / "webrnn_types.ts", tmp_path)
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom"]
    (tmp_path / "package.json").write_text('{"type": "module"}')

    def check() -> str:
        command = [core.node(), str(compiler()), *options, "webrnn_types.ts"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120).stdout

    assert check() == ""
    types = tmp_path / "node_modules" / "webrnn" / "webrnn.d.ts"
    types.write_text(types.read_text().replace("readonly carry:", "readonly carried:"))
    assert "Property 'carry' does not exist on type 'Model<" in check()


@pytest.fixture(scope="module")
def site(package: Path, plan: Path, rare_plan: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package_site")
    shutil.copytree(package, folder / "webrnn")
    shutil.copy(plan, folder)
    shutil.copy(rare_plan, folder)
    (folder / "steps.js").write_text(STEPS)
    head = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    (folder / "index.html").write_text(f'<!doctype html>{head}<link rel="icon" href="data:,">')
    return folder


IN_PAGE = """async () => {
    const [{ Model }, { steps }] = [await import("/webrnn/webrnn.js"), await import("/steps.js")];
    return steps(Model, "gru.rnn");
}"""


def test_in_a_page_with_a_strict_policy(site: Path, browser: Browser, expected: list[list[float]]) -> None:
    page = browser.new_page()
    messages: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("request", lambda request: requests.append(request.url.rpartition("/")[2]))
    with served(site) as address:
        page.goto(address)
        found = page.evaluate(IN_PAGE)
    page.close()
    assert found == {"variant": "relaxed", "name": "gru", "y": expected}
    assert sorted(requests) == ["", "gru.rnn", "steps.js", "wasm_relaxed_core.wasm", "webrnn.js"], (
        "one file, one module, one plan"
    )
    assert messages == []


TWO_MODELS = """async () => {
    const { Model } = await import("/webrnn/webrnn.js");
    const [gru, rare] = await Promise.all(["gru.rnn", "determinants.rnn"].map((name) => Model.load(name)));
    const x = Float32Array.from([2, 0, 0, 0, 3, 0, 0, 0, 4]);
    const before = rare.run({ x });
    const stream = gru.stream();
    const y = [1, 2, 3].map(() => Array.from(stream.step({ x: new Float32Array(12).fill(1) }).y));
    await Model.load("determinants.rnn");
    return { y, volumes: [...before.y, ...rare.run({ x }).y] };
}"""


def test_two_models_of_which_one_needs_the_full_module(
    site: Path, browser: Browser, expected: list[list[float]]
) -> None:
    page = browser.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url.rpartition("/")[2]))
    with served(site) as address:
        page.goto(address)
        found = page.evaluate(TWO_MODELS)
    page.close()
    assert found == {"y": expected, "volumes": [24, 24]}
    modules = [name for name in requests if name.endswith(".wasm")]
    assert sorted(modules) == ["wasm_relaxed.wasm", "wasm_relaxed_core.wasm"], "each once"


def test_audio_models_of_the_package(site: Path, browser: Browser) -> None:
    page = browser.new_page()
    with served(site) as address:
        page.goto(address)
        found = page.evaluate("""async () => {
            const { AudioModels } = await import("/webrnn/audio.js");
            const { PlanError } = await import("/webrnn/webrnn.js");
            const models = await AudioModels.create(new OfflineAudioContext(1, 12800, 48000));
            const refusal = models.load("gru", "gru.rnn").catch((error) => error);
            models.node.connect(models.context.destination);
            await models.context.startRendering();
            return [models.node.numberOfInputs, (await refusal) instanceof PlanError];
        }""")
    page.close()
    assert found == [1, True], "the processor runs, and errors are the host's"


def test_a_policy_without_wasm_is_named(site: Path, browser: Browser) -> None:
    page = browser.new_page()
    other = Path(shutil.copytree(site, site.parent / "no_wasm", dirs_exist_ok=True))
    text = (site / "index.html").read_text()
    (other / "index.html").write_text(text.replace(" 'wasm-unsafe-eval'", ""))
    with served(other) as address:
        page.goto(address)
        message = page.evaluate(f"({IN_PAGE})().catch((error) => error.message)")
    page.close()
    assert "wasm_relaxed_core.wasm is not a module of kernels that can run here" in message
    assert "Content Security Policy" in message


MANIFEST = {
    "manifest_version": 3,
    "name": "webrnn",
    "version": "1.0",
    "background": {"service_worker": "background.js", "type": "module"},
    "content_security_policy": {"extension_pages": "script-src 'self' 'wasm-unsafe-eval'; object-src 'self'"},
}


def test_in_an_extension(
    package: Path, plan: Path, expected: list[list[float]], browser: Browser, tmp_path: Path
) -> None:
    """In the service worker and in a page of an extension of Manifest V3."""
    folder = Path(shutil.copytree(package, tmp_path / "extension"))
    shutil.copy(plan, folder)
    (folder / "manifest.json").write_text(json.dumps(MANIFEST))
    run = 'import { Model } from "./webrnn.js";\nglobalThis.found = steps(Model, new URL("gru.rnn", import.meta.url));'
    (folder / "background.js").write_text(run + STEPS)
    (folder / "page.html").write_text('<!doctype html><script type="module" src="background.js"></script>')
    flags = ["--headless=new", f"--load-extension={folder}", "--disable-features=DisableLoadExtensionCommandLineSwitch"]
    with tempfile.TemporaryDirectory() as profile:
        context = browser.browser_type.launch_persistent_context(
            profile,
            executable_path=CHROMIUM,
            headless=False,  # the flag: Playwright's own way has no extensions
            ignore_default_args=["--disable-extensions"],
            args=[*FLAGS, *flags],
        )
        workers = context.service_workers or [context.wait_for_event("serviceworker", timeout=30_000)]
        page = context.new_page()
        page.goto(workers[0].url.replace("background.js", "page.html"))
        found = [workers[0].evaluate("found"), page.evaluate("found")]
        context.close()
    assert found == [{"variant": "relaxed", "name": "gru", "y": expected}] * 2
