"""Reads of the element that was inserted last into a sequence that a loop carries."""

from __future__ import annotations

from webrnn.ir import Graph, Node, Value, is_plain
from webrnn.ops.sets import RESHAPES

from .base import Context

_PASSES_ON = RESHAPES | {"Cast", "Identity"}
"""Ops that hand on one number."""


class LastRead:
    """SequenceAt at position -1, at the length less one or, where each step so far has inserted one element, at the
    number of the iteration less one; directly or in the branches of an If.
    """

    def __init__(self, sequence: Value, iteration: Value | None, context: Context):
        self._sequence, self._iteration, self._context = sequence, iteration, context

    def is_by(self, node: Node) -> bool:
        if is_plain(node, "SequenceAt"):
            return node.inputs[0] is self._sequence and self._is_last(node, None)
        if not is_plain(node, "If") or self._sequence not in node.inputs[1:] or node.inputs[0] is self._sequence:
            return False
        return all(self._all_last(branch) for branch in self._branches(node))

    def replace(self, body: Graph, node: Node, last: Value) -> None:
        """Let a node that reads the last element read `last`."""
        if is_plain(node, "SequenceAt"):
            body.nodes[body.nodes.index(node)] = Node("Identity", [last], node.outputs, {}, node.name)
            return
        for branch in self._branches(node):
            for index, inner in enumerate(branch.inner):
                given = last.like(f"{inner.name}_last_{index}")
                self._context.facts.set(given, self._context.facts.of(last))
                branch.graph.inputs[branch.graph.inputs.index(inner)] = given
                for reader in list(branch.graph.nodes):
                    if inner in reader.inputs:
                        place = branch.graph.nodes.index(reader)
                        branch.graph.nodes[place] = Node("Identity", [given], reader.outputs, {}, reader.name)
        node.inputs = [node.inputs[0], *(last if value is self._sequence else value for value in node.inputs[1:])]

    def _branches(self, node: Node) -> list[_Branch]:
        return [_Branch(node.attrs[name], node, self._sequence) for name in ("then_branch", "else_branch")]

    def _all_last(self, branch: _Branch) -> bool:
        readers = [node for node in branch.graph.nodes if any(value in branch.inner for value in node.inputs)]
        only_elements = all(is_plain(node, "SequenceAt") and self._is_last(node, branch) for node in readers)
        return only_elements and not any(value in branch.inner for value in branch.graph.outputs)

    def _is_last(self, node: Node, branch: _Branch | None) -> bool:
        position = node.inputs[1]
        if self._context.facts.of(position).ints == (-1,):
            return True
        if branch is None:
            return False  # an index of the loop itself is never below 0
        producers = branch.graph.producers()
        source = _followed(position, producers)
        less = None if source is None else producers.get(source)
        if less is None or not is_plain(less, "Sub") or self._context.facts.of(less.inputs[1]).ints != (1,):
            return False
        counted = _followed(less.inputs[0], producers)
        return self._iteration is not None and branch.outer_of(counted) is self._iteration


class _Branch:
    def __init__(self, graph: Graph, node: Node, sequence: Value):
        self.graph = graph
        self._outer = dict(zip(graph.inputs, node.inputs[1:], strict=True))
        self.inner = [inner for inner, outer in self._outer.items() if outer is sequence]

    def outer_of(self, value: Value | None) -> Value | None:
        return None if value is None else self._outer.get(value)


def _followed(value: Value | None, producers: dict[Value, Node]) -> Value | None:
    while value in producers and not producers[value].domain and producers[value].op in _PASSES_ON:
        value = producers[value].inputs[0]
    return value
