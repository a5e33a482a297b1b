"""Older opsets: every node gets the form that it has in the newest opset.

`ADAPTERS` is the table: for an op, the versions below which an adapter applies. Adapters run from the oldest form to
the newest, so that each one only knows the next form.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from webrnn.errors import Error, ModelError, UnsupportedOp
from webrnn.ir import DType, GraphBuilder, Node, Value
from webrnn.ops.sets import REDUCTIONS
from webrnn.reference.arrays import FLOOR_OR_CEIL

SUPPORTED = range(1, 29)
"""The versions of ONNX's own ops that are read."""

Adapter = Callable[[GraphBuilder, Node], Node | None]
"""Changes a node, possibly adding others before it; None says that it has added all that is needed."""


def unsupported(version: int) -> Error:
    """What is wrong with a version that is not among the supported ones; 0 is that of a model that states none."""
    if version == 0:
        return ModelError("the model imports no opset for domain 'ai.onnx'")
    return UnsupportedOp(f"opset {version} is not supported, {SUPPORTED[0]} to {SUPPORTED[-1]} are")


def upgrade(b: GraphBuilder, node: Node, version: int) -> Node | None:
    """The node in the newest form, or None if `b` already has what it stands for."""
    current: Node | None = node
    if version < 6:
        node.attrs.pop("consumed_inputs", None)  # which operands the first runtimes were free to overwrite
    for below, adapter in ADAPTERS.get(node.op, ()):
        if version < below and current is not None:
            current = adapter(b, current)
    return current


def _ints(b: GraphBuilder, numbers: object, name: str) -> Value:
    if not isinstance(numbers, list) or not all(isinstance(number, int) for number in numbers):
        raise ModelError("it needs to be a list of integers", attribute=name)
    return b.ints(*numbers)


def _insert_input(node: Node, index: int, value: Value | None) -> None:
    node.inputs += [None] * (index - len(node.inputs))
    node.inputs.insert(index, value)


def attribute_to_input(name: str, index: int) -> Adapter:
    """A list of integers that was an attribute is an input now."""

    def adapt(b: GraphBuilder, node: Node) -> Node:
        if name in node.attrs:
            _insert_input(node, index, _ints(b, node.attrs.pop(name), name))
        return node

    return adapt


def default_attribute(name: str, value: object) -> Adapter:
    """A default that has changed since."""

    def adapt(b: GraphBuilder, node: Node) -> Node:
        node.attrs.setdefault(name, value)
        return node

    return adapt


def rename(op: str) -> Adapter:
    def adapt(b: GraphBuilder, node: Node) -> Node:
        node.op = op
        return node

    return adapt


def flatten_around(b: GraphBuilder, node: Node) -> None:
    """Softmax and its kin worked on the matrix that Flatten makes, all axes from `axis` on at once."""
    axis = node.attrs.pop("axis", 1)
    x = node.inputs[0]
    matrix = b.op("Flatten", x, axis=axis)
    rows = b.op(node.op, matrix, axis=1, name=node.name)
    b.op("Reshape", rows, b.op("Shape", x), output=node.outputs[0], allowzero=1)


def slice_attributes_to_inputs(b: GraphBuilder, node: Node) -> Node:
    for name in ("starts", "ends"):
        node.inputs.append(_ints(b, node.attrs.pop(name, None), name))
    if "axes" in node.attrs:
        node.inputs.append(_ints(b, node.attrs.pop("axes"), "axes"))
    return node


def pad_attributes_to_inputs(b: GraphBuilder, node: Node) -> Node:
    node.inputs.append(_ints(b, node.attrs.pop("pads", None), "pads"))
    value = node.attrs.pop("value", 0.0)
    if value:
        node.inputs.append(b.op("CastLike", b.constant(np.float32(value), "value"), node.inputs[0]))
    return node


def clip_attributes_to_inputs(b: GraphBuilder, node: Node) -> Node:
    for name in ("min", "max"):
        limit = node.attrs.pop(name, None)
        scalar = None if limit is None else b.constant(np.float32(limit), name)
        node.inputs.append(None if scalar is None else b.op("CastLike", scalar, node.inputs[0]))
    return node


def dropout_to_identity(b: GraphBuilder, node: Node) -> Node:
    """Dropout had no training mode; its mask had the type of the data up to opset 9."""
    node.attrs.clear()
    return node


def dropout_mask_of_data_type(b: GraphBuilder, node: Node) -> None:
    """The mask was a tensor of ones of the data's type."""
    x, (output, mask) = node.inputs[0], (*node.outputs, None)[:2]
    b.op("Identity", x, output=output, name=node.name)
    if mask is not None:
        one = b.op("CastLike", b.constant(np.float32(1), "one"), x)
        b.op("Expand", one, b.op("Shape", x), output=mask)


def top_k_attribute_to_input(b: GraphBuilder, node: Node) -> Node:
    k = node.attrs.pop("k", None)
    if not isinstance(k, int):
        raise ModelError("an integer is required", attribute="k")
    node.inputs.append(b.constant(np.array([k], np.int64), "k"))
    return node


def split_evenly(b: GraphBuilder, node: Node) -> Node:
    """Without sizes, the number of parts was that of the outputs."""
    if len(node.inputs) < 2 or node.inputs[1] is None:
        node.attrs.setdefault("num_outputs", len(node.outputs))
    return node


def upsample_to_resize(b: GraphBuilder, node: Node) -> Node:
    """Upsample(x, scales) is Resize(x, roi, scales) with the oldest way to place pixels."""
    if "scales" in node.attrs:
        node.inputs.append(b.constant(np.array(node.attrs.pop("scales"), np.float32), "scales"))
    _old_resize_modes(node)
    node.op = "Resize"
    _insert_input(node, 1, None)
    return node


def first_resize(b: GraphBuilder, node: Node) -> Node:
    """Resize of opset 10 had no region of interest and one way to place pixels."""
    _old_resize_modes(node)
    _insert_input(node, 1, None)
    return node


def _old_resize_modes(node: Node) -> None:
    node.attrs["coordinate_transformation_mode"] = "asymmetric"
    node.attrs["nearest_mode"] = FLOOR_OR_CEIL


def grid_sample_mode(b: GraphBuilder, node: Node) -> Node:
    mode = node.attrs.get("mode", "bilinear")
    node.attrs["mode"] = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    return node


def batch_normalization_for_inference(b: GraphBuilder, node: Node) -> Node:
    """The further outputs, and `spatial`, belonged to training; only the first output is left."""
    if node.attrs.pop("spatial", 1) != 1:
        raise UnsupportedOp("statistics for each position are not supported", attribute="spatial")
    if any(output is not None for output in node.outputs[1:]):
        raise UnsupportedOp("outputs of the training mode are not supported")
    node.outputs = node.outputs[:1]
    return node


def dft_axis_to_input(b: GraphBuilder, node: Node) -> Node:
    axis = node.attrs.pop("axis", 1)
    node.inputs += [None] * (2 - len(node.inputs))
    node.inputs.append(b.constant(np.array(axis, np.int64), "axis"))
    return node


def group_normalization_by_group(b: GraphBuilder, node: Node) -> Node:
    """Scale and bias had an element for each group; they have one for each channel now."""
    x, groups = node.inputs[0], node.attrs.get("num_groups")
    if not isinstance(groups, int) or groups < 1:
        raise ModelError("a positive integer is required", attribute="num_groups")
    of_a_group = b.op("Div", b.op("Shape", x, start=1, end=2), b.ints(groups))
    shape = b.op("Concat", b.ints(groups), of_a_group, axis=0)
    for index in range(1, len(node.inputs)):
        column = b.op("Reshape", node.inputs[index], b.ints(groups, 1))
        node.inputs[index] = b.op("Reshape", b.op("Expand", column, shape), b.ints(-1))
    return node


def drop_attributes(*names: str) -> Adapter:
    """Attributes that say nothing any more."""

    def adapt(b: GraphBuilder, node: Node) -> Node:
        for name in names:
            node.attrs.pop(name, None)
        return node

    return adapt


def _with_axes_behind(b: GraphBuilder, value: Value, count: Value) -> Value:
    """A tensor with so many more axes, of one element each; `count` is a vector of one number."""
    ones = b.op("ConstantOfShape", count, value=np.ones(1, np.int64))
    return b.op("Reshape", value, b.op("Concat", b.op("Shape", value), ones, axis=0), allowzero=1)


def _rank(b: GraphBuilder, value: Value) -> Value:
    return b.op("Shape", b.op("Shape", value))


def broadcast_along_axis(b: GraphBuilder, node: Node) -> Node:
    """With `broadcast` the axes of the second operand were those of the first from `axis` on; by default its last."""
    axis = node.attrs.pop("axis", None)
    if not node.attrs.pop("broadcast", 0) or axis is None:
        return node
    left, right = node.inputs
    if left is None or right is None or not isinstance(axis, int):
        raise ModelError("it takes two operands and an integer", attribute="axis")
    before = b.ints(axis) if axis >= 0 else b.op("Add", _rank(b, left), b.ints(axis))
    node.inputs[1] = _with_axes_behind(b, right, b.op("Sub", _rank(b, left), b.op("Add", before, _rank(b, right))))
    return node


def slopes_of_channels(b: GraphBuilder, node: Node) -> Node:
    """PRelu's slopes were those of the channels, which are axis 1."""
    x, slope = node.inputs
    if x is None or slope is None:
        raise ModelError("it takes two operands")
    missing = b.op("Sub", _rank(b, x), b.op("Add", _rank(b, slope), b.ints(1)))
    node.inputs[1] = _with_axes_behind(b, slope, b.op("Max", missing, b.ints(0)))
    return node


def cast_to_type_by_name(b: GraphBuilder, node: Node) -> Node:
    name = node.attrs.get("to")
    if isinstance(name, str):
        if name.upper() not in DType.__members__:
            raise ModelError(f"{name!r} is no type", attribute="to")
        node.attrs["to"] = int(DType[name.upper()])
    return node


def tile_one_axis(b: GraphBuilder, node: Node) -> Node:
    """Tile repeated one axis: its operands were how often, and which."""
    x, tiles, axis = node.inputs
    if x is None:
        raise ModelError("an operand is missing")
    count, place = (b.op("Reshape", b.op("Cast", value, to=7), b.ints(1)) for value in (tiles, axis))
    ones = b.op("ConstantOfShape", _rank(b, x), value=np.ones(1, np.int64))
    node.inputs = [x, b.op("ScatterElements", ones, place, count)]
    return node


def paddings_to_pads(b: GraphBuilder, node: Node) -> Node:
    if "paddings" in node.attrs:
        node.attrs["pads"] = node.attrs.pop("paddings")
    return node


def whole_power(b: GraphBuilder, node: Node) -> Node:
    power = node.attrs.get("p", 2.0)
    if power != int(power):
        raise UnsupportedOp(f"the power {power} is not a whole number", attribute="p")
    node.attrs["p"] = int(power)
    return node


def upsample_two_axes(b: GraphBuilder, node: Node) -> Node:
    node.attrs["scales"] = [1.0, 1.0, node.attrs.pop("height_scale", 1.0), node.attrs.pop("width_scale", 1.0)]
    return node


def batch_normalization_in_a_test(b: GraphBuilder, node: Node) -> Node:
    if not node.attrs.pop("is_test", 0):
        raise UnsupportedOp("statistics of the batch, as in training, are not supported", attribute="is_test")
    return node


_WITH_BROADCAST = "Add And Div Equal Greater Less Mul Or Pow Sub Xor"

_CONSUMED_INPUTS = """
    Abs Ceil Elu Exp Floor HardSigmoid InstanceNormalization LeakyRelu Log Max Mean Min Neg Reciprocal Relu Sigmoid Sqrt
    Sum Tanh
"""
"""Ops of which the first opsets had an attribute that nothing else is changed of."""

ADAPTERS: dict[str, list[tuple[int, Adapter]]] = {
    **{op: [(18, attribute_to_input("axes", 1))] for op in REDUCTIONS},
    **{op: [(7, broadcast_along_axis)] for op in _WITH_BROADCAST.split()},
    **{op: [(7, drop_attributes("output_sequence"))] for op in ("GRU", "LSTM", "RNN")},
    **{op: [(6, drop_attributes())] for op in _CONSUMED_INPUTS.split()},
    "BatchNormalization": [(7, batch_normalization_in_a_test), (14, batch_normalization_for_inference)],
    "Cast": [(6, cast_to_type_by_name)],
    "Clip": [(11, clip_attributes_to_inputs)],
    "Concat": [(4, default_attribute("axis", 1))],
    "DFT": [(20, dft_axis_to_input)],
    "Dropout": [(10, dropout_mask_of_data_type), (12, dropout_to_identity)],
    "Gemm": [(7, drop_attributes("broadcast"))],
    "GlobalLpPool": [(2, whole_power)],
    "GridSample": [(20, grid_sample_mode)],
    "GroupNormalization": [(21, group_normalization_by_group)],
    "Hardmax": [(13, flatten_around)],
    "LogSoftmax": [(13, flatten_around)],
    "LpPool": [(2, whole_power)],
    "PRelu": [(7, slopes_of_channels)],
    "Pad": [(2, paddings_to_pads), (11, pad_attributes_to_inputs)],
    "ReduceSum": [(13, attribute_to_input("axes", 1))],
    "Reshape": [(5, attribute_to_input("shape", 1))],
    "Resize": [(11, first_resize)],
    "RoiAlign": [(16, default_attribute("coordinate_transformation_mode", "output_half_pixel"))],
    "Selu": [(6, default_attribute("alpha", 1.6732)), (6, default_attribute("gamma", 1.0507))],
    "Scatter": [(11, rename("ScatterElements"))],
    "Slice": [(10, slice_attributes_to_inputs)],
    "Softmax": [(13, flatten_around)],
    "Split": [(13, attribute_to_input("split", 1)), (18, split_evenly)],
    "Squeeze": [(13, attribute_to_input("axes", 1))],
    "Tile": [(6, tile_one_axis)],
    "TopK": [(10, top_k_attribute_to_input)],
    "Unsqueeze": [(13, attribute_to_input("axes", 1))],
    "Upsample": [(7, upsample_two_axes), (10, upsample_to_resize)],
}
"""For each op, in ascending order: (below this opset version, this adapter applies)."""
