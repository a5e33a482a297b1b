"""`webrnn info model.onnx`, `webrnn info model.rnn` or `webrnn info weights.safetensors`."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from webrnn.build.listing import describe, is_weights
from webrnn.checks.graphs import check_graph
from webrnn.engine.executor.executor import Executor
from webrnn.engine.programs.vm_program import with_shapes
from webrnn.engine.session import InferenceSession, NodeArg, inferred_outputs
from webrnn.engine.streams.carry import ByFrames
from webrnn.engine.streams.states import states_of
from webrnn.engine.streams.streaming import StreamingModel
from webrnn.errors import Error, OptionError
from webrnn.formats import read_model
from webrnn.guesses import Guess, Guesses
from webrnn.ir import REFUSED, WEBRNN, Graph, Scan, is_plain, is_scan
from webrnn.ir.dims import is_static
from webrnn.ir.text import to_text
from webrnn.ops.rows import ROWS
from webrnn.passes.weight_forms import WeightForms
from webrnn.plan.file import PlanFile, plan_bytes
from webrnn.plan.stored_timing import timing_text
from webrnn.profile.graph_flops import flops
from webrnn.tables import bytes_text, number_text, table

from . import export
from .options import (
    add_model_options,
    add_size_options,
    add_stream_options,
    add_weight_options,
    by_frames,
    fixed_inputs,
    guesses_for,
    input_shapes,
    optimized,
    pass_names,
    refuse_options_of_models,
    sizes,
    weights_asked_for,
    with_sizes,
)
from .output import add_json_option, in_options, show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="path of an ONNX file, of a plan, or of weights")
    parser.add_argument("--graph", action="store_true", help="print the graph, too")
    add_model_options(parser)
    add_weight_options(parser)
    add_size_options(parser)
    add_stream_options(parser)
    add_json_option(parser)


def main(arguments: argparse.Namespace) -> None:
    plan = plan_bytes(arguments.model)
    if plan is not None:
        refuse_options_of_models(arguments)
        if arguments.graph:
            raise OptionError("a plan has no graph: `webrnn plan` prints its program")
        file = PlanFile(plan)
        first = next(guesses_for(InferenceSession(plan), arguments, {}).tries())
        texts, size = [*export.sections(file), guess_section(first)], f"{arguments.model}: {export.sizes_text(file)}"
        about = {"kind": "plan", "bytes": len(plan), **export.plan_data(file), "guesses": first.as_data()}
        show(arguments, about, lambda: "\n\n".join(text for text in texts if text), size)
        return
    if is_weights(arguments.model):
        text = describe(arguments.model)
        show(arguments, {"kind": "weights", "text": text.splitlines()}, lambda: text)
        return
    graph = read_model(arguments.model, fixed_inputs(arguments.fixed))
    sized = with_sizes(graph, arguments)
    disable, forms = pass_names(arguments.disable), weights_asked_for(arguments)
    small = [] if forms is None else [small_section(graph.copy(), disable, forms)]
    unsupported = list(unsupported_nodes(graph))
    facts = facts_of(graph)
    guess, guessed = _guessed(graph, arguments)
    streams = plans = ""
    if not any(row.is_certain for row in unsupported):
        streams = stream_section(graph.copy(), disable, ByFrames.of("internal", **by_frames(arguments)))
        plans = plan_section(graph, sized, disable, forms)
    parts = (*sections(facts), guessed, *small, streams, plans, unsupported_section(unsupported))
    data = {
        "kind": "model",
        **facts,
        "unsupported": [row._asdict() for row in unsupported],
        "guesses": None if guess is None else guess.as_data(),
        "stream": streams.splitlines(),
        "plan": plans.splitlines(),
    }
    graph_text = ["\n" + to_text(graph)] if arguments.graph else []
    show(arguments, data, lambda: "\n".join(["\n\n".join(part for part in parts if part), *graph_text]))


class Unsupported(NamedTuple):
    """A node that cannot run."""

    node: str
    op: str
    reason: str
    is_certain: bool
    """Whether the model is refused for it; in a branch of an If it may never run."""


def unsupported_nodes(graph: Graph, is_certain: bool = True) -> Iterator[Unsupported]:
    """Nodes that webrnn lacks an op for, or that the checks refuse."""
    lacking = set()
    for node in graph.nodes:
        name = f"{node.domain}.{node.op}" if node.domain else node.op
        if node.domain != WEBRNN and not is_plain(node, "If") and (node.domain, node.op) not in ROWS:
            lacking.add(node.label)
            yield Unsupported(node.label, name, "webrnn has no such op", is_certain)
        for _, inner in node.subgraphs:
            yield from unsupported_nodes(inner, is_certain and is_scan(node))
    if is_certain:
        tried = graph.copy()
        with suppress(Error):
            check_graph(tried, may_refuse=False)
        for node in tried.nodes:
            if node.domain == REFUSED and node.label not in lacking:
                yield Unsupported(node.label, node.op, node.attrs["error"].message, True)


def unsupported_section(rows: Sequence[Unsupported]) -> str:
    if not rows:
        return ""
    lines = [(row.node, row.op, row.reason + ("" if row.is_certain else ", if its branch is taken")) for row in rows]
    return table("not supported", lines, ("node", "op", "why"))


def _guessed(graph: Graph, arguments: argparse.Namespace) -> tuple[Guess | None, str]:
    """What `webrnn run` would try first."""
    states = [pair.before for pair in states_of(graph).pairs]
    try:
        guesses = Guesses(graph.inputs, graph, states, sizes(arguments.size), input_shapes(arguments.shape))
        guess = next(guesses.tries())
    except OptionError:
        raise
    except Error as error:
        return None, f"no guesses: {error}"
    return guess, guess_section(guess)


def guess_section(guess: Guess) -> str:
    """Which shape and which numbers inputs get that nobody gives, and why."""
    parts = [table("guesses", guess.rows(), ("input", "shape", "values", "why"))] if guess.inputs else []
    if rows := guess.size_rows():
        parts.append(table("open sizes", rows, ("size", "number", "why")))
    return "\n\n".join(parts)


def facts_of(graph: Graph) -> dict[str, Any]:
    """What a model is, for JSON."""
    found = states_of(graph)
    outputs = inferred_outputs(graph)
    counts = Counter(
        node.op if not node.domain else f"{node.domain}.{node.op}" for g in graph.walk() for node in g.nodes
    )
    arrays = {id(array): array for g in graph.walk() for array in g.constants.values()}
    return {
        "inputs": [_port(item) for item in map(NodeArg.of, graph.inputs)],
        "outputs": [_port(item) for item in map(NodeArg.of, outputs)],
        "states": [{"from": pair.before, "to": pair.after, "found": pair.reason} for pair in found.pairs],
        "doubts": list(found.doubts),
        "loops": [{"loop": where, "states": names} for where, names in _loops(graph)],
        "ops": dict(counts.most_common()),
        "weights": [
            dict(zip(("type", "tensors", "elements", "bytes"), row, strict=True))
            for row in _weight_rows(list(arrays.values()))
        ],
    }


def sections(facts: dict[str, Any]) -> Iterator[str]:
    """The parts of the report."""
    for title in ("inputs", "outputs"):
        rows = [(item["name"], item["type"], _shape_text(item["shape"])) for item in facts[title]]
        yield table(title, rows, ("name", "type", "shape"))
    states = [("between runs", item["from"], item["to"], item["found"]) for item in facts["states"]]
    states += [("inside", item["loop"], ", ".join(item["states"]), "") for item in facts["loops"]]
    if states:
        yield table("states", states, ("kind", "from", "to", "found"))
    if facts["doubts"]:
        yield "not sure\n" + "\n".join(f"  {doubt}" for doubt in facts["doubts"])
    yield table("ops", list(facts["ops"].items()), ("op", "count"))
    weights = [(w["type"], w["tensors"], f"{w['elements']:,}", bytes_text(w["bytes"])) for w in facts["weights"]]
    yield table("weights", weights, ("type", "tensors", "elements", "size"))


def _port(item: NodeArg) -> dict[str, Any]:
    return {"name": item.name, "type": item.type, "shape": item.shape}


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
        return f"not by frames: {in_options(str(error))}"
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


def plan_section(graph: Graph, sized: Graph, disable: list[str], forms: WeightForms | None) -> str:
    """Whether the model becomes a plan, for all sizes or for given ones, and if not, what keeps it back."""
    from webrnn.engine.programs.obstacles import listed, obstacles, obstacles_for_some_shapes

    def rewritten(source: Graph) -> Graph:
        check_graph(source, may_refuse=False)
        optimized(source, disable, forms)
        return source

    if sized is not graph:
        found = obstacles(rewritten(sized.copy()))
        return listed("no plan for these shapes", found) if found else "a plan for these shapes"
    found = obstacles(rewritten(graph.copy()))
    if not found:
        return "a plan" if all(is_static(value.shape) for value in graph.inputs) else "a plan for all sizes"
    some = obstacles_for_some_shapes(graph, lambda given: rewritten(with_shapes(graph, given)), frozenset())
    if some:
        return listed("no plan", some)
    hint = "" if some is None else "for given sizes there is one: --size NAME=N or --shape INPUT=1x16"
    return listed("no plan for all sizes", found, hint)


def _loops(graph: Graph) -> Iterator[tuple[str, list[str]]]:
    for inner in graph.walk():
        for node in inner.nodes:
            if is_scan(node):
                yield node.label, [value.name for state in Scan.of(node).states for value in state.body_in]


def _weight_rows(arrays: list[np.ndarray]) -> Iterator[tuple[str, int, int, int]]:
    for name in sorted({str(array.dtype) for array in arrays}):
        same = [array for array in arrays if str(array.dtype) == name]
        yield name, len(same), sum(a.size for a in same), sum(a.nbytes for a in same)


def _shape_text(shape: Sequence[int | str | None]) -> str:
    return "[" + ", ".join("?" if dim is None else str(dim) for dim in shape) + "]"
