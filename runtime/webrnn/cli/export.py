"""`webrnn export model.onnx -o model.rnn`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.engine.exporting import export_plan
from webrnn.engine.session import InferenceSession
from webrnn.engine.streams.carry import Carry
from webrnn.engine.streams.states import FoundStates
from webrnn.errors import Error, ModelError, OptionError, PlanError
from webrnn.ir.dims import is_static
from webrnn.plan.decode import decode
from webrnn.plan.file import PlanFile, PlanPort
from webrnn.plan.rare import rare_parts, unfused_parts
from webrnn.plan.stored_pool import pool_text
from webrnn.plan.stored_timing import timing_text
from webrnn.tables import bytes_text, table

from .options import (
    add_model_options,
    add_size_options,
    add_stream_options,
    add_weight_options,
    by_frames,
    fixed_inputs,
    guesses_for,
    pairs,
    pass_names,
    require_another_file,
    shapes_asked_for,
    weight_arguments,
)
from .output import add_json_option, show

_MOST_TRIES = 8
"""Of sizes, for a model that has no plan for all of them."""
MOST_HOP = 1 << 16
"""As the AudioWorklet takes them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="path of an ONNX file, or of an amp or effect: .nam, RTNeural or AIDA-X JSON")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE.rnn", help="the plan file (default: beside the model)"
    )
    add_model_options(parser)
    add_weight_options(parser)
    add_size_options(parser)
    parser.add_argument(
        "--carry",
        nargs="+",
        action="extend",
        default=[],
        metavar="INPUT=OUTPUT",
        help='states: what an output was is an input in the next step; or "auto": found by names and the graph; '
        'or "internal": a model for whole sequences by frames',
    )
    add_stream_options(parser)
    parser.add_argument(
        "--pool", action="store_true", help="with --carry: a plan for any number of streams, run side by side"
    )
    parser.add_argument("--hop", type=int, metavar="N", help="of an amp or effect: samples for a step (default: 128)")
    parser.add_argument("--about", metavar="FILE.json", help="a JSON object to store: model.about in JavaScript")
    add_json_option(parser)


def main(arguments: argparse.Namespace) -> None:
    carry, about = carried(arguments.carry), _about(arguments.about)
    if arguments.pool and carry is None:
        raise OptionError("--pool is for streams: say what they carry, --carry auto, internal or INPUT=OUTPUT ...")
    session = InferenceSession(
        arguments.model,
        disable=pass_names(arguments.disable),
        fixed=fixed_inputs(arguments.fixed),
        **weight_arguments(arguments),
    )
    if arguments.hop is not None:
        about = {**(about or {}), "audio": _audio(session.about, arguments.hop)}
    output = arguments.output or Path(arguments.model).with_suffix(".rnn")
    require_another_file(arguments.model, output)
    found = session.find_states()
    is_effect = "format" in session.about
    for flag in ("time", "running", "lookback"):
        if getattr(arguments, flag) and carry is None and not is_effect:
            raise OptionError(f"--{flag} is for streams by frames: --carry internal")
    if carry == "auto" and found.problem is not None and not is_effect:
        line = " ".join(f"{before}={after}" for before, after in found.answer.items())
        raise ModelError(f"{found.problem}; here: --carry {line or 'INPUT=OUTPUT ...'}")
    try:
        said = _export(session, output, carry, about, arguments)
    except OSError as error:
        raise OptionError(f"cannot write {str(output)!r}: {error.strerror}") from None
    data = output.read_bytes()
    file, notes = PlanFile(data), [*said]
    if rare := rare_parts(decode(data)):
        notes.append(f"pages load the full wasm module for it; not in the core module: {', '.join(rare)}")
    if unfused := unfused_parts(decode(data)):
        notes.append(f"pages load the simd module for it; not in the relaxed module: {', '.join(unfused)}")
    lines = _states_lines(found, carry) if not is_effect else []
    if session.weight_report is not None:
        lines.append("\n".join(session.weight_report.lines()))
    lines += [f"Note: {line}" for line in notes]
    figures = {"file": str(output), "bytes": len(data), **plan_data(file), "notes": notes}
    show(arguments, figures, lambda: "\n\n".join([*sections(file), *lines]), f"{output}: {sizes_text(file)}")


def _export(
    session: InferenceSession,
    output: Path,
    carry: Carry | None,
    about: dict[str, Any] | None,
    arguments: argparse.Namespace,
) -> list[str]:
    """What is to be said of the plan. A model that has none for all sizes gets one for sizes that are guessed."""

    def exported(shapes: Mapping[str, Sequence[int]] | None) -> list[str]:
        return session.export(output, shapes, carry, about, pool=arguments.pool, **by_frames(arguments))

    shapes = shapes_asked_for(session, arguments)
    try:
        return exported(_fed(shapes, carry, session))
    except PlanError as error:
        if any(value.container for value in session.inputs):  # no shape makes a tensor of it
            raise
        if shapes is not None or all(is_static(value.shape) for value in session.inputs):
            raise PlanError(f"{error}{_with_numbers_fixed(session, arguments)}") from None
        if carry is not None:
            raise
    for guess in islice(guesses_for(session, arguments, {}).tries(), _MOST_TRIES):
        try:
            said = exported(guess.shapes)
        except PlanError as error:
            failure = error
            continue
        return [f"there is no plan for all sizes; this one is for {guess.options}, others are given like that", *said]
    raise PlanError(f"{failure}{_with_numbers_fixed(session, arguments)}") from None


def _with_numbers_fixed(session: InferenceSession, arguments: argparse.Namespace) -> str:
    """What to say if there is a plan once inputs of one number, a rate say, are constants."""
    guess = next(guesses_for(session, arguments, {}).tries())
    feeds, given = guess.feeds(np.random.default_rng(0)), fixed_inputs(arguments.fixed)
    numbers = {
        value.name: np.asarray(feeds[value.name]).ravel()[0].item()
        for value in session.inputs
        if value.dtype is not None and value.dtype.array_type.kind in "iub" and value.shape is not None
        and all(size == 1 for size in value.shape)
    }  # fmt: skip
    if not numbers:
        return ""
    try:
        fixed = InferenceSession(arguments.model, disable=pass_names(arguments.disable), fixed={**given, **numbers})
        shapes = {name: shape for name, shape in guess.shapes.items() if name not in numbers}
        export_plan(fixed._program, fixed.inputs, shapes, None, ())
    except Error:
        return ""
    return "\nthere is one with " + " ".join(f"--fixed {name}={number}" for name, number in numbers.items())


def _fed(
    shapes: dict[str, tuple[int, ...]] | None, carry: Carry | None, session: InferenceSession
) -> dict[str, tuple[int, ...]] | None:
    """The shapes of what a stream is fed: those of its states follow from them."""
    if shapes is None or carry in (None, "internal"):
        return shapes
    states = session.find_states().carry() if carry == "auto" else carry
    return {name: shape for name, shape in shapes.items() if name not in (states or {})}


def _states_lines(found: FoundStates, carry: Carry | None) -> list[str]:
    """Which states were found, or look like some."""
    if carry == "auto":
        reasons = [f"  {pair.before} -> {pair.after}  {pair.reason}" for pair in found.pairs]
        return ["\n".join(["found states", *reasons])]
    likely = [f"{pair.before}={pair.after}" for pair in found.pairs] if carry is None else []
    if not likely:
        return []
    way = f"--carry {likely[0]} ..." if found.doubts else "--carry auto"
    return [f"No state is carried; {', '.join(likely)} looks like one: {way}"]


def plan_data(file: PlanFile) -> dict[str, Any]:
    """What a plan takes and gives, for JSON."""

    def ports(found: Sequence[PlanPort]) -> list[dict[str, Any]]:
        return [{"name": port.name, "type": port.dtype, "shape": list(port.shape)} for port in found]

    return {
        "inputs": ports(file.inputs),
        "outputs": ports(file.outputs),
        "states": [{"input": state.input, "output": state.output} for state in file.states],
        "about": file.about,
    }


def _audio(about: dict[str, Any], hop: int) -> dict[str, Any]:
    """How a host runs an effect, with so many samples for a step."""
    if "audio" not in about:
        raise OptionError("--hop is for amps and effects that take a signal and give one")
    if not 1 <= hop <= MOST_HOP:
        raise OptionError(f"--hop {hop}: a step takes 1 to {MOST_HOP} samples")
    return {**about["audio"], "frame": hop, "hop": hop}


def sizes_text(file: PlanFile) -> str:
    """How large the file is, and the plan if that is not the same."""
    n_bytes, in_file = len(file.data), file.file_bytes
    loaded = "" if in_file == n_bytes else f" with half floats, {bytes_text(n_bytes)} when loaded"
    return bytes_text(in_file) + loaded


def sections(file: PlanFile) -> Iterator[str]:
    """What the plan takes and gives."""
    states = {state.input: state for state in file.states}
    outputs = {state.output for state in file.states}
    kinds = (("inputs", file.inputs, states), ("outputs", file.outputs, outputs))
    for title, ports, carried in kinds:
        rows = [(port.name, port.dtype, _shape_text(port)) for port in ports if port.name not in carried]
        yield table(title, rows, ("name", "type", "shape"))
    if states:
        shapes = {port.name: (port.dtype, _shape_text(port)) for port in file.inputs}
        yield table(
            "states",
            [
                (state.input, state.output, *shapes[state.input], "zeros" if state.start is None else "values")
                for state in file.states
            ],
            ("input", "from output", "type", "shape", "starts from"),
        )
    if file.pool is not None:
        yield pool_text(file.pool, file)
    if file.timing is not None:
        yield timing_text(file.timing)
    if file.about:
        yield "about\n  " + json.dumps(file.about, ensure_ascii=False)


def carried(items: Sequence[str]) -> Carry | None:
    if not items:
        return None
    words = [item for item in items if "=" not in item]
    if not words:
        return dict(pairs(items))
    if len(items) > 1 or words[0] not in ("auto", "internal"):
        raise OptionError(f"--carry takes INPUT=OUTPUT ..., or auto, or internal, not {' '.join(items)!r}")
    return words[0]


def _about(path: str | None) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        about = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise OptionError(f"cannot read {path!r}: {error.strerror or error}") from None
    except ValueError as error:
        raise OptionError(f"{path!r} is no JSON: {error}") from None
    if not isinstance(about, dict):
        raise OptionError(f"{path!r} holds no JSON object, {{...}}")
    return about


def _shape_text(port: PlanPort) -> str:
    shape = ["?" if late else str(size) for size, late in zip(port.shape, port.late, strict=True)]
    return f"[{', '.join(shape)}]"
