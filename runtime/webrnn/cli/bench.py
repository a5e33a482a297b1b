"""`webrnn bench --stream [model.onnx]`."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from webrnn.engine.backends import fastest_backend
from webrnn.engine.carry import Carry
from webrnn.engine.kernels import available
from webrnn.errors import OptionError
from webrnn.tables import table

from .builtin_model import gru_model
from .options import fixed_inputs, pairs, sizes
from .stream_bench import Figures, StreamBench

FORMAT = 1
"""Of the JSON."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", help="path of an ONNX file (default: a GRU of 128, frames of 64)")
    parser.add_argument("--stream", action="store_true", required=True, help="ticks of streams and pools")
    parser.add_argument("--carry", default="auto", help="auto, internal, or INPUT=OUTPUT,... (default: auto)")
    parser.add_argument("--backend", default="", metavar="NAME,...", help="default: native and wasm, where they run")
    parser.add_argument(
        "--depth", default="1,8,64,256", metavar="N,...", help="streams in a pool (default: %(default)s)"
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each row (default: %(default)s)")
    parser.add_argument("--frame-ms", type=float, help="audio in a frame: adds × realtime")
    parser.add_argument(
        "--size", action="append", default=[], metavar="NAME=N", help="size of a named axis (default 1)"
    )
    parser.add_argument("--fixed", action="append", default=[], metavar="NAME=VALUE", help="bind an input")
    parser.add_argument("--no-onnxruntime", action="store_true", help="do not compare with onnxruntime")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures, too; - prints them and no table")
    parser.add_argument("--compare", type=Path, metavar="OLD.json", help="beside figures of an earlier --json")


def main(arguments: argparse.Namespace) -> None:
    old = _loaded(arguments.compare) if arguments.compare else None
    depths = _numbers(arguments.depth)
    model: str | bytes = arguments.model or gru_model()
    bench = StreamBench(model, _carry(arguments.carry), sizes(arguments.size), fixed_inputs(arguments.fixed))
    for backend in [name for name in arguments.backend.split(",") if name] or _backends():
        bench.add_backend(backend, depths)
    if not arguments.no_onnxruntime:
        bench.add_onnxruntime(depths)
    figures = bench.measure(arguments.seconds, _progress)
    data = {
        "format": FORMAT,
        "model": arguments.model or "built-in GRU",
        "frame_ms": arguments.frame_ms,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "rows": [each.as_data() for each in figures],
    }
    if arguments.json is not None and str(arguments.json) == "-":
        print(json.dumps(data, indent=1))
        return
    print(report(figures, arguments.frame_ms))
    for note in bench.notes:
        print(f"  {note}")
    if old is not None:
        print(f"\n{comparison(figures, old)}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(data, indent=1) + "\n")


def report(figures: Sequence[Figures], frame_ms: float | None) -> str:
    """A table: one way and number of streams a line."""
    header = ["way", "streams", "ticks", "ms/tick", "ticks/s", "p50", "p99", "p99.9", "worst", "KiB/tick", "grows by"]
    rows: list[list[object]] = []
    for each in figures:
        times = (each.p50, each.p99, each.p999, each.worst)
        rows.append(
            [
                each.way,
                each.depth,
                each.ticks,
                f"{each.mean:.4f}",
                f"{each.ticks_per_second:,.0f}",
                *(f"{number:.4f}" for number in times),
                f"{each.kib_per_tick:.1f}",
                f"{each.blocks_per_tick:.1f}",
            ]
        )
        if frame_ms is not None:
            rows[-1].append(f"{each.times_realtime(frame_ms):,.0f}")
    if frame_ms is not None:
        header.append("× realtime")
    return table("ticks of streams (ms)", rows, header)


def comparison(figures: Sequence[Figures], old: dict[str, Any]) -> str:
    """New against old times, of rows that both have."""
    before = {(row["way"], row["depth"]): row for row in old["rows"]}
    rows = []
    for each in figures:
        row = before.get((each.way, each.depth))
        if row is not None:
            now = {"p50": each.p50, "mean": each.mean, "p99": each.p99}
            rows.append([each.way, each.depth, *(f"{now[name] / row[name]:.2f}" for name in now)])
    return table(f"new ÷ old (of {old['model']})", rows, ["way", "streams", "p50", "mean", "p99"])


def _progress(line: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{line} ", end="" if not line.startswith("round 10") else "\n", file=sys.stderr, flush=True)


def _backends() -> list[str]:
    kinds = [spec.partition(":")[0] for spec in available()]
    return [kind for kind in ("native", "wasm", "pyodide") if kind in kinds] or [fastest_backend()]


def _carry(text: str) -> Carry:
    return text if text in ("auto", "internal") else dict(pairs(text.split(",")))


def _numbers(text: str) -> list[int]:
    parts = [part for part in text.split(",") if part]
    if not parts or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise OptionError(f"{text!r} is not a list of numbers")
    return [int(part) for part in parts]


def _loaded(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text())
        if data["format"] == FORMAT and data["rows"] is not None:
            return dict(data)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OptionError(f"{str(file)!r} has no figures of `webrnn bench --json`: {error}") from None
    raise OptionError(f"{str(file)!r} has figures of another version")
