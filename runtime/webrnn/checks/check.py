"""`Check`: what is known of a node's operands, and the requirements that a rule states of them.

A requirement on what is known raises at once. One on sizes that have only names becomes a `Condition`, which is decided
when the sizes are known. Of what is not known at all nothing is required: whoever runs the node checks it then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from webrnn.errors import Error, ShapeError, UnsupportedOp
from webrnn.ir import Dim, DType, Shape
from webrnn.ir.dims import floor_divide, is_nonnegative
from webrnn.shapes.facts import UNKNOWN, Fact


@dataclass(frozen=True, slots=True)
class Condition:
    """A size that has to be 0, or only not negative, for a node to be allowed."""

    size: Dim
    is_zero: bool
    message: str
    node: str = ""
    op: str = ""
    attribute: str | None = None
    steps: tuple[Dim, ...] = ()
    """The trip counts of the loops that it is in: where one of them is 0 it need not hold."""
    factors: tuple[Dim, ...] = ()
    """Sizes of which one has to be 0, if it is not simply one: `size` is their product, which may be too large a number
    for a plan."""

    def require(self, sizes: Mapping[str, int]) -> None:
        """Raise unless it holds for these named sizes."""
        if any(_value(count, sizes) == 0 for count in self.steps):
            return
        found = _value(self.size, sizes)
        if isinstance(found, int) and (found != 0 if self.is_zero else found < 0):
            raise ShapeError(self.message, node=self.node, op=self.op, attribute=self.attribute)


def _value(size: Dim, sizes: Mapping[str, int]) -> Dim:
    return size if isinstance(size, int) else size.substitute(sizes)


NO_TENSOR = Fact()
"""What is known of a sequence or an optional."""


class Check:
    """One application of an op, as far as it is known. `operands` has None for an input that is left out."""

    def __init__(self, op: str, attrs: Mapping[str, Any], operands: Sequence[Fact | None], n_outputs: int):
        self.op, self.attrs, self.operands, self.n_outputs = op, attrs, operands, n_outputs
        self.conditions: list[Condition] = []
        self.reads_elements = False
        """Whether the verdict depends on more than types and shapes."""
        self.reads_unknown = False
        """Whether it depends on elements that only a run knows."""

    # --- what is there -----------------------------------------------------------------------------------------------

    def given(self, index: int) -> bool:
        return index < len(self.operands) and self.operands[index] is not None

    def fact(self, index: int) -> Fact:
        found = self.operands[index] if index < len(self.operands) else None
        return UNKNOWN if found is None else found

    def shape(self, index: int) -> Shape | None:
        return self.fact(index).shape

    def rank(self, index: int) -> int | None:
        return self.fact(index).rank

    def dtype(self, index: int) -> DType | None:
        return self.fact(index).dtype

    def content(self, index: int) -> tuple[Dim | None, ...] | None:
        """The elements of a small operand of integers."""
        content = self.fact(index).content
        self.reads_elements = True
        self.reads_unknown |= self.given(index) and (content is None or None in content)
        return content

    def ints(self, index: int) -> tuple[int, ...] | None:
        self.content(index)
        return self.fact(index).ints

    def attribute(self, name: str, default: Any = None) -> Any:
        value = self.attrs.get(name)
        return default if value is None else value

    # --- requirements ------------------------------------------------------------------------------------------------

    def fail(self, message: str, attribute: str | None = None, kind: type[Error] = ShapeError) -> NoReturn:
        raise kind(message, op=self.op, attribute=attribute)

    def that(self, holds: bool, message: str, attribute: str | None = None, kind: type[Error] = ShapeError) -> None:
        if not holds:
            self.fail(message, attribute, kind)

    def equal(self, a: Dim | None, b: Dim | None, message: str, attribute: str | None = None) -> None:
        if a is not None and b is not None:
            self._zero(a - b, message, attribute)

    def at_least(self, size: Dim | None, least: Dim | None, message: str, attribute: str | None = None) -> None:
        if size is None or least is None:
            return
        rest = size - least
        if isinstance(rest, int) or is_nonnegative(-rest - 1):
            self.that(isinstance(rest, int) and rest >= 0, message, attribute)
        elif not is_nonnegative(rest):
            self._collect(Condition(rest, False, message, attribute=attribute))

    def multiple(self, size: Dim | None, divisor: int, message: str, attribute: str | None = None) -> None:
        if isinstance(size, int):
            self.that(size % divisor == 0, message, attribute)
        elif size is not None:
            self._zero(size - floor_divide(size, divisor) * divisor, message, attribute)

    def one_is_zero(self, sizes: Sequence[Dim], message: str) -> None:
        product: Dim = 1
        for size in sizes:
            product = size * product
        open_sizes = tuple(size for size in sizes if not isinstance(size, int))
        self._zero(product, message, factors=open_sizes if len(open_sizes) > 1 else ())

    def _zero(self, size: Dim, message: str, attribute: str | None = None, factors: tuple[Dim, ...] = ()) -> None:
        if isinstance(size, int) or is_nonnegative(size - 1) or is_nonnegative(-size - 1):
            self.that(size == 0, message, attribute)
        else:
            self._collect(Condition(size, True, message, attribute=attribute, factors=factors))

    def _collect(self, condition: Condition) -> None:
        if condition not in self.conditions:
            self.conditions.append(condition)

    def has_rank(self, index: int, name: str, least: int, most: int | None = None) -> None:
        """Of an operand that is there; without `most` it is exactly `least`."""
        rank = self.rank(index)
        most = least if most is None else most
        if rank is not None and not least <= rank <= most:
            allowed = str(least) if most == least else f"{least} or more" if most >= ANY else f"{least} to {most}"
            self.fail(f"{name} must have rank {allowed}, its shape is {spell(self.shape(index))}")

    def has_shape(self, index: int, shape: Sequence[Dim | None], name: str) -> None:
        found = self.shape(index)
        if found is None:
            return
        message = f"{name} must have the shape {spell(tuple(shape))}, it is {spell(found)}"
        self.that(len(found) == len(shape), message)
        for have, need in zip(found, shape, strict=True):
            self.equal(have, need, message)

    def is_single(self, index: int, name: str) -> None:
        """One element, whatever the rank."""
        shape = self.shape(index)
        for size in shape or ():
            self.equal(size, 1, f"{name} must hold one value, its shape is {spell(shape)}")

    def is_list(self, index: int, name: str) -> None:
        """Integers along at most one axis."""
        dtype = self.dtype(index)
        if dtype is not None and dtype not in INTEGERS:
            self.fail(f"{name} must be a list of integers, not {dtype.text}")
        self.has_rank(index, name, 0, 1)

    def axis(self, axis: int | None, rank: int | None, name: str = "axis", attribute: str | None = None) -> int | None:
        """The axis counted from the front, where both are known."""
        if axis is None or rank is None:
            return None
        self.that(-rank <= axis < rank, f"{name} {axis} is outside a tensor of rank {rank}", attribute)
        return axis % rank

    def axes(
        self, axes: Sequence[int] | None, rank: int | None, name: str = "axes", attribute: str | None = None
    ) -> list[int] | None:
        """Several axes, each of which may be named once."""
        if axes is None or rank is None:
            return None
        self.that(
            all(-rank <= axis < rank for axis in axes), f"{name} {list(axes)}: not axes of a rank of {rank}", attribute
        )
        found = [axis % rank for axis in axes]
        self.that(len(set(found)) == len(found), f"{name} {list(axes)} names an axis twice", attribute)
        return found

    def axis_attribute(self, default: int, rank: int | None, name: str = "axis") -> int | None:
        return self.axis(self.attribute(name, default), rank, name, name)

    def one_of(self, name: str, default: Any, allowed: Collection[Any]) -> Any:
        value = self.attribute(name, default)
        if value not in allowed:
            listed = ", ".join(str(each) for each in allowed)
            self.fail(f"{value!r} is not one of {listed}", name, UnsupportedOp)
        return value

    def broadcast(self, *indices: int) -> None:
        """That these operands have shapes that fit each other when they are repeated."""
        shapes = [shape for index in indices if (shape := self.shape(index)) is not None]
        for position, shape in enumerate(shapes):
            for other in shapes[position + 1 :]:
                self.broadcast_shapes(shape, other)

    def broadcast_shapes(self, shape: Shape, other: Shape) -> None:
        message = f"the shapes {spell(shape)} and {spell(other)} cannot be broadcast together"
        for a, b in zip(shape[::-1], other[::-1], strict=False):
            if a is None or b is None or a == b or a == 1 or b == 1:
                continue
            self.one_is_zero([a - b, *(size - 1 for size in (a, b) if not isinstance(size, int))], message)

    def broadcast_to(self, index: int, shape: Shape | None, name: str) -> None:
        """That an operand can be repeated to a shape, which stays as it is."""
        found = self.shape(index)
        if found is None or shape is None:
            return
        message = f"{name} of shape {spell(found)} cannot be broadcast to {spell(shape)}"
        self.that(len(found) <= len(shape), message)
        for have, need in zip(found[::-1], shape[::-1], strict=False):
            if have is None or need is None or have == need or have == 1:
                continue
            self.one_is_zero([have - need] if isinstance(have, int) else [have - need, have - 1], message)


ANY = 2**31
"""As the largest rank: there is none."""

INTEGERS = frozenset(
    {DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64}
)
FLOATS = frozenset({DType.FLOAT, DType.FLOAT16, DType.DOUBLE, DType.BFLOAT16})


def spell(shape: Shape | None) -> str:
    return "[?]" if shape is None else "[" + ", ".join("?" if size is None else str(size) for size in shape) + "]"
