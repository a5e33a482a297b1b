"""Matrix products, and the recurrent cells that take them: all gates side by side, row by row."""

from __future__ import annotations

from webrnn.errors import ModelError
from webrnn.ir import WEBRNN, Dim
from webrnn.ir.fused import CELL_FORMS, PEEPHOLES
from webrnn.shapes.einsum import parse

from .check import ANY, Check, spell
from .registry import check


def product(c: Check, first: int, second: int) -> None:
    """That the matrices in the last two axes of two operands can be multiplied, and that the others fit."""
    c.has_rank(first, "A", 1, ANY)
    c.has_rank(second, "B", 1, ANY)
    a, b = c.shape(first), c.shape(second)
    if a is None or b is None:
        return
    inner = b[-2 if len(b) > 1 else 0]
    c.equal(a[-1], inner, f"A {spell(a)} and B {spell(b)} differ in their inner dimension")
    c.broadcast_shapes(a[:-2], b[:-2])


@check("MatMul")
def matmul(c: Check) -> None:
    product(c, 0, 1)


@check("Linear", domain=WEBRNN)
def linear(c: Check) -> None:
    c.has_rank(0, "X", 2, ANY)
    c.has_rank(1, "W", 2)
    product(c, 0, 1)
    weights = c.shape(1)
    if weights is not None:
        c.has_shape(2, weights[1:], "the bias")


@check("SmallLinear", domain=WEBRNN)
def small_linear(c: Check) -> None:
    c.has_rank(0, "X", 2, ANY)
    c.has_rank(1, "W", 2)
    product(c, 0, 1)
    weights = c.shape(1)
    if weights is not None:
        c.has_shape(2, weights[1:], "the scales")
        c.has_shape(3, weights[1:], "the bias")


@check("Gemm")
def gemm(c: Check) -> None:
    c.has_rank(0, "A", 2)
    c.has_rank(1, "B", 2)
    a, b = c.shape(0), c.shape(1)
    if a is None or b is None:
        return
    left, right = (a[::-1] if c.attribute("transA", 0) else a), (b[::-1] if c.attribute("transB", 0) else b)
    c.equal(left[1], right[0], f"A {spell(a)} and B {spell(b)} differ in their inner dimension")
    c.broadcast_to(2, (left[0], right[1]), "C")


@check("Einsum")
def einsum(c: Check) -> None:
    c.that(len(c.operands) > 0, "at least one input is required", kind=ModelError)
    shapes = [shape for index in range(len(c.operands)) if (shape := c.shape(index)) is not None]
    if len(shapes) < len(c.operands):
        return
    sizes: dict[str, Dim] = {}
    for axes, shape in zip(parse(c.attrs["equation"], [len(shape) for shape in shapes])[0], shapes, strict=True):
        message = f"the sizes {spell(shape)} of {''.join(axes)!r} do not fit the others"
        for axis, size in zip(axes, shape, strict=True):
            if size is None or size == 1:
                continue
            known = sizes.setdefault(axis, size)
            if isinstance(known, int) and isinstance(size, int):
                c.that(known == size, message)
            else:
                c.one_is_zero(
                    [known - size, *(each - 1 for each in (known, size) if not isinstance(each, int))], message
                )


@check("MatMulInteger")
def matmul_integer(c: Check) -> None:
    product(c, 0, 1)
    zero_point(c, 2, 0, rows=True)
    zero_point(c, 3, 1, rows=False)


def zero_point(c: Check, index: int, of: int, rows: bool) -> None:
    """One for all, or one for each row of A or column of B."""
    found, shape = c.shape(index), c.shape(of)
    if found is None or shape is None or all(size == 1 for size in found):
        return
    name = "a_zero_point" if rows else "b_zero_point"
    size = shape[-2 if rows and len(shape) > 1 else -1]
    if len(found) == 1:
        c.has_shape(index, (size,), name)
    else:
        c.has_shape(index, (*shape[:-1], 1) if rows else (*shape[:-2], 1, shape[-1]), name)


@check("Det")
def determinant(c: Check) -> None:
    c.has_rank(0, "X", 2, ANY)
    shape = c.shape(0)
    if shape is not None:
        c.equal(shape[-1], shape[-2], f"X of shape {spell(shape)} is not square")


@check(*CELL_FORMS, domain=WEBRNN)
def cell(c: Check) -> None:
    form = CELL_FORMS[c.op]
    state = c.shape(form.state)
    if state is None:
        return
    c.has_rank(form.state, "the state", 2, ANY)
    hidden = state[-1]
    for index, width in enumerate(form.widths):
        if width == PEEPHOLES:
            c.has_shape(index, (None if hidden is None else hidden * 3,), "the peepholes")
        else:
            c.has_shape(index, (*state[:-1], None if hidden is None else hidden * width), f"operand {index}")
