"""Products of bytes with weights that are known when the plan is made."""

from __future__ import annotations

import numpy as np

from webrnn.ir import Dim, Node, Value

from ..file import ARRAY_TYPES
from ..lowering import Lowering, attribute, present, rule
from ..opcodes import INTEGER_PANEL, INTEGER_ROWS
from ..views import View, count_of
from .axes import axes_of
from .channels_last import channels_second, pair_of, rows_of_channels, with_zeros

_NEAR_TERMS = 1 << 13


def integer_panels(weights: np.ndarray) -> np.ndarray:
    """Integers [k, n] in panels of columns; the two weights of a pair of terms lie next to each other.

    >>> integer_panels(np.array([[1, 2], [3, 4]], np.int8))[:4], integer_panels(np.zeros((3, 17), np.int8)).size
    (array([1, 3, 2, 4], dtype=int8), 128)
    """
    k, n = weights.shape
    pairs, panels = -(-k // 2), -(-n // INTEGER_PANEL)
    padded = np.zeros((2 * pairs, panels * INTEGER_PANEL), weights.dtype)
    padded[:k, :n] = weights
    return padded.reshape(pairs, 2, panels, INTEGER_PANEL).transpose(2, 0, 3, 1).reshape(-1)


@rule("MatMulInteger")
def _matmul_integer(l: Lowering, node: Node) -> None:
    a, b, output = present(node.inputs[0]), present(node.inputs[1]), present(node.outputs[0])
    a_zero, b_zero = [*node.inputs[2:], None, None][:2]
    weights = l.array(b)
    if weights is None or weights.ndim != 2 or (b_zero is not None and l.array(b_zero) is None):
        raise l.refuse("its second operand is not a constant matrix")
    view, dense = l.view(a), l.dense(l.view(a))
    k, n = weights.shape
    l.require_equal(view.shape[-1], k)
    y = l.dense_output(output)
    rows = y.count if n == 1 else y.rows if view.rank > 1 else 1
    zero = None if a_zero is None else _zero_point(l, a_zero, view)
    _multiply(l, l.reshaped(dense, (rows, k)), zero, weights, l.array(b_zero), l.reshaped(y, (rows, n)))


def _multiply(
    l: Lowering, x: View, zero: View | None, weights: np.ndarray, weight_zero: np.ndarray | None, y: View
) -> None:
    """y[rows, n] = (x[rows, k] - zero) · (weights[k, n] - weight_zero)"""
    k = weights.shape[0]
    if k >= 1 << 16:
        raise l.refuse("it adds up too many terms")
    scratch = l.temporary((_rows_together(x.shape[0], k) * (k + k % 2),), "i16")
    l.emit("integer_gemm", x, zero, *_weights(l, weights, weight_zero), y, scratch)


@rule("ConvInteger")
def _conv_integer(l: Lowering, node: Node) -> None:
    """The windows side by side, channels last, times the weights."""
    value, w, output = present(node.inputs[0]), present(node.inputs[1]), present(node.outputs[0])
    zero, w_zero = [*node.inputs[2:], None, None][:2]
    kernels = l.array(w)
    if kernels is None or attribute(node, "group", 1) != 1 or (w_zero is not None and l.array(w_zero) is None):
        raise l.refuse("its weights are not constant, or in groups")
    x = l.view(value)
    l.require_equal(x.shape[1], kernels.shape[1])
    axes = pair_of(axes_of(l, node, [*kernels.shape[2:]], x.shape[2:], l.shape(output)[2:]))
    if x.rank > 4 or not all(axis.is_stepped for axis in axes):
        raise l.refuse("its windows are not along one or two axes, in steps of whole elements")
    number = l.constant(np.zeros(1, ARRAY_TYPES[x.dtype])) if zero is None else l.reshaped(l.view(zero), (1,))
    rows = with_zeros(l, rows_of_channels(x), axes, number)
    filters, channels = kernels.shape[:2]
    positions = count_of((rows.shape[0], *(axis.positions for axis in axes)))
    high, wide = (rows.strides[at] for at in (1, 2))
    windows = rows.relaid(
        (rows.shape[0], *(axis.positions for axis in axes), *(axis.kernel for axis in axes), channels),
        (rows.strides[0], high * axes[0].stride, wide * axes[1].stride, high * axes[0].dilation,
         wide * axes[1].dilation, rows.strides[3]),
    )  # fmt: skip
    k = count_of((channels, *(axis.kernel for axis in axes)))
    matrix = l.once(
        (id(kernels), "windows"),
        kernels,
        lambda: np.moveaxis(kernels.reshape(filters, channels, -1), 0, 2).transpose(1, 0, 2).reshape(-1, filters),
    )
    y = l.temporary((rows.shape[0], *(axis.positions for axis in axes), filters), "i32")
    _multiply(
        l, l.reshaped(l.dense(windows), (positions, k)), None if zero is None else number, matrix, l.array(w_zero),
        l.reshaped(y, (positions, filters)),
    )  # fmt: skip
    l.views[output] = channels_second(y, x.rank)


def _rows_together(rows: Dim, k: int) -> int:
    """How many rows of 16-bit terms lie in the nearest cache, beside a panel of weights."""
    most = min(max(_NEAR_TERMS // max(k, 1), INTEGER_ROWS), 8 * INTEGER_ROWS)
    return max(min(most, rows), INTEGER_ROWS) if isinstance(rows, int) else most


def _weights(l: Lowering, weights: np.ndarray, zero: np.ndarray | None) -> tuple[View, View | None]:
    """Packed as int8, and what has to be taken from each column."""
    shift = np.zeros(weights.shape[1], np.int32) if zero is None else zero.astype(np.int32).reshape(-1)
    shift = np.broadcast_to(shift, (weights.shape[1],))
    if weights.dtype == np.uint8:
        weights, shift = (weights.astype(np.int16) - 128).astype(np.int8), shift - 128
    packed = l.constant(integer_panels(weights))
    return packed, l.constant(np.ascontiguousarray(shift)) if shift.any() else None


def _zero_point(l: Lowering, value: Value, x: View) -> View:
    """One element, or one for each row."""
    view = l.view(value)
    if view.count == 1:
        return l.reshaped(l.dense(view), (1,))
    by_row = view if view.rank == 1 else l.reshaped(l.dense(view), x.shape[:-1])
    spread = by_row.broadcast(x.shape[:-1])
    if spread is None:
        raise l.refuse("its zero points do not fit the rows")
    return l.reshaped(l.dense(spread), (x.rows,))


@rule("DynamicQuantizeLinear")
def _dynamic_quantize(l: Lowering, node: Node) -> None:
    x = l.dense(l.view(present(node.inputs[0])))
    quantized, scale, zero = [*node.outputs, None, None][:3]
    y = l.temporary((1, x.count), "u8") if quantized is None else l.reshaped(l.dense_output(quantized), (1, x.count))
    by_row = [
        l.temporary((1,), dtype) if value is None else l.reshaped(l.dense_output(value), (1,))
        for value, dtype in ((scale, "f32"), (zero, "u8"))
    ]
    l.emit("dynamic_quantize", l.reshaped(x, (1, x.count)), y, *by_row)
