"""Damaged plan files through `webrnn.InferenceSession`: `python -m tests.plan.host_fuzzing [--plans N] [--seed S]`.

Each file of host_mutation.py is loaded, run, run with other shapes and with nothing, streamed, saved, restored and
pooled. A normal result and a webrnn.Error are fine; anything else is a failure that names the seed. On `native` the
library is built with AddressSanitizer, Python runs with it, and all memory that the host hands to the VM is exactly as
large as it was asked for. On wasm engines there is no sanitizer: crashes, hangs and foreign exceptions are seen.

Plans run in processes of their own: one that crashes, or takes longer than SECONDS, is named by its seed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.plan.fuzzing import FLAGS, WORK, _has_avx2, compiler
from wasm_kernels import systems
from wasm_kernels.build import HERE as SOURCES
from wasm_kernels.build import generated_headers, write_bindings

SECONDS = 30.0
"""That one plan may take, with all that is done with it."""
MOST_BYTES = 2**21
"""Of one allocation: plans may ask for more than a machine has."""
CANARY = b"\xbe" * 16
"""What AddressSanitizer fills new memory with: results must not have it."""
SETTINGS = "detect_leaks=0:allocator_may_return_null=1:symbolize=0:malloc_fill_byte=190:quarantine_size_mb=8"

# --- the sanitized library -------------------------------------------------------------------------------------------


@cache
def sanitized_kernels() -> Path:
    """A folder like webrnn's `_kernels` whose native library is built with AddressSanitizer."""
    found = compiler()
    if found is None:
        raise RuntimeError("no compiler here links AddressSanitizer: install clang-14 and libclang-rt-14-dev")
    isa, flags = _instruction_set()
    headers = generated_headers()
    command = [found, *FLAGS, "-fPIC", "-fsanitize=address", *(["-shared-libasan"] if "clang" in found else [])]
    sources = [path.read_text() for path in sorted(SOURCES.glob("*.[ch]"))]
    digest = hashlib.sha256("\0".join([*command, isa, *headers.values(), *sources]).encode()).hexdigest()[:16]
    folder = WORK / f"kernels-{digest}"
    if not (folder / "kernels.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=WORK) as work:
            for name, text in headers.items():
                (Path(work) / name).write_text(text)
            compile_ = [*command, f"-I{work}", f"-I{SOURCES}"]
            suffixed = {"all": [*flags, f"-DWEBRNN_SUFFIX={isa}"], "cpu": [], "team": []}
            objects = [f"{work}/{name}.o" for name in suffixed]
            for (name, own), made in zip(suffixed.items(), objects, strict=True):
                subprocess.run([*compile_, *own, "-c", str(SOURCES / f"{name}.c"), "-o", made], check=True)
            library = folder / systems.here().library
            subprocess.run([*command, "-shared", *objects, "-o", str(library)], check=True)
        write_bindings(folder)
    return folder


def _instruction_set() -> tuple[str, list[str]]:
    """The one that is built, unfused: fused builds do not have all instructions."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return "neon_unfused", [systems.UNFUSED]
    return ("avx2_unfused", ["-march=x86-64-v3", systems.UNFUSED]) if _has_avx2() else ("sse2", [])


def sanitizer_library() -> str:
    """What Python has to be started with for the sanitized library to load."""
    found = compiler()
    assert found is not None
    name = f"libclang_rt.asan-{platform.machine()}.so" if "clang" in found else "libasan.so"
    asked = subprocess.run([found, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return asked.stdout.strip()


# --- one plan --------------------------------------------------------------------------------------------------------


class Trial:
    """What is done with one file."""

    def __init__(self, data: bytes, backend: str, rng: random.Random):
        import webrnn

        self.webrnn, self.rng, self.outcomes = webrnn, rng, Counter[str]()
        try:
            self.session = webrnn.InferenceSession(
                data, backend=backend, limits=webrnn.Limits(loop_steps=10_000, run_steps=50_000, seconds=1.0)
            )
        except webrnn.Error as error:
            self.outcomes[f"refused: {type(error).__name__}"] += 1
            return
        actions = [self.run, self.run_again, self.run_nothing, self.run_other, self.run_named, self.stream, self.pool]
        for action in rng.sample(actions, rng.randint(2, 4)):
            try:
                action()
                self.outcomes[f"{action.__name__}: done"] += 1
            except webrnn.Error as error:
                self.outcomes[f"{action.__name__}: {type(error).__name__}"] += 1

    def feeds(self, carried: Sequence[str] = ()) -> dict[str, np.ndarray]:
        """Arrays of the declared types and shapes, with some number for each open size."""
        from webrnn.engine.programs.plan_program import ARRAY_TYPES
        from webrnn.reference.cast import convert

        named: dict[Any, int] = {}
        found = {}
        for port in self.session._program.file.inputs:  # type: ignore[attr-defined]
            if port.name in carried:
                continue
            shape = []
            for size in port.shape:
                if isinstance(size, str):
                    size = named.setdefault(size, self.rng.choice((1, 2, 2, 3, 3, 5, 0, 16384)))
                shape.append(size)
            n_bytes = 8 * int(np.prod([max(size, 1) for size in shape], dtype=object))
            if min(shape, default=0) < 0 or n_bytes > MOST_BYTES // 2:
                raise self.webrnn.ShapeError("too large to feed")
            numbers = np.full(
                shape, self.rng.choice((0, 1, 2, -1, 5)) if port.dtype != "bool" else self.rng.random() < 0.5
            )
            found[port.name] = convert(numbers, ARRAY_TYPES[port.dtype])
        return found

    def check(self, results: Sequence[np.ndarray]) -> None:
        for result in results:
            assert isinstance(result, np.ndarray)
            assert CANARY not in result.tobytes(), "a result has memory that nobody wrote"

    def run(self) -> None:
        feeds = self.feeds()
        before = {name: array.tobytes() for name, array in feeds.items()}
        self.check(self.session.run(None, feeds))
        assert all(array.tobytes() == before[name] for name, array in feeds.items()), "a feed was written"

    def run_again(self) -> None:
        feeds = self.feeds()
        first = [result.tobytes() for result in self.session.run(None, feeds)]
        for _ in range(2):
            self.check(self.session.run(None, feeds))
        assert len(first) == len(self.session.get_outputs())

    def run_nothing(self) -> None:
        self.check(self.session.run(None, {}))

    def run_other(self) -> None:
        """Other shapes, those that are refused among them, and nothing after each."""
        for _ in range(3):
            for feeds in (self.feeds(), {}):
                try:
                    self.check(self.session.run(None, feeds))
                except self.webrnn.Error:
                    continue

    def run_named(self) -> None:
        names = [output.name for output in self.session.get_outputs()]
        self.check(self.session.run(names[::-1], self.feeds()))

    def carry(self) -> Any:
        inputs = [port.name for port in self.session.get_inputs()]
        outputs = [port.name for port in self.session.get_outputs()]
        if self.rng.random() < 0.5 or not inputs or not outputs:
            return "auto"
        n = self.rng.randint(1, min(len(inputs), len(outputs), 3))
        return dict(zip(self.rng.sample(inputs, n), self.rng.sample(outputs, n), strict=True))

    def stream(self) -> None:
        stream = self.session.stream(self.carry(), check_finite=self.rng.random() < 0.2)
        state: dict[str, np.ndarray] = {}
        for _ in range(self.rng.randint(2, 6)):
            feeds = self.feeds(list(stream.carry)) if self.rng.random() < 0.9 else {}
            what = self.rng.random()
            try:
                if what < 0.7:
                    self.check(stream.step(feeds, borrow=self.rng.random() < 0.3))
                elif what < 0.8:
                    stream.load(state)
                elif what < 0.85:
                    self.check(stream.flush())
                elif what < 0.9:
                    stream = stream.fork()
                else:
                    stream.reset()
                state = stream.state
                self.check(list(state.values()))
            except self.webrnn.Error:
                self.check(list(stream.state.values()))

    def pool(self) -> None:
        pool = self.session.pool(3, self.carry(), max_batch=self.rng.choice((None, 1, 2)))
        handles = [pool.open() for _ in range(2)]
        carried = [pool._model.inputs[before].name for before, _ in pool._model.pairs]
        for _ in range(2):
            for handle in handles:
                try:
                    pool.submit(handle, self.feeds(carried))
                except self.webrnn.Error:
                    continue
            for outputs in pool.tick().values():
                self.check(outputs)
        for handle in handles if self.rng.random() < 0.3 else ():
            self.check(pool.flush(handle))


# --- a process of many ------------------------------------------------------------------------------------------------


def _prepare(backend: str, folder: str, weakness: str) -> None:
    """Let sessions take kernels whose memory is exactly as large as asked for, and not too large."""
    from webrnn.engine.kernels.loading import load
    from webrnn.engine.kernels.native import NativeKernels
    from webrnn.engine.programs import backends
    from webrnn.errors import BackendError

    kernels = NativeKernels(_instruction_set()[0], Path(folder)) if folder else load(backend)
    allocate = kernels.allocate
    missing = 1 if weakness == "short" else 0

    def exactly(n_bytes: int) -> tuple[int, Any]:
        if n_bytes > MOST_BYTES:
            raise BackendError(f"{n_bytes} bytes are more than a trial may have")
        if not folder:
            return allocate(n_bytes)
        memory = np.zeros(max(n_bytes - missing, 0), np.uint8)
        whole = np.lib.stride_tricks.as_strided(memory, (n_bytes,), (1,)) if missing else memory
        return memory.ctypes.data, whole

    kernels.allocate = exactly  # type: ignore[method-assign]
    backends.kernels_of = lambda spec, threads=1: lambda: kernels
    from webrnn.engine import exporting

    exporting.kernels_of = backends.kernels_of
    if weakness == "unruly":
        from webrnn.engine.programs.plan_program import DIRECT_BYTES, PlanProgram, _n_bytes

        PlanProgram._passed_by_address = (  # type: ignore[method-assign]
            lambda self, port, sizes, promised: not port.is_late and _n_bytes(port, sizes) >= DIRECT_BYTES
        )


def work(backend: str, folder: str, first: int, count: int, progress: str, weakness: str) -> int:
    """Try the files of some seeds; each is written down before it is tried."""
    from tests.plan.host_mutation import damaged

    _prepare(backend, folder, weakness)
    outcomes = Counter[str]()
    with open(progress, "r+b", buffering=0) as file:
        for seed in range(first, first + count):
            file.seek(0)
            file.write(b"%20d" % seed)
            rng = random.Random(seed)
            outcomes += Trial(damaged(rng), backend, rng).outcomes
            outcomes["plans"] += 1
            if outcomes["plans"] % 200 == 0:
                print(json.dumps(outcomes), flush=True)
                outcomes.clear()
    print(json.dumps(outcomes), flush=True)
    return 0


def run(first: int, count: int, backend: str = "native", weakness: str = "") -> Iterator[Counter[str]]:
    """What became of the files of these seeds, now and then. AssertionError if one crashes, hangs or raises."""
    folder = str(sanitized_kernels()) if backend == "native" else ""
    environment = dict(os.environ)
    if folder:
        environment |= {"LD_PRELOAD": sanitizer_library(), "ASAN_OPTIONS": SETTINGS}
    WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=WORK) as place:
        progress, errors, output = (Path(place) / name for name in ("seed", "errors", "output"))
        progress.write_bytes(b"%20d" % first)
        command = [sys.executable, "-m", "tests.plan.host_fuzzing", "--work", backend, folder, str(first), str(count)]
        with open(errors, "wb") as stderr, open(output, "wb") as stdout:
            process = subprocess.Popen(
                [*command, str(progress), weakness], stdout=stdout, stderr=stderr, env=environment
            )
            try:
                yield from _watched(process, progress, output)
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()
        if process.returncode:
            report = errors.read_text(errors="replace")[-6000:]
            raise AssertionError(f"seed {int(progress.read_bytes())}: exit code {process.returncode}\n{report}")


def _watched(process: subprocess.Popen[bytes], progress: Path, output: Path) -> Iterator[Counter[str]]:
    seed, since, done = b"", time.monotonic(), 0
    while True:
        is_over = process.poll() is not None
        with open(output, "rb") as file:
            file.seek(done)
            for line in file:
                if line.endswith(b"\n"):
                    done += len(line)
                    yield Counter(json.loads(line))
        if is_over:
            return
        now = progress.read_bytes()
        if now != seed:
            seed, since = now, time.monotonic()
        elif time.monotonic() - since > SECONDS + (60 if not done else 0):  # the first one waits for the corpus
            raise AssertionError(f"seed {int(now)}: it takes longer than {SECONDS} seconds")
        time.sleep(0.05)


def main(argv: Sequence[str] | None = None) -> int:
    if (argv or sys.argv[1:])[:1] == ["--work"]:
        _, backend, folder, first, count, progress, weakness = argv or sys.argv[1:]
        return work(backend, folder, int(first), int(count), progress, weakness)
    parser = argparse.ArgumentParser(
        prog="python -m tests.plan.host_fuzzing", description=(__doc__ or "").split("\n\n")[1]
    )
    parser.add_argument("--plans", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first one")
    parser.add_argument("--backend", default="native", help="native, under AddressSanitizer, or wasm:simd, ...")
    parser.add_argument("--go-on", action="store_true", help="behind a failure, with the next seed")
    arguments = parser.parse_args(argv)
    total, failures, started, said = Counter[str](), 0, time.monotonic(), 0.0
    first, end = arguments.seed, arguments.seed + arguments.plans
    while first < end:
        try:
            for outcomes in run(first, end - first, arguments.backend):
                total += outcomes
                if time.monotonic() - said > 5:
                    said = time.monotonic()
                    print(f"{total['plans']:>8} plans, {total['plans'] / (said - started):.0f} a second", flush=True)
            break
        except AssertionError as failure:
            print(failure, flush=True)
            failures += 1
            if not arguments.go_on:
                break
            first = int(str(failure).partition(":")[0].removeprefix("seed ")) + 1
    for name, count in sorted(total.items(), key=lambda item: (item[0].partition(":")[0], -item[1])):
        print(f"{count:>8} {name}")
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
