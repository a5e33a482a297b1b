"""Small Scans for tests: describe the operands, get a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from webrnn.ir import (
    DType,
    Graph,
    GraphBuilder,
    Invariant,
    Scan,
    SequenceInput,
    SequenceSpec,
    State,
    StateSpec,
    Symbol,
    Trace,
    TraceSpec,
    Value,
    is_scan,
)


class ScanBuilder:
    """A graph with one Scan. Each method adds an operand and returns the value that the body sees.

    >>> s = ScanBuilder()
    >>> x, h = s.sequence("x"), s.state("h")
    >>> h_next = s.body.op("Add", x, h)
    >>> graph = s.finish(states=[h_next], traces=[h_next])
    >>> [value.name for value in graph.outputs]
    ['h_final', 'trace0']
    """

    def __init__(self, size: int = 3):
        self.b = GraphBuilder("main")
        self.body = GraphBuilder("body", self.b)
        self.scan = Scan(self.body.graph, name="scan")
        self.size = size
        self._states: list[tuple[Value, Value, str]] = []

    def sequence(self, name: str, axis: int = 0, reverse: bool = False, whole: Value | None = None) -> Value:
        shape = [self.size]
        shape.insert(axis, Symbol("steps"))  # type: ignore[arg-type]
        outer = whole if whole is not None else self.b.input(name, DType.FLOAT, tuple(shape))
        element = self.body.value(name)
        self.scan.sequences.append(SequenceInput(SequenceSpec(axis, reverse), outer, element))
        return element

    def invariant(self, name: str, outer: Value | None = None, shape: Sequence[int] | None = None) -> Value:
        sizes = tuple(shape) if shape is not None else (self.size,)
        outer = outer if outer is not None else self.b.input(name, DType.FLOAT, sizes)
        inner = self.body.value(name)
        self.scan.invariants.append(Invariant(outer, inner))
        return inner

    def state(self, name: str) -> Value:
        init, inner = self.b.input(f"{name}_init", DType.FLOAT, (self.size,)), self.body.value(name)
        self._states.append((init, inner, name))
        return inner

    def finish(
        self,
        states: Sequence[Value] = (),
        traces: Sequence[Value | tuple[Value, TraceSpec]] = (),
        read: Callable[[str], bool] = lambda name: True,
    ) -> Graph:
        """`read` says which finals, by the name of their state, are outputs of the graph."""
        for (init, inner, name), after in zip(self._states, states, strict=True):
            final = self.b.value(f"{name}_final") if read(name) else None
            self.scan.states.append(State(StateSpec(), init, [inner], after, final))
        for index, item in enumerate(traces):
            element, spec = item if isinstance(item, tuple) else (item, TraceSpec())
            self.scan.traces.append(Trace(spec, element, self.b.value(f"trace{index}")))
        node = self.b.add(self.scan.to_node())
        self.b.graph.outputs = [value for value in node.outputs if value is not None]
        return self.b.graph


def scan_in(graph: Graph) -> Scan:
    """The one Scan of a graph."""
    (node,) = [node for node in graph.nodes if is_scan(node)]
    return Scan.of(node)
