"""How many frames of each value somebody reads: frames behind the last one are padding, if they are read at all."""

from __future__ import annotations

from collections.abc import Mapping

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


def _all(along: Along) -> int:
    return 0 if along.axis is None or isinstance(along.length, int) else Pace.of(along.length).extra
