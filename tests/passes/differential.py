"""Running a graph before and after passes and comparing the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from webrnn.engine.executor.executor import Executor
from webrnn.ir import Graph
from webrnn.ir.check import check
from webrnn.ir.fused import is_expression
from webrnn.passes import ALL_PASSES, Outcome, Pass, run_passes
from webrnn.passes.pipeline import FOR_STREAMS

BY_NAME: dict[str, Pass] = {step.name: step.load() for step in ALL_PASSES}
WITH_STREAMS: dict[str, Pass] = {**BY_NAME, **{step.name: step.load() for step in FOR_STREAMS}}


def ops(graph: Graph) -> Counter[str]:
    """How many nodes of each op there are, in all graphs."""
    return Counter(node.op for inner in graph.walk() for node in inner.nodes)


def nodes_left(graph: Graph) -> int:
    """How many nodes there are, in all graphs, an Expression being one."""
    fused = {id(node.attrs["body"]) for inner in graph.walk() for node in inner.nodes if is_expression(node)}
    return sum(len(inner.nodes) for inner in graph.walk() if id(inner) not in fused)


def apply(graph: Graph, *names: str, **options: Any) -> Outcome:
    """Run these passes, behind the inference that they require, until nothing changes; check the graph after each."""
    steps = [BY_NAME["infer_shapes"], *(WITH_STREAMS[name] for name in names)]
    return run_passes(graph, steps, check=True, **options)


def assert_same_results(
    before: Graph, after: Graph, arguments: Sequence[Any], bits: bool = True, tolerance: float = 1e-5
) -> None:
    """Names, types, shapes and numbers; -0.0 and 0.0 are different if `bits`."""
    check(after)
    assert [value.name for value in before.outputs] == [value.name for value in after.outputs]
    assert [value.name for value in before.inputs] == [value.name for value in after.inputs]
    assert_gives(after, arguments, Executor(before).run(arguments), bits, tolerance)


def assert_gives(
    graph: Graph, arguments: Sequence[Any], wanted: Sequence[np.ndarray], bits: bool = True, tolerance: float = 1e-5
) -> None:
    """Types, shapes and numbers; -0.0 and 0.0 are different if `bits`."""
    for value, want, result in zip(graph.outputs, wanted, Executor(graph).run(arguments), strict=True):
        assert (want.dtype, want.shape) == (result.dtype, result.shape), value.name
        if bits and want.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(want), np.signbit(result), err_msg=value.name)
        if bits:
            np.testing.assert_array_equal(want, result, err_msg=value.name)
        else:
            np.testing.assert_allclose(result, want, rtol=tolerance, atol=tolerance, err_msg=value.name)


def assert_keeps_results(graph: Graph, arguments: Sequence[Any], *names: str, **options: Any) -> Outcome:
    """Run passes on a copy and compare. Passes that reorder arithmetic get a tolerance, all others none."""
    copy = graph.copy()
    outcome = apply(copy, *names, **options)
    exact = not any(WITH_STREAMS[name].reorders_arithmetic for name in names)
    assert_same_results(graph, copy, arguments, bits=exact)
    return outcome


def graph_of(text: str, opset: int = 21) -> Graph:
    """A graph from ONNX's textual syntax, with the passes' own view of it: as the reader gives it."""
    from onnx.parser import parse_model

    from webrnn.onnx.reader import read_model

    model = parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> {text}')
    return read_model(model.SerializeToString())


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def reasons(outcome: Outcome, name: str) -> set[str]:
    """Why a pass declined."""
    return {decline.reason for decline in outcome.declines.get(name, ())}
