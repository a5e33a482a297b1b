"""Damaged plans on a sanitized build of the VM: `python -m tests.plan.fuzzing [--plans N] [--seed S] [--undefined]`.

Every access outside the memory that a plan asks for ends the run and names the seed of the plan; with --undefined, for
which the build takes longer, all undefined behaviour does.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.plan.corpus import Sample, samples
from tests.plan.corruption import corrupted
from tests.plan.hostile import hostile
from wasm_kernels.build import HERE as SOURCES
from wasm_kernels.build import ROOT, generated_headers
from wasm_kernels.systems import UNFUSED
from webrnn.plan.opcodes import ERRORS

COMPILERS = ("clang", *(f"clang-{n}" for n in range(30, 12, -1)), "gcc")
ADDRESS, UNDEFINED, LIBFUZZER, THREAD = "address", "address,undefined", "fuzzer,address", "thread"
RUN_HEADER = Path(__file__).parent / "fuzz_run.h"
FLAGS = [
    "-std=gnu11",
    "-O1",
    "-g1",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-Wno-unknown-pragmas",
    "-DWEBRNN_THREADS",
    "-pthread",
]
WORK = ROOT / "build" / "fuzz"
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:symbolize=0",
    "TSAN_OPTIONS": "halt_on_error=1:symbolize=0",
    "UBSAN_OPTIONS": "print_stacktrace=1:symbolize=0",
}
"""A report is not symbolized, because that takes longer than a plan may run."""


@cache
def compiler(checks: str = ADDRESS) -> str | None:
    """A compiler that links a sanitized program which runs; gcc first where it is faster, for undefined behaviour."""
    names = COMPILERS if checks != UNDEFINED else COMPILERS[::-1]
    text = "int main(void) { return 0; }\n"
    if "fuzzer" in checks:  # it brings main
        text = "int LLVMFuzzerTestOneInput(const char *data, unsigned long size) { return 0 * (data[0] + size); }\n"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "empty.c"
        source.write_text(text)
        for name in filter(shutil.which, names):
            program = Path(folder) / "empty"
            built = subprocess.run([name, f"-fsanitize={checks}", str(source), "-o", str(program)], capture_output=True)
            started = built.returncode == 0 and subprocess.run([str(program), "-help=1"], capture_output=True)
            if started and started.returncode == 0:
                return name
    return None


@cache
def driver(checks: str = ADDRESS, name: str = "fuzz_driver") -> Path:
    """The sanitized program of fuzz_driver.c, or of another source beside it, built if a source has changed."""
    found = compiler(checks)
    if found is None:
        raise RuntimeError(f"no compiler here links -fsanitize={checks}: install clang-14 and libclang-rt-14-dev")
    WORK.mkdir(parents=True, exist_ok=True)
    headers = generated_headers()
    source = Path(__file__).parent / f"{name}.c"
    simd = ["-march=x86-64-v3"] if platform.machine() in ("x86_64", "AMD64") and _has_avx2() else []
    command = [found, *FLAGS, f"-fsanitize={checks}", "-fno-sanitize-recover=all", *simd, UNFUSED]
    sources = [path.read_text() for path in (source, RUN_HEADER, *sorted(SOURCES.glob("*.[ch]")))]
    digest = hashlib.sha256("\0".join([*command, *headers.values(), *sources]).encode()).hexdigest()[:16]
    program = WORK / f"{name}-{digest}"
    if not program.exists():
        with tempfile.TemporaryDirectory(dir=WORK) as folder:
            for name, text in headers.items():
                (Path(folder) / name).write_text(text)
            built = Path(folder) / "driver"
            subprocess.run([*command, f"-I{folder}", f"-I{SOURCES}", str(source), "-o", str(built)], check=True)
            os.replace(built, program)
    return program


def _has_avx2() -> bool:
    info = Path("/proc/cpuinfo")
    return info.exists() and "avx2" in info.read_text()


def bad_plan(rng: random.Random) -> tuple[Sample, bytes]:
    """A damaged plan and what it was, or one that was never whole."""
    if rng.random() < 0.4:
        sample = hostile(rng)
        return sample, sample.data
    sample = rng.choice(samples())
    return sample, corrupted(sample, rng)


def run(seeds: Sequence[int], checks: str = ADDRESS, missing_bytes: int = 0) -> Counter[str]:
    """What became of the plans that these seeds damage; AssertionError with the report if a sanitizer has one.

    `missing_bytes` of each external are not there, which the sanitizer must find out.
    """
    plans = []
    for seed in seeds:
        rng = random.Random(seed)
        sample, data = bad_plan(rng)
        symbols = (
            sample.symbols if rng.random() < 0.8 else tuple(rng.choice((0, 1, 2, 5, 1000)) for _ in sample.symbols)
        )
        plans.append((f"seed {seed}", data, seed & 0x7FFFFFFF, symbols))
    return run_plans(plans, checks, missing_bytes)


def run_plans(
    plans: Sequence[tuple[str, bytes, int, Sequence[int]]],
    checks: str = ADDRESS,
    argument: int = 0,
    name: str = "fuzz_driver",
) -> Counter[str]:
    """The same of given plans: (name, file, seed of what its memory holds, numbers of its symbols) each, on the program
    of fuzz_driver.c, whose argument is `missing_bytes`, or of another source beside it."""
    records = [
        struct.pack(f"<{3 + len(symbols)}i", len(data), seed, len(symbols), *symbols) + data
        for _, data, seed, symbols in plans
    ]
    command, environment = [str(driver(checks, name)), str(argument)], {**os.environ, **OPTIONS}
    done = subprocess.run(command, input=b"".join(records), capture_output=True, env=environment)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").splitlines()
        at = max(index for index, line in enumerate(lines) if re.fullmatch(r"plan \d+", line))
        report = "\n".join(lines[at + 1 :])
        raise AssertionError(f"{plans[int(lines[at].split()[1])][0]}: exit code {done.returncode}\n{report[:6000]}")
    return Counter({name: int(count) for name, count in (line.split() for line in done.stdout.decode().splitlines())})


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.plan.fuzzing", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--plans", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first one")
    parser.add_argument("--undefined", action="store_true", help="look for all undefined behaviour")
    arguments = parser.parse_args(argv)
    total: Counter[str] = Counter()
    for first in range(arguments.seed, arguments.seed + arguments.plans, 1000):
        seeds = range(first, min(first + 1000, arguments.seed + arguments.plans))
        total += run(seeds, UNDEFINED if arguments.undefined else ADDRESS)
        print(f"{sum(total.values()):>8} plans, {total['ran']} ran to their end", flush=True)
    for name, count in sorted(total.items(), key=lambda item: -item[1]):
        kind, _, number = name.partition("_")
        print(f"{count:>8} {f'{kind}: {ERRORS[int(number)]}' if number.isdecimal() else name.replace('_', ' ')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
