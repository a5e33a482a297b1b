"""Where onnxruntime is seen to break the rule of an op, so that its numbers say nothing about ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

from tests.onnx.fuzz_mutations import graphs

_LIMITS = {-(1 << 63), (1 << 63) - 1}
LARGEST = 1e15
"""Products of larger numbers soon are infinite, in one order of operations or in another."""

_WITH_ALPHA = {b"Affine", b"ScaledTanh", b"ThresholdedRelu"}

Condition = Callable[[NodeProto, Mapping[str, Any], Mapping[str, np.ndarray]], bool]

DEVIATIONS: dict[str, Condition] = {
    "pads a dilated pool as if it were not dilated": lambda node, attributes, arrays: (
        "Pool" in node.op_type and "dilations" in attributes and attributes.get("auto_pad", b"").startswith(b"SAME")
    ),
    "takes the aspect ratio of other axes": lambda node, attributes, arrays: (
        node.op_type == "Resize" and "keep_aspect_ratio_policy" in attributes and min(attributes.get("axes", [0])) < 0
    ),
    "aligns corners by the rounded length": lambda node, attributes, arrays: (
        node.op_type == "Resize" and attributes.get("coordinate_transformation_mode") == b"align_corners"
    ),
    "forgets the region of an axis that keeps its length": lambda node, attributes, arrays: (
        node.op_type == "Resize" and attributes.get("coordinate_transformation_mode") == b"tf_crop_and_resize"
    ),
    "keeps what is cast to half floats as it was": lambda node, attributes, arrays: (
        node.op_type == "CastLike" and any(array.dtype == np.float16 for array in arrays.values())
    ),
    "counts the places of another shape": lambda node, attributes, arrays: (
        node.op_type == "MaxUnpool" and len(node.input) > 2
    ),
    "splits an empty string into nothing": lambda node, attributes, arrays: node.op_type == "StringSplit",
    "wraps around what a negative pad leaves": lambda node, attributes, arrays: (
        node.op_type == "Pad" and attributes.get("mode") == b"wrap"
    ),
    "divides by a deviation of zero": lambda node, attributes, arrays: (
        node.op_type == "MeanVarianceNormalization"
        and not np.all(arrays[node.input[0]].std(axis=tuple(attributes.get("axes", (0, 2, 3)))))
    ),
    "overwrites the mean that it is given": lambda node, attributes, arrays: (
        node.op_type == "BatchNormalization" and attributes.get("training_mode") == 1
    ),
    "takes powers of large numbers coarsely": lambda node, attributes, arrays: (
        node.op_type == "LRN" and _has_large(arrays)
    ),
    "has a sigmoid that never is 0": lambda node, attributes, arrays: (
        node.op_type in ("GRU", "LSTM") and _has_large(arrays)
    ),
    "takes other elements back to one side": lambda node, attributes, arrays: (
        node.op_type == "DFT" and attributes.get("inverse") == 1 and attributes.get("onesided") == 1
    ),
    "leaves the axis that it reduces where it has no elements": lambda node, attributes, arrays: (
        node.op_type.startswith(("Reduce", "Arg")) and not all(array.size for array in arrays.values())
    ),
    "leaves the order of what need not be sorted open": lambda node, attributes, arrays: (
        node.op_type == "TopK" and attributes.get("sorted") == 0
    ),
    "takes 0 for an alpha that is left out": lambda node, attributes, arrays: (
        node.op_type in ("RNN", "GRU", "LSTM")
        and not _WITH_ALPHA.isdisjoint(attributes.get("activations", ()))
        and "activation_alpha" not in attributes
    ),
    "convolves no channels to whatever is in memory": lambda node, attributes, arrays: (
        node.op_type in ("QLinearConv", "ConvInteger") and not all(array.size for array in arrays.values())
    ),
    "returns whatever is in memory where a sequence has no steps": lambda node, attributes, arrays: (
        node.op_type in ("RNN", "GRU", "LSTM") and not all(array.size for array in arrays.values())
    ),
    "reads the largest integer as the end in both directions, and negates the least": lambda node, attributes, arrays: (
        node.op_type == "Slice" and any(not _LIMITS.isdisjoint(_ints(arrays.get(name))) for name in node.input)
    ),
    "sums large integers as floats": lambda node, attributes, arrays: (
        node.op_type.startswith("Reduce")
        and any(
            sum(map(abs, _ints(array))) > (1 << 53 if array.itemsize == 8 else 1 << 31) for array in arrays.values()
        )
    ),
    "takes powers of integers by way of floats": lambda node, attributes, arrays: (
        node.op_type == "Pow" and any(array.dtype.kind in "iu" for array in arrays.values())
    ),
    "takes the variance of a nearly constant group as a difference of means": lambda node, attributes, arrays: (
        node.op_type == "GroupNormalization" and _is_nearly_constant(arrays[node.input[0]], attributes["num_groups"])
    ),
    "crops where a stride is longer than the kernel": lambda node, attributes, arrays: (
        attributes.get("auto_pad", b"").startswith(b"SAME") and max(attributes.get("strides", [1])) > 1
    ),
}
"""A condition on a node, its attributes, and the arrays of the model and its inputs by name."""


def _ints(array: np.ndarray | None) -> list[int]:
    return [] if array is None or array.dtype.kind != "i" else array.reshape(-1).tolist()


def _has_large(arrays: Mapping[str, np.ndarray]) -> bool:
    return any(bool(np.any(np.abs(array) > 100)) for array in arrays.values() if array.dtype.kind == "f")


def _is_nearly_constant(x: np.ndarray, n_groups: int) -> bool:
    """Whether the elements of a group differ by less than a tenth of what they are."""
    groups = x.reshape(len(x), n_groups, -1).astype(np.float64)
    return bool(np.any(groups.std(axis=-1) < 0.1 * np.abs(groups.mean(axis=-1))))


def deviation_in(data: bytes, feeds: Mapping[str, Any]) -> str | None:
    """What onnxruntime does wrong in a model, if it is known."""
    arrays = _constants(data) | {name: value for name, value in feeds.items() if isinstance(value, np.ndarray)}
    for node, attributes in _nodes(data):
        for what, applies in DEVIATIONS.items():
            if _holds(applies, node, attributes, arrays):
                return what
    return None


def _holds(applies: Condition, *arguments: Any) -> bool:
    try:
        return applies(*arguments)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):  # a model that is damaged
        return False


def has_ordinary_numbers(data: bytes) -> bool:
    """Whether all constants and attributes can be read, are finite, and are not very large."""
    try:
        values = [*_constants(data).values()]
        values += [np.array(value) for _, given in _nodes(data) for value in given.values() if _is_float(value)]
    except Exception:  # a tensor that the onnx package cannot read
        return False
    return all(bool(np.all(np.abs(value) < LARGEST)) for value in values if value.dtype.kind == "f")


def _is_float(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, list) and any(isinstance(item, float) for item in value))


def _nodes(data: bytes) -> Iterator[tuple[NodeProto, dict[str, Any]]]:
    for graph in graphs(ModelProto.FromString(data).graph):
        for node in graph.node:
            yield node, {each.name: helper.get_attribute_value(each) for each in node.attribute}


def _constants(data: bytes) -> dict[str, np.ndarray]:
    tensors = [tensor for graph in graphs(ModelProto.FromString(data).graph) for tensor in graph.initializer]
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}
