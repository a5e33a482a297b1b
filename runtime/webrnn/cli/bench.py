"""`webrnn bench [model.onnx ...]`, and with `--stream` ticks of streams."""

from __future__ import annotations

import argparse
import math
from functools import partial
from pathlib import Path

from webrnn.bench.case import SMALL_TOLERANCE, TOLERANCE

from . import bench_modes, bench_options, bench_pairs, bench_streams
from .options import add_size_options
from .output import add_json_option

TIMES = "how long models take on each backend"
PAIRS = "two sides in turn"
STREAMS = "ticks of streams and pools (--stream)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All defaults are None, False or empty, so that it is known what was given."""
    positive = partial(_at_least, 1)
    above, from_zero = partial(_number, is_above=True), partial(_number, is_above=False)
    parser.add_argument("model", nargs="*", help="ONNX files, or names of built-in models (default: all of those)")
    add_json_option(parser)
    parser.add_argument("--compare", type=Path, metavar="OLD.json", help="beside figures of an earlier --json")
    parser.add_argument("--backend", metavar="NAME,...", help="default: all that work here")
    parser.add_argument(
        "--seconds", type=from_zero, help="time for each model or pair (default: 3), for each row of --stream (1)"
    )
    add_size_options(parser)
    parser.add_argument("--fixed", action="append", default=[], metavar="NAME=VALUE", help="bind an input")
    parser.add_argument("--peers", action="store_true", help="also onnxruntime, tract, LiteRT and onnxruntime-web")
    parser.add_argument("--browser", action="store_true", help="also the plain VM in Node and in Chromium")
    parser.add_argument(
        "--modules", type=Path, metavar="FOLDER", help="node_modules with onnxruntime-web, with --peers"
    )

    times = parser.add_argument_group(TIMES)
    times.add_argument(
        "--inputs", type=Path, metavar="FILE.npz", help="inputs by name; or a folder with MODEL.npz (default: random)"
    )
    times.add_argument(
        "--tolerance",
        type=from_zero,
        metavar="X",
        help=f"of results (default: {TOLERANCE} of the largest; {SMALL_TOLERANCE} with --weights)",
    )
    times.add_argument("--pyodide", action="store_true", help="also Pyodide, with its numpy, in Node and in Chromium")
    times.add_argument("--html", type=Path, metavar="FILE", help="write a page with charts, too")
    times.add_argument(
        "--weights", action="append", default=[], metavar="FORM", help="also with small weights: f16, int16 or int8"
    )
    times.add_argument("--tflite", type=Path, metavar="FOLDER", help="MODEL.tflite for LiteRT, with --peers")

    pairs = parser.add_argument_group(PAIRS)
    pairs.add_argument(
        "--ab", metavar="NAME,...", help='passes or switches to time on and off instead; "help" lists the built-in ones'
    )
    pairs.add_argument(
        "--against",
        metavar="PATH",
        help="another revision, in turn with this one: a checkout with built kernels, or a Python with webrnn",
    )
    pairs.add_argument(
        "--rounds",
        type=positive,
        help=f"at least so many, whatever the time (default: {bench_modes.ROUNDS}, of pairs {bench_pairs.ROUNDS})",
    )

    streams = parser.add_argument_group(STREAMS)
    streams.add_argument("--stream", action="store_true", help="time streams instead, of one model")
    streams.add_argument("--carry", help="auto, internal, or INPUT=OUTPUT,... (default: auto)")
    streams.add_argument("--depth", metavar="N,...", help=f"streams in a pool (default: {bench_streams.DEPTHS})")
    streams.add_argument("--frame-ms", type=above, help="audio in a frame: adds × realtime")
    streams.add_argument("--no-onnxruntime", action="store_true", help="do not compare with onnxruntime")


def main(arguments: argparse.Namespace) -> None:
    mode = bench_options.checked_mode(arguments)
    if arguments.ab == "help":
        bench_modes.list_switches()
        return
    {
        bench_options.TIMES: bench_modes.time_models,
        bench_options.AB: bench_modes.time_switches,
        bench_options.AGAINST: bench_pairs.time_revisions,
        bench_options.STREAM: bench_streams.time_streams,
        bench_options.STREAM_AB: bench_pairs.time_stream_switches,
        bench_options.STREAM_AGAINST: bench_pairs.time_stream_revisions,
    }[mode](arguments)


def _at_least(least: int, text: str) -> int:
    number = int(text)
    if number < least:
        raise argparse.ArgumentTypeError(f"{number} is less than {least}")
    return number


def _number(text: str, *, is_above: bool) -> float:
    number = float(text)
    if not math.isfinite(number) or number < 0 or (is_above and number == 0):
        raise argparse.ArgumentTypeError(f"{text} is no number {'above 0' if is_above else 'from 0 on'}")
    return number
