"""Products with a matrix that is not a constant: the bits of those with a constant, and nothing is copied twice."""

from __future__ import annotations

import numpy as np
import pytest

from tests.plan.harness import (
    BUILDS,
    arguments_of,
    assert_same_bits,
    check_graph,
    graph_of,
    plan_of,
    run_plan,
    value_type,
)
from webrnn.ir import DType, GraphBuilder, Invariant, Scan
from webrnn.ir.scan import Trace, TraceSpec
from webrnn.plan.lower import lower

MATRICES = {
    "rows": lambda b, y: y,
    "columns": lambda b, y: b.op("Transpose", y, perm=[1, 0]),
    "apart": lambda b, y: b.op("Slice", y, b.ints(0), b.ints(2**31 - 1), b.ints(1), b.ints(2)),
    "backwards": lambda b, y: b.op("Slice", y, b.ints(-1), b.ints(-(2**31)), b.ints(1), b.ints(-1)),
}
"""[k, n] as it lies in memory."""


def array(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def stored(name, matrix):
    """What has to be fed so that it is this matrix."""
    if name == "columns":
        return matrix.T.copy()
    if name == "apart":
        return np.repeat(matrix, 2, axis=1)
    return matrix[:, ::-1].copy() if name == "backwards" else matrix


@pytest.mark.parametrize("layout", MATRICES)
@pytest.mark.parametrize("m", [1, 2, 3, 8, 9, 13])
def test_bits_of_a_product_with_a_constant(m, layout):
    sizes = [(1, 1), (3, 7), (4, 8), (5, 9), (16, 24), (21, 47), (37, 49), (150, 100), (8, 130), (200, 60)]
    for k, n in sizes:
        x, matrix = array(m, k), array(k, n, seed=1)
        fed = stored(layout, matrix)
        constant = graph_of(lambda b, x, matrix=matrix: b.op("MatMul", x, b.constant(matrix)), f"f {m} {k}")
        given = graph_of(
            lambda b, x, y: b.op("MatMul", x, MATRICES[layout](b, y)),
            f"f {m} {k}",
            f"f {fed.shape[0]} {fed.shape[1]}",
        )
        for spec in BUILDS:
            wanted, found = run_plan(plan_of(constant), spec, [[x]]), run_plan(plan_of(given), spec, [[x, fed]])
            assert_same_bits(found[0], wanted[0], f"{spec} {m} {k} {n}")


def names_of(block):
    return [instruction.name for instruction in block]


def heads(b, x, perm=(0, 2, 1, 3)):
    return b.op("Transpose", x, perm=list(perm))


@pytest.mark.parametrize("queries", ["n", "1"])
def test_heads_are_not_copied(queries):
    """[batch, queries, heads, width] against [batch, keys, heads, width], both as they lie."""

    def attention(b, q, k, v):
        weights = b.op("MatMul", heads(b, q), heads(b, k, (0, 2, 3, 1)))
        return b.op("MatMul", weights, heads(b, v))

    graph = graph_of(attention, f"f 2 {queries} 3 5", "f 2 t 3 5", "f 2 t 3 5")
    check_graph(graph)
    assert names_of(lower(graph.copy()).code) == ["matmul", "matmul"]


def test_a_matrix_that_batches_share_makes_rows_of_them():
    """Query heads in groups that share a key: a group is rows of one product, if its rows lie behind each other."""
    graph = graph_of(lambda b, q, k: b.op("MatMul", q, k), "f 2 3 4 1 5", "f 2 3 1 5 t")
    check_graph(graph)
    (product,) = lower(graph.copy()).code
    assert product.operands[0].shape == (6, 4, 5)
    graph = graph_of(lambda b, x, w: b.op("MatMul", x, w), "f n 3 5", "f 5 t")
    check_graph(graph)
    assert [view.shape[0] for view in lower(graph.copy()).code[0].operands[:3]] == [1, 1, 1]
    graph = graph_of(lambda b, x, w: b.op("MatMul", heads(b, x), w), "f 2 n 3 5", "f 2 1 5 9")
    check_graph(graph)


def loop(b, x, state, matrices, step, n_steps="t"):
    """A Scan whose body makes the next state of (builder, state, element, *matrices)."""
    body = GraphBuilder("body", b)
    scan = Scan(body.graph, name="scan")
    element, before = body.value("element"), body.value("state")
    inner = [body.value(f"matrix{i}") for i in range(len(matrices))]
    after = step(body, before, element, *inner)
    scan.add_sequence(x, element)
    scan.add_state(state, before, after, b.value("final"))
    scan.traces.append(Trace(TraceSpec(), after, b.value("trace")))
    scan.invariants = [Invariant(outer, value) for outer, value in zip(matrices, inner, strict=True)]
    node = b.add(scan.to_node())
    return [value for value in node.outputs if value is not None]


def attend(body, state, element, keys, values):
    weights = body.op("Softmax", body.op("MatMul", body.op("Add", state, element), keys), axis=-1)
    return body.op("Tanh", body.op("MatMul", weights, values))


def decoder(steps="t", rows="n"):
    return graph_of(
        lambda b, x, h, keys, values: loop(b, x, h, [b.op("Transpose", keys, perm=[1, 0]), values], attend),
        f"f {steps} {rows} 5", f"f {rows} 5", "f 30 5", "f 30 5",
    )  # fmt: skip


def test_matrices_are_packed_before_a_loop():
    graph = decoder()
    check_graph(graph, tolerance=1e-4)
    *before, steps = lower(graph.copy()).code
    assert names_of(before).count("pack") == 2
    assert names_of(steps.blocks[0]).count("gemm") == 2
    assert not {"pack", "matmul"} & {*names_of(steps.blocks[0])}


def test_a_loop_of_few_steps_does_not_pack():
    graph = decoder(steps="2")
    check_graph(graph, tolerance=1e-4)
    assert "pack" not in names_of(lower(graph.copy()).walk())


def test_packed_or_not_gives_the_same_bits():
    many, few = decoder(steps="8", rows="1"), decoder(steps="2", rows="1")
    x, *others = arguments_of(many, {})
    for spec in BUILDS:
        whole = run_plan(plan_of(many), spec, [[x, *others]])[0]
        state, found = others[0], []
        for first in range(0, 8, 2):
            state, trace = run_plan(plan_of(few), spec, [[x[first : first + 2], state, *others[1:]]])[0]
            found.append(trace)
        assert_same_bits([state, np.concatenate(found)], whole, spec)


def test_heads_that_a_loop_reads_by_columns_are_turned_before_it():
    def step(body, state, element, keys):
        scores = body.op("MatMul", body.op("Add", state, element), keys)
        return body.op("Tanh", body.op("ReduceMax", scores, body.ints(-1), keepdims=1))

    graph = graph_of(
        lambda b, x, h, keys: loop(b, x, h, [b.op("Transpose", keys, perm=[0, 2, 1])], step),
        "f t 2 1 5", "f 2 1 1", "f 2 9 5",
    )  # fmt: skip
    check_graph(graph, tolerance=1e-4)
    *before, steps = lower(graph.copy()).code
    assert "copy" in names_of(before)
    (product,) = (each for each in steps.blocks[0] if each.name == "matmul")
    assert product.operands[1].strides[-1] == 1


def test_loops_inside_a_loop_read_what_the_outermost_packed():
    def outer(body, state, element, matrix):
        step = lambda b, h, x, w: b.op("Tanh", b.op("MatMul", b.op("Add", h, x), w))  # noqa: E731
        return loop(body, element, state, [matrix], step)[0]

    graph = graph_of(lambda b, x, h, w: loop(b, x, h, [w], outer), "f n t 2 5", "f 2 5", "f 5 5")
    check_graph(graph, tolerance=1e-4)
    draft = lower(graph.copy())
    assert names_of(draft.code).count("pack") == names_of(draft.walk()).count("pack") == 1


def test_a_matrix_that_an_outer_loop_changes_is_packed_in_each_of_its_steps():
    def outer(body, state, element):
        start = body.op("Mul", state, body.constant(np.zeros((2, 1), np.float32)))
        inner = loop(body, element, start, [state], lambda b, h, x, w: b.op("Add", b.op("MatMul", h, w), x))
        return body.op("Tanh", body.op("MatMul", body.op("Transpose", inner[0], perm=[1, 0]), inner[0]))

    graph = graph_of(lambda b, x, h: loop(b, x, h, [], outer), "f n t 2 2", "f 2 2")
    check_graph(graph, tolerance=1e-4)
    draft = lower(graph.copy())
    assert "pack" not in names_of(draft.code)
    assert names_of(draft.walk()).count("pack") == 1


@pytest.mark.parametrize("kind", ["h", "d"])
def test_matrices_of_other_types(kind):
    graph = graph_of(
        lambda b, x, h, w: loop(b, x, h, [w], lambda b, h, x, w: b.op("Tanh", b.op("Add", b.op("MatMul", h, w), x))),
        f"{kind} t n 5", f"{kind} n 5", f"{kind} 5 5",
    )  # fmt: skip
    assert value_type(f"{kind} 1")[0] in (DType.FLOAT16, DType.DOUBLE)
    check_graph(graph, tolerance=1e-2 if kind == "h" else 1e-9)
