"""`webrnn profile model.onnx`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.engine.session import InferenceSession
from webrnn.engine.streams.carry import Carry
from webrnn.errors import OptionError
from webrnn.guesses import Guesses, bound_sizes, first_that_runs, stride_sizes
from webrnn.profile.html import report_html
from webrnn.profile.profiler import Profile
from webrnn.profile.subject import Subject
from webrnn.profile.text import as_data, report_text

from .options import (
    add_input_option,
    add_model_options,
    add_seed_option,
    add_size_options,
    add_weight_options,
    fixed_inputs,
    given_inputs,
    guesses_for,
    input_shapes,
    pairs,
    pass_names,
    sizes,
    weight_arguments,
)
from .output import add_json_option, show, write_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="path of an ONNX file or of a plan")
    parser.add_argument("--backend", default="auto", help="native, wasm:relaxed, ..., numpy (default: auto)")
    parser.add_argument("--steps", type=int, metavar="N", help="runs in each round (default: as many as take 10 ms)")
    parser.add_argument("--stream", action="store_true", help="one step of a stream, its states carried")
    parser.add_argument("--carry", default="auto", help="with --stream: auto, internal, or INPUT=OUTPUT,...")
    add_input_option(parser)
    add_size_options(parser)
    add_model_options(parser)
    add_weight_options(parser)
    add_seed_option(parser)
    parser.add_argument("--all", action="store_true", help="small entries, too")
    add_json_option(parser)
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a flame chart, too: one file, no network")


def main(arguments: argparse.Namespace) -> None:
    if arguments.steps is not None and arguments.steps < 1:
        raise OptionError(f"--steps is at least 1, not {arguments.steps}")
    found = _profile(arguments)
    if arguments.html is not None:
        write_text(arguments.html, report_html(found))
    show(arguments, as_data(found), lambda: report_text(found, everything=arguments.all))


def _profile(arguments: argparse.Namespace) -> Profile:
    session = InferenceSession(
        arguments.model,
        backend=arguments.backend,
        disable=pass_names(arguments.disable),
        fixed=fixed_inputs(arguments.fixed),
        **weight_arguments(arguments),
    )
    subject = Subject(session, _carry(arguments.carry) if arguments.stream else None)
    feeds = _feeds(session, subject, arguments)
    return subject.profile(feeds, arguments.steps, Path(arguments.model).name)


def _feeds(session: InferenceSession, subject: Subject, arguments: argparse.Namespace) -> dict[str, Any]:
    """What a run takes; of a stream by frames one stride of them."""
    given = given_inputs(session, arguments.input)
    timing = subject.timing
    if timing is None:
        tries = guesses_for(session, arguments, given, is_step=arguments.stream).tries()
        return first_that_runs(tries, lambda feeds: session.run(None, feeds), arguments.seed)[1]
    asked = bound_sizes(subject.inputs, sizes(arguments.size), input_shapes(arguments.shape))
    sizes_now = {**stride_sizes(subject.inputs, timing), **asked}
    guess = next(Guesses(subject.inputs, session._source, subject.carried, sizes_now, given=given).tries())
    return guess.feeds(np.random.default_rng(arguments.seed))


def _carry(text: str) -> Carry:
    return text if text in ("auto", "internal") else dict(pairs(text.split(",")))
