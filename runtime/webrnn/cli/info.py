"""`webrnn info model.onnx`, `webrnn info model.rnn` or `webrnn info weights.safetensors`."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator

import numpy as np

from webrnn.build.listing import describe, is_weights
from webrnn.checks.graphs import check_graph
from webrnn.engine.executor.executor import Executor
from webrnn.engine.programs.vm_program import with_shapes
from webrnn.engine.session import NodeArg
from webrnn.engine.streams.carry import ByFrames
from webrnn.engine.streams.states import states_of
from webrnn.engine.streams.streaming import StreamingModel
from webrnn.errors import Error
from webrnn.formats import read_model
from webrnn.ir import Graph, Scan, is_scan
from webrnn.ir.dims import is_static
from webrnn.passes.weight_forms import WeightForms
from webrnn.plan.file import PlanFile, plan_bytes
from webrnn.plan.stored_timing import timing_text
from webrnn.profile.graph_flops import flops
from webrnn.tables import bytes_text, number_text, table

from . import export
from .options import (
    add_model_options,
    add_shape_option,
    add_stream_options,
    add_weight_options,
    by_frames,
    fixed_inputs,
    input_shapes,
    optimized,
    pass_names,
    refuse_weights_of_a_plan,
    weights_asked_for,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="path of an ONNX file, of a plan, or of weights")
    parser.add_argument("--graph", action="store_true", help="print the graph, too")
    add_model_options(parser)
    add_weight_options(parser)
    add_shape_option(parser)
    add_stream_options(parser)


def main(arguments: argparse.Namespace) -> None:
    plan = plan_bytes(arguments.model)
    if plan is not None:
        refuse_weights_of_a_plan(arguments)
        file = PlanFile(plan)
        print("\n\n".join((*export.sections(file), f"{arguments.model}: {export.sizes_text(file)}")))
        return
    if is_weights(arguments.model):
        print(describe(arguments.model))
        return
    graph = read_model(arguments.model, fixed_inputs(arguments.fixed))
    shapes = input_shapes(arguments.shape)
    disable, forms = pass_names(arguments.disable), weights_asked_for(arguments)
    small = [] if forms is None else [small_section(graph.copy(), disable, forms)]
    streams = stream_section(graph.copy(), disable, ByFrames.of("internal", **by_frames(arguments)))
    print("\n\n".join((*sections(graph), *small, streams, plan_section(graph, shapes, disable, forms))))
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


def small_section(graph: Graph, disable: list[str], forms: WeightForms) -> str:
    """What becomes of the weights of each node."""
    report = optimized(graph, disable, forms)
    assert report is not None
    rows = [
        (row.name, row.op, row.form, bytes_text(4 * row.count), bytes_text(row.bytes), row.reason)
        for row in report.rows
    ]
    return table("small weights", rows, ("node", "op", "form", "float32", "becomes", "why it stays"))


def stream_section(graph: Graph, disable: list[str], frames: ByFrames) -> str:
    """Whether the model runs by frames, how late it is then and what it remembers, or what is in the way."""
    whole = graph.copy()
    try:
        model = StreamingModel.of_graph(graph, "internal", lambda graph: Executor(graph), disable, by_frames=frames)
        memory = bytes_text(model.start_bytes())
    except Error as error:
        return f"not by frames: {error}"
    assert model.timing is not None
    lines = ["by frames", f"  {len(model.pairs)} states, {memory} for one stream", *_cost_lines(model, whole)]
    return "\n".join(lines) + f"\n{timing_text(model.timing)}"


def _cost_lines(model: StreamingModel, whole: Graph) -> list[str]:
    """How far back a frame looks, and what a step costs beside a window that is computed anew."""
    assert model.timing is not None
    assert model.graph is not None
    stride = model.timing.stride
    each = "frame" if stride == 1 else f"step of {stride} frames"
    step = flops(with_shapes(model.graph, model.step_shapes()))
    cost = "" if not step else f"; a {each} takes {number_text(step)}FLOP"
    field = model.receptive_field
    if field is None:
        return [f"  a frame depends on all frames before it{cost}"]
    n_strides = -(-field // stride)
    shapes = model.step_shapes(n_strides)[: len(whole.inputs)]
    again = flops(with_shapes(whole, shapes))
    if step and again:
        cost += f", its window computed anew {number_text(again)}FLOP, {again / step:,.1f} times as much"
    return [f"  a frame depends on {field} frames{cost}"]


def plan_section(graph: Graph, shapes: dict[str, list[int]], disable: list[str], forms: WeightForms | None) -> str:
    """Whether the model becomes a plan, for all sizes or for given shapes, and if not, what keeps it back."""
    from webrnn.engine.exporting import all_shapes
    from webrnn.engine.programs.obstacles import listed, obstacles, obstacles_for_some_shapes

    def rewritten(source: Graph) -> Graph:
        check_graph(source, may_refuse=False)
        optimized(source, disable, forms)
        return source

    if shapes:
        found = obstacles(rewritten(with_shapes(graph, all_shapes(graph.inputs, shapes))))
        return listed("no plan for these shapes", found) if found else "a plan for these shapes"
    found = obstacles(rewritten(graph.copy()))
    if not found:
        return "a plan" if all(is_static(value.shape) for value in graph.inputs) else "a plan for all sizes"
    some = obstacles_for_some_shapes(graph, lambda given: rewritten(with_shapes(graph, given)), frozenset())
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
