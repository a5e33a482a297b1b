"""H' = (1 - z)·n + z·H, with z, r = f(sum) and n = g(x + r·h) or g(x + (r·H)·R).

Exporters also write the first as n + z·(H - n) or n - z·(n - H).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from webrnn.ir import Node, Value

from .activations import Activated, activated
from .cell import FoundCell
from .sides import operand_of, pick_side
from .sums import Part, Sum, part_of, read_sum
from .surroundings import NoMatch, Surroundings, complement, orders


def gru_cells(view: Surroundings, node: Node) -> Iterator[FoundCell]:
    """The ways to read a node as the last of a GRU cell."""
    for mix in _mixtures(view, node):
        z, n = activated(view, mix.z), activated(view, mix.n)
        if z is not None and n is not None:
            yield from _Reader(view, mix, z, n).cells()


@dataclass(frozen=True, slots=True)
class _Mixture:
    z: Value
    n: Value
    h: Value
    nodes: list[Node]
    is_exact: bool = True


def _mixtures(view: Surroundings, node: Node) -> Iterator[_Mixture]:
    for first, second in orders(node if node.op == "Add" else None):
        new, old = view.node(first, "Mul"), view.node(second, "Mul")
        for (keep, n), (z, h) in product(orders(new), orders(old)):
            rest = complement(view, keep, z)
            if rest is not None and new is not None and old is not None:
                yield _Mixture(z, n, h, [node, new, old, *rest])
        for z, difference in orders(old):
            away = view.node(difference, "Sub")
            if away is not None and old is not None and away.inputs[1] is first and away.inputs[0] is not None:
                yield _Mixture(z, first, away.inputs[0], [node, old, away], False)
    if node.op == "Sub" and node.inputs[0] is not None:
        moved = view.node(node.inputs[1], "Mul")
        for z, difference in orders(moved):
            away = view.node(difference, "Sub")
            if (
                away is not None
                and moved is not None
                and away.inputs[0] is node.inputs[0]
                and away.inputs[1] is not None
            ):
                yield _Mixture(z, node.inputs[0], away.inputs[1], [node, moved, away], False)


@dataclass(slots=True)
class _Reader:
    view: Surroundings
    mix: _Mixture
    z: Activated
    n: Activated

    def cells(self) -> Iterator[FoundCell]:
        for flat in (False, True):
            try:
                candidate = read_sum(self.view, self.n.operand, flat=flat)
                update = read_sum(self.view, self.z.operand, flat=flat)
            except NoMatch:
                continue
            found = next(self._cells(candidate, update, flat), None)
            if found is not None:
                yield found
                return

    def _cells(self, candidate: Sum, update: Sum, flat: bool) -> Iterator[FoundCell]:
        if len(candidate.parts) != 2 or len(update.parts) != 2:
            return
        for x_new, remembered in (candidate.parts, candidate.parts[::-1]):
            if remembered.outside or (remembered.start, remembered.stop) != (0, self.view.width(remembered.value)):
                continue
            for reset_value, other, node, product_of in self._resets(remembered):
                r = activated(self.view, reset_value)
                if r is None or r.function != self.z.function:
                    continue
                try:
                    reset = read_sum(self.view, r.operand, flat=flat)
                    if len(reset.parts) == 2:
                        yield self._cell(candidate, update, reset, r, x_new, other, node, product_of, flat)
                except NoMatch:
                    continue

    def _resets(self, remembered: Part) -> Iterator[tuple[Value, Value, Node, Value | None]]:
        """r, what it is multiplied with, the multiplication, and the product of that if it comes after."""
        after = self.view.node(remembered.value, "Mul")
        for r, other in orders(after):
            assert after is not None
            yield r, other, after, None
        before = self.view.node(operand_of(self.view, remembered), "Mul")
        for r, other in orders(before):
            if other is self.mix.h and before is not None:
                yield r, other, before, remembered.value

    def _cell(
        self,
        candidate: Sum,
        update: Sum,
        reset: Sum,
        r: Activated,
        x_new: Part,
        other: Value,
        multiplied: Node,
        product_of: Value | None,
        flat: bool,
    ) -> FoundCell:
        pairs = [(each.parts[0], each.parts[1]) for each in (update, reset)]
        x, h = pick_side(self.view, pairs, x_new)
        added = [*self.mix.nodes, self.z.node, self.n.node, r.node]
        nodes = [*added, *candidate.nodes, *update.nodes, *reset.nodes, multiplied]
        h_bias: list[np.ndarray | None] = []
        if product_of is None:
            h_new, bias, more = self._recurrent_part(other, flat)
            h, h_bias, nodes = [*h, h_new], [None, None, bias], [*nodes, *more]
            pick_side(self.view, pairs, h_new)
        h_next = self.mix.nodes[0].outputs[0]
        assert h_next is not None
        return FoundCell(
            "GruCell" if product_of is None else "GruUpdate",
            [h_next],
            [*x, x_new],
            h,
            self.mix.h,
            [self.z.function, self.n.function],
            nodes,
            x_bias=[update.bias, reset.bias, candidate.bias],
            h_bias=h_bias,
            update=self.mix.z,
            reset=None if product_of is None else multiplied.outputs[0],
            product=product_of,
            is_exact=not flat and self.mix.is_exact,
        )

    def _recurrent_part(self, value: Value, flat: bool) -> tuple[Part, np.ndarray | None, list[Node]]:
        """What r is multiplied with: columns of the state's product, flat with a constant added."""
        if flat:
            try:
                total = read_sum(self.view, value, flat=True)
            except NoMatch:
                return part_of(self.view, value), None, []
            if len(total.parts) == 1:
                return total.parts[0], total.bias, total.nodes
        return part_of(self.view, value), None, []
