"""A node on the VM, expanded, against the same node in numpy, as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import helper

import webrnn
from tests.backends import KERNELS
from tests.onnx.models import model
from tests.plan.harness import assert_same_bits


def proto_of(op: str, inputs: Sequence[Any], n_outputs: int = 1, sizes: Sequence[Any] = (), **attrs: Any) -> bytes:
    """A model of one node; `sizes` are the shapes that its inputs declare, if not those of the arrays."""
    names = [f"x{i}" if array is not None else "" for i, array in enumerate(inputs)]
    declared = [
        helper.make_tensor_value_info(
            f"x{i}", helper.np_dtype_to_tensor_dtype(array.dtype), sizes[i] if sizes else array.shape
        )
        for i, array in enumerate(inputs)
        if array is not None
    ]
    outputs = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(n_outputs)]
    node = helper.make_node(op, names, [output.name for output in outputs], **attrs)
    return model([node], declared, outputs, opset=21).SerializeToString()


def check_node(
    op: str,
    *inputs: np.ndarray | None,
    n_outputs: int = 1,
    sizes: Sequence[Any] = (),
    tolerance: float = 1e-5,
    **attrs: Any,
) -> list[np.ndarray]:
    """Run a node on all main builds, wholly on the VM, with equal bits; its results."""
    data = proto_of(op, inputs, n_outputs, sizes, **attrs)
    feeds = {f"x{i}": array for i, array in enumerate(inputs) if array is not None}
    with np.errstate(all="ignore"):
        wanted = webrnn.InferenceSession(data, backend="numpy", disable=["expand_ops"]).run(None, feeds)
    first: list[np.ndarray] | None = None
    for backend in KERNELS:
        session = webrnn.InferenceSession(data, backend=backend)
        results = session.run(None, feeds)
        assert "numpy" not in session.report(), session.report()
        for result, want in zip(results, wanted, strict=True):
            assert (result.dtype, result.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(result, want, rtol=tolerance, atol=tolerance)
        first = first or results
        assert_same_bits(results, first)
    assert first is not None
    return first
