"""Einsum: its operands are taken together one after the other, each pair by a product of matrices.

An axis that no later operand and not the result has is summed as soon as it can be: alone, or as the inner axis of a
product. Integers, and axes that one operand repeats, are multiplied element by element and summed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from webrnn.errors import Error
from webrnn.ir import DType, Node, Value
from webrnn.shapes.einsum import Letters, parse

from .emitter import Declined, Emitter, Expansion

_FLOATS = (DType.FLOAT, DType.FLOAT16, DType.BFLOAT16, DType.DOUBLE)


@dataclass(frozen=True)
class _Term:
    value: Value
    axes: Letters


def _einsum(e: Emitter, node: Node) -> None:
    values = [value for value in node.inputs if value is not None]
    try:
        axes, result = parse(node.attrs["equation"], [len(e.shape(value)) for value in values])
    except Error as error:
        raise Declined(error.message) from error
    terms = [_without_repetition(e, _Term(*pair)) for pair in zip(values, axes, strict=True)]
    total = terms[0]
    for position, term in enumerate(terms[1:], 2):
        later = {axis for other in terms[position:] for axis in other.axes} | set(result)
        total = _product(e, total, term, later)
    total = _summed(e, total, set(result))
    e.op("Transpose", total.value, perm=[total.axes.index(axis) for axis in result], output=node.outputs[0])


def _without_repetition(e: Emitter, term: _Term) -> _Term:
    """Of an axis that a term names twice the diagonal: the sum along one of them of what lies on it."""
    for axis in term.axes:
        first = term.axes.index(axis)
        if axis not in term.axes[first + 1 :]:
            continue
        second = term.axes.index(axis, first + 1)
        rank, size = len(term.axes), e.size(term.value, first)
        if size != e.size(term.value, second):
            raise Declined("a diagonal of different sizes")
        shape = [size if each in (first, second) else 1 for each in range(rank)]
        on_it = e.constant(np.eye(size, dtype=np.bool_).reshape(shape))
        kept = e.op("Where", on_it, term.value, e.constant(np.zeros((), e.dtype(term.value).array_type)))
        value = e.op("ReduceSum", kept, e.ints(second), keepdims=0)
        return _without_repetition(e, _Term(value, (*term.axes[:second], *term.axes[second + 1 :])))
    return term


def _summed(e: Emitter, term: _Term, kept: Collection[str]) -> _Term:
    gone = [position for position, axis in enumerate(term.axes) if axis not in kept]
    if not gone:
        return term
    axes = tuple(axis for axis in term.axes if axis in kept)
    return _Term(e.op("ReduceSum", term.value, e.ints(*gone), keepdims=0), axes)


def _product(e: Emitter, a: _Term, b: _Term, later: set[str]) -> _Term:
    a, b = _summed(e, a, later | set(b.axes)), _summed(e, b, later | set(a.axes))
    both = [axis for axis in a.axes if axis in b.axes]
    batch, inner = [axis for axis in both if axis in later], [axis for axis in both if axis not in later]
    left = [axis for axis in a.axes if axis not in both]
    right = [axis for axis in b.axes if axis not in both]
    is_repeated = any(_size(e, a, axis) != _size(e, b, axis) for axis in inner)
    if not inner or is_repeated or e.dtype(a.value) not in _FLOATS:
        every = (*batch, *left, *right, *inner)
        value = e.op("Mul", _spread(e, a, every), _spread(e, b, every))
        return _summed(e, _Term(value, every), later)
    if left and not right:  # a vector is a row, and the matrix is read as it is
        a, b, left, right = b, a, right, left
    rows = _joined(e, a, batch, left, inner)
    columns = _joined(e, b, batch, inner, right)
    value, axes = e.op("MatMul", rows, columns), (*batch, *left, *right)
    if len(left) != 1 or len(right) != 1:
        sizes = [_size_of(e, a, b, axis) for axis in axes]
        value = e.op("Reshape", value, e.sizes(*sizes), allowzero=1)
    return _Term(value, axes)


def _size(e: Emitter, term: _Term, axis: str) -> object:
    return e.shape(term.value)[term.axes.index(axis)]


def _size_of(e: Emitter, a: _Term, b: _Term, axis: str) -> tuple[Value, int]:
    """Where the size of an axis of a product is found: one of the factors may repeat its only element."""
    owners = [term for term in (a, b) if axis in term.axes]
    owner = next((term for term in owners if _size(e, term, axis) != 1), owners[0])
    return owner.value, owner.axes.index(axis)


def _spread(e: Emitter, term: _Term, axes: Letters) -> Value:
    """With its axes in an order, and an axis of one element for each that it has not."""
    value = e.op("Transpose", term.value, perm=[term.axes.index(axis) for axis in axes if axis in term.axes])
    missing = [position for position, axis in enumerate(axes) if axis not in term.axes]
    return e.op("Unsqueeze", value, e.ints(*missing)) if missing else value


def _joined(e: Emitter, term: _Term, *groups: Sequence[str]) -> Value:
    """The axes of the first group, then one axis for each of the others."""
    batch, *others = groups
    order = [axis for group in groups for axis in group]
    value = e.op("Transpose", term.value, perm=[term.axes.index(axis) for axis in order])
    if all(len(group) == 1 for group in others):
        return value
    sizes = [e.sizes((value, position)) for position in range(len(batch))]
    position = len(batch)
    for group in others:
        joined = None
        for _ in group:
            size, position = e.sizes((value, position)), position + 1
            joined = size if joined is None else e.op("Mul", joined, size)
        sizes.append(e.ints(1) if joined is None else joined)
    return e.op("Reshape", value, e.op("Concat", *sizes, axis=0), allowzero=1)


EXPANSIONS: dict[str, Expansion] = {"Einsum": _einsum}
