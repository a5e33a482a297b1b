"""Comparing what is inferred of every value, in sub-graphs too, with what it is when the graph runs."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np

from webrnn.engine.executor import executor
from webrnn.ir import DType, Graph, SymbolicDim, Value
from webrnn.shapes.facts import Fact, Facts


def run_and_compare(graph: Graph, arguments: list[Any], facts: Facts) -> int:
    """Run the graph, assert that all facts hold for each value whenever it is made, and count those with a shape."""
    sizes: dict[str, int] = {}
    for value, array in zip(graph.inputs, arguments, strict=True):
        for dim, size in zip(facts.shape(value) or (), getattr(array, "shape", ()), strict=False):
            if isinstance(dim, SymbolicDim):
                sizes[str(dim)] = size
    seen: set[Value] = set()
    call = executor.Step.call

    def watching_call(step: Any, operands: list[Any], budget: Any) -> Any:
        results = call(step, operands, budget)
        for value, array in zip(step.node.outputs, results, strict=False):
            if value is not None and isinstance(array, np.ndarray):
                assert_holds(facts.of(value), array, sizes, f"{step.node} {value.name}")
                seen.add(value)
        return results

    with mock.patch.object(executor.Step, "call", watching_call):
        executor.Executor(graph, naive_scans=True).run(arguments)
    return sum(facts.shape(value) is not None for value in seen)


def assert_holds(fact: Fact, array: np.ndarray, sizes: dict[str, int], where: str) -> None:
    def number(dim: Any) -> int:
        return dim.substitute(sizes) if isinstance(dim, SymbolicDim) else dim

    assert fact.dtype is None or fact.dtype is DType.of(array), (where, fact, array.dtype)
    if fact.shape is not None:
        assert len(fact.shape) == array.ndim, (where, fact, array.shape)
        known = [(number(dim), size) for dim, size in zip(fact.shape, array.shape, strict=True) if dim is not None]
        assert all(dim == size for dim, size in known), (where, fact, array.shape)
    if fact.content is not None:
        pairs = zip(fact.content, array.reshape(-1).tolist(), strict=True)
        assert all(number(dim) == element for dim, element in pairs if dim is not None), (where, fact, array)
