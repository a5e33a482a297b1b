"""H' = f(x + h) in a loop, where h is a product of the state that H' is the next value of."""

from __future__ import annotations

from collections.abc import Iterator

from webrnn.ir import Node, Value

from .activations import activated
from .cell import FoundCell
from .sides import operand_of, split_sides
from .sums import Part, read_sum
from .surroundings import NoMatch, Surroundings


def rnn_cells(view: Surroundings, node: Node) -> Iterator[FoundCell]:
    """The ways to read an activation as an RNN cell."""
    h_next = node.outputs[0]
    gate = activated(view, h_next)
    if not view.states or h_next is None or gate is None:
        return
    for flat in (False, True):
        try:
            total = read_sum(view, gate.operand, flat=flat)
            if len(total.parts) != 2 or not all(_is_whole(view, part) for part in total.parts):
                continue
            x, h = split_sides(view, [(total.parts[0], total.parts[1])])
        except NoMatch:
            continue
        state = operand_of(view, h[0])
        if state is not None and _is_next(view, h_next, state):
            nodes = [gate.node, *total.nodes]
            yield FoundCell("RnnCell", [h_next], x, h, state, [gate.function], nodes, [total.bias], is_exact=not flat)
            break


def _is_whole(view: Surroundings, part: Part) -> bool:
    return not part.outside and (part.start, part.stop) == (0, view.width(part.value))


def _is_next(view: Surroundings, value: Value, state: Value) -> bool:
    """Whether a value is what a state becomes, be it only where a mask says so."""
    assert view.scan is not None
    after = next((item.body_out for item in view.scan.states if item.body_in == [state]), None)
    masked = view.node(after, "Where")
    return after is value or (masked is not None and masked.inputs[1:] == [value, state])
