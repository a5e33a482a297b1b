import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, reasons
from webrnn.ir import DType, GraphBuilder, Scan, Symbol, is_scan
from webrnn.passes import run_passes

NAME = "selections_to_branches"
H = 64


def decoder(select, rows=1, hidden=H, condition=(1, 1), is_open=True):
    """h' is selected by whether a sum is positive; it ends when a sum is large. `select` gets the body, h and that."""
    b = GraphBuilder("main")
    init = b.input("h0", DType.FLOAT, (rows, hidden))
    body = GraphBuilder("body", b)
    scan = Scan(body.graph, n_steps=b.constant(np.int64(6)), name="scan")
    scan.iteration = body.value("i", DType.INT64, ())
    h = body.value("h")
    total = body.op("ReduceSum", h, body.ints(1), keepdims=1)
    is_positive = body.op("Greater", total, body.constant(np.float32(0)))
    if condition is not None:
        is_positive = body.op("Reshape", is_positive, body.ints(*condition))
    after, *others = select(body, h, is_positive)
    if is_open:
        scan.body_cond = body.op("Less", scan.iteration, body.constant(np.int64(4)))
    scan.add_state(init, h, after, b.value("final"))
    for index, other in enumerate(others):
        scan.add_trace(other, b.value(f"trace{index}"))
    b.graph.outputs = list(b.add(scan.to_node()).outputs)
    return b.graph


def product(b, x, hidden=H, seed=1):
    return b.op("Tanh", b.op("MatMul", x, b.constant(floats(hidden, hidden, seed=seed))))


def in_branches(graph):
    """The ops in the body and those in the branches of it."""
    (loop,) = [node for node in graph.nodes if is_scan(node)]
    body = Scan.of(loop).body
    found = {node.op for node in body.nodes}
    inside = [node.op for each in body.nodes if each.op == "If" for _, inner in each.subgraphs for node in inner.nodes]
    return found, inside


def branched(graph):
    arguments = [floats(1, H)]
    assert_keeps_results(graph, arguments, NAME)
    assert_keeps_results(graph, [-floats(1, H)], NAME)
    assert apply(graph, NAME).rewrites[NAME] == 1
    assert not apply(graph, NAME).rewrites[NAME]
    return in_branches(graph)


@pytest.mark.parametrize("condition", [(), (1,), (1, 1)])
@pytest.mark.parametrize("side", [1, 2])
def test_a_side_with_a_product(side, condition):
    def select(b, h, truth):
        sides = [product(b, h), h]
        return [b.op("Where", truth, *sides[:: 1 if side == 1 else -1])]

    body, inside = branched(decoder(select, condition=condition))
    assert "MatMul" not in body
    assert "Where" not in body
    assert sorted(inside) == ["Identity", "MatMul", "Tanh"]


def test_selections_that_share_a_product():
    def select(b, h, truth):
        new = product(b, h)
        return [b.op("Where", truth, new, h), b.op("Where", truth, b.op("Exp", new), b.constant(floats(1, H)))]

    body, inside = branched(decoder(select))
    assert body.isdisjoint({"MatMul", "Where", "Exp"})
    assert sorted(inside) == ["Exp", "Identity", "Identity", "MatMul", "Tanh"]


def test_both_sides_with_products():
    def select(b, h, truth):
        return [b.op("Where", truth, product(b, h), product(b, h, seed=2))]

    graph = decoder(select)
    assert_keeps_results(graph, [floats(1, H)], NAME)
    assert apply(graph, NAME).rewrites[NAME] == 1


def lookup(is_best):
    def select(b, h, truth):
        place = (
            b.op("ArgMax", h, axis=1, keepdims=0)
            if is_best
            else b.op("Cast", b.op("ReduceMax", h, b.ints(1), keepdims=0), to=7)
        )
        row = b.op("Gather", b.constant(floats(H, H, seed=3)), place, axis=0)
        return [b.op("Where", truth, product(b, row), h)]

    return select


@pytest.mark.parametrize("is_best", [True, False])
def test_a_lookup_that_may_fail_stays(is_best):
    body, inside = branched(decoder(lookup(is_best)))
    assert ("Gather" in inside) == is_best
    assert ("Gather" in body) != is_best


def test_what_the_loop_needs_otherwise_stays():
    def select(b, h, truth):
        new = product(b, h)
        return [b.op("Where", truth, b.op("Exp", new), h), new]

    graph = decoder(select)
    assert apply(graph, NAME).rewrites[NAME] == 0


def swapped(b, h, truth):
    new = product(b, h)
    return [b.op("Where", truth, b.op("Add", b.op("Where", truth, new, h), product(b, h, seed=2)), h)]


@pytest.mark.parametrize(
    ("options", "select"),
    [
        ({"rows": 3, "condition": None}, lambda b, h, t: [b.op("Where", t, product(b, h), h)]),
        ({"hidden": 8}, lambda b, h, t: [b.op("Where", t, product(b, h, 8), h)]),
        ({"is_open": False}, lambda b, h, t: [b.op("Where", t, product(b, h), h)]),
        ({}, lambda b, h, t: [b.op("Where", t, b.op("Exp", h), h)]),
    ],
    ids=["a truth for each row", "small", "no condition", "no product"],
)
def test_leaves(options, select):
    graph = decoder(select, **options)
    outcome = apply(graph, NAME)
    assert outcome.rewrites[NAME] == 0
    assert not outcome.declines


def test_declines_sizes_that_are_not_known():
    graph = decoder(lambda b, h, t: [b.op("Where", t, product(b, h), h)], rows=Symbol("n"), condition=None)
    assert reasons(apply(graph, NAME), NAME) == {"its sizes are not known"}


def test_declines_a_selection_of_a_selection():
    graph = decoder(swapped)
    outcome = assert_keeps_results(graph, [floats(1, H)], NAME)
    assert reasons(outcome, NAME) == {"what is selected depends on what was"}


def test_it_stands_still_with_the_other_passes():
    graph = decoder(lookup(True))
    before = graph.copy()
    assert run_passes(graph, check=True).reached_fixpoint
    assert not sum(run_passes(graph).rewrites.values())
    assert [value.name for value in before.outputs] == [value.name for value in graph.outputs]
