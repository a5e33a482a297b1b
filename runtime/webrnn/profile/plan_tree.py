"""What was counted in a plan, as a tree of entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from webrnn.plan.decode import Decoded, decode
from webrnn.plan.file import PlanFile
from webrnn.plan.text import instruction_texts

from .clock import Clock
from .costs import Costs
from .counters import LAP_KINDS, Counters
from .entry import Entry


class PlanTree:
    """The instructions of a plan whose sizes are bound, to be filled with what was counted."""

    def __init__(self, file: PlanFile, symbols: Sequence[int], sizes: Sequence[int]):
        tables = decode(file.data)
        self.code = tables.code
        self._labels = dict(file.nodes)
        self._costs = Costs(file.data, tables, sizes)
        self._texts = instruction_texts(file.data, dict(zip(file.symbols, symbols, strict=True)))

    def entries(self, counters: Counters, clock: Clock, runs: int) -> list[Entry]:
        """Of one run: the readings of the clock are taken off, each where it was."""
        return _Filled(self, counters, clock, runs).block(self.code)

    def label(self, instruction: Decoded) -> str:
        return self._labels.get(instruction.at, "")

    def text(self, instruction: Decoded) -> str:
        return self._texts.get(instruction.at, instruction.name)

    def costs(self, instruction: Decoded) -> Sequence[tuple[int, int]]:
        return [(cost.flops, cost.bytes) for cost in self._costs.of(instruction)]


class _Filled:
    def __init__(self, tree: PlanTree, counters: Counters, clock: Clock, runs: int):
        self.tree, self.counters, self.clock, self.runs = tree, counters, clock, runs

    def block(self, block: list[Decoded]) -> list[Entry]:
        """Loops and branches, and nodes with their instructions; a node stands where its first instruction does."""
        found: list[Entry] = []
        nodes: dict[str, Entry] = {}
        for instruction in block:
            label = self.tree.label(instruction)
            entry = self.control(instruction) if instruction.blocks else self.instruction(instruction)
            if instruction.blocks:
                found.append(entry)
                continue
            if label not in nodes:
                nodes[label] = Entry("node", label or instruction.name, entry.category, label=label)
                found.append(nodes[label])
            nodes[label].children.append(entry)
        for node in nodes.values():
            node.calls = max(child.calls for child in node.children)
            node.category = max(node.children, key=lambda child: child.total).category
        return found

    def control(self, instruction: Decoded) -> Entry:
        """A loop or a branch: its own time is that of all its laps."""
        label = self.tree.label(instruction)
        name = {"branch": "if", "beside": "side by side"}.get(instruction.name, "loop")
        found = Entry(instruction.name, f"{name} {label}".strip(), "control", self.tree.text(instruction), label)
        found.calls = self.counters.count(instruction.at) / self.runs
        found.seconds = sum(self._seconds(instruction, kind) for kind in range(LAP_KINDS))
        if name == "loop":
            found.steps = self.counters.count(instruction.at, 1) / self.runs
        found.children = [entry for block in instruction.blocks for entry in self.block(block)]
        return found

    def instruction(self, instruction: Decoded) -> Entry:
        row = instruction.row
        costs = self.tree.costs(instruction)
        label, text = self.tree.label(instruction), self.tree.text(instruction)
        entry = Entry("instruction", _name(instruction), row.category, text, label)
        found = self._lap(instruction, 0, entry, costs[0])
        for index, (name, category) in enumerate(row.parts, 1):
            part = Entry("part", name, category, f"inside {instruction.name}", label)
            found.children.append(self._lap(instruction, index, part, costs[index]))
        return found

    def _lap(self, instruction: Decoded, kind: int, entry: Entry, cost: tuple[int, int]) -> Entry:
        entry.calls = self.counters.count(instruction.at, kind) / self.runs
        entry.seconds = self._seconds(instruction, kind)
        entry.flops, entry.bytes = entry.calls * cost[0], entry.calls * cost[1]
        return entry

    def _seconds(self, instruction: Decoded, kind: int) -> float:
        ticks, laps = self.counters.ticks(instruction.at, kind), self.counters.count(instruction.at, kind)
        return max(0.0, ticks - laps * self.clock.ticks_per_lap) * self.clock.seconds_per_tick / self.runs


def _name(instruction: Decoded) -> str:
    """What it is, and for an expression what it contains."""
    if instruction.expression is None:
        return instruction.name
    counts = Counter(operation.row.name for operation in instruction.expression.operations)
    contents = [name if count == 1 else f"{count} {name}" for name, count in counts.items()]
    return f"{', '.join(contents) or 'moves'} (fused)" if len(contents) > 1 else (contents or ["expression"])[0]
