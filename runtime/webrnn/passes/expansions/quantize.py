"""Quantization: element-wise arithmetic in float32, and products of integers.

A sum of integers is exact in float32 as long as it stays below 2**24, whatever the order: where that is certain,
products of bytes are products of floats.
"""

from __future__ import annotations

import numpy as np

from webrnn.ir import DType, Node, Value

from .emitter import Declined, Emitter, Expansion

_LIMITS = {
    DType.UINT8: (0, 255),
    DType.INT8: (-128, 127),
    DType.UINT16: (0, 65535),
    DType.INT16: (-32768, 32767),
    DType.UINT4: (0, 15),
    DType.INT4: (-8, 7),
    DType.UINT2: (0, 3),
    DType.INT2: (-2, 1),
}
_NARROW = (
    DType.FLOAT8E4M3FN, DType.FLOAT8E4M3FNUZ, DType.FLOAT8E5M2, DType.FLOAT8E5M2FNUZ, DType.FLOAT4E2M1,
)  # fmt: skip
_FLOATS = (DType.FLOAT, DType.FLOAT16, DType.BFLOAT16)
_BYTES = (DType.UINT8, DType.INT8)
_EXACT = 1 << 24
_LARGEST = 255
"""Of a byte less its zero point."""


def _given(node: Node, index: int) -> Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _required(node: Node, index: int) -> Value:
    value = _given(node, index)
    assert value is not None
    return value


def _spread(e: Emitter, parameter: Value, x: Value, node: Node) -> Value:
    """A scale or zero point in a form that is broadcast to x: one, one for each slice of the axis or for each block."""
    shape, rank = e.shape(parameter), len(e.shape(x))
    block = node.attrs.get("block_size", 0)
    if not block and len(shape) <= 1 and all(size == 1 for size in shape):
        return e.op("Reshape", parameter, e.ints()) if shape else parameter
    axis = node.attrs.get("axis", 1) % rank
    if block:
        return e.op("Gather", parameter, e.constant(np.arange(e.size(x, axis), dtype=np.int64) // block), axis=axis)
    return e.op("Reshape", parameter, e.ints(-1, *[1] * (rank - 1 - axis)))


def _quantize_linear(e: Emitter, node: Node) -> None:
    x, scale, zero = _required(node, 0), _required(node, 1), _given(node, 2)
    target = e.dtype(zero) if zero is not None else DType(node.attrs.get("output_dtype", 0) or DType.UINT8)
    divide_in = DType(node.attrs.get("precision", 0) or e.dtype(scale))
    if target not in (*_LIMITS, *_NARROW) or divide_in not in _FLOATS:
        raise Declined("a type is not one that plans have")
    divisor = _spread(e, scale, x, node)
    quotient = e.op("Div", e.cast(x, divide_in), e.cast(divisor, divide_in))
    if target in _NARROW:
        if zero is not None:  # 0 is not added: it would take the sign of a zero
            offset = e.cast(e.cast(_spread(e, zero, x, node), DType.FLOAT), divide_in)
            is_zero = e.op("Equal", offset, e.number(0, divide_in))
            quotient = e.op("Where", is_zero, quotient, e.op("Add", quotient, offset))
        e.op("Cast", quotient, to=int(target), saturate=node.attrs.get("saturate", 1), output=node.outputs[0])
        return
    _saturate(e, quotient, None if zero is None else _spread(e, zero, x, node), target, node.outputs[0])


def _saturate(e: Emitter, quotient: Value, zero: Value | None, target: DType, output: Value | None) -> None:
    """Half to even, then the zero point, then the limits of the type; NaN becomes the smallest number."""
    low, high = (e.number(limit, DType.FLOAT) for limit in _LIMITS[target])
    rounded = e.op("Round", e.cast(quotient, DType.FLOAT))
    if zero is not None:
        rounded = e.op("Add", rounded, e.cast(zero, DType.FLOAT))
    above = e.op("Where", e.op("Greater", rounded, low), rounded, low)
    e.op("Cast", e.op("Min", above, high), to=int(target), output=output)


def _dequantize_linear(e: Emitter, node: Node) -> None:
    x, scale, zero = _required(node, 0), _required(node, 1), _given(node, 2)
    target = DType(node.attrs.get("output_dtype", 0) or e.dtype(scale))
    if e.dtype(x) not in (*_LIMITS, *_NARROW, DType.INT32) or target not in _FLOATS or e.dtype(scale) not in _FLOATS:
        raise Declined("a type is not one that plans have")
    whole = x
    if zero is not None and e.dtype(x) is DType.INT32:
        array = e.array(zero)
        if array is None or array.any():
            offset = e.cast(_spread(e, zero, x, node), DType.INT64)
            whole = e.op("Sub", e.cast(x, DType.INT64), offset)
    centred = e.cast(whole, DType.FLOAT)
    if zero is not None and e.dtype(x) is not DType.INT32:
        centred = e.op("Sub", centred, e.cast(_spread(e, zero, x, node), DType.FLOAT))
    product = e.op("Mul", centred, e.cast(_spread(e, scale, x, node), DType.FLOAT))
    e.op("Cast", product, to=int(target), output=node.outputs[0])


def _centred(e: Emitter, x: Value, zero: Value | None) -> Value:
    """Bytes as floats, less a zero point that is broadcast to them."""
    if e.dtype(x) not in _BYTES:
        raise Declined("it is not of bytes")
    wide = e.cast(x, DType.FLOAT)
    return wide if zero is None else e.op("Sub", wide, e.cast(zero, DType.FLOAT))


def _chunks(e: Emitter, weights: Value, zero: Value | None, axis: int, kept: int) -> list[tuple[int, int]]:
    """Parts of an axis of weights such that sums of products along it and all axes but `kept` are exact in float32."""
    size = e.size(weights, axis)
    array, offset = e.array(weights), np.zeros((), np.int64)
    if zero is not None:
        known = e.array(zero)
        if known is None:
            array = None
        else:
            offset = known.astype(np.int64)
    if array is None:
        others = [e.size(weights, other) for other in range(len(e.shape(weights))) if other not in (axis, kept)]
        each = np.full((1, size), _LARGEST * int(np.prod(others)), np.int64)
    else:
        magnitudes = np.abs(array.astype(np.int64) - offset)
        rest = tuple(other for other in range(array.ndim) if other not in (axis, kept))
        each = magnitudes.sum(axis=rest) if kept < axis else magnitudes.sum(axis=rest).T
    most = (_EXACT - 1) // _LARGEST
    if size and each.max(initial=0) > most:
        raise Declined("its sums may be too large for float32")
    parts, first, total = [], 0, np.zeros(len(each), np.int64)
    for index in range(size):
        total = total + each[:, index]
        if total.max(initial=0) > most:
            parts.append((first, index))
            first, total = index, each[:, index]
    return [*parts, (first, size)]


def _sum_of_chunks(e: Emitter, products: list[Value], output: Value | None) -> Value:
    *others, last = [e.op("Cast", product, to=int(DType.INT32)) for product in products[:-1]] + [products[-1]]
    total = e.op("Cast", last, to=int(DType.INT32), output=None if others else output)
    for index, other in enumerate(others):
        total = e.op("Add", total, other, output=output if index == len(others) - 1 else None)
    return total


def _slice(e: Emitter, x: Value, axis: int, part: tuple[int, int]) -> Value:
    if part == (0, e.shape(x)[axis]):
        return x
    return e.op("Slice", x, e.ints(part[0]), e.ints(part[1]), e.ints(axis))


WINDOW = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


def _convolved(
    e: Emitter, node: Node, x: Value, w: Value, x_zero: Value | None, w_zero: Value | None, output: Value | None
) -> Value:
    """The sums of a convolution of bytes, int32."""
    rank = len(e.shape(w))
    attrs = {name: node.attrs[name] for name in WINDOW if name in node.attrs}
    if _stays(e, node, w, w_zero):
        return e.op("ConvInteger", x, w, x_zero, w_zero, output=output, **attrs)
    if x_zero is not None:
        x_zero = e.op("Reshape", x_zero, e.ints())
    column = None
    if w_zero is not None:
        w_zero = _folded(e, w_zero, (-1, *[1] * (rank - 1)) if e.shape(w_zero) not in ((), (1,)) else ())
        column = w_zero
    parts = _chunks(e, w, column, 1, 0)
    if len(parts) > 1 and node.attrs.get("group", 1) != 1:
        raise Declined("its sums may be too large for float32")
    values, weights = _centred(e, x, x_zero), _centred(e, w, column)
    cut = [(values, weights)]
    if len(parts) > 1:
        cut = [(_slice(e, values, 1, part), _slice(e, weights, 1, part)) for part in parts]
    products = [e.op("Conv", *operands, **attrs) for operands in cut]
    return _sum_of_chunks(e, products, output)


def _folded(e: Emitter, value: Value, shape: tuple[int, ...]) -> Value:
    """Reshaped; a constant stays one."""
    array = e.array(value)
    return e.op("Reshape", value, e.ints(*shape)) if array is None else e.constant(array.reshape(shape))


FEWEST_FILTERS, FEWEST_TERMS = 8, 32
"""Below these a convolution of floats is quicker, and its weights are small."""


def has_instruction(node: Node, weights: np.ndarray) -> bool:
    """Whether plans have a product of bytes for a convolution with these weights."""
    if weights.ndim not in (3, 4) or node.attrs.get("group", 1) != 1:
        return False
    terms = weights[0].size if len(weights) >= FEWEST_FILTERS else 0
    return FEWEST_TERMS <= terms < 1 << 16


def _stays(e: Emitter, node: Node, w: Value, w_zero: Value | None) -> bool:
    weights = e.array(w)
    return weights is not None and (w_zero is None or e.array(w_zero) is not None) and has_instruction(node, weights)


def _conv_integer(e: Emitter, node: Node) -> None:
    x, w = _required(node, 0), _required(node, 1)
    if _stays(e, node, w, _given(node, 3)):
        raise Declined
    _convolved(e, node, x, w, _given(node, 2), _given(node, 3), node.outputs[0])


def _qlinear_conv(e: Emitter, node: Node) -> None:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = (_required(node, index) for index in range(8))
    bias, rank = _given(node, 8), len(e.shape(x))
    per_filter = e.ints(-1, *[1] * (rank - 2))
    total = _convolved(e, node, x, w, x_zero, w_zero, None)
    if bias is not None:
        total = _with_bias(e, total, bias, rank, _largest_sum(e, w, w_zero))
    scales = [e.op("Reshape", scale, e.ints()) for scale in (x_scale, y_scale)]
    by_filter = e.op("Reshape", w_scale, per_filter if e.shape(w_scale) not in ((), (1,)) else e.ints())
    _requantize(e, total, e.op("Div", e.op("Mul", scales[0], by_filter), scales[1]), y_zero, node.outputs[0])


def _largest_sum(e: Emitter, w: Value, w_zero: Value) -> int | None:
    """What the sums of a convolution cannot exceed, if that is known."""
    weights, zero = e.array(w), e.array(w_zero)
    if weights is None or zero is None or not weights.size:
        return None
    centred = weights.reshape(len(weights), -1).astype(np.int64) - zero.astype(np.int64).reshape(-1, 1)
    return _LARGEST * int(np.abs(centred).sum(axis=1).max())


def _with_bias(e: Emitter, total: Value, bias: Value, rank: int, most: int | None) -> Value:
    """In float32 where that is exact, which vectors do in the same pass as what follows."""
    spread, known = (-1, *[1] * (rank - 2)), e.array(bias)
    if known is None or most is None or most + np.abs(known.astype(np.int64)).max(initial=0) >= _EXACT:
        return e.op("Add", total, e.op("Reshape", bias, e.ints(*spread)))
    return e.op("Add", e.cast(total, DType.FLOAT), e.constant(known.reshape(spread).astype(np.float32), "bias"))


def _requantize(e: Emitter, total: Value, factor: Value, zero: Value, output: Value | None) -> None:
    target = e.dtype(zero)
    if target not in _BYTES:
        raise Declined("it is not of bytes")
    if e.shape(zero):
        zero = e.op("Reshape", zero, e.ints())
    _saturate(e, e.op("Mul", e.cast(total, DType.FLOAT), factor), zero, target, output)


def _qlinear_matmul(e: Emitter, node: Node) -> None:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (_required(node, index) for index in range(8))
    if e.dtype(a) not in _BYTES or e.dtype(b) not in _BYTES:
        raise Declined("it is not of bytes")
    total = e.op("MatMulInteger", a, b, a_zero, b_zero)
    row_scale, column_scale, scale = (e.cast(each, DType.FLOAT) for each in (a_scale, b_scale, y_scale))
    if len(e.shape(a_scale)) == 1 and e.shape(a_scale) != (1,):
        row_scale = e.op("Reshape", row_scale, e.ints(-1, 1))
    _requantize(e, total, e.op("Div", e.op("Mul", row_scale, column_scale), scale), y_zero, node.outputs[0])


def _matmul_integer(e: Emitter, node: Node) -> None:
    """With weights that are not known before a run; plans have an instruction for those that are."""
    a, b, a_zero, b_zero = _required(node, 0), _required(node, 1), _given(node, 2), _given(node, 3)
    is_constant = e.array(b) is not None and (b_zero is None or e.array(b_zero) is not None)
    if is_constant and len(e.shape(b)) == 2:
        raise Declined
    if a_zero is not None and len(e.shape(a_zero)) == 1:
        rows = e.shape(a_zero) != (1,) and len(e.shape(a)) > 1
        a_zero = e.op("Reshape", a_zero, e.ints(-1, 1) if rows else e.ints())
    if b_zero is not None and e.shape(b_zero) == (1,):
        b_zero = e.op("Reshape", b_zero, e.ints())
    last, inner = len(e.shape(a)) - 1, max(len(e.shape(b)) - 2, 0)
    step = (_EXACT - 1) // _LARGEST**2
    k = e.size(b, inner)
    left, right = _centred(e, a, a_zero), _centred(e, b, b_zero)
    parts = [(first, min(first + step, k)) for first in range(0, max(k, 1), step)]
    products = [e.op("MatMul", _slice(e, left, last, part), _slice(e, right, inner, part)) for part in parts]
    _sum_of_chunks(e, products, node.outputs[0])


EXPANSIONS: dict[str, Expansion] = {
    "QuantizeLinear": _quantize_linear,
    "DequantizeLinear": _dequantize_linear,
    "QLinearMatMul": _qlinear_matmul,
    "QLinearConv": _qlinear_conv,
    "ConvInteger": _conv_integer,
    "MatMulInteger": _matmul_integer,
}
