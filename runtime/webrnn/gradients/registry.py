"""One rule an op: what a cotangent of its results is for its operands. `@rule("Name")` puts a function in the table.

A rule takes a `Pull` and returns a cotangent for each operand, None for one that has none; operands behind the last of
its list have none either. It may leave out what `wants` does not ask for, and adds ops to `Pull.b` with the forward
values at hand: operands and results of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from webrnn.errors import UnsupportedOp
from webrnn.ir import Node, Value
from webrnn.ops.registry import Registry

from .emitter import Emitter


@dataclass(frozen=True)
class Options:
    """How loops are taken back."""

    truncate: int | None = None
    """How many steps go back at most."""
    whole: Collection[Node] = ()
    """Nodes that are loops of no more steps than that."""


@dataclass(eq=False)
class Pull:
    """One node on the way back."""

    b: Emitter
    node: Node
    given: list[Value | None]
    """The cotangents of its results; at least one is there."""
    active: Collection[Value]
    """The values for which cotangents are wanted."""
    options: Options
    take_back: Callable[[Sequence[Node], dict[Value, Value], Sequence[Value]], dict[Value, Value]]
    """The cotangents of operands of other nodes, from those of their results."""

    @property
    def d(self) -> Value:
        """The cotangent of the first result."""
        if self.given[0] is None:
            raise self.refusal("it has a cotangent for another result than the first")
        return self.given[0]

    def x(self, index: int) -> Value:
        value = self.operand(index)
        assert value is not None
        return value

    def operand(self, index: int) -> Value | None:
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def y(self, index: int = 0) -> Value:
        value = self.node.outputs[index]
        assert value is not None
        return value

    def wants(self, index: int) -> bool:
        return self.operand(index) in self.active

    def attr(self, name: str, default: object = None) -> object:
        return self.node.attrs.get(name, default)

    def number(self, name: str, default: float) -> float:
        return float(self.node.attrs.get(name, default))

    def refusal(self, why: str, attribute: str | None = None) -> UnsupportedOp:
        return UnsupportedOp(f"it has no gradient: {why}", node=self.node.label, op=self.node.op, attribute=attribute)

    def ints(self, index: int, what: str) -> list[int]:
        """An operand that says how, which has to be known before the model runs."""
        found = self.b.ints_of(self.operand(index))
        if found is None:
            raise self.refusal(f"its {what} are known only while it runs")
        return found

    def through(self, forward: Callable[[], Value | Sequence[Value | None]]) -> list[Value | None]:
        """The cotangents of an op that is made of others: `forward` adds these and gives the results."""
        start = len(self.b.graph.nodes)
        made = forward()
        results: Sequence[Value | None] = [made] if isinstance(made, Value) else made
        nodes = self.b.graph.nodes[start:]
        seeds: dict[Value, Value] = {}
        for result, cotangent in zip(results, self.given, strict=False):
            if result is not None and cotangent is not None:
                seeds[result] = cotangent
        operands = [value for value in self.node.inputs if value in self.active and value is not None]
        found = self.take_back(nodes, seeds, operands)
        return [found.pop(value, None) if value is not None else None for value in self.node.inputs]


Rule: TypeAlias = Callable[[Pull], Sequence[Value | None]]

rule: Registry[Rule] = Registry("gradient", f"{__package__}.rules.{{}}")
