"""webrnn as an ONNX backend: `onnx.backend.test` and other callers of `onnx.backend.base` can run models on it.

This module alone needs the `onnx` package.

>>> node = onnx.helper.make_node("Add", ["a", "b"], ["c"])
>>> run_node(node, [np.float32([1]), np.float32([2])])
Outputs(c=array([3.], dtype=float32))
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from webrnn.engine.session import InferenceSession
from webrnn.ir import DType


class WebrnnRep(BackendRep):
    """A prepared model."""

    def __init__(self, session: InferenceSession):
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        names = [argument.name for argument in self.session.get_inputs()]
        if isinstance(inputs, dict):
            feeds = inputs
        else:
            feeds = dict(zip(names, inputs if isinstance(inputs, list | tuple) else [inputs], strict=False))
        results = self.session.run(None, {name: to_webrnn(value) for name, value in feeds.items()})
        output_names = [argument.name for argument in self.session.get_outputs()]
        return namedtupledict("Outputs", output_names)(*(from_webrnn(result) for result in results))


class WebrnnBackend(Backend):
    """Models run on the numpy reference unless `backend` says otherwise."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> WebrnnRep:
        return WebrnnRep(InferenceSession(model.SerializeToString(), backend=kwargs.get("backend", "numpy")))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        given = [name for name in node.input if name]
        arrays = dict(zip(given, inputs, strict=True))
        graph = onnx.helper.make_graph(
            [node],
            "node",
            [_info(name, array.dtype, array.shape) for name, array in arrays.items()],
            [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name],
        )
        version = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", version)])
        return cls.run_model(model, arrays, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.split(":")[0] == "CPU"


def to_webrnn(value: Any) -> Any:
    """A value as `onnx` has it, in webrnn's form: they differ in the types that numpy lacks."""
    if isinstance(value, list | tuple):
        return [to_webrnn(item) for item in value]
    if isinstance(value, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(value)
    if not isinstance(value, np.ndarray) or value.dtype.isbuiltin == 1:
        return value
    dtype = DType(onnx.helper.np_dtype_to_tensor_dtype(value.dtype))
    return np.ascontiguousarray(value).view(dtype.array_type[0]).view(dtype.array_type).reshape(value.shape)


def from_webrnn(value: Any) -> Any:
    """The way back."""
    if isinstance(value, list):
        return [from_webrnn(item) for item in value]
    if not isinstance(value, np.ndarray) or value.dtype.names is None:
        return value
    target = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(DType.of(value)))
    return value.view(value.dtype[0]).view(target).reshape(value.shape)


def _info(name: str, dtype: np.dtype, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(dtype), shape)


prepare = WebrnnBackend.prepare
run_model = WebrnnBackend.run_model
run_node = WebrnnBackend.run_node
supports_device = WebrnnBackend.supports_device

__all__ = ["WebrnnBackend", "WebrnnRep", "prepare", "run_model", "run_node", "supports_device"]
