"""Checks of shapes that are only known when the graph runs."""

from __future__ import annotations

from webrnn.errors import ModelError
from webrnn.ir import WEBRNN, GraphBuilder, Node, Value


def expect_shape(b: GraphBuilder, value: Value, sizes: tuple[int | None, ...], what: str, name: str) -> Value:
    """`value`, behind a node of that name that raises if it has another shape; None is any size.

    Where the shape is known there is no need for the node.
    """
    known = value.shape if value.shape is not None else (None,) * len(sizes)
    if len(known) != len(sizes):
        raise ModelError(f"{what} has {len(known)} axes, it needs {len(sizes)}")
    pairs = list(zip(known, sizes, strict=True))
    if any(isinstance(have, int) and need is not None and have != need for have, need in pairs):
        raise ModelError(f"{what} is {spell(known)}, it needs to be {spell(sizes)}")
    if value.shape is not None and all(need is None or isinstance(have, int) for have, need in pairs):
        return value
    checked = b.value(value.name, value.dtype, tuple(have if need is None else need for have, need in pairs))
    b.add(Node("ExpectShape", [value], [checked], {"sizes": sizes, "what": what}, name, WEBRNN))
    return checked


def spell(sizes: tuple) -> str:
    return "[" + ", ".join("?" if size is None else str(size) for size in sizes) + "]"
