"""An estimate of the most memory that the results of a graph's nodes take at one time.

A result lives from the node that makes it to the last one that reads it. Reshapes make no copy, an element-wise op
writes over an operand of the same size that nobody reads later, and so does a state that is read for the last time
where its next value is made. A loop holds its traces as a whole, one of the last steps only as long as that, and the
results of one step of its body. Inputs are the caller's and constants are counted elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from webrnn.ir import WEBRNN, Dim, Graph, Node, Scan, SymbolicDim, Trace, Value, is_plain, is_scan
from webrnn.ir.fused import is_cell, is_expression
from webrnn.ops.sets import ELEMENTWISE, RESHAPES
from webrnn.shapes.facts import Facts, size_of

from .work import supposed


@dataclass(frozen=True, slots=True)
class Peak:
    """The most bytes at one time, at which node, and how many values are missing because their size is not known."""

    bytes: Dim = 0
    where: str = ""
    unknown: int = 0


def peak_memory(graph: Graph, facts: Facts, sizes: Mapping[str, int] | None = None) -> Peak:
    """The peak of one run. `sizes` are numbers for named sizes; where one is missing the result is symbolic, for the
    node at which the peak is if such sizes are of a middling number.
    """
    return _Lifetimes(graph, facts, sizes or {}).peak()


class _Lifetimes:
    def __init__(
        self, graph: Graph, facts: Facts, sizes: Mapping[str, int], owned_inputs: frozenset[Value] = frozenset()
    ):
        self._graph, self._facts, self._sizes = graph, facts, sizes
        self._buffer_of: dict[Value, Value] = {}
        """The value that first had the memory of each value; constants and other people's memory have none."""
        self._last_use: dict[Value, int] = {}
        self._live: dict[Value, Dim] = {}
        self._unknown: set[Value] = set()
        self._find_uses(owned_inputs)

    def _find_uses(self, owned_inputs: frozenset[Value]) -> None:
        for value in owned_inputs:
            self._buffer_of[value] = value
            self._live[value] = self._bytes(value)
        for index, node in enumerate(self._graph.nodes):
            for used in node.inputs:
                if used is not None and used in self._buffer_of:
                    self._last_use[self._buffer_of[used]] = index
            for made in node.outputs:
                source = node.inputs[0] if _is_view(node) else made
                if made is None or source is None:
                    continue
                if source is made or source in self._buffer_of:
                    self._buffer_of[made] = self._buffer_of.get(source, made)
        for value in self._graph.outputs:
            if value in self._buffer_of:
                self._last_use[self._buffer_of[value]] = len(self._graph.nodes)

    def peak(self) -> Peak:
        best = Peak(self._total(), "")
        for index, node in enumerate(self._graph.nodes):
            inside = self._inside(node)
            self._make_outputs(node, index, when_done=inside is not None)
            now = Peak(self._total() + (inside.bytes if inside is not None else 0), node.label)
            if inside is not None and inside.where:
                now = Peak(now.bytes, f"{node.label}/{inside.where}")
            best = max(best, now, key=lambda peak: supposed(peak.bytes))
            if inside is not None:
                self._make_outputs(node, index, when_done=False)
                best = max(best, Peak(self._total(), node.label), key=lambda peak: supposed(peak.bytes))
            for value in [value for value in self._live if self._last_use.get(value, -1) <= index]:
                del self._live[value]
        return Peak(best.bytes, best.where, len(self._unknown))

    def _make_outputs(self, node: Node, index: int, when_done: bool) -> None:
        """`when_done` leaves out what a loop or a branch holds itself until it is done: all but traces."""
        traces = {trace.whole: trace for trace in Scan.of(node).traces} if is_scan(node) else {}
        for value in traces if when_done else node.outputs:
            if value is not None and self._buffer_of.get(value) is value and value not in self._live:
                size = self._trace_bytes(traces[value]) if value in traces else self._bytes(value)
                reused = self._reusable(node, index, size)
                if reused is not None:
                    del self._live[reused]
                self._live[value] = size

    def _reusable(self, node: Node, index: int, size: Dim) -> Value | None:
        """An operand that dies here and whose memory the result can take."""
        if not (is_cell(node) or is_expression(node) or (not node.domain and node.op in ELEMENTWISE)):
            return None
        for value in node.inputs:
            buffer = None if value is None else self._buffer_of.get(value)
            if buffer in self._live and self._last_use[buffer] == index and self._live[buffer] == size:
                return buffer
        return None

    def _inside(self, node: Node) -> Peak | None:
        """What the graphs inside a node need while it runs."""
        if is_scan(node):
            scan = Scan.of(node)
            states = frozenset(value for state in scan.states for value in state.body_in)
            return self._nested(scan.body, states)
        if is_plain(node, "If"):
            peaks = [self._nested(node.attrs[name], frozenset()) for name in ("then_branch", "else_branch")]
            return max(peaks, key=lambda peak: supposed(peak.bytes))
        return None

    def _nested(self, graph: Graph, owned_inputs: frozenset[Value]) -> Peak:
        inner = _Lifetimes(graph, self._facts, self._sizes, owned_inputs)
        peak = inner.peak()
        self._unknown |= inner._unknown
        return peak

    def _total(self) -> Dim:
        return sum(self._live.values())

    def _trace_bytes(self, trace: Trace) -> Dim:
        """A trimmed trace never has more steps than it keeps, however many there are."""
        assert trace.whole is not None
        if trace.spec.keep is not None and size_of(self._facts.shape(trace.whole)) is None:
            return self._bytes(trace.element) * trace.spec.keep
        return self._bytes(trace.whole)

    def _bytes(self, value: Value) -> Dim:
        fact = self._facts.of(value)
        size = size_of(fact.shape)
        if size is None or fact.dtype is None:
            self._unknown.add(value)
            return 0
        if isinstance(size, SymbolicDim):
            size = size.substitute(self._sizes)
        return size * fact.dtype.array_type.itemsize


def _is_view(node: Node) -> bool:
    return node.op in RESHAPES if not node.domain else node.domain == WEBRNN and node.op == "ExpectShape"
