"""The versions of a model that onnxruntime's and ONNX's tools make: quantized in three ways, and in float16."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

logging.getLogger().setLevel(logging.ERROR)
Runs = list[dict[str, np.ndarray]]


def int8(source: Path, target: Path, runs: Runs) -> None:
    model = onnx.load(source)
    del model.graph.value_info[:]  # torch's newer exporter leaves shapes of before it optimized, which the tool rejects
    kind = {"DefaultTensorType": TensorProto.FLOAT}
    quantize_dynamic(model, target, weight_type=QuantType.QInt8, extra_options=kind)


class _Runs(CalibrationDataReader):
    def __init__(self, runs: Runs):
        self._left = iter(runs)

    def get_next(self) -> dict[str, np.ndarray] | None:  # type: ignore[override]
        return next(self._left, None)


def _static(source: Path, target: Path, runs: Runs, form: Any, activation: Any) -> None:
    prepared = target.with_suffix(".prepared.onnx")
    quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
    kinds = {each.name: each.type.tensor_type.elem_type for each in onnx.load(prepared).graph.input}
    feeds = [{name: runs[0][name].astype(helper.tensor_dtype_to_np_dtype(kind)) for name, kind in kinds.items()}]
    quantize_static(
        prepared, target, _Runs(feeds), quant_format=form, activation_type=activation, weight_type=QuantType.QInt8
    )
    prepared.unlink()


def qdq(source: Path, target: Path, runs: Runs) -> None:
    _static(source, target, runs, QuantFormat.QDQ, QuantType.QInt8)


def qoperator(source: Path, target: Path, runs: Runs) -> None:
    _static(source, target, runs, QuantFormat.QOperator, QuantType.QUInt8)


def float16(source: Path, target: Path, runs: Runs) -> None:
    """All float32 of a graph, its inputs, outputs and sub-graphs as float16."""
    model = onnx.load(source)
    _halve(model.graph)
    for function in model.functions:
        _halve_nodes(function.node)
    onnx.save(model, target)


def _halve(graph: onnx.GraphProto) -> None:
    for values in (graph.input, graph.output, graph.value_info):
        for value in values:
            _halve_type(value.type)
    for tensor in graph.initializer:
        if tensor.name not in _always_float32(graph.node):
            _halve_tensor(tensor)
    _halve_nodes(graph.node)


def _always_float32(nodes: Any) -> set[str]:
    """Regions and scales of Resize."""
    return {name for node in nodes if node.op_type == "Resize" for name in node.input[1:3]}


def _halve_nodes(nodes: Any) -> None:
    for node in nodes:
        if node.output[0] in _always_float32(nodes):
            continue
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                _halve(attribute.g)
            elif attribute.type == onnx.AttributeProto.TENSOR:
                _halve_tensor(attribute.t)
            elif node.op_type in ("Cast", "EyeLike", "SequenceEmpty") and attribute.name in ("to", "dtype"):
                attribute.i = TensorProto.FLOAT16 if attribute.i == TensorProto.FLOAT else attribute.i
        if node.op_type == "Constant" and node.attribute[0].name in ("value_float", "value_floats"):
            given = node.attribute[0]
            values = np.float16(given.f if given.name == "value_float" else list(given.floats))
            given.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(np.asarray(values))))
        if node.op_type == "SequenceEmpty" and not node.attribute:
            node.attribute.append(helper.make_attribute("dtype", TensorProto.FLOAT16))
        if node.op_type == "ConstantOfShape" and not node.attribute:
            node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.float16([0]))))


def _halve_type(kind: onnx.TypeProto) -> None:
    which = kind.WhichOneof("value")
    if which == "tensor_type" and kind.tensor_type.elem_type == TensorProto.FLOAT:
        kind.tensor_type.elem_type = TensorProto.FLOAT16
    elif which in ("sequence_type", "optional_type"):
        _halve_type(getattr(kind, which).elem_type)


def _halve_tensor(tensor: onnx.TensorProto) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))


VERSIONS: dict[str, tuple[Callable[[Path, Path, Runs], None], float]] = {
    "int8": (int8, 2e-2),
    "qdq": (qdq, 2e-2),
    "qoperator": (qoperator, 2e-2),
    "float16": (float16, 1e-2),
}
"""Each with the difference that is allowed: of what rounding to the other side makes of a result."""
