"""Element types that have no arithmetic of their own: a wider type stands in for them.

A node whose rule does not take a narrow type is lowered as one with wide operands, and its results are cast back: what
is computed in between is rounded once, where the op has its result. Constants are widened when the plan is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from webrnn.ir import WEBRNN, DType, Graph, Node, Value
from webrnn.ops.rows import ROWS

from .lowering import DTYPES, Lowering, NotLowered

SMALL = (
    "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "u4", "i4", "f4e2m1", "f8e8m0", "u2", "i2", "f6e2m3", "f6e3m2",
)  # fmt: skip
"""Types of at most a byte that numpy lacks."""

WIDE = {
    "f16": "f32", "bf16": "f32", "u8": "i32", "i8": "i32", "u16": "i32", "i16": "i32", "u32": "i64",
    **{name: "f32" if name.startswith("f") else "i32" for name in SMALL},
}  # fmt: skip
"""It holds every number of the narrow type."""

ARRAY_TYPES = {
    "f32": DType.FLOAT, "i64": DType.INT64, "i32": DType.INT32, "f64": DType.DOUBLE, "bool": DType.BOOL,
}  # fmt: skip
"""Of the types that are computed in."""

_ORDER_ONLY = {"ArgMax", "ArgMin", "GlobalMaxPool", "Hardmax", "MaxPool", "ReduceMax", "ReduceMin", "TopK"}
"""They compare elements and move them: of numbers that floats have, they may be done in floats."""

_WRAPPING = {"CumSum", "CumProd", "ScatterElements", "ScatterND"}
"""Of uint64 they are done in int64, whose sums and products have the same bits."""

_STEPS: tuple[dict[str, str], ...] = (
    WIDE,
    WIDE | {"bool": "i32", **{name: "i64" for name, wide in WIDE.items() if wide == "i32"}},
)
_IN_FLOATS = WIDE | {"bool": "f32", **{name: "f32" for name, wide in WIDE.items() if wide == "i32"}}


def widened(array: np.ndarray, wide: str) -> np.ndarray:
    """A constant in a wider type.

    >>> widened(np.float16([0.5]), "f32")
    array([0.5], dtype=float32)
    """
    if array.dtype == ARRAY_TYPES[wide].array_type:
        return array
    from webrnn.reference.cast import convert  # a page waits for what is imported

    return convert(array, ARRAY_TYPES[wide].array_type)


def lower_widened(l: Lowering, node: Node, apply: Callable[[Node], None]) -> None:
    """Apply the rule of a node, to the node as it is or to one with wider operands."""
    values = [value for value in (*node.inputs, *node.outputs) if value is not None]
    narrow = {DTYPES.get(l.facts.dtype(value) or DType.STRING, "") for value in values} & {*WIDE, "bool", "u64"}
    if not narrow or _takes_any_type(node) or any(isinstance(each, Graph) for each in node.attrs.values()):
        apply(node)
        return
    kept = l.checkpoint()
    try:
        apply(node)
        return
    except NotLowered as refusal:
        reason = refusal
    steps = _STEPS if not _is_about_types(node) else ()
    if node.op in _WRAPPING and node.attrs.get("reduction") not in ("min", "max"):
        steps = (*steps, {"u64": "i64"})
    for wide in (*steps, _IN_FLOATS) if node.op in _ORDER_ONLY else steps:
        l.go_back(kept)
        if narrow & wide.keys():
            try:
                _lower_clone(l, node, wide, apply)
                return
            except NotLowered:
                pass
    l.go_back(kept)
    raise reason


def _takes_any_type(node: Node) -> bool:
    """Whether its rule does: those of expressions, and of what only looks at its operand in another way."""
    row = ROWS.get((node.domain, node.op))
    return row is not None and (row.plan == "elementwise" or not row.traits.isdisjoint({"view", "reshape"}))


def _is_about_types(node: Node) -> bool:
    """Whether the types of its operands say what it does."""
    if node.domain not in ("", WEBRNN):
        return True
    row = ROWS.get((node.domain, node.op))
    return row is not None and (row.check == "quantize" or "Integer" in node.op or "Quantize" in node.op)


def _lower_clone(l: Lowering, node: Node, wide: dict[str, str], apply: Callable[[Node], None]) -> None:
    inputs = [None if value is None else _widened_operand(l, value, wide) for value in node.inputs]
    outputs = [None if value is None else _stand_in(l, value, wide) for value in node.outputs]
    apply(Node(node.op, inputs, outputs, dict(node.attrs), node.name, node.domain))
    for value, made in zip(node.outputs, outputs, strict=True):
        if value is not None and made is not None and made is not value:
            view = l.view(made)
            if l.is_open(value):
                l.set_shape(value, view.shape)
            l.cast_to(view, l.output_like(value, [view]))


def _stand_in(l: Lowering, value: Value, wide: dict[str, str]) -> Value:
    """A value of the wider type, of which the same is known; the value itself if it is not narrow."""
    fact = l.facts.of(value)
    to = wide.get(DTYPES.get(fact.dtype or DType.STRING, ""))
    if to is None:
        return value
    other = Value(value.name, ARRAY_TYPES[to], value.shape)
    l.facts.set(other, replace(fact, dtype=ARRAY_TYPES[to]))
    return other


def _widened_operand(l: Lowering, value: Value, wide: dict[str, str]) -> Value:
    other = _stand_in(l, value, wide)
    if other is not value:
        to, array = DTYPES[other.dtype], l.array(value)  # type: ignore[index]
        if array is not None:
            l.arrays[other] = l.once((id(array), f"as {to}"), array, lambda: widened(array, to))
        else:
            l.views[other] = l.cast(l.view(value), to)
    return other
