"""Gradients beside finite differences in float64.

A graph of float32 becomes one of float64, its loss is a weighted sum of its outputs, and the gradient along a random
direction is compared with the difference of two runs. Where the differences to the left and to the right are not the
same, the function has a corner there, and another direction is tried.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webrnn.engine.executor.executor import Executor
from webrnn.gradients.api import gradient
from webrnn.ir import DType, Graph, GraphBuilder, Node
from webrnn.ir.check import check

STEP = 1e-6


def doubled(graph: Graph) -> Graph:
    """The same in float64."""
    graph = graph.copy()
    for inner in graph.walk():
        values = {*inner.inputs, *inner.constants, *(v for node in inner.nodes for v in node.outputs if v is not None)}
        scales = {node.inputs[2] for node in inner.nodes if node.op == "Resize" and len(node.inputs) > 2}
        for value in values - scales:
            value.dtype = DType.DOUBLE if value.dtype is DType.FLOAT else value.dtype
        for value, array in list(inner.constants.items()):
            if array.dtype == np.float32 and value not in scales:
                inner.constants[value] = array.astype(np.float64)
        for node in inner.nodes:
            if node.op == "Cast" and node.attrs.get("to") == int(DType.FLOAT):
                node.attrs = {**node.attrs, "to": int(DType.DOUBLE)}
    return graph


def with_loss(graph: Graph, arguments: Sequence[np.ndarray], rng: np.random.Generator) -> Graph:
    """Its only output is a weighted sum of the outputs that are floats."""
    b = GraphBuilder("loss")
    b.graph = graph
    b._names = {value.name for node in graph.nodes for value in node.outputs if value is not None}
    b._names |= {value.name for value in (*graph.inputs, *graph.constants)}
    results = Executor(graph).run(list(arguments))
    dtype = next(result.dtype for result in results if result.dtype.kind == "f")
    total = b.constant(np.zeros((), dtype))
    for value, result in zip(list(graph.outputs), results, strict=True):
        if result.dtype == dtype:
            weight = b.constant(rng.standard_normal(result.shape).astype(dtype))
            part = b.value("part")
            b.add(Node("ReduceSum", [b.op("Mul", value, weight)], [part], {"keepdims": 0}))
            total = b.op("Add", total, part)
    loss = b.value("loss", DType.of(np.zeros((), dtype)), ())
    b.op("Identity", total, output=loss)
    graph.outputs = [loss]
    return graph


def assert_right(
    graph: Graph,
    arguments: Sequence[np.ndarray],
    seed: int = 0,
    wrt: Sequence[str] | None = None,
    tolerance: float = 1e-5,
    **options: int,
) -> int:
    """How many directions were compared; a graph of float32 or float64 and its arguments."""
    rng = np.random.default_rng(seed)
    graph = doubled(graph)
    arguments = [np.asarray(item, np.float64) if item.dtype.kind == "f" else item for item in arguments]
    graph = with_loss(graph, arguments, rng)
    names = [value.name for value in graph.inputs]
    wanted = [name for name, item in zip(names, arguments, strict=True) if item.dtype.kind == "f"]
    wanted = wanted if wrt is None else list(wrt)
    derived = gradient(graph, "loss", wanted, **options)  # type: ignore[arg-type]
    check(derived)
    assert [value.name for value in derived.inputs] == names
    loss, *gradients = Executor(derived).run(arguments)
    run = Executor(graph).run
    assert np.isfinite(loss)
    found = dict(zip(wanted, gradients, strict=True))
    compared = 0
    for name in wanted:
        place = names.index(name)
        assert found[name].shape == arguments[place].shape
        compared += _compare(run, arguments, place, found[name], float(loss), rng, tolerance, f"{name}, seed {seed}")
    return compared


def _compare(run, arguments, place, gradient, loss, rng, tolerance, what) -> int:  # type: ignore[no-untyped-def]
    for _ in range(4):
        direction = rng.standard_normal(arguments[place].shape)
        ends = []
        for sign in (1, -1):
            moved = list(arguments)
            moved[place] = arguments[place] + sign * STEP * direction
            ends.append(float(run(moved)[0]))
        slope = (ends[0] - ends[1]) / (2 * STEP)
        left, right = (loss - ends[1]) / STEP, (ends[0] - loss) / STEP
        scale = max(abs(slope), float(np.sqrt((gradient**2).sum())), 1e-3)
        if abs(left - right) > 1e-3 * scale:
            continue  # a corner
        got = float((gradient * direction).sum())
        assert abs(got - slope) <= tolerance * scale, f"{what}: {got} is not {slope}"
        return 1
    return 0
