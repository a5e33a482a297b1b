"""The one loop of the IR.

    Scan(n_steps?, cond?, *state inits, *sequences, *invariants) -> *state finals, *traces
    body(iteration?, *states, *sequence elements, *invariants)   -> cond?, *next states, *trace elements

Each step the body takes the states, one element of every sequence and all invariants. It stops after `n_steps`, at the
end of the sequences, or, with a condition, before a step whose condition is false; at least one of the three is there.
ONNX's Loop is a Scan with a condition, its RNN, GRU and LSTM are Scans over their time axis.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from .builder import GraphBuilder
from .graph import WEBRNN, Graph, Node, Value


@dataclass(frozen=True, slots=True)
class SequenceSpec:
    """An input that is taken apart along `axis`. In reverse, step t of n takes element n - 1 - t."""

    axis: int = 0
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class StateSpec:
    """A value that a step hands to later steps.

    With the one tap -1 the init is the value before the first step and the final is the value after the last. With
    other taps the body takes one value for each, the next state is one value, and init and final are the last
    `depth` values stacked on a new first axis, oldest first.
    """

    taps: tuple[int, ...] = (-1,)

    @property
    def depth(self) -> int:
        return -min(self.taps)

    @property
    def is_plain(self) -> bool:
        return self.taps == (-1,)


@dataclass(frozen=True, slots=True)
class TraceSpec:
    """An output with one element for each step, stacked on a new `axis`; in reverse, the last step comes first.

    `keep` says that only the elements of the last so many steps are there: the trace is trimmed. `length` says how many
    elements it has whatever the number of steps, which must not be larger: behind those of the steps there are zeros.
    """

    axis: int = 0
    reverse: bool = False
    keep: int | None = None
    length: int | None = None


@dataclass(frozen=True, slots=True)
class ScanSpec:
    """What a Scan does with its operands; the `spec` attribute of its node."""

    states: tuple[StateSpec, ...] = ()
    sequences: tuple[SequenceSpec, ...] = ()
    traces: tuple[TraceSpec, ...] = ()
    invariants: int = 0
    counts: bool = False
    """Whether the body's first input is the number of the iteration, an int64 scalar."""
    has_condition: bool = False
    """Whether the body's first output says if there is a next step; the node's `cond` input guards the first."""
    frugal: bool = False
    """Whether a step computes what it needs, though it could be done for all steps at once: that takes less memory."""

    @property
    def is_trimmed(self) -> bool:
        return any(trace.keep is not None for trace in self.traces)


@dataclass(eq=False, slots=True)
class State:
    spec: StateSpec
    init: Value
    body_in: list[Value]
    """One for each tap."""
    body_out: Value
    final: Value | None


@dataclass(eq=False, slots=True)
class SequenceInput:
    spec: SequenceSpec
    whole: Value
    element: Value


@dataclass(eq=False, slots=True)
class Trace:
    spec: TraceSpec
    element: Value
    whole: Value | None


@dataclass(eq=False, slots=True)
class Invariant:
    outer: Value
    inner: Value


@dataclass(eq=False, slots=True)
class Scan:
    """A Scan taken apart: one object for each operand that says what belongs together.

    `Scan.of(node)` reads a node. Change the lists, then `scan.to_node()` builds the new node; the body's nodes and
    constants are those of `scan.body`, its inputs and outputs follow from the lists.
    """

    body: Graph
    n_steps: Value | None = None
    cond: Value | None = None
    iteration: Value | None = None
    body_cond: Value | None = None
    states: list[State] = field(default_factory=list)
    sequences: list[SequenceInput] = field(default_factory=list)
    invariants: list[Invariant] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    name: str = ""
    frugal: bool = False

    @staticmethod
    def of(node: Node) -> Scan:
        spec, body = node.attrs["spec"], node.attrs["body"]
        outer_in, outer_out = iter(node.inputs), iter(node.outputs)
        inner_in, inner_out = iter(body.inputs), iter(body.outputs)
        scan = Scan(body, name=node.name, frugal=spec.frugal)
        scan.n_steps, scan.cond = next(outer_in), next(outer_in)
        scan.iteration = next(inner_in) if spec.counts else None
        scan.body_cond = next(inner_out) if spec.has_condition else None
        for state in spec.states:
            taps = [next(inner_in) for _ in state.taps]
            scan.states.append(State(state, _present(next(outer_in)), taps, next(inner_out), next(outer_out)))
        for sequence in spec.sequences:
            scan.sequences.append(SequenceInput(sequence, _present(next(outer_in)), next(inner_in)))
        for _ in range(spec.invariants):
            scan.invariants.append(Invariant(_present(next(outer_in)), next(inner_in)))
        for trace in spec.traces:
            scan.traces.append(Trace(trace, next(inner_out), next(outer_out)))
        return scan

    @property
    def spec(self) -> ScanSpec:
        return ScanSpec(
            states=tuple(state.spec for state in self.states),
            sequences=tuple(sequence.spec for sequence in self.sequences),
            traces=tuple(trace.spec for trace in self.traces),
            invariants=len(self.invariants),
            counts=self.iteration is not None,
            has_condition=self.body_cond is not None,
            frugal=self.frugal,
        )

    @property
    def is_trimmed(self) -> bool:
        return self.spec.is_trimmed

    def to_node(self) -> Node:
        body = self.body
        body.inputs = [
            *([self.iteration] if self.iteration is not None else []),
            *(value for state in self.states for value in state.body_in),
            *(sequence.element for sequence in self.sequences),
            *(invariant.inner for invariant in self.invariants),
        ]
        body.outputs = [
            *([self.body_cond] if self.body_cond is not None else []),
            *(state.body_out for state in self.states),
            *(trace.element for trace in self.traces),
        ]
        inputs = [
            self.n_steps,
            self.cond,
            *(state.init for state in self.states),
            *(sequence.whole for sequence in self.sequences),
            *(invariant.outer for invariant in self.invariants),
        ]
        outputs = [*(state.final for state in self.states), *(trace.whole for trace in self.traces)]
        return Node("Scan", inputs, outputs, {"spec": self.spec, "body": body}, self.name, WEBRNN)

    def add_state(self, init: Value, before: Value, after: Value, final: Value | None) -> None:
        """A state with one tap: `before` and `after` are what the body takes and gives."""
        self.states.append(State(StateSpec(), init, [before], after, final))

    def add_sequence(self, whole: Value, element: Value, axis: int = 0, reverse: bool = False) -> None:
        self.sequences.append(SequenceInput(SequenceSpec(axis, reverse), whole, element))

    def add_trace(self, element: Value, whole: Value | None, axis: int = 0, reverse: bool = False) -> None:
        self.traces.append(Trace(TraceSpec(axis, reverse), element, whole))

    def add_captures(self, builder: GraphBuilder) -> None:
        """Hand in what the body, which `builder` has built, takes from outside."""
        self.invariants.extend(Invariant(outer, inner) for outer, inner in builder.captured_inputs())

    def trace_of(self, state: State) -> Iterable[Trace]:
        """The traces that hold the history of a state."""
        return (trace for trace in self.traces if trace.element is state.body_out)

    def trim(self, trace: Trace, keep: int) -> None:
        """Mark a trace as holding the last `keep` steps only."""
        trace.spec = replace(trace.spec, keep=keep)


def is_scan(node: Node) -> bool:
    return node.op == "Scan" and node.domain == WEBRNN


def _present(value: Value | None) -> Value:
    if value is None:
        raise ValueError("an operand of a Scan is missing")
    return value
