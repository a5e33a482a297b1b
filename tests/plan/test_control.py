"""If, alone and with loops."""

from __future__ import annotations

import numpy as np
import pytest

from tests.plan.harness import check_graph, graph_of, plan_of
from webrnn.ir import GraphBuilder, Node
from webrnn.plan.lower import lower
from webrnn.plan.lowering import NotLowered


def branches(b, condition, operands, then, other, n_outputs=1):
    attrs = {}
    for name, build in (("then_branch", then), ("else_branch", other)):
        inner = GraphBuilder(name)
        inner.graph.inputs = [value.like(f"{value.name}_in") for value in operands]
        inner.graph.outputs = build(inner, *inner.graph.inputs)
        attrs[name] = inner.graph
    outputs = [b.value(f"if{i}") for i in range(n_outputs)]
    b.add(Node("If", [condition, *operands], list(outputs), attrs))
    return outputs


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def both(graph, *arguments):
    check_graph(graph, [np.array(True), *arguments], [np.array(False), *arguments])


def test_branches():
    def build(b, p, x, y):
        def then(i, x, y):
            return [i.op("Add", x, y), i.op("Transpose", x)]

        def other(i, x, y):
            return [i.op("Mul", x, y), i.op("Transpose", i.op("Tanh", y))]

        total, turned = branches(b, p, [x, y], then, other, 2)
        return b.op("Neg", total), turned, total

    both(graph_of(build, "b", "f 2 3", "f 2 3"), X, X + 1)


def test_branches_that_hand_on():
    def build(b, p, x, y):
        return branches(b, p, [x, y], lambda i, x, y: [x, y], lambda i, x, y: [y, i.constant(X)], 2)

    both(graph_of(build, "b", "f 2 3", "f 2 3"), X, X + 1)


def copies_of(graph):
    return sum(instruction.name == "copy" for instruction in lower(graph.copy()).walk())


def test_results_are_made_in_their_place():
    def build(b, p, x):
        return branches(b, p, [x], lambda i, x: [i.op("Neg", x)], lambda i, x: [i.op("Exp", x)])

    graph = graph_of(build, "b", "f n 3")
    both(graph, X)
    assert copies_of(graph) == 0


def test_a_cache_that_one_branch_goes_on_is_copied_once():
    """As decoders have it that are one file for the first token and for all others."""

    def build(b, p, past, x):
        def then(i, past, x):
            whole = i.op("Concat", past, i.op("Neg", x), axis=0)
            return [whole, i.op("ReduceSum", whole, i.ints(0), keepdims=0)]

        def other(i, past, x):
            alone = i.op("Neg", x)
            return [alone, i.op("ReduceSum", alone, i.ints(0), keepdims=0)]

        return branches(b, p, [past, x], then, other, 2)

    graph = graph_of(build, "b", "f n 3", "f t 3")
    for rows in (0, 1, 500, 2):
        both(graph, np.ones((rows, 3), np.float32), X)
    assert copies_of(graph) == 1


def test_one_result_twice():
    def build(b, p, x):
        def then(i, x):
            made = i.op("Neg", x)
            return [made, made, i.op("Transpose", made)]

        return branches(b, p, [x], then, lambda i, x: [x, i.op("Exp", x), i.op("Transpose", x)], 3)

    both(graph_of(build, "b", "f n 3"), X)
    both(graph_of(build, "b", "f 3 3"), np.outer(X[1], X[1]))


def test_a_condition_that_is_computed():
    def build(b, x):
        p = b.op("Less", b.op("ReduceSum", x, keepdims=0), b.constant(np.float32(0)))
        return branches(b, p, [x], lambda i, x: [i.op("Neg", x)], lambda i, x: [i.op("Exp", x)])

    check_graph(graph_of(build, "f 2 3"), [X], [-X], [X - 5])


def test_branches_in_branches():
    def build(b, p, q, x):
        def then(i, q, x):
            return branches(i, q, [x], lambda j, x: [j.op("Neg", x)], lambda j, x: [j.op("Exp", x)])

        return branches(b, p, [q, x], then, lambda i, q, x: [i.op("Tanh", x)])

    graph = graph_of(build, "b", "b", "f n 3")
    check_graph(graph, *([np.array(p), np.array(q), X] for p in (True, False) for q in (True, False)))


def test_a_constant_and_an_unused_output():
    def build(b, p, x):
        outputs = branches(b, p, [x], lambda i, x: [x, i.op("Neg", x)], lambda i, x: [i.op("Neg", x), x], 2)
        b.graph.nodes[-1].outputs[0] = None
        return outputs[1]

    both(graph_of(build, "b", "f 2 3"), X)


def test_branches_of_other_types():
    def build(b, p, x, y):
        return branches(b, p, [x, y], lambda i, x, y: [x, y], lambda i, x, y: [i.op("Add", x, x), i.op("Not", y)], 2)

    both(graph_of(build, "b", "i 2 3", "b"), X.astype(np.int64), np.array(True))


def test_different_shapes_are_refused():
    def build(b, p, x):
        return branches(b, p, [x], lambda i, x: [x], lambda i, x: [i.op("Reshape", x, i.ints(6))])

    with pytest.raises(NotLowered, match="different ranks"):
        plan_of(graph_of(build, "b", "f 2 3"))
