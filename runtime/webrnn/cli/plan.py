"""`webrnn plan model.onnx` or `webrnn plan model.rnn`."""

from __future__ import annotations

import argparse
from pathlib import Path

from webrnn.engine.programs.obstacles import listed, obstacles, obstacles_for_some_shapes
from webrnn.engine.programs.plan_program import PlanProgram
from webrnn.engine.programs.vm_program import with_shapes
from webrnn.engine.session import InferenceSession
from webrnn.errors import OptionError, PlanError
from webrnn.formats import read_model
from webrnn.ir import Graph
from webrnn.plan.encode import compile_graph
from webrnn.plan.file import PlanFile, plan_bytes
from webrnn.plan.halves import stored_plan
from webrnn.plan.lower import SAME_BITS, with_named_sizes
from webrnn.plan.lowering import NotLowered
from webrnn.plan.text import plan_text

from .options import (
    add_model_options,
    add_size_options,
    add_weight_options,
    fixed_inputs,
    input_shapes,
    optimized,
    pass_names,
    refuse_options_of_models,
    require_another_file,
    sizes,
    weights_asked_for,
    with_sizes,
)
from .output import add_json_option, show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="path of an ONNX file or of a plan")
    add_size_options(parser)
    add_model_options(parser)
    add_weight_options(parser)
    parser.add_argument("--loops", action="store_true", help="recurrent cells as loops, not as one instruction")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the plan, too")
    add_json_option(parser)


def main(arguments: argparse.Namespace) -> None:
    require_another_file(arguments.model, arguments.output)
    data = plan_bytes(arguments.model)
    is_model = data is None
    if data is None:
        data = _lowered(arguments)
    else:
        refuse_options_of_models(arguments)
    numbers = _numbers(data, arguments, is_model)
    text = plan_text(data, numbers)
    file = PlanFile(data)
    found = {
        "bytes": len(file.data),
        "sizes": numbers or {},
        **{
            kind: [{"name": port.name, "type": port.dtype, "shape": list(port.shape)} for port in ports]
            for kind, ports in (("inputs", file.inputs), ("outputs", file.outputs))
        },
        "text": text.splitlines(),
    }
    show(arguments, found, lambda: text)
    if arguments.output is not None:
        arguments.output.write_bytes(stored_plan(file.data))


def _numbers(data: bytes, arguments: argparse.Namespace, is_model: bool) -> dict[str, int] | None:
    """Of all named sizes, if options say one of them and the plan leaves it open; the others are guessed."""
    names = PlanFile(data).symbols
    if not names and is_model:
        return {}
    if not arguments.size and not arguments.shape:
        return None
    session = InferenceSession(data)
    given = sizes(arguments.size).items()  # a model's may be numbers in its plan
    sizes_given = {name: size for name, size in given if name in names or not is_model}
    guess = next(session.guesses(sizes_given, input_shapes(arguments.shape)).tries())
    found = {name: guess.sizes.get(name, 1) for name in names}
    if isinstance(session._program, PlanProgram) and session._program.takes(found) is False:
        raise OptionError(f"it takes no {' '.join(f'{name}={size}' for name, size in found.items())}: try other sizes")
    return found


def _lowered(arguments: argparse.Namespace) -> bytes:
    """The plan of a model: for all sizes, or for the given ones if there is no such."""
    graph = read_model(arguments.model, fixed_inputs(arguments.fixed))
    sized = with_sizes(graph, arguments)
    disable, forms = pass_names(arguments.disable), weights_asked_for(arguments)
    options = frozenset({"fused_sequences"} if arguments.loops else ())
    if forms is not None and forms.has_integers:
        options |= {SAME_BITS}
    source = graph.copy()

    def rewritten(graph: Graph) -> Graph:
        optimized(graph, disable, forms)
        return graph

    try:
        return compile_graph(with_named_sizes(rewritten(graph.copy())), options)
    except NotLowered:
        pass
    graph = rewritten(sized.copy())
    try:
        return compile_graph(with_named_sizes(graph), options)
    except NotLowered as refusal:
        found = obstacles(graph, options) or [str(refusal)]
        for_sizes = obstacles_for_some_shapes(source, lambda shapes: rewritten(with_shapes(source, shapes)), options)
        hint = "for given sizes there is one: --size NAME=N ..." if for_sizes == [] else ""
        raise PlanError(listed("there is no plan of all of this model", found, hint)) from refusal
