"""Ops that read and write by index, or make tensors of positions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.plan.harness import BUILDS, arguments_of, check_graph, graph_of, plan_of, run_plan
from webrnn.engine.executor.executor import Executor
from webrnn.errors import ShapeError
from webrnn.ir import WEBRNN, Node
from webrnn.plan.lower import lower

ANY_KIND = ("f", "i", "j", "b", "f64", "f16", "i8", "u16", "u64", "bf16")
SUMMED = ("f", "i", "j", "f64", "u8")


def integers(seed, low, high, *shape, dtype=np.int64):
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def on_kinds(build, kinds, shapes, *indices, sizes=({"n": 3}, {"n": 1}, {"n": 5}, {"n": 0})):
    """With indices that come in a run: pairs of an input and a function of n. A shape without a kind gets all."""
    for kind in kinds:
        graph = graph_of(build, *(shape if shape[0] in "ij" else f"{kind} {shape}" for shape in shapes))
        runs = []
        for numbers in sizes:
            arguments = arguments_of(graph, numbers)
            for index, make in indices:
                arguments[index] = make(numbers["n"])
            runs.append(arguments)
        check_graph(graph, *runs)


def is_refused(build, inputs, arguments, match="index|indices|range|lens|write"):
    """By numpy and by the VM, with the same kind of error."""
    graph = graph_of(build, *inputs)
    with pytest.raises(ShapeError, match=match):
        Executor(graph).run(arguments)
    data = plan_of(graph)
    for spec in BUILDS:
        with pytest.raises(ShapeError, match="out of range"):
            run_plan(data, spec, [arguments])


@pytest.mark.parametrize(("axis", "shape"), [(0, (2, 3, 4)), (1, (2, 5, 4)), (-1, (1, 3, 2)), (2, (0, 3, 1))])
def test_gather_elements(axis, shape):
    sizes = [4 if i == axis % 3 else size for i, size in enumerate((2, 3, 4))]
    index = integers(0, -4, 4, *shape)
    for kind in ANY_KIND:
        graph = graph_of(
            lambda b, x, i: b.op("GatherElements", x, i, axis=axis), f"{kind} {' '.join(map(str, sizes))}", "i a b c"
        )
        check_graph(graph, [*arguments_of(graph, dict(zip("abc", shape, strict=True)))[:1], index])


def test_gather_elements_of_a_named_size_and_a_transposed_operand():
    def build(b, x, i):
        return b.op("GatherElements", b.op("Transpose", x), i, axis=1)

    make = lambda n: integers(1, -n, max(n, 1), 3, n, dtype=np.int32)  # noqa: E731
    on_kinds(build, "fj", ("n 3", "j 3 n"), (1, make))


@pytest.mark.parametrize("batch", [0, 1])
def test_gather_nd(batch):
    def build(b, x, i):
        return b.op("GatherND", x, i, batch_dims=batch)

    make = lambda n: integers(2, -2, 2, n, 3, 2)  # noqa: E731
    sizes = ({"n": 3}, {"n": 2}) if batch == 0 else ({"n": 3}, {"n": 1}, {"n": 0})
    on_kinds(build, ANY_KIND, (("n 2 3" if batch == 0 else "n 2 2 3"), "i n 3 2"), (1, make), sizes=sizes)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("axis", [0, -1])
def test_scatter_elements(reduction, axis):
    def build(b, x, i, u):
        return b.op("ScatterElements", x, i, u, axis=axis, reduction=reduction)

    for kind in ANY_KIND if reduction == "none" else SUMMED:
        graph = graph_of(build, f"{kind} n 4", "i m 3", f"{kind} m 3")
        runs = []
        for n, m in ((3, 3), (5, 2), (2, 0)):
            x, _, updates = arguments_of(graph, {"n": n, "m": m})
            size = n if axis == 0 else 4
            index = np.argsort(np.random.default_rng(3).random((m, size)), axis=1)[:, :3] - size * (reduction == "max")
            runs.append([x, index.astype(np.int64) if index.shape[1] == 3 else integers(4, 0, size, m, 3), updates])
        check_graph(graph, *runs)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter_nd(reduction):
    for kind in ANY_KIND if reduction == "none" else SUMMED:
        graph = graph_of(
            lambda b, x, i, u: b.op("ScatterND", x, i, u, reduction=reduction), f"{kind} n 4 2", "i m 2", f"{kind} m 2"
        )
        runs = []
        for n, m in ((3, 5), (1, 1), (2, 0)):
            x, _, updates = arguments_of(graph, {"n": n, "m": m}, seed=5)
            runs.append([x, np.stack([integers(6, -n, n, m), integers(7, -4, 4, m)], axis=1), updates])
        check_graph(graph, *runs)


def test_scatter_takes_in_what_is_no_number():
    x, updates = np.array([1, np.nan, -0.0, 3], np.float32), np.array([np.nan, 2, 0.0, np.inf, 1], np.float32)
    index = np.int64([[0], [1], [2], [3], [3]])
    for reduction in ("max", "min", "add"):
        graph = graph_of(lambda b, x, i, u, r=reduction: b.op("ScatterND", x, i, u, reduction=r), "f 4", "i 5 1", "f 5")
        check_graph(graph, [x, index, updates])


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis", [-2, 1])
def test_tensor_scatter(mode, axis):
    def build(b, cache, update, start):
        return b.op("TensorScatter", cache, update, start, axis=axis, mode=mode)

    shapes = ("n 5 5 2", "n 5 2 2" if axis == -2 else "n 2 5 2", "i n")
    most = 4 if mode == "linear" else 12
    on_kinds(build, ("f", "f16", "i8"), shapes, (2, lambda n: integers(8, 0, most, n)))
    on_kinds(lambda b, cache, update: b.op("TensorScatter", cache, update, axis=axis, mode=mode), "f", shapes[:2])


@pytest.mark.parametrize(("time", "batch"), [(0, 1), (1, 0)])
def test_reverse_sequence(time, batch):
    def build(b, x, lengths):
        return b.op("ReverseSequence", x, lengths, time_axis=time, batch_axis=batch)

    on_kinds(build, ANY_KIND, ("4 n 2" if batch else "n 4 2", "i n"), (1, lambda n: integers(9, 0, 5, n)))


def test_sequence_mask():
    def build(b, lengths, x):
        mask = b.value("mask")
        b.add(Node("SequenceMask", [lengths, x], [mask], {}, "", WEBRNN))
        return mask

    graph = graph_of(build, "j n", "f t n 2")
    x = np.zeros((4, 3, 2), np.float32)
    check_graph(graph, [np.array([0, 4, 2], np.int32), x], [np.zeros(0, np.int32), x[:, :0]])
    is_refused(build, ("j n", "f t n 2"), [np.array([0, 5, 2], np.int32), x])
    is_refused(build, ("j n", "f t n 2"), [np.array([0, -1, 2], np.int32), x])


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(axis):
    for kind in ANY_KIND:
        for numbers in "ijf":
            graph = graph_of(
                lambda b, i, v: b.op("OneHot", i, b.constant(np.int64(3)), v, axis=axis), f"{numbers} n 2", f"{kind} 2"
            )
            values = arguments_of(graph, {"n": 0}, seed=4)[1]
            runs = [np.array(rows, graph.inputs[0].dtype.array_type) for rows in ([[0, 2], [-1, -3]], [[3, -4]])]
            check_graph(graph, *([run, values] for run in runs))


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, 0, 1, -2, 9])
def test_trilu(upper, k):
    known = [] if k is None else [k]
    for kind in ("f", "i", "j", "b", "f64", "u8"):
        check_graph(graph_of(lambda b, x: b.op("Trilu", x, *map(b.constant, known), upper=upper), f"{kind} 2 n 3"))
        graph = graph_of(lambda b, x, k: b.op("Trilu", x, k, upper=upper), f"{kind} 2 n t", "i")
        check_graph(graph, *([arguments_of(graph, {"n": 4, "t": t})[0], np.array(k or 0, np.int64)] for t in (3, 5, 0)))


@pytest.mark.parametrize("k", [0, 1, -2, 7])
def test_eye_like(k):
    check_graph(graph_of(lambda b, x: b.op("EyeLike", x, k=k), "f n 4"))
    check_graph(graph_of(lambda b, x: b.op("EyeLike", x, k=k, dtype=7), "f n t"))


def test_range():
    def named(b, x):
        count = b.op("Squeeze", b.op("Shape", x), b.ints(0))
        return (
            b.op("Range", b.constant(0), count, b.constant(1)),
            b.op("Range", b.constant(-3), count, b.constant(2)),
            b.op("Cast", b.op("Range", count, b.op("Add", count, count), b.constant(3)), to=1),
        )

    check_graph(graph_of(named, "f n"))


def test_gather_of_what_is_known_is_a_view():
    def build(b, x):
        last = b.op("Sub", b.op("Shape", x, end=1), b.ints(1))
        return (
            b.op("Gather", x, b.constant(-1), axis=0),
            b.op("Gather", x, b.constant(1), axis=1),
            b.op("Gather", x, b.ints(2), axis=1),
            b.op("Gather", x, b.ints(2, 1, 0), axis=1),
            b.op("Gather", x, b.ints(0, 2, 1), axis=1),
            b.op("Gather", x, last, axis=0),
        )

    sizes = ({"n": 3}, {"n": 1})
    check_graph(graph_of(build, "f n 3"), sizes=sizes)
    names = [instruction.name for instruction in lower(graph_of(build, "f n 3")).walk()]
    assert names.count("gather") == 2


REFUSED = {
    "gather": (lambda b, x, i: b.op("Gather", x, i), ("f 3 2", "i 2"), [np.int64([0, 3])]),
    "gather elements": (
        lambda b, x, i: b.op("GatherElements", x, i),
        ("f 3 2", "i 1 2"),
        [np.int64([[0, -4]])],
    ),
    "gather nd": (lambda b, x, i: b.op("GatherND", x, i), ("f 3 2", "i 1 2"), [np.int64([[0, 2]])]),
    "scatter elements": (
        lambda b, x, i: b.op("ScatterElements", x, i, b.constant(np.zeros((1, 2), np.float32))),
        ("f 3 2", "i 1 2"),
        [np.int64([[0, 3]])],
    ),
    "scatter nd": (
        lambda b, x, i: b.op("ScatterND", x, i, b.constant(np.zeros(1, np.float32))),
        ("f 3 2", "i 1 2"),
        [np.int64([[1, -3]])],
    ),
    "tensor scatter": (
        lambda b, x, i: b.op("TensorScatter", x, b.op("Slice", x, b.ints(0), b.ints(2), b.ints(1)), i, axis=1),
        ("f 2 3 1", "i 2"),
        [np.int64([0, 2])],
    ),
    "reverse": (lambda b, x, i: b.op("ReverseSequence", x, i), ("f 3 2", "i 2"), [np.int64([0, 4])]),
    "reverse less": (lambda b, x, i: b.op("ReverseSequence", x, i), ("f 3 2", "i 2"), [np.int64([0, -1])]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_out_of_range(name):
    build, inputs, indices = REFUSED[name]
    is_refused(build, inputs, [arguments_of(graph_of(build, *inputs), {})[0], *indices])
