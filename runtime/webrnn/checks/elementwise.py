"""Ops that go element by element; their operands are repeated to a common shape."""

from __future__ import annotations

from webrnn.errors import ModelError, UnsupportedOp
from webrnn.ir import DType
from webrnn.ops.sets import BINARY, BITWISE, COMPARISONS, LOGICAL, VARIADIC
from webrnn.reference.cast import bit_width
from webrnn.reference.dtypes import numpy_dtype

from .check import INTEGERS, Check
from .registry import check


@check(*(BINARY | COMPARISONS | LOGICAL | BITWISE) - {"Div", "Mod", "Not", "BitwiseNot"})
@check("BitShift", "Pow", "StringConcat")
def binary(c: Check) -> None:
    c.broadcast(0, 1)


@check("Div", "Mod")
def division(c: Check) -> None:
    c.broadcast(0, 1)
    shapes = c.shape(0), c.shape(1)
    if c.dtype(0) in INTEGERS and 0 in (c.content(1) or ()):
        sizes = [size for shape in shapes for size in ((None,) if shape is None else shape)]
        has_elements = all(isinstance(size, int) and size > 0 for size in sizes)  # else a run decides
        c.that(not has_elements, "integer division by zero", kind=ModelError)


@check(*VARIADIC)
def variadic(c: Check) -> None:
    c.that(len(c.operands) > 0, "at least one input is required", kind=ModelError)
    c.broadcast(*range(len(c.operands)))


@check("Where")
def where(c: Check) -> None:
    c.broadcast(0, 1, 2)


@check("Clip")
def clip(c: Check) -> None:
    for index, name in ((1, "min"), (2, "max")):
        if c.given(index):
            c.is_single(index, name)


@check("PRelu")
def prelu(c: Check) -> None:
    c.broadcast_to(1, c.shape(0), "slope")


@check("SwiGLU")
def swiglu(c: Check) -> None:
    shape = c.shape(0)
    if shape is not None:
        c.has_shape(1, shape, "B")


@check("Cast")
def cast(c: Check) -> None:
    numpy_dtype(c.attrs["to"], "to")
    _converts(c, DType(c.attrs["to"]))


@check("CastLike")
def cast_like(c: Check) -> None:
    _converts(c, c.dtype(1))


def _converts(c: Check, target: DType | None) -> None:
    source = c.dtype(0)
    if source is None or target is None:
        c.reads_unknown = True
    elif source is DType.STRING and target is not DType.STRING:
        c.that(target is not DType.BOOL, "a string cannot be cast to bool", kind=UnsupportedOp)
        c.reads_unknown = True  # whether it spells a number


@check("BitCast")
def bit_cast(c: Check) -> None:
    target = numpy_dtype(c.attrs["to"], "to")
    given = c.dtype(0)
    if given is None:
        c.reads_unknown = True
        return
    source = numpy_dtype(given, "to")
    c.that("O" not in (source.kind, target.kind), "strings have no bits to reinterpret", "to", ModelError)
    c.that(bit_width(source) == bit_width(target), f"{source} and {target} differ in width", "to", ModelError)
