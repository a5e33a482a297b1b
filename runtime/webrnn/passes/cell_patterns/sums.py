"""What is added up before an activation: columns of wide values, and constants."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from webrnn.ir import Node, SequenceSpec, Value
from webrnn.reference.shape import equal_parts

from .surroundings import NoMatch, Surroundings


@dataclass(frozen=True, slots=True)
class Part:
    """Columns of the last axis of a value: of this graph, or of the graph around it, from where it is handed in as an
    invariant or as this sequence.
    """

    value: Value
    start: int
    stop: int
    outside: bool = False
    sequence: SequenceSpec | None = None

    @property
    def base(self) -> Part:
        """The value alone, to compare."""
        return replace(self, start=0, stop=0)


@dataclass(slots=True)
class Sum:
    parts: list[Part]
    bias: np.ndarray | None
    nodes: list[Node]
    """The additions."""


def part_of(view: Surroundings, value: Value, start: int = 0, stop: int | None = None) -> Part:
    """Where columns of a value come from, through Split and Slice and, into a loop, from the graph around it."""
    if stop is None:
        stop = view.width(value)
        if stop is None:
            raise NoMatch
    value, start, stop = _uncut(view, value, start, stop)
    if view.outside is not None and value in view.handed_in:
        whole, spec = view.handed_in[value]
        shape = view.outside.shape(whole)
        if shape is not None and (spec is None or spec.axis % len(shape) != len(shape) - 1):
            source, first, last = _uncut(view.outside, whole, start, stop)
            if source is not whole:
                return Part(source, first, last, True, spec)
    return Part(value, start, stop)


def read_sum(view: Surroundings, value: Value, start: int = 0, stop: int | None = None, flat: bool = False) -> Sum:
    """What columns of a value are the sum of: the two operands of one Add, or, flat, all that is added in a row."""
    if stop is None:
        stop = view.width(value)
    if stop is None:
        raise NoMatch
    total = Sum([], None, [])
    _add_terms(view, value, start, stop, total, None if flat else 1)
    if not total.nodes or (not flat and total.bias is not None):
        raise NoMatch
    return total


def _add_terms(view: Surroundings, value: Value, start: int, stop: int, total: Sum, depth: int | None) -> None:
    value, start, stop = _uncut(view, value, start, stop)
    array = view.constant(value)
    if array is not None:
        row = _row(array, view.width(value))[start:stop]
        total.bias = row if total.bias is None else total.bias + row
        return
    node = view.node(value, "Add") if depth != 0 else None
    if node is None:
        total.parts.append(part_of(view, value, start, stop))
        return
    total.nodes.append(node)
    width = view.width(value)
    for operand in node.inputs:
        array = view.constant(operand)
        if array is not None and view.width(operand) != width:
            row = _row(array, width)[start:stop]
            total.bias = row if total.bias is None else total.bias + row
        elif operand is None or view.width(operand) != width:
            raise NoMatch
        else:
            _add_terms(view, operand, start, stop, total, None if depth is None else depth - 1)


def _row(array: np.ndarray, width: int | None) -> np.ndarray:
    """A constant that is the same for all rows, as one row."""
    if width is None or array.dtype != np.float32 or array.size not in (1, width) or array.ndim > 2:
        raise NoMatch
    if array.ndim == 2 and array.shape[0] != 1:
        raise NoMatch
    return np.broadcast_to(array.reshape(-1), (width,))


def _uncut(view: Surroundings, value: Value, start: int, stop: int) -> tuple[Value, int, int]:
    while True:
        node = view.node(value, "Split", "Slice")
        offset = None if node is None else _offset(view, node, value)
        if node is None or offset is None or node.inputs[0] is None:
            return value, start, stop
        value, start, stop = node.inputs[0], start + offset, stop + offset


def _offset(view: Surroundings, node: Node, value: Value) -> int | None:
    """Where a part of a last axis begins, or None where a node cuts something else."""
    shape, width = view.shape(node.inputs[0]), view.width(node.inputs[0])
    if shape is None or width is None:
        return None
    if node.op == "Split":
        if node.attrs.get("axis", 0) % len(shape) != len(shape) - 1:
            return None
        sizes = view.facts.of(node.inputs[1]).ints if len(node.inputs) > 1 else equal_parts(width, len(node.outputs))
        return None if sizes is None else sum(sizes[: node.outputs.index(value)])
    starts, ends, axes, steps = (view.facts.of(operand).ints for operand in [*node.inputs[1:], None, None][:4])
    if starts is None or ends is None or axes is None or len(axes) != 1 or axes[0] % len(shape) != len(shape) - 1:
        return None
    if (len(node.inputs) > 4 and steps != (1,)) or view.width(value) in (None, 0):
        return None
    return starts[0] + width if starts[0] < 0 else starts[0]
