"""Matrix products."""

from __future__ import annotations

from itertools import pairwise

from webrnn.ir import WEBRNN, Dim, Node

from ..draft import ExpressionOp
from ..lowering import Lowering, packed_size, present, rule
from ..operations import OPERATIONS
from ..views import View, count_of


def rows_of(l: Lowering, view: View) -> View:
    """[..., k] as [rows, k] without gaps inside a row."""
    rows, width = view.rows, view.shape[-1]
    found = view if view.rank == 2 else view.reshaped((rows, width))
    if found is not None and (found.strides[1] == 1 or width == 1):
        return found
    return l.reshaped(l.dense(view), (rows, width))


@rule("Linear", domain=WEBRNN)
def _linear(l: Lowering, node: Node) -> None:
    x, w, output = present(node.inputs[0]), present(node.inputs[1]), present(node.outputs[0])
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    weights = l.array(w) if l.dtype(x) == "f32" else None
    if weights is None:
        product = l.output(output)
        _product(l, l.view(x), l.view(w), product)
        if bias is not None:
            l.expression([product, l.view(bias)], [(product, 2)], [], [ExpressionOp(_ADD[product.dtype], (0, 1))])
        return
    l.require_equal(l.view(x).shape[-1], weights.shape[0])
    y = l.dense_output(output)
    target = y.reshaped((y.rows, y.shape[-1]))
    bias_view = None if bias is None else l.dense(l.view(bias))
    l.emit("gemm", rows_of(l, l.view(x)), l.packed(weights), bias_view, target)


@rule("MatMul")
def _matmul(l: Lowering, node: Node) -> None:
    a, b, output = present(node.inputs[0]), present(node.inputs[1]), present(node.outputs[0])
    left, right = l.view(a), l.view(b)
    if left.rank >= 2 and right.rank == 2 and left.dtype == "f32":
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


_ADD = {row.takes[-1]: row.name for row in OPERATIONS if row.base == "add"}
_PLAIN = frozenset({"i32", "u32", "i64", "u64", "f64"})
"""The types whose products are made term by term."""


def _product(l: Lowering, a: View, b: View, y: View) -> None:
    """y[..., m, n] = a[..., m, k] b[..., k, n] with operands that are not constants. A column is a row of all turned."""
    if y.shape[-1] == 1 and y.shape[-2] != 1:
        a, b, y = _turned(b), _turned(a), _turned(y)
    m, n, k = y.shape[-2], y.shape[-1], a.shape[-1]
    batch = y.shape[:-2]
    left, right = a.broadcast((*batch, m, k)), b.broadcast((*batch, k, n))
    if left is None or right is None:
        raise l.refuse("it is not known how its operands are broadcast")
    if y.dtype != "f32" and y.dtype not in _PLAIN:
        raise l.refuse(f"a product of {y.dtype}")
    count = count_of(batch)
    if y.dtype == "f32" and left.strides[-1] != 1 and k != 1:
        left = l.dense(left)
    operands = [
        _batched(view, sizes) or _batched(l.dense(view), sizes)
        for view, sizes in ((left, (count, m, k)), (right, (count, k, n)))
    ]
    target = _batched(y, (count, m, n))
    rows = target if target is not None else l.temporary((count, m, n), y.dtype)
    if y.dtype == "f32":
        l.emit("matmul", *operands, rows, l.temporary((packed_size(n, k),)))
    else:
        l.emit("plain_matmul", *operands, rows)
    if target is None:
        l.copy(l.reshaped(rows, y.shape), y)


def _turned(view: View) -> View:
    return view.transposed([*range(view.rank - 2), view.rank - 1, view.rank - 2])


def _batched(view: View, sizes: tuple[Dim, Dim, Dim]) -> View | None:
    """All leading axes as one, if they lie behind each other."""
    leading = [pair for pair in zip(view.shape[:-2], view.strides[:-2], strict=True) if pair[0] != 1]
    for (_, outer), (size, inner) in pairwise(leading):
        if outer != inner * size:
            return None
    return view.relaid(sizes, (leading[-1][1] if leading else 0, *view.strides[-2:]))
