"""Products of bytes with weights that are known when the plan is made."""

from __future__ import annotations

import numpy as np

from webrnn.ir import Node, Value

from ..lowering import Lowering, present, rule
from ..opcodes import INTEGER_PANEL, INTEGER_ROWS
from ..views import View

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
    if k >= 1 << 16:
        raise l.refuse("it adds up too many terms")
    y = l.dense_output(output)
    rows = y.count if n == 1 else y.rows if view.rank > 1 else 1
    scratch = l.temporary((_rows_together(k) * (k + k % 2),), "i16")
    packed, shift = _weights(l, weights, l.array(b_zero))
    zero = None if a_zero is None else _zero_point(l, a_zero, view)
    x = l.reshaped(dense, (rows, k))
    l.emit("integer_gemm", x, zero, packed, shift, l.reshaped(y, (rows, n)), scratch)


def _rows_together(k: int) -> int:
    """How many rows of 16-bit terms lie in the nearest cache, beside a panel of weights."""
    return min(max(_NEAR_TERMS // max(k, 1) // INTEGER_ROWS, 1), 8) * INTEGER_ROWS


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
