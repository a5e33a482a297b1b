"""States of loops: where they are, and what may be written over them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.scans import ScanBuilder
from tests.plan.test_loops import _type, check
from webrnn.ir import WEBRNN, GraphBuilder, Node, Scan, StateSpec, TraceSpec
from webrnn.ir.scan import State
from webrnn.plan.lower import lower


def test_states_without_a_trace():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    check(s.finish(states=[s.body.op("Tanh", s.body.op("Add", x, h))]))


def test_states_with_a_trace():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    after = s.body.op("Tanh", s.body.op("Add", x, h))
    check(s.finish(states=[after], traces=[after]))


def test_only_the_trace_is_read():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    after = s.body.op("Tanh", s.body.op("Add", x, h))
    check(s.finish(states=[after], traces=[after], read=lambda name: False))


def test_swapped_states():
    s = ScanBuilder()
    s.sequence("x")
    a, c = s.state("a"), s.state("c")
    check(s.finish(states=[c, a], traces=[a, c]))
    s = ScanBuilder()
    s.sequence("x")
    a, c, d = s.state("a"), s.state("c"), s.state("d")
    check(s.finish(states=[c, d, a]))


def test_states_that_read_each_other():
    s = ScanBuilder()
    x, a, c = s.sequence("x"), s.state("a"), s.state("c")
    check(s.finish(states=[s.body.op("Add", a, c), s.body.op("Sub", s.body.op("Mul", a, x), c)]))


def test_a_state_that_is_read_after_its_next_value_is_made():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    after = s.body.op("Add", x, h)
    check(s.finish(states=[after], traces=[s.body.op("Mul", after, h)]))


def test_a_state_that_stays():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    check(s.finish(states=[h], traces=[s.body.op("Add", x, h), h]))


def test_a_state_that_takes_a_sequence_element_or_an_invariant():
    s = ScanBuilder()
    x, a, c, w = s.sequence("x"), s.state("a"), s.state("c"), s.invariant("w")
    check(s.finish(states=[x, w], traces=[s.body.op("Add", a, c), x, w]))


def test_a_state_that_takes_a_constant():
    s = ScanBuilder()
    x, a = s.sequence("x"), s.state("a")
    constant = s.body.constant(np.float32([1, 2, 3]))
    check(s.finish(states=[constant], traces=[s.body.op("Add", a, x), constant]))


def test_two_states_with_one_next_value():
    s = ScanBuilder()
    x, a, c = s.sequence("x"), s.state("a"), s.state("c")
    after = s.body.op("Add", s.body.op("Mul", a, c), x)
    check(s.finish(states=[after, after], traces=[after, after]))


def test_a_state_through_views():
    s = ScanBuilder(size=4)
    x, h = s.sequence("x"), s.state("h")
    square = s.body.op("Reshape", h, s.body.ints(2, 2))
    turned = s.body.op("Reshape", s.body.op("Transpose", square), s.body.ints(4))
    check(s.finish(states=[turned], traces=[s.body.op("Add", x, turned)]))
    s = ScanBuilder(size=4)
    x, h = s.sequence("x"), s.state("h")
    rotated = s.body.op(
        "Concat",
        s.body.op("Slice", h, s.body.ints(1), s.body.ints(4)),
        s.body.op("Slice", x, s.body.ints(0), s.body.ints(1)),
        axis=0,
    )
    check(s.finish(states=[rotated], traces=[rotated, h]))


def test_a_state_is_read_after_its_next_value_is_there():
    """The next value is made before the last read of the one before, though a Reshape or Concat of it comes later."""
    for finish in (
        lambda b, x, new, old: b.op("Reshape", b.op("Reshape", new, b.ints(2, 2)), b.ints(4)),
        lambda b, x, new, old: b.op("Concat", b.op("Tanh", _first(b, x)), _rest(b, old), axis=0),
        lambda b, x, new, old: b.op("Concat", _rest(b, old), b.op("Tanh", _first(b, x)), axis=0),
        lambda b, x, new, old: b.op("Reshape", b.op("Concat", _first(b, new), _rest(b, old), axis=0), b.ints(4)),
    ):
        s = ScanBuilder(size=4)
        x, h = s.sequence("x"), s.state("h")
        new, old = s.body.op("Tanh", s.body.op("Add", x, h)), s.body.op("Softmax", h, axis=0)
        check(s.finish(states=[finish(s.body, x, new, old)], traces=[old]))
    s = ScanBuilder(size=4)
    x, h = s.sequence("x"), s.state("h")
    new = s.body.op("Tanh", _first(s.body, x))
    check(s.finish(states=[s.body.op("Concat", _rest(s.body, h), new, axis=0)]))


def _first(b, value):
    return b.op("Slice", value, b.ints(0), b.ints(1))


def _rest(b, value):
    return b.op("Slice", value, b.ints(1), b.ints(4))


def test_a_state_that_only_changes_its_place():
    s = ScanBuilder(size=4)
    x, h, g = s.sequence("x"), s.state("h"), s.state("g")
    backwards = s.body.op("Slice", h, s.body.ints(-1), s.body.ints(-9), s.body.ints(0), s.body.ints(-1))
    check(s.finish(states=[backwards, s.body.op("Reshape", s.body.op("Reshape", h, s.body.ints(2, 2)), s.body.ints(4))],
                   traces=[s.body.op("Add", x, g)]))  # fmt: skip


def _expression(b, *operands):
    inner = GraphBuilder("expression")
    inner.graph.inputs = [inner.value(f"e{i}") for i in range(len(operands))]
    inner.graph.outputs = [inner.op("Tanh", inner.op("Sub", *inner.graph.inputs))]
    b.add(Node("Expression", list(operands), [result := b.value("y")], {"body": inner.graph}, "", WEBRNN))
    return result


STATE_VIEWS = {
    "as it is": lambda b, h: h,
    "transposed": lambda b, h: b.op("Transpose", h),
    "reversed": lambda b, h: b.op("Slice", h, b.ints(-1), b.ints(-9), b.ints(0), b.ints(-1)),
    "reshaped": lambda b, h: b.op("Reshape", b.op("Reshape", h, b.ints(9)), b.ints(3, 3)),
    "a row for all": lambda b, h: b.op("Slice", h, b.ints(1), b.ints(2), b.ints(0)),
    "a column for all": lambda b, h: b.op("Slice", h, b.ints(2), b.ints(3), b.ints(1)),
    "repeated": lambda b, h: b.op("Expand", b.op("Slice", h, b.ints(1), b.ints(2), b.ints(0)), b.ints(3, 3)),
    "gathered": lambda b, h: b.op("Gather", h, b.constant(np.int64(1)), axis=0),
    "split": lambda b, h: b.split(h, ["p", "q", "r"], axis=0)[2],
}


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", STATE_VIEWS)
def test_an_expression_of_a_view_of_the_state(name, traced):
    """Writing the next state over the last one must not change what is still to be read."""
    b = GraphBuilder("main")
    whole, init = b.input("x", *_type("steps 3 3")), b.input("h", *_type("3 3"))
    body = GraphBuilder("body", b)
    scan = Scan(body.graph, name="scan")
    x, h = body.value("x"), body.value("h")
    after = _expression(body, x, STATE_VIEWS[name](body, h))
    scan.add_sequence(whole, x)
    scan.add_state(init, h, after, b.value("final"))
    if traced:
        scan.add_trace(after, b.value("trace"))
    b.graph.outputs = list(b.add(scan.to_node()).outputs)
    check(b.graph)


@pytest.mark.parametrize("taps", [(-2,), (-1, -2), (-3, -1), (-1, -2, -3, -4)])
@pytest.mark.parametrize("traced", [False, True])
def test_a_state_with_several_taps(taps, traced):
    s = ScanBuilder()
    x, other = s.sequence("x"), s.state("h")
    inner = [s.body.value(f"tap{tap}") for tap in taps]
    total = x
    for tap in inner:
        total = s.body.op("Add", total, tap)
    init = s.b.input("init", *_type(f"{-min(taps)} 3"))
    after = s.body.op("Tanh", total)
    s.scan.states.append(State(StateSpec(taps), init, inner, after, s.b.value("final")))
    check(s.finish(states=[inner[0]], traces=[inner[-1], *([after, other] if traced else [])]))


@pytest.mark.parametrize("axis", [0, 1])
def test_a_trace_that_is_longer_than_the_loop_takes_steps(axis):
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    after = s.body.op("Add", x, h)
    check(s.finish(states=[after], traces=[(after, TraceSpec(axis, length=7))]))


@pytest.mark.parametrize("reads_itself", [False, True])
def test_a_state_that_takes_updates_in_its_place(reads_itself):
    s = ScanBuilder()
    x, h, at = s.sequence("x"), s.state("h"), s.body.ints(1)
    updates = s.body.op("Slice", h if reads_itself else x, s.body.ints(2), s.body.ints(3))
    index = s.body.op("Unsqueeze", at, s.body.ints(0))
    graph = s.finish(states=[s.body.op("ScatterND", h, index, updates)], traces=[x])
    check(graph)
    (loop,) = [each for each in lower(graph).walk() if each.name == "loop"]
    names = [each.name for each in loop.blocks[0]]
    assert names.count("copy") == 1 + 2 * reads_itself
