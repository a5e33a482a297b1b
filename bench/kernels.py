"""`make bench-kernels`: every kernel on every build, timed inside the module, with the ratio of each build to native.

All builds are timed in one process in interleaved rounds; a kernel runs many times per call, so that the cost of the
call from Python (microseconds natively, tens of them into wasmtime) does not show. Printed are the medians of the
rounds, and of the ratios within the calm ones.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from wasm_kernels import build, toolchains
from wasm_kernels.cases import Case, bench
from wasm_kernels.table import KERNELS, Kernel
from webrnn.bench import charts, machine
from webrnn.bench.rounds import race
from webrnn.bench.runners import RepeatRunner
from webrnn.engine.kernels import loading as kernels

FOLDER = build.ROOT / "build" / "bench"


def loaded() -> list[kernels.Kernels]:
    """Benchmark builds (with repeat functions) of the best native instruction set and of all wasm variants."""
    tool = toolchains.find("zig")
    targets = [build.TARGETS[name] for name in build.GROUPS["default"]]
    for target in (target for target in targets if target.module == "full"):  # the others export no kernels
        build.build(target, tool, FOLDER, bench=True, say=lambda line: print(line, file=sys.stderr))
    build.write_bindings(FOLDER, bench=True)
    return [kernels.load(spec, FOLDER) for spec in ("native", "wasm:relaxed", "wasm:simd", "wasm:scalar")]


def runner(on: kernels.Kernels, kernel: Kernel, case: Case) -> RepeatRunner:
    """A kernel on a build, its arguments in that build's memory."""
    buffers: dict[str, Any] = {}
    for name, value in case.arguments.items():
        buffers[name] = on.buffer(value, value.dtype) if isinstance(value, np.ndarray) else value
    for name, (size, dtype) in case.outputs.items():
        buffers[name] = on.empty(size, dtype)
    function = getattr(on, f"{kernel.name}_repeat")
    arguments = [buffers[name] for _, name in kernel.parameters]
    return RepeatRunner(lambda count: function(count, *arguments))


def traffic(case: Case) -> float:
    """Bytes read and written once."""
    read = sum(value.nbytes for value in case.arguments.values() if isinstance(value, np.ndarray))
    return read + sum(size * np.dtype(dtype).itemsize for size, dtype in case.outputs.values())


def measure(builds: list[kernels.Kernels], chosen: list[Kernel], rounds: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    rows = []
    for position, kernel in enumerate(chosen):
        if sys.stderr.isatty():
            print(f"\r{position + 1}/{len(chosen)} {kernel.name:<20}", end="", file=sys.stderr)
        case = bench(kernel, rng)
        results = race({b.spec: runner(b, kernel, case) for b in builds}, rounds)
        rows.append(
            {
                "kernel": kernel.name,
                "case": case.label,
                "flops": case.flops,
                "bytes": traffic(case),
                "us": {result.runner: result.median * 1e6 for result in results},
                "ratio": {result.runner: result.ratio_to(results[0]).median for result in results},
            }
        )
    if sys.stderr.isatty():
        print("\r" + " " * 40, end="\r", file=sys.stderr)
    return rows


def table(rows: list[dict[str, Any]], specs: list[str]) -> str:
    native, *others = specs
    head = f"{'kernel':<18}{'case':<20}{'native us':>10}{'GFLOP/s':>9}{'GB/s':>8}"
    lines = [head + "".join(f"{spec.removeprefix('wasm:') + ' us':>13}{'x':>6}" for spec in others)]
    lines.append("-" * len(lines[0]))
    for row in rows:
        us = row["us"][native]
        gflops = f"{row['flops'] / us / 1e3:9.2f}" if row["flops"] else " " * 9
        label = row["case"] if len(row["case"]) < 20 else row["case"][:16] + "..."
        line = f"{row['kernel']:<18}{label:<20}{us:10.3f}{gflops}{row['bytes'] / us / 1e3:8.1f}"
        lines.append(line + "".join(f"{row['us'][s]:13.3f}{row['ratio'][s]:6.2f}" for s in others))
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.kernels", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("kernels", nargs="*", help="names from the kernel table (default: all)")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--svg", type=Path, help="write a bar chart of the ratios")
    arguments = parser.parse_args(argv)
    unknown = set(arguments.kernels) - {k.name for k in KERNELS}
    if unknown:
        parser.error(f"no such kernel: {', '.join(sorted(unknown))}")
    chosen = [k for k in KERNELS if not arguments.kernels or k.name in arguments.kernels]
    builds = loaded()
    rows = measure(builds, chosen, arguments.rounds)
    print(
        f"{builds[0].spec} against wasm under wasmtime; load {machine.load()}; "
        "x: times the native time, median of calm rounds"
    )
    print(table(rows, [b.spec for b in builds]))
    if arguments.svg:
        bars = {row["kernel"]: [row["ratio"][b.spec] for b in builds[1:]] for row in rows}
        arguments.svg.write_text(charts.bars("Time relative to native (log scale)", [b.spec for b in builds[1:]], bars))
        print(f"chart: {arguments.svg}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
