"""`webrnn plan model.onnx` or `webrnn plan model.rnn`."""

from __future__ import annotations

import argparse
from pathlib import Path

from webrnn.engine.programs.obstacles import listed, obstacles, obstacles_for_some_shapes
from webrnn.engine.programs.vm_program import with_shapes
from webrnn.errors import PlanError
from webrnn.formats import read_model
from webrnn.ir import Graph, SymbolicDim
from webrnn.plan.encode import compile_graph
from webrnn.plan.file import PlanFile, plan_bytes
from webrnn.plan.halves import stored_plan
from webrnn.plan.lower import SAME_BITS, with_named_sizes
from webrnn.plan.lowering import NotLowered
from webrnn.plan.text import plan_text

from .options import (
    add_model_options,
    add_weight_options,
    fixed_inputs,
    optimized,
    pass_names,
    refuse_weights_of_a_plan,
    sizes,
    weights_asked_for,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="path of an ONNX file or of a plan")
    parser.add_argument(
        "--size", "--sizes", nargs="+", action="extend", default=[], metavar="NAME=N", help="numbers for named sizes"
    )
    add_model_options(parser)
    add_weight_options(parser)
    parser.add_argument("--loops", action="store_true", help="recurrent cells as loops, not as one instruction")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the plan, too")


def main(arguments: argparse.Namespace) -> None:
    numbers = sizes(arguments.size)
    data = plan_bytes(arguments.model)
    if data is None:
        data = _lowered(arguments, numbers)
    else:
        refuse_weights_of_a_plan(arguments)
    names = PlanFile(data).symbols
    print(plan_text(data, numbers if numbers or not names else None))
    if arguments.output is not None:
        arguments.output.write_bytes(stored_plan(PlanFile(data).data))


def _lowered(arguments: argparse.Namespace, numbers: dict[str, int]) -> bytes:
    """The plan of a model: for all sizes, or for the given ones if there is no such."""
    graph = read_model(arguments.model, fixed_inputs(arguments.fixed))
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
    for value in graph.inputs:
        if value.shape is not None:
            value.shape = tuple(dim.substitute(numbers) if isinstance(dim, SymbolicDim) else dim for dim in value.shape)
    rewritten(graph)
    try:
        return compile_graph(with_named_sizes(graph), options)
    except NotLowered as refusal:
        found = obstacles(graph, options) or [str(refusal)]
        with_sizes = obstacles_for_some_shapes(source, lambda shapes: rewritten(with_shapes(source, shapes)), options)
        hint = "for given sizes there is one: --sizes NAME=N ..." if with_sizes == [] else ""
        raise PlanError(listed("there is no plan of all of this model", found, hint)) from refusal
