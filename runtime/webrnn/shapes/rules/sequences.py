"""Shape rules of ops on sequences: what is known of their elements, whatever number of them there is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from webrnn.ir import WEBRNN, DType, Node

from ..facts import NOTHING, UNKNOWN, Fact, join
from .registry import from_front, is_given, operand, rule


def _elements(fact: Fact) -> Fact:
    return UNKNOWN if fact.elements is None else fact.elements


@rule("SequenceEmpty")
def _empty(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(elements=NOTHING)]


@rule("SequenceConstruct")
def _construct(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(elements=reduce(join, map(_as_element, inputs), NOTHING))]


@rule("SequenceInsert")
def _insert(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(elements=join(_elements(inputs[0]), _as_element(inputs[1])))]


@rule("SequenceErase")
def _erase(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(elements=_elements(inputs[0]))]


@rule("SequenceJoin", domain=WEBRNN)
def _join(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(elements=reduce(join, map(_elements, inputs), NOTHING))]


@rule("SplitToSequence")
def _split(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x, lengths = inputs[0], operand(inputs, 1)
    if x.shape is None:
        return [Fact(elements=Fact(x.dtype))]
    axis = from_front(node.attrs.get("axis", 0), len(x.shape))
    one_each = not is_given(node, 1) or (lengths.shape == () and lengths.ints == (1,))
    if one_each and not node.attrs.get("keepdims", 1):
        return [Fact(elements=Fact(x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :])))]
    known = set(lengths.ints or ()) if lengths.shape != () else set()
    size = 1 if one_each else known.pop() if len(known) == 1 else None
    return [Fact(elements=Fact(x.dtype, (*x.shape[:axis], size, *x.shape[axis + 1 :])))]


@rule("SequenceAt")
def _at(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [_elements(inputs[0])]


@rule("SequenceLength")
def _length(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(DType.INT64, ())]


@rule("OptionalHasElement")
def _has_element(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(DType.BOOL, ())]


@rule("ConcatFromSequence")
def _concat(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    element = _elements(inputs[0])
    if element.is_nothing or element.shape is None:
        return [Fact(element.dtype)]
    if node.attrs.get("new_axis", 0):
        axis = from_front(node.attrs["axis"], len(element.shape) + 1)
        return [Fact(element.dtype, (*element.shape[:axis], None, *element.shape[axis:]))]
    axis = from_front(node.attrs["axis"], len(element.shape))
    return [Fact(element.dtype, (*element.shape[:axis], None, *element.shape[axis + 1 :]))]


def _as_element(fact: Fact) -> Fact:
    """Without the numbers, which another element need not have."""
    return fact if fact.is_nothing else Fact(fact.dtype, fact.shape)
