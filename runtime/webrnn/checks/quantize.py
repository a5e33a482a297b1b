"""Quantization: scales and zero points for a tensor, for each slice of an axis, or for each block."""

from __future__ import annotations

from webrnn.errors import ModelError
from webrnn.ir import Dim
from webrnn.ir.dims import floor_divide
from webrnn.reference.dtypes import numpy_dtype

from .check import Check
from .linear import product, zero_point
from .registry import check


@check("QuantizeLinear", "DequantizeLinear")
def linear(c: Check) -> None:
    block = c.attribute("block_size", 0)
    c.that(block >= 0, f"{block} is negative", "block_size", ModelError)
    output = c.attribute("output_dtype", 0)
    if output:
        target = numpy_dtype(output, "output_dtype")
        dtype = c.dtype(2)
        if c.op == "QuantizeLinear" and dtype is not None:
            c.that(dtype.array_type == target, f"{target} contradicts the zero point", "output_dtype", ModelError)
    for index, name in ((1, "the scale"), (2, "the zero point")):
        _fits(c, index, name, block)


def _fits(c: Check, index: int, name: str, block: int) -> None:
    found, shape = c.shape(index), c.shape(0)
    if found is None or (not block and len(found) <= 1 and all(size == 1 for size in found)):
        return
    axis = c.axis_attribute(1, c.rank(0))
    if axis is None or shape is None:
        return
    if not block:
        c.has_shape(index, (shape[axis],), name)
        return
    blocks: list[Dim | None] = list(shape)
    length = shape[axis]
    blocks[axis] = None if length is None else floor_divide(length + block - 1, block)
    c.has_shape(index, blocks, name)


@check("QLinearMatMul")
def qlinear_matmul(c: Check) -> None:
    product(c, 0, 3)
    zero_point(c, 2, 0, rows=True)
    zero_point(c, 5, 3, rows=False)
