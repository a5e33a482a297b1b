"""A profile as a tree: plan, loops, nodes, instructions, parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

CATEGORIES = ("matrix", "cell", "element-wise", "reduction", "transform", "copy", "control", "fallback")
"""Of instructions and their parts (webrnn.plan.instructions); fallback: nodes that have none and run in numpy."""


@dataclass(slots=True)
class Entry:
    """Times, FLOPs and bytes are those of one run, and its own: what its children have comes on top."""

    kind: str
    """plan, loop, branch, node, instruction, part or fallback"""
    name: str
    category: str = "control"
    detail: str = ""
    label: str = ""
    """Of the node that it is for."""
    calls: float = 0.0
    seconds: float = 0.0
    flops: float = 0.0
    bytes: float = 0.0
    steps: float = 0.0
    """Of a loop, in all its calls."""
    children: list[Entry] = field(default_factory=list)

    @property
    def total(self) -> float:
        return self.seconds + sum(child.total for child in self.children)

    def walk(self) -> Iterator[Entry]:
        yield self
        for child in self.children:
            yield from child.walk()

    def as_data(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "kind": self.kind,
            "name": self.name,
            "category": self.category,
            "calls": self.calls,
            "us": self.total * 1e6,
            "self_us": self.seconds * 1e6,
            "flops": self.flops,
            "bytes": self.bytes,
        }
        if self.detail:
            found["detail"] = self.detail
        if self.label:
            found["node"] = self.label
        if self.kind == "loop":
            found["steps"] = self.steps
        if self.children:
            found["children"] = [child.as_data() for child in self.children]
        return found


def has_parts(entry: Entry) -> bool:
    """Whether it is counted by what it contains."""
    return any(child.kind == "part" for child in entry.children)


@dataclass(slots=True)
class Sums:
    """Several entries together."""

    calls: float = 0.0
    seconds: float = 0.0
    flops: float = 0.0
    bytes: float = 0.0
    contents: dict[str, None] = field(default_factory=dict)
    """What it is made of, in order of appearance."""

    def add(self, entry: Entry) -> None:
        self.seconds += entry.seconds
        self.flops += entry.flops
        self.bytes += entry.bytes

    @property
    def gflops(self) -> float:
        return self.flops / self.seconds / 1e9 if self.seconds > 0 else 0.0

    @property
    def gbytes(self) -> float:
        return self.bytes / self.seconds / 1e9 if self.seconds > 0 else 0.0
