"""Which of two products that are added is that of the input, and which that of the last state."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from webrnn.ir import Node, Value

from .sums import Part
from .surroundings import NoMatch, Surroundings

Pair = tuple[Part, Part]


def owner_of(view: Surroundings, part: Part) -> tuple[Surroundings, Node] | None:
    """The Linear that makes a value, here or, if it is handed in, outside."""
    if part.outside:
        assert view.outside is not None
        found = view.outside.linear(part.value)
        return None if found is None else (view.outside, found)
    found = view.linear(part.value)
    if found is not None:
        return view, found
    if view.outside is not None and part.value in view.handed_in:
        whole, _ = view.handed_in[part.value]
        found = view.outside.linear(whole)
        return None if found is None else (view.outside, found)
    return None


def split_sides(view: Surroundings, pairs: Sequence[Pair]) -> tuple[list[Part], list[Part]]:
    """For each gate the part of the input and that of the state. A fused cell adds them, so that either order is right;
    but in a loop the product that has to wait for the state is the second.
    """
    for key in (_value_key, _source_key(view)):
        first, second = (key(part) for part in pairs[0])
        if first != second and all({key(a), key(b)} == {first, second} for a, b in pairs):
            ours = [pair if key(pair[0]) == first else pair[::-1] for pair in pairs]
            firsts, seconds = [pair[0] for pair in ours], [pair[1] for pair in ours]
            return (seconds, firsts) if _waits(view, firsts[0]) and not _waits(view, seconds[0]) else (firsts, seconds)
    raise NoMatch


def pick_side(view: Surroundings, pairs: Sequence[Pair], like: Part) -> tuple[list[Part], list[Part]]:
    """For each gate the part that is of one product with `like`, and the other."""
    for key in (_value_key, _source_key(view)):
        wanted = key(like)
        if all((key(a) == wanted) != (key(b) == wanted) for a, b in pairs):
            ours = [pair if key(pair[0]) == wanted else pair[::-1] for pair in pairs]
            return [pair[0] for pair in ours], [pair[1] for pair in ours]
    raise NoMatch


def _value_key(part: Part) -> Hashable:
    return part.base


def _source_key(view: Surroundings) -> Callable[[Part], Hashable]:
    """Separate products of one value, a gate each, belong together."""

    def key(part: Part) -> Hashable:
        owner = owner_of(view, part)
        return part.base if owner is None else (owner[0] is view, owner[1].inputs[0])

    return key


def _waits(view: Surroundings, part: Part) -> bool:
    owner = owner_of(view, part)
    return owner is not None and owner[0] is view and owner[1].inputs[0] in view.states


def operand_of(view: Surroundings, part: Part) -> Value | None:
    """What a product is a product of."""
    owner = owner_of(view, part)
    return None if owner is None else owner[1].inputs[0]
