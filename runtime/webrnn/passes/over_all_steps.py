"""How an op on one element of a sequence becomes an op on all of them: the element's axes follow one for the steps.

`over_all_steps` raises Declined, with the reason, for an op that it does not know or whose operands do not fit it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from webrnn.ir import Node, Value, is_static

from .facts import Fact, Facts
from .op_sets import ELEMENTWISE, is_total

AddConstant: TypeAlias = Callable[[np.ndarray, str], Value]
NewValue: TypeAlias = Callable[[str], Value]


class Declined(Exception):
    """The reason why an op stays in the loop."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand outside the loop, and what is known of it inside."""

    value: Value
    inside: Fact
    has_steps: bool
    """Whether it has one element for each step, on its first axis."""

    @property
    def rank(self) -> int:
        if self.inside.rank is None:
            raise Declined("the rank of its operands is not known")
        return self.inside.rank


@dataclass
class _Rewrite:
    """One node on its way out."""

    node: Node
    operands: Sequence[Operand | None]
    outputs: Sequence[Value | None]
    constant: AddConstant
    new_value: NewValue
    facts: Facts

    def __post_init__(self) -> None:
        self.nodes: list[Node] = []

    @property
    def first(self) -> Operand:
        operand = self.operands[0] if self.operands else None
        if operand is None:
            raise Declined("an operand is missing")
        return operand

    def given(self) -> list[Operand]:
        return [operand for operand in self.operands if operand is not None]

    def ints(self, index: int) -> list[int]:
        operand = self.operands[index] if index < len(self.operands) else None
        numbers = None if operand is None or operand.has_steps else operand.inside.ints
        if numbers is None:
            raise Declined("its axes or sizes are not constants")
        return list(numbers)

    def only_first_has_steps(self) -> None:
        if not self.first.has_steps or any(operand.has_steps for operand in self.given()[1:]):
            raise Declined("an operand other than the first is a sequence")

    def result(self, op: str, inputs: Sequence[Value | None], **attrs: Any) -> None:
        """Add the node that has the outputs; one of the same op keeps the attributes that are not given."""
        kept = self.node.attrs if op == self.node.op else {}
        self.nodes.append(Node(op, list(inputs), list(self.outputs), {**kept, **attrs}, self.node.name))

    def between(self, op: str, inputs: Sequence[Value], **attrs: Any) -> Value:
        value = self.new_value(f"{self.node.op.lower()}_all")
        self.nodes.append(Node(op, list(inputs), [value], attrs, self.node.name))
        return value

    def axes(self, numbers: Sequence[int]) -> Value:
        return self.constant(np.array(numbers, np.int64), "axes")


def over_all_steps(
    node: Node,
    operands: Sequence[Operand | None],
    outputs: Sequence[Value | None],
    constant: AddConstant,
    new_value: NewValue,
    facts: Facts,
) -> list[Node]:
    """The nodes, the last of which has the outputs."""
    rule = _elementwise if node.op in ELEMENTWISE else _RULES.get(node.op)
    if node.domain or rule is None:
        raise Declined("it is not known how to do it for all steps at once")
    if node.op in ELEMENTWISE and not is_total(node, facts):
        raise Declined("it could fail on elements that no step takes")
    rewrite = _Rewrite(node, operands, outputs, constant, new_value, facts)
    rule(rewrite)
    return rewrite.nodes


def _elementwise(r: _Rewrite) -> None:
    rank = max(operand.rank for operand in r.given())
    inputs: list[Value | None] = []
    for operand in r.operands:
        if operand is None:
            inputs.append(None)
        elif operand.has_steps and operand.rank < rank:
            axes = r.axes(range(1, 1 + rank - operand.rank))
            inputs.append(r.between("Unsqueeze", [operand.value, axes]))
        else:
            inputs.append(operand.value)
    r.result(r.node.op, inputs)


def _matmul(r: _Rewrite) -> None:
    first, second = r.given()
    if first.has_steps and second.has_steps:
        fits = first.rank == second.rank >= 2
    elif first.has_steps:
        fits = second.rank <= max(first.rank, 2)
    else:
        fits = second.rank >= 2 and first.rank <= second.rank
    if not fits:
        raise Declined("the axes of its operands do not allow a product for all steps")
    r.result("MatMul", [first.value, second.value])


def _gemm(r: _Rewrite) -> None:
    r.only_first_has_steps()
    attrs = r.node.attrs
    if attrs.get("alpha", 1.0) != 1.0 or attrs.get("beta", 1.0) != 1.0 or attrs.get("transA", 0):
        raise Declined("alpha, beta or transA of a Gemm")
    operands = r.given()
    weights = operands[1].value
    if attrs.get("transB", 0):
        weights = r.between("Transpose", [weights], perm=[1, 0])
    if len(operands) == 2:
        r.result("MatMul", [operands[0].value, weights])
    else:
        r.result("Add", [r.between("MatMul", [operands[0].value, weights]), operands[2].value])


def _split(r: _Rewrite) -> None:
    r.only_first_has_steps()
    axis = r.node.attrs.get("axis", 0) % r.first.rank + 1
    r.result("Split", [None if operand is None else operand.value for operand in r.operands], axis=axis)


def _squeeze(r: _Rewrite) -> None:
    axes = r.ints(1)
    r.result("Squeeze", [r.first.value, r.axes([axis % r.first.rank + 1 for axis in axes])])


def _unsqueeze(r: _Rewrite) -> None:
    axes = r.ints(1)
    rank = r.first.rank + len(axes)
    r.result("Unsqueeze", [r.first.value, r.axes([axis % rank + 1 for axis in axes])])


def _transpose(r: _Rewrite) -> None:
    perm = r.node.attrs.get("perm") or range(r.first.rank)[::-1]
    r.result("Transpose", [r.first.value], perm=[0, *(axis + 1 for axis in perm)])


def _along_axis(r: _Rewrite) -> None:
    r.result(r.node.op, [r.first.value], axis=r.node.attrs.get("axis", -1) % r.first.rank + 1)


def _concat(r: _Rewrite) -> None:
    operands = r.given()
    if not all(operand.has_steps for operand in operands):
        raise Declined("it joins a sequence with something that is the same in each step")
    axis = r.node.attrs["axis"] % operands[0].rank + 1
    r.result("Concat", [operand.value for operand in operands], axis=axis)


def _slice(r: _Rewrite) -> None:
    starts, ends = r.ints(1), r.ints(2)
    axes = r.ints(3) if len(r.operands) > 3 and r.operands[3] is not None else list(range(len(starts)))
    steps = r.ints(4) if len(r.operands) > 4 and r.operands[4] is not None else [1] * len(starts)
    moved = [axis % r.first.rank + 1 for axis in axes]
    r.result("Slice", [r.first.value, *(r.axes(numbers) for numbers in (starts, ends, moved, steps))])


def _reshape(r: _Rewrite) -> None:
    r.only_first_has_steps()
    shape = r.facts.shape(r.node.outputs[0])
    if shape is None or not is_static(shape) or 0 in shape:
        raise Declined("the shape of its result is not known")
    target = [0, *(size for size in shape if isinstance(size, int))]
    r.result("Reshape", [r.first.value, r.axes(target)], allowzero=0)


def _identity(r: _Rewrite) -> None:
    r.result("Identity", [r.first.value])


_RULES: dict[str, Callable[[_Rewrite], None]] = {
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Split": _split,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": _transpose,
    "Softmax": _along_axis,
    "LogSoftmax": _along_axis,
    "Concat": _concat,
    "Slice": _slice,
    "Reshape": _reshape,
    "Identity": _identity,
}
