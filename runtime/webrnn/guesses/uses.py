"""What the inputs of a graph are used for, as far as that says which numbers they may be.

An input is followed through everything that hands its numbers on, into branches and loops, to the nodes that read them
as something: an index, a length, one of some known numbers, a shape.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from webrnn.ir import Dim, DType, Graph, Node, Scan, Value, is_scan
from webrnn.ops.sets import REDUCTIONS
from webrnn.shapes.facts import Facts
from webrnn.shapes.infer import infer, trip_count

from .operands import OPERANDS

INDEX, EQUAL, LENGTH, CONDITION, LOOP, MASK, OPERAND = (
    "index", "equal", "length", "condition", "loop", "mask", "operand",
)  # fmt: skip


@dataclass(frozen=True)
class Use:
    """One way in which an input is read."""

    kind: str
    node: str
    """The label of the node that reads it."""
    number: Dim | None = None
    """Of an index how many rows there are, of `equal` what it is compared with."""
    operand: str = ""
    """Which numbers a node can take there: a value of `OPERANDS`."""
    count: int | None = None
    """Of an operand that says how: the rank, or the parts, of what it is about."""
    sizes: tuple[Dim | None, ...] = ()
    """Of such an operand: the shape of what it is about."""


@dataclass(frozen=True)
class _Mark:
    """That a value holds the numbers of an input, larger by `shift`; not exactly if they were calculated with."""

    source: str
    shift: int = 0
    is_exact: bool = True


_HANDS_ON = {
    "Identity": 1, "Cast": 1, "CastLike": 1, "Reshape": 1, "Flatten": 1, "Squeeze": 1, "Unsqueeze": 1, "Transpose": 1,
    "Expand": 1, "Tile": 1, "Slice": 1, "Split": 1, "Gather": 1, "GatherElements": 1, "GatherND": 1, "Pad": 1,
    "ReduceMax": 1, "ReduceMin": 1, "TopK": 1, "ReverseSequence": 1, "Round": 1, "Floor": 1, "Ceil": 1, "Concat": 99,
    "Max": 99, "Min": 99, "ScatterElements": 3, "ScatterND": 3, "SequenceConstruct": 99, "ConcatFromSequence": 1,
    "SplitToSequence": 1, "SequenceAt": 1, "OptionalGetElement": 1, "Optional": 1,
}  # fmt: skip
"""Ops whose result holds numbers of their first operands, and of how many."""

_ROWS = {"Gather": 0, "GatherElements": 0, "ScatterElements": 0, "Scatter": 0, "TensorScatter": 0}
"""Ops with indices as second operand, into the axis that an attribute names; here its default."""
_COMPARES = frozenset(("Less", "LessOrEqual", "Greater", "GreaterOrEqual"))
_MOST_USES = 64


def uses_of(graph: Graph) -> tuple[dict[str, list[Use]], frozenset[str]]:
    """By input, in the order of the nodes; and the names of sizes that loops have as many steps as."""
    facts = infer(graph)
    walk = _Walk(facts)
    walk.graph(graph, {value: [_Mark(value.name)] for value in graph.inputs})
    loops = (Scan.of(node) for inner in graph.walk() for node in inner.nodes if is_scan(node))
    return walk.found, frozenset(str(count) for scan in loops if (count := trip_count(scan, facts)) is not None)


class _Walk:
    def __init__(self, facts: Facts):
        self.facts = facts
        self.found: dict[str, list[Use]] = defaultdict(list)

    def graph(self, graph: Graph, marks: dict[Value, list[_Mark]]) -> None:
        """Follow the marks of a graph's inputs to its outputs; `marks` grows."""
        for node in graph.nodes:
            if not any(value in marks for value in node.inputs if value is not None):
                continue
            if is_scan(node):
                self._scan(Scan.of(node), marks)
            elif node.op == "If" and not node.domain:
                self._if(node, marks)
            else:
                self._node(node, marks)

    def _inside(self, graph: Graph, pairs: Iterable[tuple[Value, Value]], marks: Mapping[Value, list[_Mark]]) -> dict:
        inner = {inside: marks[outside] for outside, inside in pairs if outside in marks}
        if inner:
            self.graph(graph, inner)
        return inner

    def _if(self, node: Node, marks: dict[Value, list[_Mark]]) -> None:
        condition = node.inputs[0]
        if condition is not None:
            self._use(marks.get(condition, ()), CONDITION, node)
        for name in ("then_branch", "else_branch"):
            branch = node.attrs[name]
            outside = [value for value in node.inputs[1:] if value is not None]
            inner = self._inside(branch, zip(outside, branch.inputs, strict=False), marks)
            _hand_on(zip(branch.outputs, node.outputs, strict=False), inner, marks)

    def _scan(self, scan: Scan, marks: dict[Value, list[_Mark]]) -> None:
        for value in (scan.n_steps, scan.cond):
            if value is not None:
                self._record(marks.get(value, ()), lambda _: Use(LOOP, scan.name or "a loop"))
        pairs = [(item.outer, item.inner) for item in scan.invariants]
        pairs += [(item.whole, item.element) for item in scan.sequences]
        pairs += [(state.init, inside) for state in scan.states for inside in state.body_in]
        inner = self._inside(scan.body, pairs, marks)
        out = [(state.body_out, state.final) for state in scan.states]
        out += [(trace.element, trace.whole) for trace in scan.traces]
        _hand_on(out, inner, marks)

    def _node(self, node: Node, marks: dict[Value, list[_Mark]]) -> None:
        for place, value in enumerate(node.inputs):
            held = marks.get(value) if value is not None else None
            if not held:
                continue
            self._read(node, place, held)
            handed = self._handed_on(node, place, held)
            for output in node.outputs[:1] if node.op == "TopK" else node.outputs:
                if output is not None and handed:
                    marks[output] = _merged(marks.get(output, []), handed)

    def _read(self, node: Node, place: int, held: Sequence[_Mark]) -> None:
        """What a node makes of an operand."""
        op = node.op if not node.domain else f"{node.domain}.{node.op}"
        other = next((value for at, value in enumerate(node.inputs) if at != place and value is not None), None)
        if (rows := self._rows(node, place)) is not None:
            self._record(held, lambda mark: Use(INDEX, node.label, _shifted(rows, mark)))
        elif op == "Equal":
            constants = self.facts.of(other).ints or self._whole(other)
            for number in constants or ():
                self._record(held, lambda mark, n=number: Use(EQUAL, node.label, n - mark.shift), exactly=True)
        elif (op in _COMPARES and self.facts.of(other).ints is None and self._whole(other) is None) or (
            op == "ReverseSequence" and place == 1
        ):
            self._use(held, LENGTH, node)
        elif (op in ("Where", "And", "Or", "Not") and place == 0) or (
            op == "Cast" and node.attrs.get("to") in (DType.FLOAT, DType.FLOAT16, DType.DOUBLE, DType.BOOL)
        ):
            self._use(held, MASK, node)
        else:
            name = OPERANDS.get((op, place)) or ("axes" if op in REDUCTIONS and place == 1 else None)
            if name is not None:
                about = self.facts.shape(node.inputs[0]) if node.inputs[0] is not None and place else None
                count = None if about is None else len(about)
                parts = len(node.outputs) if op == "Split" else count
                axis = node.attrs.get("axis", 0)
                sizes = about or ()
                if name == "parts" and about and -len(about) <= axis < len(about):
                    sizes = (about[axis],)
                self._record(held, lambda _: Use(OPERAND, node.label, None, name, parts, sizes), exactly=True)

    def _rows(self, node: Node, place: int) -> Dim | None:
        """How many rows a node chooses from by this operand; 1 if that is not known, None if it does not choose."""
        if node.domain or not node.inputs or node.inputs[0] is None:
            return None
        shape = self.facts.shape(node.inputs[0])
        if node.op in _ROWS and place == 1:
            axis = node.attrs.get("axis", _ROWS[node.op])
            return 1 if not shape or not -len(shape) <= axis < len(shape) else _or_one(shape[axis])
        if node.op in ("GatherND", "ScatterND") and place == 1:
            sizes = [size for size in (shape or ())[node.attrs.get("batch_dims", 0) :] if isinstance(size, int)]
            return min(sizes, default=1)
        return None

    def _whole(self, value: Value | None) -> tuple[int, ...] | None:
        """The elements of a small float constant that are whole numbers."""
        floats = None if value is None else self.facts.of(value).floats
        return None if floats is None else tuple(int(number) for number in floats if number == int(number))

    def _handed_on(self, node: Node, place: int, held: Sequence[_Mark]) -> list[_Mark]:
        if node.domain:
            return []
        if node.op in _HANDS_ON and place < _HANDS_ON[node.op] and not (node.op.startswith("Scatter") and place == 1):
            return list(held)
        if node.op == "Where" and place > 0:
            return list(held)
        if (node.op in ("Add", "Sub") and place == 0) or node.op == "Add":
            other = self.facts.of(node.inputs[1 - place]).ints
            if other is not None and len(set(other)) == 1:
                shift = other[0] if node.op == "Add" else -other[0]
                return [_Mark(mark.source, mark.shift + shift, mark.is_exact) for mark in held]
        if node.op in ("Add", "Sub", "Mul", "Div", "Mod", "CumSum", "ReduceSum"):
            return [_Mark(mark.source, 0, False) for mark in held]
        return []

    def _use(self, held: Iterable[_Mark], kind: str, node: Node) -> None:
        self._record(held, lambda _: Use(kind, node.label))

    def _record(self, held: Iterable[_Mark], make, exactly: bool = False) -> None:  # type: ignore[no-untyped-def]
        for mark in held:
            use = make(mark)
            known = self.found[mark.source]
            if (mark.is_exact or not exactly) and use not in known and len(known) < _MOST_USES:
                known.append(use)


def _hand_on(
    pairs: Iterable[tuple[Value, Value | None]], inner: Mapping[Value, list[_Mark]], marks: dict[Value, list[_Mark]]
) -> None:
    for inside, outside in pairs:
        if outside is not None and inside in inner:
            marks[outside] = _merged(marks.get(outside, []), inner[inside])


def _merged(old: Sequence[_Mark], new: Sequence[_Mark]) -> list[_Mark]:
    return list(dict.fromkeys((*old, *new)))


def _shifted(rows: Dim, mark: _Mark) -> Dim:
    """How many numbers the input itself may be; of one that was calculated with only 0 is safe."""
    if not mark.is_exact:
        return 1
    return rows - mark.shift if mark.shift > 0 else rows


def _or_one(size: Dim | None) -> Dim:
    return 1 if size is None else size
