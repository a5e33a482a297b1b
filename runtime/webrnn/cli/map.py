"""`webrnn map model.onnx recordings/ -o results`."""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import asdict
from typing import Any

from webrnn.corpora.api import map as map_items
from webrnn.corpora.options import REMAINDERS, Options
from webrnn.errors import OptionError

from .options import (
    add_model_options,
    add_stream_options,
    add_weight_options,
    by_frames,
    fixed_inputs,
    pairs,
    pass_names,
    weight_arguments,
)
from .output import add_json_option, show

FAILED, INTERRUPTED = 3, 130
"""Exit codes: some items are bad; Ctrl-C."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="path of an ONNX file or of a plan")
    parser.add_argument(
        "inputs",
        nargs="+",
        help=".npy, .npz, .wav and .parquet files, folders, patterns, @FILE with a path in each line, - for stdin",
    )
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="folder of the results")
    parser.add_argument("--restart", action="store_true", help="drop the results in OUT and begin anew")
    parser.add_argument("--retry-failed", action="store_true", help="try bad items again")
    parser.add_argument("--quiet", action="store_true", help="no progress, no summary")
    add_json_option(parser)
    who = parser.add_argument_group("who works")
    who.add_argument("--processes", type=int, metavar="N", help="processes (default: one a core; 0: this one)")
    who.add_argument("--dask", metavar="ADDRESS", help="workers of a Dask cluster, by the address of its scheduler")
    who.add_argument("--batch", type=int, metavar="N", help="most items that are run together (default 32)")
    model = parser.add_argument_group("the model")
    model.add_argument("--backend", default="auto")
    add_model_options(parser)
    add_weight_options(parser)
    items = parser.add_argument_group("items")
    items.add_argument("--input", metavar="NAME", help="the input that takes an item without names")
    items.add_argument(
        "--columns", nargs="+", action="extend", default=[], metavar="INPUT=COLUMN", help="of parquet and .npz files"
    )
    items.add_argument("--rate", metavar="HZ", help="sample rate that wav files have to have, or any")
    items.add_argument("--resample", action="store_true", help="change other rates to --rate")
    items.add_argument("--mono", action="store_true", help="take the mean of the channels of wav files")
    items.add_argument("--cast", action="store_true", help="convert numbers to the type of the input")
    items.add_argument("--finite", action="store_true", help="items or results with NaN or infinity are bad")
    items.add_argument("--outputs", nargs="+", metavar="NAME", help="outputs to keep (default: all)")
    stream = parser.add_argument_group("streams")
    stream.add_argument("--stream", action="store_true", help="run each item as a stream")
    stream.add_argument(
        "--carry", nargs="+", action="extend", default=[], metavar="INPUT=OUTPUT", help="states; or auto, or internal"
    )
    add_stream_options(parser)
    stream.add_argument("--frame", type=int, metavar="N", help="frames or samples of a step")
    stream.add_argument("--hop", type=int, metavar="N", help="how far a step goes on (default: a frame)")
    stream.add_argument("--remainder", choices=REMAINDERS, help="what becomes of a last frame that is not whole")
    stream.add_argument(
        "--join", metavar="AXIS", help="join the results of steps along it, or overlap (default: stack)"
    )


def main(arguments: argparse.Namespace) -> int:
    options = map_options(arguments)
    try:
        summary = map_items(
            arguments.model,
            arguments.inputs,
            arguments.output,
            processes=arguments.processes,
            dask=arguments.dask,
            batch=arguments.batch,
            restart=arguments.restart,
            retry_failed=arguments.retry_failed,
            progress=not arguments.quiet,
            **options,
        )
    except KeyboardInterrupt:
        again = shlex.join(["webrnn", *(word for word in sys.argv[1:] if word != "--restart")])
        print(f"webrnn map: stopped. What is done is kept; this goes on:\n  {again}", file=sys.stderr)
        return INTERRUPTED
    if not arguments.quiet or arguments.json is not None:
        show(arguments, asdict(summary), lambda: str(summary))
    return FAILED if summary.failed else 0


def map_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Those of `webrnn.corpora.Options` that are given."""
    given: dict[str, Any] = {
        "backend": arguments.backend,
        "disable": tuple(pass_names(arguments.disable)),
        "fixed": fixed_inputs(arguments.fixed) or None,
        **weight_arguments(arguments),
        **by_frames(arguments),
        "stream": arguments.stream,
        "carry": _carry(arguments.carry),
        "join": _axis_or(arguments.join, "overlap", "--join"),
        "rate": _axis_or(arguments.rate, "any", "--rate"),
        "columns": dict(pairs(arguments.columns)) or None,
        "outputs": None if arguments.outputs is None else tuple(arguments.outputs),
    }
    for name in ("input", "resample", "mono", "cast", "finite", "frame", "hop", "remainder"):
        given[name] = getattr(arguments, name)
    defaults = Options()
    return {name: value for name, value in given.items() if value != getattr(defaults, name)}


def _carry(items: list[str]) -> dict[str, str] | str | None:
    if len(items) == 1 and "=" not in items[0]:
        if items[0] not in ("auto", "internal"):
            raise OptionError(f"--carry {items[0]}: it is INPUT=OUTPUT, auto or internal")
        return items[0]
    return dict(pairs(items)) or None


def _axis_or(text: str | None, word: str, option: str) -> int | str | None:
    if text is None or text == word:
        return text
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"{option} {text}: it is a number or {word}") from None
