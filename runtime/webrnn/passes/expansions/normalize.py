"""Normalizations that have no instruction of their own: reductions, and what goes element by element."""

from __future__ import annotations

import numpy as np

from webrnn.ir import DType, Node, Value

from .emitter import Declined, Emitter, Expansion


def _operands(node: Node) -> list[Value]:
    return [value for value in node.inputs if value is not None]


def _require_float(e: Emitter, value: Value) -> None:
    """Narrower types are rounded where the specification says, which the op as a whole does."""
    if e.dtype(value) is not DType.FLOAT:
        raise Declined("it is not of float32")


def _rms_normalization(e: Emitter, node: Node) -> None:
    x, scale = _operands(node)
    _require_float(e, x)
    _require_float(e, scale)
    rank = len(e.shape(x))
    axes = e.ints(*range(node.attrs.get("axis", -1) % rank, rank))
    square = e.op("ReduceMean", e.op("Mul", x, x), axes, keepdims=1)
    root = e.op("Sqrt", e.op("Add", square, e.number(node.attrs.get("epsilon", 1e-5), DType.FLOAT)))
    e.op("Mul", e.op("Div", x, root), scale, output=node.outputs[0])


def _group_normalization(e: Emitter, node: Node) -> None:
    """The groups are the channels of an InstanceNormalization."""
    x, scale, bias = _operands(node)
    _require_float(e, x)
    rank, groups = len(e.shape(x)), node.attrs["num_groups"]
    flat = e.op("Reshape", x, e.sizes((x, 0), groups, -1))
    ones = [e.constant(np.full(groups, number, np.float32)) for number in (1, 0)]
    made = e.op("InstanceNormalization", flat, *ones, epsilon=node.attrs.get("epsilon", 1e-5))
    whole = e.op("Reshape", made, e.op("Shape", x), allowzero=1)
    by_channel = e.ints(-1, *[1] * (rank - 2))
    scaled = e.op("Mul", whole, e.op("Reshape", scale, by_channel))
    e.op("Add", scaled, e.op("Reshape", bias, by_channel), output=node.outputs[0])


def _mean_variance_normalization(e: Emitter, node: Node) -> None:
    (x,) = _operands(node)
    _require_float(e, x)
    axes = e.ints(*node.attrs.get("axes", (0, 2, 3)))
    centred = e.op("Sub", x, e.op("ReduceMean", x, axes, keepdims=1))
    variance = e.op("ReduceMean", e.op("Mul", centred, centred), axes, keepdims=1)
    deviation = e.op("Add", e.op("Sqrt", variance), e.number(1e-9, DType.FLOAT))
    e.op("Div", centred, deviation, output=node.outputs[0])


def _lp_normalization(e: Emitter, node: Node) -> None:
    (x,) = _operands(node)
    _require_float(e, x)
    op = "ReduceL1" if node.attrs.get("p", 2) == 1 else "ReduceL2"
    norm = e.op(op, x, e.ints(node.attrs.get("axis", -1)), keepdims=1)
    zero = e.number(0, DType.FLOAT)
    e.op("Where", e.op("Equal", norm, zero), zero, e.op("Div", x, norm), output=node.outputs[0])


def _batch_normalization(e: Emitter, node: Node) -> None:
    """In training mode: the statistics are those of the batch."""
    if not node.attrs.get("training_mode", 0):
        raise Declined("it does not train")
    x, scale, bias, mean, variance = _operands(node)
    _require_float(e, x)
    axes = e.ints(*(axis for axis in range(len(e.shape(x))) if axis != 1))
    wide = e.op("ReduceMean", x, axes, keepdims=1)
    centred = e.op("Sub", x, wide)
    found = [e.op("Reshape", wide, e.ints(-1))]
    found.append(e.op("Reshape", e.op("ReduceMean", e.op("Mul", centred, centred), axes, keepdims=1), e.ints(-1)))
    outputs = [*node.outputs, None, None][:3]
    epsilon, momentum = node.attrs.get("epsilon", 1e-5), node.attrs.get("momentum", 0.9)
    if outputs[0] is not None:
        e.op("BatchNormalization", x, scale, bias, *found, output=outputs[0], epsilon=epsilon)
    for given, measured, output in zip((mean, variance), found, outputs[1:], strict=True):
        if output is not None:
            kept = e.op("Mul", given, e.number(momentum, DType.FLOAT))
            e.op("Add", kept, e.op("Mul", measured, e.number(1 - momentum, DType.FLOAT)), output=output)


def _dropout(e: Emitter, node: Node) -> None:
    """It drops nothing: where it trains the reader made something else of it."""
    x, _, trains = [*node.inputs, None, None][:3]
    mode = e.array(trains)
    if trains is not None and (mode is None or mode.any()):
        raise Declined("it may train")
    output, mask = [*node.outputs, None][:2]
    if output is not None:
        e.op("Identity", x, output=output)
    if mask is not None:
        e.op("Expand", e.constant(np.array(True)), e.op("Shape", x), output=mask)


EXPANSIONS: dict[str, Expansion] = {
    "BatchNormalization": _batch_normalization,
    "Dropout": _dropout,
    "GroupNormalization": _group_normalization,
    "LpNormalization": _lp_normalization,
    "MeanVarianceNormalization": _mean_variance_normalization,
    "RMSNormalization": _rms_normalization,
}
