"""What a row of the table of cases is, and how it becomes a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import onnx
from onnx import helper, numpy_helper

Verdict = Literal["spec", "onnxruntime", "both"]
"""Who gives the expected result: `spec` says that onnxruntime does not, `onnxruntime` that the text leaves it open."""


@dataclass(frozen=True)
class Citation:
    """A sentence of the description of an operator, of its attributes or its inputs."""

    op: str
    version: int
    sentence: str


@dataclass(frozen=True)
class Case:
    name: str
    model: onnx.ModelProto
    feeds: Mapping[str, np.ndarray]
    expected: Sequence[Any]
    """Arrays; a list of arrays for a sequence."""
    verdict: Verdict
    reason: str
    citation: Citation
    tolerance: float = 0.0


def floats(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def node(op: str, *inputs: np.ndarray | None, opset: int, outputs: int = 1, fed: Sequence[int] = (0,), **attrs: Any):
    """A model of one node and its feeds; the inputs that are not in `fed` are constants."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    arrays = {f"x{i}": np.asarray(x) for i, x in enumerate(inputs) if x is not None}
    feeds = {f"x{i}": arrays[f"x{i}"] for i in fed if f"x{i}" in arrays}
    made = helper.make_node(op, names, [f"y{i}" for i in range(outputs)])
    for name, value in attrs.items():
        kind = onnx.AttributeProto.INTS if isinstance(value, list) and not value else None
        made.attribute.append(helper.make_attribute(name, value, attr_type=kind))
    graph = helper.make_graph(
        [made],
        op,
        [_value(name, x) for name, x in feeds.items()],
        [onnx.ValueInfoProto(name=name) for name in made.output],
        [numpy_helper.from_array(x, name) for name, x in arrays.items() if name not in feeds],
    )
    return model_of(graph, opset), feeds


def model_of(graph: onnx.GraphProto, opset: int) -> onnx.ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8 if opset < 19 else 10)


def _value(name: str, x: np.ndarray) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)


def case(
    name: str,
    made: tuple[onnx.ModelProto, Mapping[str, np.ndarray]],
    expected: Any,
    verdict: Verdict,
    reason: str,
    citation: Citation,
    tolerance: float = 0.0,
) -> Case:
    model, feeds = made
    results = expected if isinstance(expected, tuple) else (expected,)
    return Case(name, model, feeds, results, verdict, reason, citation, tolerance)
