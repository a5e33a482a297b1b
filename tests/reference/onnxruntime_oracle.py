"""Compare an op function with onnxruntime on a model of one node."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from webrnn.checks import arrays

os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"
OPSET = 22
Feeds = Sequence[np.ndarray | None]


def onnxruntime_outputs(op_type: str, inputs: Feeds, attrs: dict[str, Any], n_outputs: int, domain: str) -> list[Any]:
    import onnxruntime

    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    while names[-1] == "":
        names.pop()
    given = {name: np.asarray(x) for name, x in zip(names, inputs, strict=False) if x is not None}
    outputs = [f"y{i}" for i in range(n_outputs)]
    node = helper.make_node(op_type, names, outputs, domain=domain, **attrs)
    # Small integer inputs (axes, shapes, pads ...) must often be constants.
    constant = {name for name, x in given.items() if x.dtype == np.int64 and x.ndim <= 1}
    graph = helper.make_graph(
        [node],
        "one_node",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in given.items()
            if name not in constant
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(given[name], name) for name in constant],
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {name: x for name, x in given.items() if name not in constant})


def check(
    op_type: str,
    *inputs: np.ndarray | None,
    n_outputs: int = 1,
    domain: str = "",
    rtol: float = 1e-5,
    atol: float = 1e-6,
    **attrs: Any,
) -> list[Any]:
    """Assert that the reference gives onnxruntime's values, shapes and types; returns the outputs."""
    expected = onnxruntime_outputs(op_type, inputs, attrs, n_outputs, domain)
    outputs = arrays.call(op_type, domain, list(inputs), attrs, n_outputs)
    for result, wanted in zip(outputs, expected, strict=True):
        wanted = np.asarray(wanted)
        assert result.dtype == wanted.dtype
        assert result.shape == wanted.shape
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(result, wanted, rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(result, wanted)
    return outputs


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)
