"""Linear attention over whole sequences: one instruction, and the loop that it stands for, give the same bits."""

from __future__ import annotations

import pytest

from tests.plan.harness import BUILDS, arguments_of, assert_same_bits, check_graph, plan_of, run_plan, value_type
from webrnn.ir import GraphBuilder, Scan, Trace
from webrnn.ir.scan import TraceSpec
from webrnn.passes import run_passes
from webrnn.plan.lower import lower

LOOP = frozenset({"fused_sequences"})
RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}


def attention(
    rule="gated_delta",
    lead=("n", "2"),
    sizes=(4, 5),
    group=1,
    decay="rows",
    rate=True,
    finals=True,
    axis=1,
    reverse=False,
    squeezed=False,
    summed=None,
    change=lambda body, value: value,
):
    """A Scan over sequences with the steps as axis `axis`; `change` is applied to what is written to the memory."""
    b = GraphBuilder("main")
    body = GraphBuilder("body", b)
    scan = Scan(body.graph, name="scan")
    rows, columns = sizes

    def walk(name, whole):
        inner = body.value(name)
        scan.add_sequence(whole, inner, axis, reverse)
        return inner

    def given(name, *shape):
        whole = [*lead, *map(str, shape)]
        whole.insert(axis, "t")
        return b.input(name, *value_type(f"f {' '.join(whole)}"))

    def element(name, *shape):
        return walk(name, given(name, *shape))

    memory = body.value("memory")
    init = b.input("init", *value_type(f"f {' '.join([*lead, str(rows), str(columns)])}"))
    uses_decay, uses_delta = RULES[rule]
    kept = memory
    if uses_decay and decay == "constant":
        kept = body.op("Mul", memory, body.capture(b.input("decay", *value_type("f 1 1"))))
    elif uses_decay:
        kept = body.op("Mul", element("decay", rows if decay == "rows" else 1, 1), memory)
    value = element("value", columns) if squeezed else element("value", 1, columns)
    keys = given("key", rows)
    key = walk("key", b.op("Unsqueeze", keys, b.ints(-1)))
    if uses_delta:
        recalled = body.op("MatMul", walk("row", b.op("Unsqueeze", keys, b.ints(-2))), kept)
        if squeezed:
            recalled = body.op("Squeeze", recalled, body.ints(-2))
        value = body.op("Sub", value, recalled)
        if rate:
            value = body.op("Mul", value, element("rate", 1) if squeezed else element("rate", 1, 1))
    if squeezed:
        value = body.op("Unsqueeze", value, body.ints(-2))
    after = body.op("Add", body.op("Mul", change(body, value), key), kept)
    if summed is None:
        read = body.op("MatMul", element("query", group, rows), after)
    else:
        read = body.op("ReduceSum", body.op("Mul", element("query", rows, 1), after), body.ints(summed), keepdims=0)
    scan.add_state(init, memory, after, b.value("final") if finals else None)
    scan.traces.append(Trace(TraceSpec(axis), read, b.value("read")))
    scan.add_captures(body)
    b.add(scan.to_node())
    b.graph.outputs = [output for output in (scan.traces[0].whole, scan.states[0].final) if output is not None]
    run_passes(b.graph, disable=["hoist_sequences"])
    return b.graph


def instructions(graph):
    return [instruction.name for instruction in lower(graph).code]


def assert_fused(graph, is_fused=True):
    assert ("linear_attention" in instructions(graph)) == is_fused
    check_graph(graph, tolerance=1e-3)
    runs = [arguments_of(graph, {"t": 4, "n": 2}, 1), arguments_of(graph, {"t": 1, "n": 1}, 2)]
    for spec in BUILDS:
        fused, loop = (run_plan(plan_of(graph, options), spec, runs) for options in (frozenset(), LOOP))
        for each, other in zip(fused, loop, strict=True):
            assert_same_bits(each, other, spec)


@pytest.mark.parametrize("sizes", [(4, 5), (5, 1), (4, 64), (7, 100)])
@pytest.mark.parametrize("group", [1, 2, 3])
@pytest.mark.parametrize("rule", RULES)
def test_equals_the_loop(rule, group, sizes):
    assert_fused(attention(rule, sizes=sizes, group=group))


@pytest.mark.parametrize("lead", [(), ("3",), ("n",), ("2", "n")])
def test_leading_axes(lead):
    assert_fused(attention(lead=lead, axis=0))


@pytest.mark.parametrize("decay", ["rows", "head", "constant"])
def test_decays(decay):
    assert_fused(attention("gated", decay=decay, axis=0))


def test_without_a_rate():
    assert_fused(attention("delta", rate=False))


def test_without_the_last_memory():
    assert_fused(attention(finals=False))


@pytest.mark.parametrize("rule", ["delta", "gated_delta"])
def test_rows_without_an_axis_of_their_own(rule):
    assert_fused(attention(rule, squeezed=True))


@pytest.mark.parametrize("rule", ["gated", "gated_delta"])
@pytest.mark.parametrize("lead", [(), ("n",), ("2", "n")])
def test_products_that_are_summed(rule, lead):
    assert_fused(attention(rule, lead=lead, axis=0, sizes=(20, 12), summed=-2))


@pytest.mark.parametrize(("sizes", "axis"), [((20, 1), -2), ((12, 12), -1)])
def test_declines_sums_of_another_order(sizes, axis):
    assert_fused(attention(sizes=sizes, summed=axis), False)


def test_declines_a_sequence_that_is_read_backwards():
    assert_fused(attention(reverse=True), False)


def test_declines_three_leading_axes():
    assert_fused(attention(lead=("2", "1", "n")), False)


@pytest.mark.parametrize("rule", ["linear", "delta"])
def test_declines_what_is_more_than_a_product(rule):
    assert_fused(attention(rule, change=lambda body, value: body.op("Tanh", value)), False)


def test_declines_a_value_of_another_kind():
    graph = attention("delta", change=lambda body, value: body.op("Add", value, value))
    assert_fused(graph, False)
