"""`webrnn info model.onnx` or `webrnn info model.rnn`."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator

import numpy as np

from webrnn.checks.graphs import check_graph
from webrnn.engine.session import NodeArg
from webrnn.engine.streams.states import states_of
from webrnn.ir import Graph, Scan, is_scan
from webrnn.ir.dims import is_static
from webrnn.onnx.reader import read_model
from webrnn.passes import run_passes
from webrnn.plan.file import PlanFile, plan_bytes
from webrnn.tables import bytes_text, table

from . import export
from .options import add_model_options, add_shape_option, fixed_inputs, input_shapes, pass_names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="path of an ONNX file or of a plan")
    parser.add_argument("--graph", action="store_true", help="print the graph, too")
    add_model_options(parser)
    add_shape_option(parser)


def main(arguments: argparse.Namespace) -> None:
    plan = plan_bytes(arguments.model)
    if plan is not None:
        file = PlanFile(plan)
        print("\n\n".join((*export.sections(file), f"{arguments.model}: {export.sizes_text(file)}")))
        return
    graph = read_model(arguments.model, fixed_inputs(arguments.fixed))
    shapes = input_shapes(arguments.shape)
    print("\n\n".join((*sections(graph), plan_section(graph, shapes, pass_names(arguments.disable)))))
    if arguments.graph:
        from webrnn.ir.text import to_text

        print("\n" + to_text(graph))


def sections(graph: Graph) -> Iterator[str]:
    """The parts of the report."""
    for title, values in (("inputs", graph.inputs), ("outputs", graph.outputs)):
        rows = [(item.name, item.type, _shape_text(item)) for item in map(NodeArg.of, values)]
        yield table(title, rows, ("name", "type", "shape"))
    found = states_of(graph)
    states = [("between runs", pair.before, pair.after, pair.reason) for pair in found.pairs]
    states += [("inside", where, ", ".join(names), "") for where, names in _loops(graph)]
    if states:
        yield table("states", states, ("kind", "from", "to", "found"))
    if found.doubts:
        yield "not sure\n" + "\n".join(f"  {doubt}" for doubt in found.doubts)
    counts = Counter(
        node.op if not node.domain else f"{node.domain}.{node.op}" for g in graph.walk() for node in g.nodes
    )
    yield table("ops", counts.most_common(), ("op", "count"))
    arrays = {id(array): array for g in graph.walk() for array in g.constants.values()}
    yield table("weights", list(_weight_rows(list(arrays.values()))), ("type", "tensors", "elements", "size"))


def plan_section(graph: Graph, shapes: dict[str, list[int]], disable: list[str]) -> str:
    """Whether the model becomes a plan, for all sizes or for given shapes, and if not, what keeps it back."""
    from webrnn.engine.exporting import all_shapes
    from webrnn.engine.programs.obstacles import listed, obstacles, obstacles_for_some_shapes
    from webrnn.engine.programs.vm_program import with_shapes

    def optimized(source: Graph) -> Graph:
        check_graph(source, may_refuse=False)
        run_passes(source, disable=disable)
        return source

    if shapes:
        found = obstacles(optimized(with_shapes(graph, all_shapes(graph.inputs, shapes))))
        return listed("no plan for these shapes", found) if found else "a plan for these shapes"
    found = obstacles(optimized(graph.copy()))
    if not found:
        return "a plan" if all(is_static(value.shape) for value in graph.inputs) else "a plan for all sizes"
    some = obstacles_for_some_shapes(graph, lambda given: optimized(with_shapes(graph, given)), frozenset())
    if some:
        return listed("no plan", some)
    hint = "" if some is None else "for given shapes there is one: --shape INPUT=N,N,..."
    return listed("no plan for all sizes", found, hint)


def _loops(graph: Graph) -> Iterator[tuple[str, list[str]]]:
    for inner in graph.walk():
        for node in inner.nodes:
            if is_scan(node):
                yield node.label, [value.name for state in Scan.of(node).states for value in state.body_in]


def _weight_rows(arrays: list[np.ndarray]) -> Iterator[tuple[str, int, str, str]]:
    for name in sorted({str(array.dtype) for array in arrays}):
        same = [array for array in arrays if str(array.dtype) == name]
        yield name, len(same), f"{sum(a.size for a in same):,}", bytes_text(sum(a.nbytes for a in same))


def _shape_text(item: NodeArg) -> str:
    return "[" + ", ".join("?" if dim is None else str(dim) for dim in item.shape) + "]"
