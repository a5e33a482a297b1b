"""Matrix products."""

from __future__ import annotations

from itertools import pairwise

from webrnn.ir import WEBRNN, Dim, DType, Graph, Node, Scan, Value, is_plain, is_scan
from webrnn.ir.fused import is_linear

from ..draft import ExpressionOp
from ..lowering import Lowering, packed_size, present, rule
from ..opcodes import BLOCK_COLUMNS
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
    if weights is None and w not in l.packings:
        product = l.output(output)
        _product(l, l.view(x), l.view(w), product)
        if bias is not None:
            l.expression([product, l.view(bias)], [(product, 2)], [], [ExpressionOp(_ADD[product.dtype], (0, 1))])
        return
    l.require_equal(l.view(x).shape[-1], l.shape(w)[0])
    y = l.dense_output(output)
    target = y.reshaped((y.rows, y.shape[-1]))
    bias_view = None if bias is None else l.dense(l.view(bias))
    l.emit("gemm", rows_of(l, l.view(x)), l.packed_matrix(w), bias_view, target)


FEW_STEPS = 3
"""In a loop of not more steps it does not pay to pack."""


def prepare_matrices(l: Lowering, scan: Scan, n_steps: Dim | None) -> None:
    """Bring what is the same in all steps of a loop into the form in which products read it, before the loop."""
    if isinstance(n_steps, int) and n_steps <= FEW_STEPS:
        return
    for item in scan.invariants:
        if l.array(item.outer) is not None or not _is_multiplied_with(l, scan.body, item.inner):
            continue
        matrix = l.view(item.outer)
        if matrix.rank == 2:
            l.packings[item.inner] = l.packed_matrix(item.outer)
        elif matrix.strides[-1] != 1:
            l.views[item.inner] = l.dense(matrix)


def _is_multiplied_with(l: Lowering, graph: Graph, value: Value) -> bool:
    """Whether rows are multiplied with it, in a graph or in a loop inside of it."""
    if l.facts.dtype(value) is not DType.FLOAT:
        return False
    for node in graph.nodes:
        if is_linear(node) or is_plain(node, "MatMul"):
            if node.inputs[1] is value and (l.facts.of(node.inputs[0]).rank or 0) > 1 and l.facts.of(value).rank != 1:
                return True
        elif is_scan(node):
            inner = Scan.of(node)
            if any(item.outer is value and _is_multiplied_with(l, inner.body, item.inner) for item in inner.invariants):
                return True
    return False


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
    """y[..., m, n] = a[..., m, k] b[..., k, n] with operands that are not constants. A column is turned to a row."""
    if y.shape[-1] == 1 and y.shape[-2] != 1:
        a, b, y = _turned(b), _turned(a), _turned(y)
    m, n, k = y.shape[-2], y.shape[-1], a.shape[-1]
    batch = y.shape[:-2]
    if y.dtype == "f32" and a.strides[-1] != 1 and k != 1:
        a = l.dense(a)
    left, right = a.broadcast((*batch, m, k)), b.broadcast((*batch, k, n))
    if left is None or right is None:
        raise l.refuse("it is not known how its operands are broadcast")
    if y.dtype == "f32":
        _product_of_floats(l, left, right, y)
    elif y.dtype in _PLAIN:
        _product_term_by_term(l, left, right, y)
    else:
        raise l.refuse(f"a product of {y.dtype}")


def _product_of_floats(l: Lowering, a: View, b: View, y: View) -> None:
    rows = y if y.strides[-1] == 1 or y.shape[-1] == 1 else l.temporary(y.shape)
    a, b, target = _joined(a, b, rows)
    k, n = b.shape[-2:]
    block = min(n, BLOCK_COLUMNS) if isinstance(n, int) else BLOCK_COLUMNS
    is_shared = any(stride == 0 and size != 1 for stride, size in zip(b.strides[:-2], b.shape[:-2], strict=True))
    l.emit("matmul", a, b, target, l.temporary((packed_size(n if is_shared else block, k),)))
    if rows is not y:
        l.copy(rows, y)


def _joined(a: View, b: View, y: View) -> tuple[View, View, View]:
    """With as few leading axes as possible, at least one. If b is the same along the last of them, it becomes rows."""
    views = [a, b, y]
    kept: list[tuple[Dim, list[Dim]]] = []
    for axis, size in enumerate(y.shape[:-2]):
        strides = [view.strides[axis] for view in views]
        if size == 1:
            continue
        if kept and all(outer == size * inner for outer, inner in zip(kept[-1][1], strides, strict=True)):
            kept[-1] = (kept[-1][0] * size, strides)
        else:
            kept.append((size, strides))
    m = y.shape[-2]
    row_strides = [view.strides[-2] for view in views]
    while kept and kept[-1][1][1] == 0:
        size, strides = kept[-1]
        if m != 1 and any(strides[i] != m * row_strides[i] for i in (0, 2)):
            break
        if m == 1:
            row_strides[0], row_strides[2] = strides[0], strides[2]
        m = m * size
        kept.pop()
    kept = kept or [(1, [0, 0, 0])]
    leading = [size for size, _ in kept]

    def relaid(i: int, rows: Dim) -> View:
        shape, strides = views[i].shape, views[i].strides
        outer = (each[i] for _, each in kept)
        return views[i].relaid((*leading, rows, shape[-1]), (*outer, row_strides[i], strides[-1]))

    return relaid(0, m), relaid(1, b.shape[-2]), relaid(2, m)


def _product_term_by_term(l: Lowering, a: View, b: View, y: View) -> None:
    m, n, k = y.shape[-2], y.shape[-1], a.shape[-1]
    count = count_of(y.shape[:-2])
    operands = [
        _batched(view, sizes) or _batched(l.dense(view), sizes)
        for view, sizes in ((a, (count, m, k)), (b, (count, k, n)))
    ]
    target = _batched(y, (count, m, n))
    rows = target if target is not None else l.temporary((count, m, n), y.dtype)
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
