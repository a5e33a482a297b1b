"""`make scan-study`: writes docs/scan-study.md, the ways to run a recurrent loop beside each other.

All ways of a model are timed in interleaved rounds, as `webrnn bench` does it; those in V8 run in a Node process that
waits between its turns.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from bench.scan_study_text import (
    FUSED,
    LOOP,
    MODELS,
    NAIVE,
    ORT,
    ORT_WEB,
    REUSE,
    TRACT,
    WAYS,
    discussion,
)
from webrnn.bench import models, table
from webrnn.bench.benchmark import Benchmark
from webrnn.bench.case import built_in
from webrnn.bench.others import modules_folder, pyodide_folder
from webrnn.bench.peers import native_peers
from webrnn.bench.rounds import Effort, ModelResult
from webrnn.bench.runners import backend_runner
from webrnn.bench.web import NodeHost, WebRunner, Workshop
from webrnn.errors import Error

OUTPUT = Path(__file__).resolve().parents[1] / "docs" / "scan-study.md"
SECONDS = 6.0
TITLES = {name: models.TITLES[name] for name in MODELS}
NATIVE = (NAIVE, REUSE, LOOP, FUSED, ORT, TRACT)
WASM = tuple(f"{way} {where}" for where in ("wasmtime", "Node") for way in (LOOP, FUSED))
PYODIDE = tuple(f"{way} Pyodide" for way in (NAIVE, REUSE))


def makers(bench: Benchmark, stack: ExitStack) -> dict[str, Any]:
    """All ways, the fused VM first: the others are compared with it."""
    no_fusing, no_buffers = ["fused_sequences"], ["scan_buffers"]
    ways: dict[str, Any] = {
        FUSED: partial(backend_runner, backend="native"),
        LOOP: partial(backend_runner, backend="native", disable=no_fusing),
        REUSE: partial(backend_runner, backend="numpy"),
        NAIVE: partial(backend_runner, backend="numpy", disable=no_buffers),
        f"{FUSED} wasmtime": partial(backend_runner, backend="wasm:relaxed"),
        f"{LOOP} wasmtime": partial(backend_runner, backend="wasm:relaxed", disable=no_fusing),
    }
    peers, missing = native_peers()
    ways |= {name: make for name, make in peers.items() if name in NATIVE}
    bench.notes += [line for line in missing if not line.startswith("LiteRT")]
    modules = modules_folder()
    if modules is None:
        bench.notes.append("onnxruntime-web is not installed: `make peers`")
    pyodide = None
    try:
        pyodide = pyodide_folder()
    except Error as error:
        bench.notes.append(f"Pyodide: {error}")
    workshop = Workshop(pyodide, modules)
    stack.callback(workshop.close)
    node = NodeHost(workshop)
    stack.callback(node.close)
    bench.machine["engines"] = {"node": node.ask("about")["name"]}

    def web(name: str, **options: Any) -> None:
        ways[name] = lambda case: WebRunner(name, case, node, workshop, **options)

    web(f"{FUSED} Node", engine="vm")
    web(f"{LOOP} Node", engine="vm", disable=no_fusing)
    if pyodide is not None:
        web(f"{REUSE} Pyodide", engine="inPython", backend="numpy")
        web(f"{NAIVE} Pyodide", engine="inPython", backend="numpy", disable=no_buffers)
    if modules is not None:
        web(ORT_WEB, engine="onnxruntimeWeb")
    return ways


def figures(models: Sequence[ModelResult], ways: Sequence[str]) -> str:
    """A table: the best time of a run in microseconds, and how much longer than the first way of `models`."""
    there = [way for way in ways if any((result := model.of(way)) and result.seconds for model in models)]
    lines = [f"| model | {' | '.join(there)} |", "|---" * (len(there) + 1) + "|"]
    for model in models:
        cells = []
        for way in there:
            result = model.of(way)
            if result is None or not result.seconds:
                cells.append("-")
            elif model.base is None or result is model.base:
                cells.append(table.time_text(result.best))
            else:
                cells.append(f"{table.time_text(result.best)} ({result.ratio_to(model.base).median:.3g}×)")
        lines.append(f"| {TITLES[model.name]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def document(bench: Benchmark) -> str:
    about = "\n".join(f"- {line.strip()}" for line in table.machine_lines(bench.machine, bench.limits))
    parts = [
        "# Scan study: ways to run a recurrent loop",
        "Written by `make scan-study`; do not edit it by hand. How to read such figures, and what not to conclude from "
        "them: [benchmarks](benchmarks.md).",
        f"The same loop in several ways, all float32, batch 1, one thread:\n\n{WAYS}",
        "The passes have run in all of ours: X·Wᵀ is outside the loop, the cell is one op. Measured on:",
        about,
        "## Native\nBest time of a run in microseconds; in brackets times the fused VM's, the median of calm rounds.",
        figures(bench.models, NATIVE),
        "## WebAssembly\nRelaxed SIMD; in brackets how many times the native fused VM's.",
        figures(bench.models, (*PYODIDE, *WASM, ORT_WEB)),
        f"## Where each wins, and why\n{discussion(bench.models).rstrip()}",
    ]
    notes = [f"- {line}" for line in bench.notes]
    if notes:
        parts.append("\n".join(["## Notes", *notes]))
    return "\n\n".join(parts) + "\n"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scan_study", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="for five ways of a model (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=9, help="at least so many (default: %(default)s)")
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS, metavar="M")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args(argv)
    bench = Benchmark(effort=Effort(arguments.seconds, arguments.rounds))
    with ExitStack() as stack:
        bench.makers = makers(bench, stack)
        with table.Screen() as screen:
            bench.run({name: partial(built_in, name) for name in arguments.models}, screen.show)
    arguments.output.write_text(document(bench))
    print(f"{arguments.output.name}: {len(bench.models)} models, {len(bench.makers)} ways")
    return 0


if __name__ == "__main__":
    sys.exit(main())
