"""`webrnn quantize model.onnx`: what small weights do to a model, node by node."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from webrnn.errors import OptionError
from webrnn.formats import read_model
from webrnn.guesses import bound_sizes
from webrnn.passes.weight_forms import EVERY, F32, INT8
from webrnn.plan.file import plan_bytes
from webrnn.quantize import Quantization, quantize
from webrnn.quantize.picture import picture
from webrnn.quantize.text import report_text
from webrnn.quantize.timing import Gain, measure_gain
from webrnn.tables import bytes_text, wrapped

from .export import carried
from .options import (
    add_model_options,
    add_seed_option,
    add_size_options,
    add_weight_options,
    fixed_inputs,
    input_shapes,
    pass_names,
    require_another_file,
    shapes_asked_for,
    weights_asked_for,
)
from .options import sizes as size_options
from .output import add_json_option, prints_json, show, write_text

BAR = 24


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="path of an ONNX file")
    add_weight_options(parser, default=INT8)
    parser.add_argument(
        "--max-error",
        type=float,
        metavar="E",
        help="find the smallest form of each node, from --weights on, so that the error of all together is at most E",
    )
    parser.add_argument(
        "--inputs", nargs="+", type=Path, default=[], metavar="FILE.npz", help="inputs by name, one run a file"
    )
    add_size_options(parser)
    parser.add_argument(
        "--carry",
        nargs="+",
        action="extend",
        default=[],
        metavar="INPUT=OUTPUT",
        help="try streams, and write one: states as for `webrnn export`; inputs have an axis of steps in front",
    )
    parser.add_argument("--steps", type=int, metavar="N", help="of a stream of random inputs (default: 100)")
    add_seed_option(parser)
    parser.add_argument("--backend", default="auto")
    add_model_options(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE.rnn", help="write the plan with these weights")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw error against size")
    add_json_option(parser)
    parser.add_argument("--no-timing", action="store_true", help="do not time it beside float32")


def main(arguments: argparse.Namespace) -> None:
    forms = weights_asked_for(arguments, INT8)
    require_another_file(arguments.model, arguments.output)
    carry, fixed = carried(arguments.carry), fixed_inputs(arguments.fixed)
    asked = {} if plan_bytes(arguments.model) is not None else _sizes(arguments, fixed)
    found = quantize(
        arguments.model,
        F32 if forms is None else {EVERY: forms.default, **forms.by_name},
        max_error=arguments.max_error,
        inputs=arguments.inputs,
        sizes=asked,
        carry=carry,
        steps=arguments.steps,
        backend=arguments.backend,
        disable=pass_names(arguments.disable),
        fixed=fixed,
        seed=arguments.seed,
        progress=_progress,
    )
    drawing = picture(found, Path(arguments.model).name) if arguments.plot is not None else ""
    _clear()
    gain = None if arguments.no_timing else measure_gain(found)
    data = {**found.as_data(), "time": gain._asdict() if gain is not None else None}
    show(arguments, data, lambda: _text(found, gain, arguments))
    if arguments.plot is not None:
        write_text(arguments.plot, drawing)
    if arguments.output is not None:
        shapes = shapes_asked_for(found.session, arguments)
        try:
            said = found.session.export(arguments.output, shapes, carry)
        except OSError as error:
            raise OptionError(f"cannot write {error.filename!r}: {error.strerror}") from None
        if not prints_json(arguments):
            print(wrapped("\n".join([*(f"\nNote: {line}" for line in said), f"\n{_file(arguments.output)}"])))


def _sizes(arguments: argparse.Namespace, fixed: dict[str, Any]) -> dict[str, int]:
    inputs = read_model(arguments.model, fixed).inputs
    return bound_sizes(inputs, size_options(arguments.size), input_shapes(arguments.shape))


def _text(found: Quantization, gain: Gain | None, arguments: argparse.Namespace) -> str:
    lines = [report_text(found)]
    if gain is not None:
        unit = "a step" if found.trial.carry is not None else "a run"
        times = f"{1e6 * gain.plain:,.1f} µs become {1e6 * gain.small:,.1f} µs"
        lines.append(f"time      {times} for {unit}: {gain.ratio:.2f} (±{gain.spread:.0%}) on {found.plain.backend}")
    pairs = found.plain.find_states().pairs
    if found.trial.carry is None and pairs:
        likely = ", ".join(f"{pair.before}={pair.after}" for pair in pairs)
        lines.append(f"\nNote: {likely} looks like a state; --carry auto tries streams, in which errors may add up")
    if found.trial.zeros and not arguments.inputs:
        names = ", ".join(found.trial.zeros)
        lines.append(f"\nNote: {names} had no random numbers but zeros, which may say nothing: give --inputs")
    options = [form if name == EVERY else f"{name}={form}" for name, form in found.weights.items()]
    return "\n".join([*lines, "\n" + " ".join(f"--weights {option}" for option in options)])


def _file(path: Path) -> str:
    return f"{path}: {bytes_text(path.stat().st_size)}"


def _progress(what: str, done: int, total: int) -> None:
    if sys.stderr.isatty():
        filled = BAR * done // total
        bar = "█" * filled + "·" * (BAR - filled)
        print(f"\r\033[K{bar} {done}/{total} {what} ", end="", file=sys.stderr, flush=True)


def _clear() -> None:
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
