"""What passes share that let a stream keep what a model reads of its frames: loops of the outermost graph, the frames
that they read by their number, statistics over an axis of time.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from webrnn.ir import Dim, DType, Graph, Node, Scan, Value, is_plain
from webrnn.shapes.facts import Fact
from webrnn.shapes.infer import length_of, trip_count

from .base import Context, Pass, PassResult, ScanPass
from .rewriting import replace_in_body
from .sequence_forms import Rearranging


class LoopOverFrames(ScanPass):
    """A pass that looks at the loops of the outermost graph."""

    counts: ClassVar[bool] = True
    """Whether it looks only at loops that know the number of their step."""

    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        if graph is not context.root or (self.counts and scan.iteration is None):
            return None
        around, before = Rearranging(graph, context), result.rewrites
        self.rewrite_loop(graph, node, scan, around, result)
        return [*around.nodes, scan.to_node()] if result.rewrites > before else None

    @abstractmethod
    def rewrite_loop(self, graph: Graph, node: Node, scan: Scan, around: Rearranging, result: PassResult) -> None:
        """Change the loop; `around` takes the nodes that stand before it."""


class OverTime(Pass):
    """A pass for what runs over an axis of time, in the outermost graph."""

    def __init__(self, sizes: frozenset[Dim] = frozenset()):
        """`sizes` are the numbers of frames."""
        self._sizes = sizes

    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        if graph is not context.root:
            return
        for node in list(graph.nodes):
            if node in graph.nodes:
                self.rewrite_node(graph, node, context, result)

    @abstractmethod
    def rewrite_node(self, graph: Graph, node: Node, context: Context, result: PassResult) -> None:
        """Change what a node does over time."""


@dataclass(frozen=True)
class FrameRead:
    """A Gather in a loop that picks one element of a tensor with one for each step."""

    node: Node
    source: Value
    axis: int
    keeps_axis: bool

    @property
    def index(self) -> Value | None:
        return self.node.inputs[1]

    @staticmethod
    def of(scan: Scan, node: Node, context: Context) -> FrameRead | None:
        if not is_plain(node, "Gather"):
            return None
        source = next((item.outer for item in scan.invariants if item.inner is node.inputs[0]), None)
        shape, places = context.facts.shape(source), context.facts.shape(node.inputs[1])
        if source is None or not shape or places not in ((), (1,)):
            return None
        axis, steps = node.attrs.get("axis", 0) % len(shape), trip_count(scan, context.facts)
        if steps is None or length_of(source, axis, context.facts) != steps:
            return None
        return FrameRead(node, source, axis, places == (1,))

    def replace(self, scan: Scan, frame: Value, inside: Rearranging) -> None:
        """Let the loop read a frame instead; `inside` has the nodes that make it."""
        if self.keeps_axis:
            frame = inside.op("Unsqueeze", frame, inside.new.ints(self.axis))
        (made,) = self.node.outputs
        assert made is not None
        scan.body.nodes.remove(self.node)
        replace_in_body(scan, {made: frame})
        put_first(scan, inside)


def put_first(scan: Scan, inside: Rearranging) -> None:
    """Let new nodes stand at the beginning of a loop's body."""
    scan.body.nodes[:0] = inside.nodes
    scan.to_node()  # the next names are new among these


def element_of(scan: Scan, whole: Value, axis: int, inside: Rearranging) -> Value:
    """The element of a step of a tensor that is a sequence of the loop, or becomes one."""
    shape = inside.facts.shape(whole)
    assert shape is not None
    for item in scan.sequences:
        if item.whole is whole and item.spec.axis % len(shape) == axis and not item.spec.reverse:
            return item.element
    element = inside.new.value(f"{whole.name}_frame")
    element.dtype, element.shape = inside.facts.dtype(whole), (*shape[:axis], *shape[axis + 1 :])
    inside.facts.set(element, Fact(element.dtype, element.shape))
    scan.add_sequence(whole, element, axis)
    return element


def number_of(scan: Scan, inside: Rearranging) -> Value:
    """The number of the step."""
    if scan.iteration is None:
        scan.iteration = Value(inside.new.value("iteration").name, DType.INT64, ())
        inside.facts.set(scan.iteration, Fact(DType.INT64, ()))
    return scan.iteration
