"""Reductions and softmax."""

from __future__ import annotations

import numpy as np
import pytest

import webrnn
from tests.backends import BACKENDS
from tests.passes.expansions.harness import check_node, proto_of
from tests.plan.harness import arguments_of, check_graph, graph_of, plan_of
from webrnn.plan.lowering import NotLowered

SUMS = ("ReduceSum", "ReduceSumSquare", "ReduceProd")
OPS = (*SUMS, "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp")
AXES = ((0,), (1,), (2,), (-1,), (0, 1), (1, 2), (0, 2), (0, 1, 2), None)


@pytest.mark.parametrize("op", OPS)
def test_reduce(op):
    for axes in AXES:
        for keepdims in (0, 1):

            def build(b, x):
                return b.op(op, x, None if axes is None else b.ints(*axes), keepdims=keepdims)  # noqa: B023

            check_graph(graph_of(build, "f 2 5 3"))
            check_graph(graph_of(lambda b, x: b.op("Tanh", build(b, b.op("Transpose", x))), "f 9 2 40"), tolerance=1e-4)


@pytest.mark.parametrize("op", OPS)
def test_reduce_of_named_sizes(op):
    for axes in AXES:
        check_graph(graph_of(lambda b, x: b.op(op, x, None if axes is None else b.ints(*axes)), "f n t 3"))  # noqa: B023


def test_mean_of_named_sizes():
    check_graph(
        graph_of(lambda b, x: b.op("ReduceMean", x, b.ints(1)), "f n t"), sizes=[{"n": 2, "t": 3}, {"n": 0, "t": 1}]
    )


def test_reduce_of_nothing():
    for op in SUMS:
        check_graph(graph_of(lambda b, x: b.op(op, x, b.ints(1)), "f 2 0 3"))  # noqa: B023
    check_graph(graph_of(lambda b, x: b.op("ReduceMax", x, b.ints(1)), "f 0 2 3"))
    check_graph(graph_of(lambda b, x: b.op("ReduceMin", x, b.ints(1)), "f n 0 3"))


def test_no_axes_may_mean_none():
    check_graph(graph_of(lambda b, x: b.op("ReduceSum", x, b.ints(), noop_with_empty_axes=1), "f n 3"))
    check_graph(graph_of(lambda b, x: b.op("ReduceSum", x, b.ints()), "f n 3"))


def test_reduce_of_rank_zero():
    check_graph(graph_of(lambda b, x: b.op("ReduceSum", x), "f"))


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax(op):
    for shape in ("n 5", "7", "2 n 33", "n 1"):
        check_graph(graph_of(lambda b, x: b.op(op, x, axis=-1), f"f {shape}"))
    check_graph(graph_of(lambda b, x: b.op("Transpose", b.op(op, b.op("Transpose", x), axis=-1)), "f 5 n"))
    for axis in (0, 1, -2):
        check_graph(graph_of(lambda b, x: b.op(op, x, axis=axis), "f n 5 t"))  # noqa: B023


def _feeds(graph, axes, seed=0):
    (x, *_) = arguments_of(graph, {"n": 3, "t": 2}, seed)
    return [x, np.array(axes, np.int64)]


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceLogSumExp"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_axes_that_come_with_the_inputs(op, keepdims):
    graph = graph_of(lambda b, x, axes: b.op(op, x, axes, keepdims=keepdims), "f n 2 t 4", "i 2")
    check_graph(graph, *(_feeds(graph, axes) for axes in ((0, 3), (-1, 1), (2, -4))))
    single = graph_of(lambda b, x, axes: b.op(op, x, axes, keepdims=keepdims), "f n 5", "i 1")
    check_graph(single, *(_feeds(single, axes) for axes in ((0,), (1,))))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("axes", [(0, 3), (-4, 1), (1, 1), (1, -2)])
def test_axes_that_are_none(backend, axes):
    data = proto_of("ReduceSum", [np.zeros((2, 3, 4), np.float32), np.array(axes, np.int64)])
    session = webrnn.InferenceSession(data, backend=backend)
    with pytest.raises(webrnn.ShapeError):
        session.run(None, {"x0": np.zeros((2, 3, 4), np.float32), "x1": np.array(axes, np.int64)})


@pytest.mark.parametrize("noop", [0, 1])
@pytest.mark.parametrize("op", OPS)
def test_no_axes_in_the_inputs(op, noop):
    check_graph(graph_of(lambda b, x, axes: b.op(op, x, axes, noop_with_empty_axes=noop), "f n 3", "i 0"))


INTEGERS = (np.int64, np.int32, np.uint32, np.uint64, np.int8, np.uint8, np.bool_)


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_integers(dtype, axes):
    """As numpy: they wrap; the mean and the root are rounded towards zero."""
    bounds = (0, 1) if dtype is np.bool_ else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    many = np.random.default_rng(0).integers(*bounds, (4, 5), np.int64 if dtype is np.bool_ else dtype, endpoint=True)
    few = (many % 7).astype(dtype)
    ops = ("Max", "Min", *(("Sum", "SumSquare", "Prod", "Mean", "L1", "L2") if np.dtype(dtype).itemsize >= 4 else ()))
    for op in ops:
        for x in (few, many.astype(dtype)) if op not in ("L2", "Mean") else (few,):
            check_node(f"Reduce{op}", x, np.array(axes, np.int64), tolerance=0, sizes=[["n", "t"], [len(axes)]])
        if op != "Mean":
            check_node(f"Reduce{op}", np.zeros((0, 2), dtype), np.array(axes, np.int64), tolerance=0)


@pytest.mark.parametrize("op", OPS)
def test_doubles(op):
    x = np.abs(np.random.default_rng(0).standard_normal((3, 4, 2))) + 0.1
    for axes in ((1,), (0, 2)):
        check_node(op, x, np.array(axes, np.int64), tolerance=1e-13)
    check_node(op, np.zeros((2, 0)), np.array([1], np.int64), tolerance=0)


def test_special_numbers():
    x = np.array([[1, np.nan], [np.inf, 2], [-np.inf, -np.inf], [np.inf, -np.inf], [-1e38, -3e38]], np.float32)
    for op in ("ReduceMax", "ReduceMin", "ReduceSum", "ReduceLogSumExp", "ReduceL1"):
        for dtype in (np.float32, np.float64):
            check_node(op, x.astype(dtype), np.array([1], np.int64))


@pytest.mark.parametrize(
    ("build", "shape", "reason"),
    [
        (lambda b, x: b.op("ReduceLogSum", b.op("Cast", x, to=7), b.ints(0)), "f 3", "log_sum of i64|int64"),
        (lambda b, x: b.op("Softmax", b.op("Cast", x, to=11), axis=0), "f 2 3", "not of float"),
    ],
)
def test_reasons_to_refuse(build, shape, reason):
    with pytest.raises(NotLowered, match=reason):
        plan_of(graph_of(build, shape))


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceSum", "ReduceSumSquare", "ReduceL2", "ReduceLogSumExp"])
def test_the_order_of_sums_does_not_depend_on_how_many_columns_there_are(op):
    """Over channels of [batch, channels, time], for one frame at a time as for all."""
    graph = graph_of(lambda b, x: b.op(op, x, b.ints(1)), "f b 9 t")
    x = np.random.default_rng(0).standard_normal((2, 9, 7)).astype(np.float32)
    session = webrnn.InferenceSession(graph)
    (name,) = [value.name for value in graph.inputs]
    (whole,) = session.run(None, {name: x})
    parts = [session.run(None, {name: x[:, :, at : at + 1]})[0] for at in range(7)]
    assert np.concatenate(parts, axis=2).tobytes() == whole.tobytes()
