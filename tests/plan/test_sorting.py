"""Ops that put elements in order, or take them together one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from tests.plan.harness import BUILDS, arguments_of, check_graph, graph_of, plan_of, run_plan
from webrnn.engine.executor.executor import Executor
from webrnn.errors import PlanError, ShapeError
from webrnn.ir import Node

ANY_KIND = ("f", "i", "j", "f64", "f16", "i8", "u16", "u64")
SPECIAL = np.array([[1, np.nan, 3], [-0.0, 0.0, -0.0], [np.inf, -np.inf, np.nan], [2, 2, 1], [-1, -2, -1]])


def top_k(b, x, k, **attrs):
    outputs = [b.value("values"), b.value("indices")]
    b.add(Node("TopK", [x, k], outputs, attrs))
    return outputs


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize(("axis", "keep"), [(0, 1), (1, 0), (-1, 1)])
def test_arg_extreme(op, last, axis, keep):
    def build(b, x):
        return b.op(op, x, axis=axis, keepdims=keep, select_last_index=last)

    for kind in ANY_KIND:
        check_graph(graph_of(build, f"{kind} n 4 3"), sizes=({"n": 3}, {"n": 1}))
    for kind, dtype in zip(("f", "f64", "f16"), (np.float32, np.float64, np.float16), strict=True):
        check_graph(graph_of(build, f"{kind} 5 1 3"), [SPECIAL.astype(dtype).reshape(5, 1, 3)])
    check_graph(graph_of(lambda b, x: build(b, b.op("Transpose", x)), "f 3 4 5"))
    ends = np.array([[[2**63 - 1, -(2**63), 0], [-(2**63), 2**63 - 1, 3]]])
    check_graph(graph_of(build, "i 1 2 3"), [ends])


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_top_k(largest, axis):
    for kind in ANY_KIND:
        for k in (0, 1, 2, 5):
            check_graph(graph_of(lambda b, x, k=k: top_k(b, x, b.ints(k), axis=axis, largest=largest), f"{kind} 5 6 5"))
    for kind, dtype in zip(("f", "f64", "f16"), (np.float32, np.float64, np.float16), strict=True):
        graph = graph_of(lambda b, x: top_k(b, x, b.ints(3), axis=axis, largest=largest), f"{kind} 5 3 3")
        check_graph(graph, [np.broadcast_to(SPECIAL.astype(dtype)[:, None], (5, 3, 3)).copy()])


def wide_rows(n):
    """Rows in and out of order, of equal numbers, and with special ones in places that vectors differ in."""
    rng = np.random.default_rng(n)
    rows = [rng.standard_normal(n), np.arange(n), -np.arange(n), np.zeros(n), np.full(n, np.nan), np.full(n, -np.inf)]
    rows += [rng.integers(0, 4, n), np.where(np.arange(n) % 2, 0.0, -0.0), np.full(n, np.inf)]
    for special in (np.nan, np.inf, -np.inf, 0.0):
        for at in {0, n // 2, n - 1, n - 2}:
            row = -np.abs(rng.standard_normal(n))
            row[at] = special
            rows.append(row)
    return np.array(rows, np.float32)


@pytest.mark.parametrize("n", [2, 15, 31, 32, 33, 64, 70, 129])
@pytest.mark.parametrize("largest", [0, 1])
def test_the_first_of_wide_rows(n, largest):
    rows = wide_rows(n)
    shape = f"f {len(rows)} {n}"
    for last in (0, 1):
        op = "ArgMax" if largest else "ArgMin"
        check_graph(graph_of(lambda b, x, op=op, last=last: b.op(op, x, axis=1, select_last_index=last), shape), [rows])
    for k in (1, 2, 7):
        if k <= n:
            check_graph(graph_of(lambda b, x, k=k: top_k(b, x, b.ints(k), largest=largest), shape), [rows])


def test_top_k_of_named_sizes():
    check_graph(graph_of(lambda b, x: top_k(b, x, b.op("Shape", x, end=1), axis=0), "f n 3"))
    check_graph(graph_of(lambda b, x: top_k(b, x, b.ints(2), axis=0)[1], "f n 3"), sizes=({"n": 2}, {"n": 9}))
    check_graph(graph_of(lambda b, x: top_k(b, x, b.ints(40))[0], "f n 300"))


def test_more_than_there_is():
    graph = graph_of(lambda b, x: top_k(b, x, b.ints(3)), "f n")
    arguments = [np.zeros(2, np.float32)]
    with pytest.raises(ShapeError, match="K is 3"):
        Executor(graph).run(arguments)
    for spec in BUILDS:
        with pytest.raises(PlanError):
            run_plan(plan_of(graph), spec, [arguments])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_hardmax(axis):
    check_graph(graph_of(lambda b, x: b.op("Hardmax", x, axis=axis), "f n 3 2"), sizes=({"n": 3}, {"n": 1}))
    check_graph(
        graph_of(lambda b, x: b.op("Hardmax", x, axis=axis), "f 5 3 1"), [SPECIAL.astype(np.float32)[..., None]]
    )
    check_graph(graph_of(lambda b, x: b.op("Hardmax", x, axis=axis), "f 0 3 0"))


@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_running(op, exclusive, reverse):
    def build(b, x, axis):
        return b.op(op, x, axis, exclusive=exclusive, reverse=reverse)

    for kind in ("f", "i", "j", "f64", "f16", "u32"):
        for axis in (0, 1, -1):
            check_graph(graph_of(lambda b, x, axis=axis: build(b, x, b.constant(axis)), f"{kind} n 4 3"))
    graph = graph_of(build, "f n 4 3", "j")
    x = arguments_of(graph, {"n": 2})[0]
    check_graph(graph, *([x, np.array(axis, np.int32)] for axis in (0, 1, 2, -1, -3)))
    for spec in BUILDS:
        with pytest.raises(ShapeError, match="out of range"):
            run_plan(plan_of(graph), spec, [[x, np.array(3, np.int32)]])


def boxes_of(seed, batch, classes, n):
    rng = np.random.default_rng(seed)
    corners = rng.uniform(0, 1, (batch, n, 4)).astype(np.float32)
    scores = rng.integers(0, 8, (batch, classes, n)).astype(np.float32) / 8
    scores[rng.random(scores.shape) < 0.05] = np.nan
    return corners, scores


@pytest.mark.parametrize("center", [0, 1])
def test_non_max_suppression(center):
    def build(b, boxes, scores, *rest):
        return b.op("NonMaxSuppression", boxes, scores, *rest, center_point_box=center)

    shapes = ("f n t 4", "f n 3 t")
    sizes = [(2, 9), (1, 1), (3, 40), (0, 4), (2, 0)]
    every = [boxes_of(seed, batch, 3, n) for seed, (batch, n) in enumerate(sizes)]
    numbers = [np.array([2], np.int64), np.array([0.2], np.float32), np.array([0.3], np.float32)]
    check_graph(graph_of(build, *shapes, "i 1", "f 1", "f 1"), *([*pair, *numbers] for pair in every))
    known = lambda b, boxes, scores: build(b, boxes, scores, b.ints(4), b.constant(numbers[1]))  # noqa: E731
    check_graph(graph_of(known, *shapes), *map(list, every))
    check_graph(graph_of(build, *shapes), *map(list, every))
    largest = lambda b, boxes, scores: build(b, boxes, scores, b.ints(2**40))  # noqa: E731
    check_graph(graph_of(largest, *shapes), *map(list, every))


@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_unique(axis, is_sorted):
    attrs = {} if axis is None else {"axis": axis}

    def build(b, x):
        outputs = [b.value(name) for name in ("values", "first", "inverse", "counts")]
        b.add(Node("Unique", [x], outputs, {"sorted": is_sorted, **attrs}))
        return outputs

    for kind in ("f", "i", "u16", "f64"):
        graph = graph_of(build, f"{kind} n 3 2")
        runs = []
        for n in (6, 1):
            (x,) = arguments_of(graph, {"n": n})
            runs.append([(np.abs(x) > 1).astype(x.dtype)])
        check_graph(graph, *runs)
    special = np.array([1, np.nan, -0.0, 1, 0.0, np.nan, -np.inf], np.float32)
    if axis in (None, 0):
        check_graph(graph_of(build, "f n"), [special], [special[:0]])
    if axis == 0:
        rows = run_plan(plan_of(graph_of(build, "f n t")), BUILDS[0], [[np.zeros((3, 0), np.float32)]])[0]
        assert [each.tolist() for each in rows[1:]] == [[0], [0, 0, 0], [3]]
