"""Checks of shapes that are only known when the graph runs."""

from __future__ import annotations

from webrnn.errors import ModelError
from webrnn.ir import WEBRNN, Dim, GraphBuilder, Node, Value


def expect_shape(
    b: GraphBuilder,
    value: Value,
    sizes: tuple[int | None, ...],
    what: str,
    name: str,
    like: Value | None = None,
    same: tuple[tuple[int, int], ...] = (),
) -> Value:
    """`value`, behind a node of that name that raises if it has another shape; None is any size. `same` are axes of it
    that have to be as long as axes of `like`.

    Where the shape is known there is no need for the node.
    """
    known = value.shape if value.shape is not None else (None,) * len(sizes)
    if len(known) != len(sizes):
        raise ModelError(f"{what} has {len(known)} axes, it needs {len(sizes)}")
    pairs = list(zip(known, sizes, strict=True))
    alike = [(known[axis], _size(like, other)) for axis, other in same]
    if any(isinstance(have, int) and isinstance(need, int) and have != need for have, need in pairs + alike):
        needed = list(sizes)
        for (axis, _), (_, need) in zip(same, alike, strict=True):
            needed[axis] = need if isinstance(need, int) else needed[axis]
        raise ModelError(f"{what} is {spell(known)}, it needs to be {spell(tuple(needed))}")
    fits = value.shape is not None and all(need is None or isinstance(have, int) for have, need in pairs)
    if fits and all(have is not None and have == need for have, need in alike):
        return value
    checked = b.value(value.name, value.dtype, tuple(have if need is None else need for have, need in pairs))
    attrs = {"sizes": sizes, "what": what, "same": same}
    b.add(Node("ExpectShape", [value, like] if like is not None else [value], [checked], attrs, name, WEBRNN))
    return checked


def _size(value: Value | None, axis: int) -> Dim | None:
    return None if value is None or value.shape is None else value.shape[axis]


def spell(sizes: tuple) -> str:
    return "[" + ", ".join("?" if size is None else str(size) for size in sizes) + "]"
