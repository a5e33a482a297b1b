"""Matrix products, and the recurrent cells that take them."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import WEBRNN, Dim, DType, Node, Shape
from webrnn.ir.fused import CELL_FORMS
from webrnn.shapes.einsum import parse

from ..facts import Fact
from .registry import broadcast, broadcast_dim, common_type, rule


def product_shape(first: Shape | None, second: Shape | None) -> Shape | None:
    """The shape of a matrix product, by numpy's rules.

    >>> product_shape((5, 2, 3), (3, 4)), product_shape((3,), (3, 4))
    ((5, 2, 4), (4,))
    """
    if first is None or second is None:
        return None
    leading = broadcast(first[:-2], second[:-2])
    assert leading is not None
    rows = first[-2:-1] if len(first) > 1 else ()
    columns = second[-1:] if len(second) > 1 else ()
    return (*leading, *rows, *columns)


@rule("MatMul")
def matmul(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(common_type(inputs), product_shape(inputs[0].shape, inputs[1].shape))]


@rule("MatMulInteger")
def matmul_integer(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(DType.INT32, product_shape(inputs[0].shape, inputs[1].shape))]


@rule("QLinearMatMul")
def qlinear_matmul(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(inputs[7].dtype, product_shape(inputs[0].shape, inputs[3].shape))]


@rule("Gemm")
def gemm(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    rows = _axis(inputs[0].shape, 1 if node.attrs.get("transA", 0) else 0)
    columns = _axis(inputs[1].shape, 0 if node.attrs.get("transB", 0) else 1)
    return [Fact(common_type(inputs), (*rows, *columns))]


@rule("Einsum")
def einsum(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    equation, dtype = node.attrs["equation"], common_type(inputs)
    spelled = equation.replace(" ", "").partition("->")[0].split(",")
    if any(fact.rank is None and "." in term for term, fact in zip(spelled, inputs, strict=True)):
        return [Fact(dtype)]
    shapes = [
        (None,) * len(term) if fact.shape is None else fact.shape for term, fact in zip(spelled, inputs, strict=True)
    ]
    terms, result = parse(equation, [len(shape) for shape in shapes])
    sizes: dict[str, Dim | None] = {}
    for axes, shape in zip(terms, shapes, strict=True):
        for axis, size in zip(axes, shape, strict=True):
            sizes[axis] = broadcast_dim(sizes[axis], size) if axis in sizes else size
    return [Fact(dtype, tuple(sizes[axis] for axis in result))]


def _axis(shape: Shape | None, axis: int) -> Shape:
    return (None,) if shape is None else shape[axis : axis + 1]


@rule("Linear", domain=WEBRNN)
def linear(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(common_type(inputs), product_shape(inputs[0].shape, inputs[1].shape))]


@rule("SmallLinear", domain=WEBRNN)
def small_linear(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(DType.FLOAT, product_shape(inputs[0].shape, inputs[1].shape))]


@rule(*CELL_FORMS, domain=WEBRNN)
def cell(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    form = CELL_FORMS[node.op]
    state = inputs[form.state]
    if state.shape is None:
        return [Fact(state.dtype)] * len(node.outputs)
    *rows, hidden = state.shape
    return [Fact(state.dtype, (*rows, None if hidden is None else hidden * width)) for width in form.results]
