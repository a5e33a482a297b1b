"""`webrnn bench [model.onnx ...]`, and with `--stream` ticks of streams."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from webrnn.bench.case import SMALL_TOLERANCE, TOLERANCE

from . import bench_modes

TIMES = "how long models take on each backend"
STREAMS = "ticks of streams and pools (--stream)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    positive = partial(_at_least, 1)
    parser.add_argument("model", nargs="*", help="ONNX files, or names of built-in models (default: all of those)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures, too; - prints them and no table")
    parser.add_argument("--compare", type=Path, metavar="OLD.json", help="beside figures of an earlier --json")
    parser.add_argument("--backend", default="", metavar="NAME,...", help="default: all that work here")
    parser.add_argument("--seconds", type=float, help="time for each model (default: 3), for each row of --stream (1)")
    parser.add_argument(
        "--size", action="append", default=[], metavar="NAME=N", help="size of a named axis (default 1)"
    )
    parser.add_argument("--fixed", action="append", default=[], metavar="NAME=VALUE", help="bind an input")

    times = parser.add_argument_group(TIMES)
    times.add_argument(
        "--inputs", type=Path, metavar="FILE.npz", help="inputs by name; or a folder with MODEL.npz (default: random)"
    )
    times.add_argument(
        "--tolerance",
        type=float,
        metavar="X",
        help=f"of results (default: {TOLERANCE} of the largest; {SMALL_TOLERANCE} with --weights)",
    )
    times.add_argument("--peers", action="store_true", help="also onnxruntime, tract, LiteRT and onnxruntime-web")
    times.add_argument("--browser", action="store_true", help="also the plain VM in Node and in Chromium")
    times.add_argument("--pyodide", action="store_true", help="also Pyodide, with its numpy, in Node and in Chromium")
    times.add_argument("--html", type=Path, metavar="FILE", help="write a page with charts, too")
    times.add_argument(
        "--ab", metavar="NAME,...", help='passes or switches to time on and off instead; "help" lists the built-in ones'
    )
    times.add_argument(
        "--weights", action="append", default=[], metavar="FORM", help="also with small weights: f16, int16 or int8"
    )
    times.add_argument("--rounds", type=positive, default=9, help="at least so many, whatever the time (default: 9)")
    times.add_argument("--tflite", type=Path, metavar="FOLDER", help="MODEL.tflite for LiteRT, with --peers")
    times.add_argument("--modules", type=Path, metavar="FOLDER", help="node_modules with onnxruntime-web, with --peers")

    streams = parser.add_argument_group(STREAMS)
    streams.add_argument("--stream", action="store_true", help="time streams instead, of one model")
    streams.add_argument("--carry", default="auto", help="auto, internal, or INPUT=OUTPUT,... (default: auto)")
    streams.add_argument(
        "--depth", default="1,8,64,256", metavar="N,...", help="streams in a pool (default: %(default)s)"
    )
    streams.add_argument("--frame-ms", type=float, help="audio in a frame: adds × realtime")
    streams.add_argument("--no-onnxruntime", action="store_true", help="do not compare with onnxruntime")


def main(arguments: argparse.Namespace) -> None:
    if arguments.stream:
        bench_modes.time_streams(arguments)
    elif arguments.ab:
        bench_modes.time_switches(arguments)
    else:
        bench_modes.time_models(arguments)


def _at_least(least: int, text: str) -> int:
    number = int(text)
    if number < least:
        raise argparse.ArgumentTypeError(f"{number} is less than {least}")
    return number
