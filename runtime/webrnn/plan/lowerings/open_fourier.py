"""Transforms whose length is known only while running: products with a matrix that is made then, in float64.

No power of two can be counted on, and lengths may be small: a product of doubles has the accuracy that others have.
"""

from __future__ import annotations

from math import pi

from webrnn.ir import Dim

from ..lowering import Lowering
from ..views import View, count_of
from .expressions import Register, Writer
from .positions import positions

MOST = 1024
"""The matrix has 4 n^2 elements. For longer ones a plan is made for the shape, with a faster way."""


def transform_open(l: Lowering, n: Dim, x: View, y: View, inverse: bool) -> None:
    """x[rows, n, 1 or 2] to y[rows, the first of n numbers, 1 or 2]."""
    l.require_not_negative(n - 1)
    l.require_not_negative(MOST - n)
    rows, bins = y.shape[:2]
    matrix = l.temporary((n, x.shape[2], bins, y.shape[2]), "f64")
    cosine, sine = _tables(l, n, bins, inverse)
    for part in range(int(str(x.shape[2]))):
        for result in range(int(str(y.shape[2]))):
            w = Writer(l)
            number = w.view(cosine if part == result else sine)
            place = matrix.without_axis(3, result).without_axis(1, part)
            w.write([(place, w.op("neg", number) if part > result else w.copy(number))])
    wide, narrow = (
        l.temporary((1, rows, count_of(x.shape[1:])), "f64"),
        l.temporary((1, rows, bins * y.shape[2]), "f64"),
    )
    _convert(l, l.reshaped(x, wide.shape), wide)
    l.emit("plain_matmul", wide, l.reshaped(matrix, (1, wide.shape[2], narrow.shape[2])), narrow)
    _convert(l, l.reshaped(narrow, y.shape), y)


def _convert(l: Lowering, x: View, y: View) -> None:
    w = Writer(l)
    w.write([(y, w.cast(w.view(x), y.dtype))])


def _tables(l: Lowering, n: Dim, bins: Dim, inverse: bool) -> tuple[View, View]:
    """cos and -sin of j k / n turns, [n, bins]: n of them, each where it is needed. An inverse has sin, and all / n."""
    w = Writer(l)
    size = w.view(l.number_of(n))
    product = w.op("mul", w.view(positions(l, n, 2, 0)), w.view(positions(l, bins, 2, 1)))
    index = l.temporary((n, bins), "i64")
    w.write([(index, w.op("sub", product, w.op("mul", w.op("div", product, size), size)))])
    flat = l.reshaped(index, (n * bins,))
    found = []
    for name in ("cos", "sin"):
        table, spread = l.temporary((1, n, 1), "f64"), l.temporary((1, n * bins, 1), "f64")
        w = Writer(l)
        step, size = (w.cast(w.view(view), "f64") for view in (positions(l, n), l.number_of(n)))
        angle = w.op("mul", w.op("div", step, size), 2 * pi if inverse else -2 * pi)
        number: Register = w.op(name, angle)
        w.write([(l.reshaped(table, (n,)), w.op("div", number, size) if inverse else number)])
        l.emit("gather", table, flat, spread)
        found.append(l.reshaped(spread, (n, bins)))
    return found[0], found[1]
