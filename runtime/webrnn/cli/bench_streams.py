"""`webrnn bench --stream`: ticks of streams and pools, here, in Node and in Chromium."""

from __future__ import annotations

import argparse
import platform

from webrnn.bench import machine, stream_report
from webrnn.bench.case import model_of
from webrnn.bench.models import streaming_gru
from webrnn.bench.others import Wanted, stream_hosts
from webrnn.bench.streams import StreamBench
from webrnn.engine.kernels.loading import available
from webrnn.engine.programs.backends import fastest_backend
from webrnn.engine.streams.carry import Carry
from webrnn.errors import OptionError

from .bench_modes import progress, write_or_print
from .bench_options import STREAM, measured_with, names
from .options import fixed_inputs, input_shapes, pairs, sizes

SECONDS, DEPTHS, CARRY = 1.0, "1,8,64,256", "auto"


def time_streams(arguments: argparse.Namespace) -> None:
    old = stream_report.load(arguments.compare) if arguments.compare else None
    depths = depths_of(arguments)
    bench = stream_bench(arguments)
    for backend in names("--backend", arguments.backend) or _backends():
        bench.add_backend(backend, depths)
    if not arguments.no_onnxruntime:
        bench.add_onnxruntime(depths)
    seconds = SECONDS if arguments.seconds is None else arguments.seconds
    wanted = Wanted(browser=arguments.browser, peers=arguments.peers, modules=arguments.modules)
    with stream_hosts(wanted, bench) as engines:
        figures = bench.measure(seconds, progress)
    data = {
        "kind": stream_report.KIND,
        "format": stream_report.FORMAT,
        "model": model_name(arguments),
        "frame_ms": arguments.frame_ms,
        "python": platform.python_version(),
        "machine": {**machine.describe(), "engines": engines},
        "rows": [each.as_data() for each in figures],
        "notes": bench.notes,
        **measured_with(arguments, STREAM, seconds=SECONDS, depth=DEPTHS, carry=CARRY),
    }

    def show() -> None:
        print(stream_report.report(figures, arguments.frame_ms))
        for note in bench.notes:
            print(f"  {note}")
        if old is not None:
            print(f"\n{stream_report.comparison(figures, old)}")

    write_or_print(arguments, data, show)


def model_name(arguments: argparse.Namespace) -> str:
    return arguments.model[0] if arguments.model else "built-in GRU"


def stream_bench(arguments: argparse.Namespace) -> StreamBench:
    """Of the model, without any way to run it yet."""
    model = model_of(arguments.model[0])[1] if arguments.model else streaming_gru()
    fixed, shapes = fixed_inputs(arguments.fixed), input_shapes(arguments.shape)
    return StreamBench(model, carry_of(arguments), sizes(arguments.size), fixed, shapes=shapes)


def carry_of(arguments: argparse.Namespace) -> Carry:
    text = CARRY if arguments.carry is None else arguments.carry
    return text if text in ("auto", "internal") else dict(pairs(text.split(",")))


def depths_of(arguments: argparse.Namespace) -> list[int]:
    text = DEPTHS if arguments.depth is None else arguments.depth
    parts = [part for part in text.split(",") if part]
    if not parts or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise OptionError(f"--depth: {text!r} is not a list of numbers")
    return [int(part) for part in parts]


def _backends() -> list[str]:
    kinds = [spec.partition(":")[0] for spec in available()]
    return [kind for kind in ("native", "wasm", "pyodide") if kind in kinds] or [fastest_backend()]
