"""Matrix products."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from webrnn.ir import WEBRNN, Dim, Node

from ..lowering import Lowering, Rule, present
from ..program import ExpressionOp
from ..views import View, count_of

PANEL, GRAIN = 24, 8
"""As in wasm_kernels/table.py: rows of a panel of packed weights, and the step in which the last may be narrower."""


def packed_size(n: Dim, k: Dim) -> Dim:
    """Floats of the packed form of a product with n results of k terms; for a size that is not known, at most."""
    return -(-n // GRAIN) * GRAIN * k if isinstance(n, int) else (n + GRAIN - 1) * k


def pack(weights: np.ndarray) -> np.ndarray:
    """[k, n] in panels, as wr_pack_panels writes them.

    >>> pack(np.arange(4, dtype=np.float32).reshape(2, 2))[:3], pack(np.zeros((2, 30))).shape
    (array([0., 1., 0.], dtype=float32), (64,))
    """
    k, n = weights.shape
    width = -(-n // GRAIN) * GRAIN
    padded = np.zeros((k, width), np.float32)
    padded[:, :n] = weights
    return np.concatenate(
        [padded[:, first : first + PANEL].reshape(-1) for first in range(0, width, PANEL)] or [padded.reshape(-1)]
    )


def rows_of(l: Lowering, view: View) -> View:
    """[..., k] as [rows, k] without gaps inside a row."""
    rows, width = view.rows, view.shape[-1]
    found = view if view.rank == 2 else view.reshaped((rows, width))
    if found is not None and (found.strides[1] == 1 or width == 1):
        return found
    return l.reshaped(l.dense(view), (rows, width))


def _linear(l: Lowering, node: Node) -> None:
    x, w, output = present(node.inputs[0]), present(node.inputs[1]), present(node.outputs[0])
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    if l.dtype(x) != "f32":
        raise l.refuse("it is not of float")
    weights = l.array(w)
    if weights is None:
        product = l.output(output)
        _product(l, l.view(x), l.view(w), product)
        if bias is not None:
            l.expression([product, l.view(bias)], [(product, 2)], [], [ExpressionOp("add", (0, 1))])
        return
    l.require_equal(l.view(x).shape[-1], weights.shape[0])
    y = l.dense_output(output)
    target = y.reshaped((y.rows, y.shape[-1]))
    bias_view = None if bias is None else l.dense(l.view(bias))
    l.emit("gemm", rows_of(l, l.view(x)), l.packed(weights), bias_view, target, 0, 0.0, 0.0)


def _matmul(l: Lowering, node: Node) -> None:
    a, b, output = present(node.inputs[0]), present(node.inputs[1]), present(node.outputs[0])
    if l.dtype(a) != "f32":
        raise l.refuse("it is not of float")
    left, right = l.view(a), l.view(b)
    if left.rank >= 2 and right.rank == 2:
        _linear(l, Node("Linear", [a, b], node.outputs))
        return
    y = l.output(output)
    shape = y.shape
    if left.rank == 1:
        left, shape = left.with_axis(0), (*shape, 1) if right.rank == 1 else (*shape[:-1], 1, shape[-1])
    if right.rank == 1:
        right, shape = right.with_axis(1), (*shape, 1) if len(shape) < 2 or y.rank == len(shape) else shape
    target = l.reshaped(y, shape) if y.is_contiguous else None
    if target is None:
        target = l.dense_output(output).reshaped(shape)
        assert target is not None
    _product(l, left, right, target)


def _product(l: Lowering, a: View, b: View, y: View) -> None:
    """y[..., m, n] = a[..., m, k] b[..., k, n] with operands that are not constants."""
    m, n, k = y.shape[-2], y.shape[-1], a.shape[-1]
    batch = y.shape[:-2]
    left, right = a.broadcast((*batch, m, k)), b.broadcast((*batch, k, n))
    if left is None or right is None:
        raise l.refuse("it is not known how its operands are broadcast")
    count = count_of(batch)
    if left.strides[-1] != 1 and k != 1:
        left = l.dense(left)
    scratch = l.temporary((packed_size(n, k),))
    views = []
    for view, sizes in ((left, (count, m, k)), (right, (count, k, n)), (y, (count, m, n))):
        shaped = _batched(view, sizes)
        if shaped is None:
            if view is y:
                raise l.refuse("its result has gaps")
            shaped = _batched(l.dense(view), sizes)
        views.append(shaped)
    l.emit("matmul", *views, scratch)


def _batched(view: View, sizes: tuple[Dim, Dim, Dim]) -> View | None:
    """All leading axes as one, if they lie behind each other."""
    leading = [pair for pair in zip(view.shape[:-2], view.strides[:-2], strict=True) if pair[0] != 1]
    for (_, outer), (size, inner) in pairwise(leading):
        if outer != inner * size:
            return None
    return view.relaid(sizes, (leading[-1][1] if leading else 0, *view.strides[-2:]))


RULES: dict[tuple[str, str], Rule] = {
    (WEBRNN, "Linear"): _linear,
    ("", "MatMul"): _matmul,
}
