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


def _computed_in(e: Emitter, value: Value) -> DType:
    """What stands for a type that is rounded where the specification says."""
    dtype = e.dtype(value)
    return DType.FLOAT if dtype in (DType.FLOAT16, DType.BFLOAT16) else dtype


def _rounded(e: Emitter, value: Value, like: Value, output: Value | None = None) -> Value:
    """A result in the type of an operand."""
    if e.dtype(value) is not e.dtype(like) or output is not None:
        return e.op("Cast", value, to=int(e.dtype(like)), output=output)
    return value


def _rms_normalization(e: Emitter, node: Node) -> None:
    given, scale = _operands(node)
    dtype = _computed_in(e, given)
    x, rank = e.cast(given, dtype), len(e.shape(given))
    axes = e.ints(*range(node.attrs.get("axis", -1) % rank, rank))
    square = e.op("ReduceMean", e.op("Mul", x, x), axes, keepdims=1)
    root = e.op("Sqrt", e.op("Add", square, e.number(node.attrs.get("epsilon", 1e-5), dtype)))
    normalized = e.cast(_rounded(e, e.op("Div", x, root), given), e.dtype(scale))
    e.op("Mul", normalized, scale, output=node.outputs[0])


def _group_normalization(e: Emitter, node: Node) -> None:
    """The groups are the channels of an InstanceNormalization."""
    given, *factors = _operands(node)
    dtype = _computed_in(e, given)
    x, scale, bias = (e.cast(value, dtype) for value in (given, *factors))
    rank, groups = len(e.shape(x)), node.attrs["num_groups"]
    size = e.sizes((x, 1))
    for axis in range(2, rank):
        size = e.op("Mul", size, e.sizes((x, axis)))
    group = e.op("Div", size, e.ints(groups))
    flat = e.op("Reshape", x, e.op("Concat", e.sizes((x, 0)), e.ints(groups), group, axis=0), allowzero=1)
    epsilon = node.attrs.get("epsilon", 1e-5)
    if dtype is DType.FLOAT:
        ones = [e.constant(np.full(groups, number, np.float32)) for number in (1, 0)]
        made = e.op("InstanceNormalization", flat, *ones, epsilon=epsilon)
    else:
        made = _standardized(e, flat, e.ints(2), epsilon)
    whole = e.op("Reshape", made, e.op("Shape", x), allowzero=1)
    _rounded(e, _scaled(e, whole, scale, bias, rank), given, node.outputs[0])


def _scaled(e: Emitter, x: Value, scale: Value, bias: Value, rank: int) -> Value:
    """Each channel with its own numbers."""
    by_channel = e.ints(-1, *[1] * (rank - 2))
    scaled = e.op("Mul", x, e.op("Reshape", scale, by_channel))
    return e.op("Add", scaled, e.op("Reshape", bias, by_channel))


def _standardized(e: Emitter, x: Value, axes: Value, epsilon: float) -> Value:
    centred = e.op("Sub", x, e.op("ReduceMean", x, axes, keepdims=1))
    variance = e.op("ReduceMean", e.op("Mul", centred, centred), axes, keepdims=1)
    return e.op("Div", centred, e.op("Sqrt", e.op("Add", variance, e.number(epsilon, e.dtype(x)))))


def _mean_variance_normalization(e: Emitter, node: Node) -> None:
    (given,) = _operands(node)
    x = e.cast(given, _computed_in(e, given))
    axes = e.ints(*node.attrs.get("axes", (0, 2, 3)))
    centred = e.op("Sub", x, e.op("ReduceMean", x, axes, keepdims=1))
    variance = e.op("ReduceMean", e.op("Mul", centred, centred), axes, keepdims=1)
    deviation = e.op("Add", e.op("Sqrt", variance), e.number(1e-9, e.dtype(x)))
    _rounded(e, e.op("Div", centred, deviation), given, node.outputs[0])


def _lp_normalization(e: Emitter, node: Node) -> None:
    (given,) = _operands(node)
    x = e.cast(given, _computed_in(e, given))
    op = "ReduceL1" if node.attrs.get("p", 2) == 1 else "ReduceL2"
    norm = e.op(op, x, e.ints(node.attrs.get("axis", -1)), keepdims=1)
    zero, one = (e.number(number, e.dtype(x)) for number in (0, 1))
    is_zero = e.op("Equal", norm, zero)
    _rounded(e, e.op("Where", is_zero, zero, e.op("Div", x, e.op("Where", is_zero, one, norm))), given, node.outputs[0])


# --- of float64, for which there are no instructions ------------------------------------------------------------------


def _require_double(e: Emitter, node: Node) -> list[Value]:
    operands = _operands(node)
    if e.dtype(operands[0]) is not DType.DOUBLE:
        raise Declined("it has an instruction")
    return [e.cast(value, DType.DOUBLE) for value in operands]


def _softmax(e: Emitter, node: Node) -> None:
    (x,) = _require_double(e, node)
    axes = e.ints(node.attrs.get("axis", -1))
    shifted = e.op("Sub", x, e.op("ReduceMax", x, axes, keepdims=1))
    power = e.op("Exp", shifted)
    total = e.op("ReduceSum", power, axes, keepdims=1)
    if node.op == "Softmax":
        e.op("Div", power, total, output=node.outputs[0])
    else:
        e.op("Sub", shifted, e.op("Log", total), output=node.outputs[0])


def _layer_normalization(e: Emitter, node: Node) -> None:
    x, scale, *bias = _require_double(e, node)
    if any(output is not None for output in node.outputs[1:]):
        raise Declined("its statistics are asked for")
    rank = len(e.shape(x))
    axes = e.ints(*range(node.attrs.get("axis", -1) % rank, rank))
    made = e.op("Mul", _standardized(e, x, axes, node.attrs.get("epsilon", 1e-5)), scale)
    e.op("Add", made, *(bias or [e.number(0, DType.DOUBLE)]), output=node.outputs[0])


def _instance_normalization(e: Emitter, node: Node) -> None:
    x, scale, bias = _require_double(e, node)
    rank = len(e.shape(x))
    made = _standardized(e, x, e.ints(*range(2, rank)), node.attrs.get("epsilon", 1e-5))
    _rounded(e, _scaled(e, made, scale, bias, rank), x, node.outputs[0])


def _normalization_of_known_batches(e: Emitter, node: Node) -> None:
    x, scale, bias, mean, variance = _require_double(e, node)
    rank = len(e.shape(x))
    epsilon = e.number(node.attrs.get("epsilon", 1e-5), DType.DOUBLE)
    factor = e.op("Div", scale, e.op("Sqrt", e.op("Add", variance, epsilon)))
    offset = e.op("Sub", bias, e.op("Mul", mean, factor))
    _rounded(e, _scaled(e, x, factor, offset, rank), x, node.outputs[0])


def _batch_normalization(e: Emitter, node: Node) -> None:
    """In training mode: the statistics are those of the batch."""
    if not node.attrs.get("training_mode", 0):
        _normalization_of_known_batches(e, node)
        return
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
    "InstanceNormalization": _instance_normalization,
    "LayerNormalization": _layer_normalization,
    "LogSoftmax": _softmax,
    "LpNormalization": _lp_normalization,
    "MeanVarianceNormalization": _mean_variance_normalization,
    "RMSNormalization": _rms_normalization,
    "Softmax": _softmax,
}
