"""The contract of a pass.

A pass has the name of its module, changes a graph in place when it is run, and returns how many rewrites it made and
where it declined. The graph stays well formed (`ir.check`) and gives the same results for all inputs for which it gave
any; a pass that changes the order of arithmetic says so with `reorders_arithmetic`, all others are bit-identical. An
input on which the graph raised for its shapes may raise elsewhere, or no longer.

A new pass derives from `Pass` and implements `rewrite`, which is called for the graph and for each graph inside it, or
derives from `ScanPass` and implements `rewrite_scan`. Before each change it asks `result.fires(...)`, and where that is
false it leaves the graph as it is: that is how a wrong rewrite is found by bisection.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from webrnn.ir import Graph, Node, Scan, is_scan
from webrnn.ir.fused import is_expression
from webrnn.shapes.facts import Facts

Semantics = Literal["run", "stream"]
"""Whether states are given and returned with each call, or live on between calls."""


@dataclass(slots=True)
class Context:
    """What is the same for all passes of one optimization."""

    root: Graph
    """The outermost graph: the names of its inputs and outputs are the caller's."""
    semantics: Semantics = "run"
    check: bool = False
    """Whether the graph is checked after each pass."""
    disabled: frozenset[str] = frozenset()
    facts: Facts = field(default_factory=Facts)
    rewrites_left: int | None = None
    """How many more rewrites may be made; None is any number."""
    digests: dict[int, tuple[np.ndarray, bytes]] = field(default_factory=dict)
    """Hashes of large constants, by the id of the array, which is held so that no other gets that id."""


@dataclass(frozen=True, slots=True)
class Decline:
    """A place where a pass could have acted and did not."""

    where: str
    reason: str


@dataclass(slots=True)
class PassResult:
    """What one run of a pass did."""

    context: Context
    rewrites: int = 0
    fired: list[str] = field(default_factory=list)
    """What each rewrite did, in order."""
    declines: list[Decline] = field(default_factory=list)
    learned: bool = False
    """Whether there are facts that were not there before, which may let other passes fire."""

    def fires(self, what: str) -> bool:
        """Ask for one rewrite and record it; False once the limit of the pipeline is reached."""
        left = self.context.rewrites_left
        if left is not None:
            if left <= 0:
                return False
            self.context.rewrites_left = left - 1
        self.rewrites += 1
        self.fired.append(what)
        return True

    def declines_at(self, node: Node, reason: str) -> None:
        decline = Decline(node.label, reason)
        if decline not in self.declines:
            self.declines.append(decline)


class Pass(ABC):
    """One kind of rewrite, applied to a graph and to the graphs inside it but for fused ones, outer ones first."""

    name: ClassVar[str] = ""
    """That of its module."""
    reorders_arithmetic: ClassVar[bool] = False
    """Whether results may differ in their last bits."""

    def __init_subclass__(cls) -> None:
        if "name" not in vars(cls):
            cls.name = cls.__module__.rpartition(".")[2]

    def run(self, graph: Graph, context: Context) -> PassResult:
        result = PassResult(context)
        for inner in open_graphs(graph):
            self.rewrite(inner, context, result)
        return result

    @abstractmethod
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        """Change this graph; not the graphs inside it, which get a call of their own."""


def open_graphs(graph: Graph) -> Iterator[Graph]:
    """This graph and the graphs inside it, outer ones first; the body of an Expression is closed to passes."""
    yield graph
    for node in list(graph.nodes):
        if node.attrs and not is_expression(node):
            for item in node.attrs.values():
                if isinstance(item, Graph):
                    yield from open_graphs(item)


class ScanPass(Pass):
    """A pass that looks at one Scan at a time."""

    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        for node in list(graph.nodes):
            if is_scan(node):
                replacement = self.rewrite_scan(graph, node, Scan.of(node), context, result)
                if replacement is not None:
                    _name_after_their_loop(replacement, node)
                    position = graph.nodes.index(node)
                    graph.nodes[position : position + 1] = replacement

    @abstractmethod
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        """The nodes that take the place of `node`, or None where nothing changes."""


def _name_after_their_loop(nodes: Sequence[Node], loop: Node) -> None:
    """Let an error in what left a loop name the loop as an error in the loop does."""
    for node in nodes:
        if not is_scan(node) and node.name != loop.name:
            node.name = f"{loop.label}/{node.label}"
