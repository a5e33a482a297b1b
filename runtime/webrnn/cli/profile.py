"""`webrnn profile model.onnx`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.engine.random_feeds import random_input
from webrnn.engine.session import InferenceSession
from webrnn.engine.streams.carry import Carry
from webrnn.errors import OptionError
from webrnn.ir import Symbol, Value
from webrnn.profile.html import report_html
from webrnn.profile.profiler import Profile
from webrnn.profile.subject import Subject
from webrnn.profile.text import as_data, report_text

from .options import add_model_options, add_weight_options, fixed_inputs, loaded, pairs, pass_names, weight_arguments
from .options import sizes as size_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="path of an ONNX file or of a plan")
    parser.add_argument("--backend", default="auto", help="native, wasm:relaxed, ..., numpy (default: auto)")
    parser.add_argument("--steps", type=int, metavar="N", help="runs in each round (default: as many as take 10 ms)")
    parser.add_argument("--stream", action="store_true", help="one step of a stream, its states carried")
    parser.add_argument("--carry", default="auto", help="with --stream: auto, internal, or INPUT=OUTPUT,...")
    parser.add_argument(
        "--input", action="append", default=[], metavar="NAME=FILE.npy", help="an input; others are random"
    )
    parser.add_argument(
        "--size", "--sizes", nargs="+", action="extend", default=[], metavar="NAME=N", help="sizes of named axes"
    )
    add_model_options(parser)
    add_weight_options(parser)
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs")
    parser.add_argument("--all", action="store_true", help="small entries, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures, too; - prints them and no table")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a flame chart, too: one file, no network")


def main(arguments: argparse.Namespace) -> None:
    if arguments.steps is not None and arguments.steps < 1:
        raise OptionError(f"--steps is at least 1, not {arguments.steps}")
    found = _profile(arguments)
    if arguments.html is not None:
        arguments.html.write_text(report_html(found), encoding="utf-8")
    if arguments.json is not None and str(arguments.json) == "-":
        print(json.dumps(as_data(found), indent=1))
        return
    print(report_text(found, everything=arguments.all))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(as_data(found), indent=1) + "\n")


def _profile(arguments: argparse.Namespace) -> Profile:
    session = InferenceSession(
        arguments.model,
        backend=arguments.backend,
        disable=pass_names(arguments.disable),
        fixed=fixed_inputs(arguments.fixed),
        **weight_arguments(arguments),
    )
    subject = Subject(session, _carry(arguments.carry) if arguments.stream else None)
    feeds: dict[str, Any] = {name: loaded(file) for name, file in pairs(arguments.input)}
    rng, sizes = np.random.default_rng(arguments.seed), size_options(arguments.size)
    named = [_with_named_sizes(value) for value in subject.inputs]
    known = {str(dim) for value in named for dim in value.shape or () if not isinstance(dim, int)}
    for name in sizes:
        if name not in known:
            raise OptionError(f"there is no size {name!r}; {', '.join(sorted(known)) or 'none'} can be given")
    for value in named:
        if value.name not in feeds:
            feeds[value.name] = random_input(value, sizes, rng)
    return subject.profile(feeds, arguments.steps, Path(arguments.model).name)


def _with_named_sizes(value: Value) -> Value:
    """Axes without a name have that of the input and their number, as in the text of the plan."""
    found = value.like(value.name)
    if value.shape is not None:
        found.shape = tuple(Symbol(f"{value.name}.{i}") if dim is None else dim for i, dim in enumerate(value.shape))
    return found


def _carry(text: str) -> Carry:
    return text if text in ("auto", "internal") else dict(pairs(text.split(",")))
