"""If, alone and with loops."""

from __future__ import annotations

import numpy as np
import pytest

from tests.plan.harness import check_graph, graph_of, plan_of
from webrnn.ir import GraphBuilder, Node
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
