"""Groups of nodes that can each become one node."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from webrnn.ir import Node, Value


class Grouping:
    """Nodes, by their place in an order in which they can run. `kinds` has those that may be in a group: nodes of one
    kind may share one. A group grows along the edges from node to node, as long as it does not have to run both before
    and after something else, and within bounds: on its nodes, and on what they read from outside, `operands`.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        kinds: Mapping[int, Hashable],
        operands: Mapping[int, set[Value]],
        most_nodes: int,
        most_operands: int,
    ):
        self.nodes, self.kinds, self.operands = nodes, kinds, operands
        self.most_nodes, self.most_operands = most_nodes, most_operands
        producer = {value: index for index, node in enumerate(nodes) for value in node.outputs if value is not None}
        self.reads = [sorted({producer[value] for value in node.inputs if value in producer}) for node in nodes]
        self.readers: list[list[int]] = [[] for _ in nodes]
        for index, read in enumerate(self.reads):
            for other in read:
                self.readers[other].append(index)
        self.group_of = list(range(len(nodes)))
        self.members = {index: [index] for index in range(len(nodes))}

    def groups(self) -> list[list[int]]:
        """The groups of two nodes or more, each in order."""
        grown = True
        while grown:
            grown = False
            for index in self.kinds:
                for other in self.reads[index]:
                    grown |= self._join(other, index)
        return sorted(sorted(members) for members in self.members.values() if len(members) > 1)

    def _join(self, before: int, after: int) -> bool:
        """Put two nodes, of which one reads the other, into one group, if that is possible and news."""
        first, second = self.group_of[before], self.group_of[after]
        if first == second or before not in self.kinds or self.kinds[before] != self.kinds[after]:
            return False
        joined = [*self.members[first], *self.members[second]]
        if len(joined) > self.most_nodes or self._count_operands(joined) > self.most_operands:
            return False
        if self._has_way_back({first, second}, joined):
            return False
        self.members[first] = joined
        for index in self.members.pop(second):
            self.group_of[index] = first
        return True

    def _count_operands(self, members: Sequence[int]) -> int:
        made = {value for index in members for value in self.nodes[index].outputs}
        return len({value for index in members for value in self.operands[index]} - made)

    def _has_way_back(self, ours: set[int], joined: Sequence[int]) -> bool:
        """Whether a way from these nodes through another group leads back to them."""
        last = max(joined)
        pending = [reader for index in joined for reader in self.readers[index] if self.group_of[reader] not in ours]
        seen: set[int] = set()
        while pending:
            group = self.group_of[pending.pop()]
            if group in ours:
                return True
            if group in seen or min(self.members[group]) > last:
                continue
            seen.add(group)
            pending.extend(reader for index in self.members[group] for reader in self.readers[index])
        return False
