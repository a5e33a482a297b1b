"""Chains of operations that quantize are one operation, with the same bits."""

import numpy as np
import pytest

from tests.plan.harness import BUILDS, graph_of, plan_of, run_plan
from webrnn.engine.executor.executor import Executor
from webrnn.ir import DType
from webrnn.passes import run_passes
from webrnn.plan.lower import lower

X = np.float32([-1e9, -3.5, -2.5, -0.5, -0.0, 0.5, 1.5, 2.5, 126.6, 254.5, 255.5, 1e9, np.inf, -np.inf, np.nan])


def _quantized(b, x, dtype, again):
    scale, zero = b.constant(np.float32(0.5)), b.constant(dtype(3))
    q = b.op("QuantizeLinear", x, scale, zero)
    return b.op("DequantizeLinear", q, scale, zero) if again else q


def _operations(graph):
    run_passes(graph)
    (expression,) = (each for each in lower(graph).code if each.name == "expression")
    return [op.code for op in expression.ops]


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("again", [False, True])
def test_one_operation(dtype, again):
    saturate = "saturate_u8" if dtype is np.uint8 else "saturate_i8"
    graph = graph_of(lambda b, x: _quantized(b, x, dtype, again), "f n")
    assert _operations(graph.copy()) == [
        "div",
        saturate,
        *(["sub", "mul"] if again else [saturate.replace("saturate", "to")]),
    ]


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("again", [False, True])
def test_bits(dtype, again, build):
    graph = graph_of(lambda b, x: _quantized(b, x, dtype, again), "f n")
    (expected,) = Executor(graph).run([X])
    run_passes(graph)
    ((result,),) = run_plan(plan_of(graph), build, [[X]])
    assert np.array_equal(result, expected)


def test_other_limits_stay():
    def clipped(b, x):
        whole = b.op("Round", x)
        low, high = b.constant(np.float32(0)), b.constant(np.float32(100))
        raised = b.op("Where", b.op("Greater", whole, low), whole, low)
        return b.op("Cast", b.op("Min", raised, high), to=int(DType.UINT8))

    assert _operations(graph_of(clipped, "f n")) == ["round", "greater", "select", "min", "to_u8"]
