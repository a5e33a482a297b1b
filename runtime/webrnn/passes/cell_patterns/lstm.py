"""C' = f·C + i·n, H' = o·h(C'), with i, o, f = f(sum) and n = g(sum); a peephole adds P·C to a sum, for o P·C'."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from webrnn.ir import Node, Value

from .activations import Activated, functions, gates
from .cell import Cell
from .orders import complement, orders
from .sides import split_sides
from .sums import Part, read_sum
from .surroundings import NoMatch, Surroundings

FORGET = 2
"""The place of the forget gate in ONNX's order i, o, f, c."""


def lstm_cells(view: Surroundings, node: Node) -> Iterator[Cell]:
    """The ways to read a multiplication as the last of an LSTM cell."""
    for output_gate, squashed in orders(node if node.op == "Mul" else None):
        for last in functions(view, squashed):
            c_next = view.node(last.operand, "Add")
            for kept, written in orders(c_next):
                forgetting, writing = view.node(kept, "Mul"), view.node(written, "Mul")
                for (forget, c), (input_gate, candidate) in product(orders(forgetting), orders(writing)):
                    assert c_next is not None
                    assert forgetting is not None
                    assert writing is not None
                    outer = [node, *last.nodes, c_next, forgetting, writing]
                    values = _Values(input_gate, output_gate, forget, candidate, c, last.operand)
                    yield from _Reader(view, values, last, outer).cells()


@dataclass(frozen=True, slots=True)
class _Values:
    """The parts of a cell, which hold if the rest of it does."""

    i: Value
    o: Value
    f: Value
    n: Value
    c: Value
    c_next: Value


@dataclass(frozen=True, slots=True)
class _Gate:
    """A gate before its activation."""

    parts: list[Part]
    bias: np.ndarray | None
    peephole: Value | None
    nodes: list[Node]


@dataclass(slots=True)
class _Reader:
    view: Surroundings
    values: _Values
    last: Activated
    outer: list[Node]

    def cells(self) -> Iterator[Cell]:
        view, values = self.view, self.values
        coupled = complement(view, values.f, values.i)
        forgets = [None] if coupled is not None else list(gates(view, values.f))
        for i, o, f, n in product(gates(view, values.i), gates(view, values.o), forgets, gates(view, values.n)):
            alike = [gate for gate in (o, f) if gate is not None]
            if all((gate.function, gate.clip) == (i.function, i.clip) for gate in alike) and n.clip == i.clip:
                yield from self._cells([i, o, f, n], coupled)

    def _cells(self, activated: list[Activated | None], coupled: Node | None) -> Iterator[Cell]:
        seen_by = [self.values.c, self.values.c_next, self.values.c, None]
        for flat in (False, True):
            try:
                read = [
                    None if gate is None else self._gate(gate.operand, seen, flat)
                    for gate, seen in zip(activated, seen_by, strict=True)
                ]
                given = [gate for gate in read if gate is not None]
                x, h = split_sides(self.view, [(gate.parts[0], gate.parts[1]) for gate in given])
            except NoMatch:
                continue
            if coupled is not None:
                x.insert(FORGET, self._unread(x[0]))
                h.insert(FORGET, self._unread(h[0]))
            i, _, _, n = activated
            assert i is not None
            assert n is not None
            nodes = [*self.outer, *(node for gate in activated if gate is not None for node in gate.nodes)]
            nodes += [node for gate in given for node in gate.nodes] + ([coupled] if coupled is not None else [])
            h_next = self.outer[0].outputs[0]
            assert h_next is not None
            yield Cell(
                "LstmCell",
                [h_next, self.values.c_next],
                x,
                h,
                self.values.c,
                [i.function, n.function, self.last.function],
                i.clip,
                nodes,
                x_bias=[None if gate is None else gate.bias for gate in read],
                peepholes=[None if gate is None else gate.peephole for gate in read[:3]],
                couple=coupled is not None,
                is_exact=not flat,
            )
            return

    def _gate(self, value: Value, seen: Value | None, flat: bool) -> _Gate:
        total = read_sum(self.view, value, flat=flat)
        peephole, nodes = None, total.nodes
        for part in total.parts if seen is not None else ():
            looking = None if part.outside else self.view.node(part.value, "Mul")
            found = next((row for row, state in orders(looking) if state is seen and self._is_row(row)), None)
            if found is not None and looking is not None:
                peephole, nodes = found, [*nodes, looking]
                rest = [other for other in total.parts if other is not part]
                if flat:
                    total.parts = rest
                elif len(rest) == 1 and not rest[0].outside:
                    total = read_sum(self.view, rest[0].value, rest[0].start, rest[0].stop)
                    nodes = [*nodes, *total.nodes]
                break
        if len(total.parts) != 2:
            raise NoMatch
        return _Gate(total.parts, total.bias, peephole, nodes)

    def _is_row(self, value: Value) -> bool:
        return self.view.shape(value) == (self.view.width(self.values.c),)

    def _unread(self, first: Part) -> Part:
        """Columns for a forget gate that is 1 - i: what is in them is not read."""
        width = first.stop - first.start
        return Part(first.value, FORGET * width, FORGET * width + width, first.outside, first.sequence)
