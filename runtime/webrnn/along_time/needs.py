"""How many frames of each value somebody reads: frames behind the last one are padding, if they are read at all."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from webrnn.ir import Graph, Node, Value

from .kinds import Along
from .moves import Move
from .paces import Pace


def needed_frames(graph: Graph, along: Mapping[Value, Along], moves: Mapping[Node, Move]) -> dict[Value, int]:
    """Of each value that is read: how many frames, beyond its rate for each stride; 0 for what has none."""
    needed: dict[Value, int] = {}

    def read(value: Value, count: int) -> None:
        needed[value] = max(needed.get(value, count), count)

    for value in graph.outputs:
        read(value, _all(along[value]))
    for node in reversed(graph.nodes):
        read_results = [value for value in node.outputs if value is not None and value in needed]
        if not read_results:
            continue
        reads = moves[node].reads if node in moves else {}
        unread = moves[node].unread if node in moves else frozenset()
        timed = [value for value in read_results if along[value].axis is not None]
        for index, operand in enumerate(node.inputs):
            if operand is None or operand not in along or index in unread:
                continue
            if along[operand].axis is None or len(timed) < len(read_results):
                read(operand, _all(along[operand]))
            else:
                rule = reads.get(index)
                read(operand, max(needed[result] if rule is None else rule(needed[result]) for result in timed))
    return needed


def receptive_field(
    graph: Graph, along: Mapping[Value, Along], moves: Mapping[Node, Move], loops: Collection[Node]
) -> int | None:
    """How many frames of the inputs one frame of an output depends on, the most of all; None for all so far."""
    most = 0
    for value in graph.outputs:
        if along[value].axis is not None and not isinstance(along[value].length, int):
            found = _field_of(value, graph, along, moves, loops)
            if found is None:
                return None
            most = max(most, found)
    return most


def _field_of(
    output: Value, graph: Graph, along: Mapping[Value, Along], moves: Mapping[Node, Move], loops: Collection[Node]
) -> int | None:
    spans = {output: (0, 0)}
    for node in reversed(graph.nodes):
        read = [spans[value] for value in node.outputs if value is not None and value in spans]
        if not read:
            continue
        if node in loops:
            return None
        first, last = min(span[0] for span in read), max(span[1] for span in read)
        for index, value in enumerate(node.inputs):
            if value is None or along[value].axis is None:
                continue
            oldest, reads = moves[node].oldest.get(index), moves[node].reads.get(index)
            begin = first if oldest is None else oldest(first)
            end = last if reads is None else reads(last + 1) - 1
            known = spans.get(value, (begin, end))
            spans[value] = min(begin, known[0]), max(end, known[1])
    fields = [span[1] - span[0] + 1 for value, span in spans.items() if value in graph.inputs]
    return max(fields, default=0)


def _all(along: Along) -> int:
    return 0 if along.axis is None or isinstance(along.length, int) else Pace.of(along.length).extra
