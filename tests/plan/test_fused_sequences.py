"""RNN, GRU and LSTM over whole sequences: one instruction, and the loop of a product and a cell, give the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from tests.plan.harness import BUILDS, arguments_of, assert_same_bits, check_graph, plan_of, run_plan, value_type
from tests.plan.test_cells import cell
from webrnn.ir import WEBRNN, DType, GraphBuilder, Invariant, Node, Scan, Trace
from webrnn.ir.activations import ACTIVATIONS
from webrnn.ir.scan import TraceSpec
from webrnn.plan.lower import lower

GATES = {"RnnCell": 1, "GruCell": 3, "LstmCell": 4}
PLAIN = TraceSpec()
LOOP = frozenset({"fused_sequences"})


def array(*shape, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * 0.5).astype(np.float32)


def recurrence(
    op,
    hidden,
    batch="n",
    activations=("sigmoid", "tanh", "tanh"),
    clip=np.inf,
    couple=False,
    peephole=False,
    bias=True,
    axis=0,
    reverse=False,
    trace=PLAIN,
    finals=True,
):
    """A Scan with a cell over projections [t, batch, gates * hidden]."""
    b = GraphBuilder("main")
    width = GATES[op] * hidden
    sizes = [batch, str(width)]
    sizes.insert(axis, "t")
    whole = b.input("xw", *value_type(f"f {' '.join(sizes)}"))
    inits = [b.input(name, *value_type(f"f {batch} {hidden}")) for name in ("h", "c")[: 1 + (op == "LstmCell")]]
    body = GraphBuilder("body", b)
    scan = Scan(body.graph, name="scan")
    xw = body.value("xw")
    states = [body.value(init.name) for init in inits]
    hw = body.value("hw")
    weights = [body.constant(array(hidden, width)), *([body.constant(array(width, seed=1))] if bias else [])]
    body.add(Node("Linear", [states[0], *weights], [hw], {}, "", WEBRNN))
    operands = {"RnnCell": [xw, hw], "GruCell": [xw, hw, states[0]], "LstmCell": [xw, hw, states[-1]]}[op]
    if peephole:
        operands.append(body.constant(array(3 * hidden, seed=2)))
    after = cell(body, op, operands, activations, clip, couple)
    scan.add_sequence(whole, xw, axis, reverse)
    for init, before, next_ in zip(inits, states, after, strict=True):
        scan.add_state(init, before, next_, b.value(f"{init.name}_final") if finals else None)
    if trace is not None:
        scan.traces.append(Trace(trace, after[0], b.value("trace")))
    node = b.add(scan.to_node())
    b.graph.outputs = [value for value in node.outputs if value is not None]
    return b.graph


def check(
    graph,
    sizes=({"t": 6, "n": 3}, {"t": 0, "n": 2}, {"t": 1, "n": 1}, {"t": 9, "n": 2}, {"t": 2, "n": 0}),
    tolerance=1e-5,
    in_chunks=False,
):
    """All builds against numpy, and one instruction against the loop, bit for bit."""
    fused, loop = plan_of(graph), plan_of(graph, LOOP)
    names = {instruction.name for instruction in lower(graph.copy()).walk()}
    assert any(name.endswith("_sequence") for name in names), names
    assert ("loop" in names) == in_chunks
    assert "loop" in {instruction.name for instruction in lower(graph.copy(), LOOP).walk()}
    check_graph(graph, sizes=sizes, tolerance=tolerance)
    runs = [arguments_of(graph, numbers, seed) for seed, numbers in enumerate(sizes)]
    for spec in BUILDS:
        for ours, theirs in zip(run_plan(fused, spec, runs), run_plan(loop, spec, runs), strict=True):
            assert_same_bits(ours, theirs, spec)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("hidden", [1, 2, 4, 7, 8, 17, 32, 65])
def test_sizes(op, hidden):
    check(recurrence(op, hidden))


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(op, name):
    sizes = ({"t": 3, "n": 3}, {"t": 0, "n": 1})
    check(recurrence(op, 5, activations=(name, "tanh", "tanh")), sizes, 1e-4)
    check(recurrence(op, 5, activations=("sigmoid", name, name), clip=0.3), sizes, 1e-4)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_directions_and_axes(op, axis, reverse):
    for trace in (None, TraceSpec(), TraceSpec(0, True), TraceSpec(1), TraceSpec(1, True), TraceSpec(2)):
        check(recurrence(op, 6, axis=axis, reverse=reverse, trace=trace), sizes=({"t": 4, "n": 2}, {"t": 0, "n": 1}))


@pytest.mark.parametrize("op", GATES)
def test_without_finals_and_bias(op):
    check(recurrence(op, 6, finals=False, bias=False))
    check(recurrence(op, 6, trace=None, bias=False, batch="1"))
    check(recurrence(op, 6, batch="5"))


@pytest.mark.parametrize("couple", [False, True])
@pytest.mark.parametrize("peephole", [False, True])
@pytest.mark.parametrize("clip", [np.inf, 0.2])
def test_lstm(clip, peephole, couple):
    check(recurrence("LstmCell", 6, clip=clip, peephole=peephole, couple=couple))


def test_a_trimmed_trace_takes_the_loop():
    graph = recurrence("GruCell", 4, trace=TraceSpec(keep=2))
    graph.inputs[0].shape = (5, *graph.inputs[0].shape[1:])
    check_graph(graph)
    assert "loop" in {instruction.name for instruction in lower(graph.copy()).walk()}


def with_inputs(graph):
    """The same graph, with what is constant in the body of its Scan as inputs of the graph."""
    scan = Scan.of(graph.nodes[0])
    b = GraphBuilder("other")
    for value, constant in [*scan.body.constants.items()]:
        outer = b.input(f"outer_{value.name}", DType.of(constant), constant.shape)
        graph.inputs.append(outer)
        scan.invariants.append(Invariant(outer, value))
        del scan.body.constants[value]
    graph.nodes[0] = scan.to_node()
    return graph


def names_of(block):
    return [instruction.name for instruction in block]


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("hidden", [1, 7, 33])
def test_weights_that_are_inputs(op, hidden):
    graph = with_inputs(recurrence(op, hidden, peephole=op == "LstmCell"))
    assert len(graph.inputs) > 3
    check(graph)
    assert names_of(lower(graph.copy()).code)[0] == "pack"


def test_weights_and_projection_that_are_inputs_are_packed_before_all_chunks():
    graph = with_inputs(recurrence("GruCell", 5))
    whole, *others = graph.inputs
    b = GraphBuilder("other")
    x, w, bias = (
        b.input("x", *value_type("f t n 3")),
        b.input("w", *value_type("f 3 15")),
        b.input("b", *value_type("f 15")),
    )
    graph.inputs = [x, w, bias, *others]
    graph.nodes.insert(0, Node("Linear", [x, w, bias], [whole], {}, "", WEBRNN))
    check(graph, sizes=({"t": 60, "n": 2}, {"t": 0, "n": 2}, {"t": 24, "n": 1}), in_chunks=True)
    draft = lower(graph.copy())
    (chunks,) = (instruction for instruction in draft.code if instruction.name == "loop")
    assert names_of(draft.code).count("pack") == 2
    assert names_of(chunks.blocks[0]) == ["gemm", "gru_sequence"]


def test_weights_that_a_step_computes_take_the_loop():
    graph = recurrence("RnnCell", 4, bias=False)
    scan = Scan.of(graph.nodes[0])
    product = scan.body.nodes[0]
    changed = scan.body.nodes[0].inputs[1].like("changed")
    state, weights = product.inputs
    scan.body.nodes.insert(0, Node("Add", [weights, state], [changed]))
    product.inputs = [state, changed]
    graph.nodes[0] = scan.to_node()
    for value in graph.inputs[1:]:
        value.shape = (1, 4)
    graph.inputs[0].shape = (graph.inputs[0].shape[0], 1, 4)
    check_graph(graph)
    found = lower(graph.copy())
    assert names_of(found.code) == ["loop"]
    assert "pack" not in names_of(found.walk())


def test_two_layers_and_directions():
    """The trace of one is the input of the next."""
    graph = recurrence("GruCell", 4)
    b = GraphBuilder("main")
    b.graph = graph
    trace = graph.outputs[-1]
    other = recurrence("GruCell", 4, reverse=True, trace=TraceSpec(0, True))
    projected = b.value("projected2")
    b.add(Node("Linear", [trace, b.constant(array(4, 12), "w2")], [projected], {}, "", WEBRNN))
    scan = Scan.of(other.nodes[0])
    scan.sequences[0].whole = projected
    scan.states[0].init = graph.inputs[1]
    for value in (scan.states[0].final, scan.traces[0].whole):
        value.name += "_2"
    graph.nodes.append(scan.to_node())
    graph.outputs = [*graph.outputs, scan.states[0].final, scan.traces[0].whole]
    check(graph, in_chunks=True)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", ["i", "int32"])
def test_projections_that_are_looked_up(op, reverse, kind):
    graph = recurrence(op, 4, reverse=reverse)
    b = GraphBuilder("main")
    b.graph = graph
    whole = graph.inputs[0]
    tokens = b.value("tokens")
    tokens.dtype, tokens.shape = (DType.INT32 if kind == "int32" else DType.INT64), whole.shape[:2]
    graph.inputs[0] = tokens
    table = b.constant(array(7, GATES[op] * 4, seed=5), "table")
    graph.nodes.insert(0, Node("Gather", [table, tokens], [whole], {"axis": 0}, "lookup"))
    check(graph, sizes=({"t": 60, "n": 3}, {"t": 5, "n": 1}, {"t": 0, "n": 2}, {"t": 49, "n": 1}), in_chunks=True)
    gathers = [each for each in lower(graph.copy()).walk() if each.name == "gather"]
    assert {each.node for each in gathers} == {"lookup"}
