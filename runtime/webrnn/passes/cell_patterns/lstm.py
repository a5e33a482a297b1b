"""C' = f·C + i·n, H' = o·h(C'), with i, o, f = f(sum) and n = g(sum); a peephole adds P·C to a sum, for o P·C'."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from webrnn.ir import Node, Value

from .activations import Activated, activated
from .cell import FoundCell
from .sides import split_sides
from .sums import Sum, read_sum
from .surroundings import NoMatch, Surroundings, orders


def lstm_cells(view: Surroundings, node: Node) -> Iterator[FoundCell]:
    """The ways to read a multiplication as the last of an LSTM cell."""
    for output_gate, squashed in orders(node if node.op == "Mul" else None):
        last = activated(view, squashed)
        c_next = None if last is None else view.node(last.operand, "Add")
        for kept, written in orders(c_next):
            forgetting, writing = view.node(kept, "Mul"), view.node(written, "Mul")
            for (forget, c), (input_gate, candidate) in product(orders(forgetting), orders(writing)):
                values = (input_gate, output_gate, forget, candidate)
                gates = [gate for gate in (activated(view, value) for value in values) if gate is not None]
                if len(gates) == 4 and gates[0].function == gates[1].function == gates[2].function:
                    assert last is not None
                    outer = [each for each in (node, last.node, c_next, forgetting, writing) if each is not None]
                    yield from _cells(view, gates, c, last, outer)


def _cells(
    view: Surroundings, gates: Sequence[Activated], c: Value, last: Activated, outer: Sequence[Node]
) -> Iterator[FoundCell]:
    """With gates i, o, f and n, in ONNX's order, as they are added up, or flat."""
    h_next = outer[0].outputs[0]
    assert h_next is not None
    for flat in (False, True):
        try:
            seen_by = (c, last.operand, c, None)
            read = [_gate(view, gate.operand, seen, flat) for gate, seen in zip(gates, seen_by, strict=True)]
            sums, peepholes = [total for total, _ in read], [peephole for _, peephole in read[:3]]
            x, h = split_sides(view, [(each.parts[0], each.parts[1]) for each in sums])
        except NoMatch:
            continue
        functions = [gates[0].function, gates[3].function, last.function]
        nodes = [*outer, *(gate.node for gate in gates), *(node for each in sums for node in each.nodes)]
        biases = [each.bias for each in sums]
        yield FoundCell("LstmCell", [h_next, last.operand], x, h, c, functions, nodes, biases, [], peepholes, not flat)
        return


def _gate(view: Surroundings, value: Value, seen: Value | None, flat: bool) -> tuple[Sum, Value | None]:
    """What a gate is the sum of, and the row of its peephole, which is multiplied with what it sees."""
    total, peephole = read_sum(view, value, flat=flat), None
    for part in total.parts if seen is not None else ():
        looking = None if part.outside else view.node(part.value, "Mul")
        for row, state in orders(looking):
            if state is seen and view.shape(row) == (view.width(seen),) and looking is not None:
                peephole, nodes = row, [*total.nodes, looking]
                rest = [other for other in total.parts if other is not part]
                if not flat and len(rest) == 1 and not rest[0].outside:
                    total = read_sum(view, rest[0].value, rest[0].start, rest[0].stop)
                    total.nodes += nodes
                else:
                    total = Sum(rest, total.bias, nodes)
                break
        if peephole is not None:
            break
    if len(total.parts) != 2:
        raise NoMatch
    return total, peephole
