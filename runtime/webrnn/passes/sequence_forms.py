"""What sequences are made of: tensors, slices of tensors, and all elements of other sequences.

Passes do not follow a sequence through a graph; they ask where its elements come from (`Forms.of`), and make of that
what they need: a tensor of all elements (`stacked`), or a sequence again on the other side of a loop or a branch
(`boxed`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np

from webrnn.ir import WEBRNN, DType, Graph, Node, Shape, Value, is_plain
from webrnn.ir.containers import SEQUENCE
from webrnn.ir.dims import quotient
from webrnn.shapes.facts import Facts
from webrnn.shapes.infer import infer_node

from .base import Context
from .rewriting import Additions, steps_from_front, steps_to_front


@dataclass(frozen=True)
class Item:
    """One element."""

    value: Value


@dataclass(frozen=True)
class Slices:
    """An element for each place along an axis of a tensor, without that axis or with one element of it."""

    whole: Value
    axis: int
    keeps_axis: bool = False


@dataclass(frozen=True)
class Elements:
    """All elements of a sequence of which nothing more is known."""

    sequence: Value


Segment: TypeAlias = Item | Slices | Elements
Form: TypeAlias = tuple[Segment, ...]


class Forms:
    """The forms of the sequences of one graph; of those in `assumed` it is taken for granted."""

    def __init__(self, graph: Graph, facts: Facts, assumed: Mapping[Value, Form] | None = None):
        self._producers, self._facts = graph.producers(), facts
        self._forms: dict[Value, Form] = dict(assumed or {})

    def of(self, value: Value | None) -> Form:
        """What a sequence is made of; if nothing else, of all elements of itself."""
        if value is None:
            return ()
        chain: list[Value] = []  # a chain of insertions may be longer than Python's stack is deep
        current: Value | None = value
        while current is not None and current not in self._forms:
            chain.append(current)
            node = self._producers.get(current)
            current = node.inputs[0] if node is not None and node.inputs and _takes_a_sequence(node) else None
        for each in reversed(chain):
            self._forms[each] = self._form(each)
        return self._forms[value]

    def _form(self, value: Value) -> Form:
        node = self._producers.get(value)
        found = None if node is None else self._made_by(node)
        return (Elements(value),) if found is None else found

    def _made_by(self, node: Node) -> Form | None:
        if node.domain == WEBRNN and node.op == "SequenceJoin":
            return tuple(segment for value in node.inputs for segment in self.of(value))
        if is_plain(node, "SequenceEmpty"):
            return ()
        if is_plain(node, "SequenceConstruct"):
            return tuple(Item(value) for value in node.inputs if value is not None)
        if is_plain(node, "Identity"):
            return self.of(node.inputs[0])
        if is_plain(node, "SplitToSequence"):
            return self._split(node)
        if is_plain(node, "SequenceInsert"):
            return self._inserted(node)
        return self._erased(node) if is_plain(node, "SequenceErase") else None

    def _split(self, node: Node) -> Form | None:
        whole = node.inputs[0]
        rank = self._facts.of(whole).rank
        parts = self._facts.of(node.inputs[1]) if len(node.inputs) > 1 and node.inputs[1] is not None else None
        if whole is None or not rank or (parts is not None and (parts.shape != () or parts.ints != (1,))):
            return None
        return (Slices(whole, node.attrs.get("axis", 0) % rank, bool(node.attrs.get("keepdims", 1))),)

    def _inserted(self, node: Node) -> Form | None:
        form, new = self.of(node.inputs[0]), node.inputs[1]
        place = self._place(node, 2, form, for_a_new_one=True)
        return None if place is None or new is None else (*form[:place], Item(new), *form[place:])

    def _erased(self, node: Node) -> Form | None:
        form = self.of(node.inputs[0])
        place = self._place(node, 1, form, for_a_new_one=False)
        return None if place is None else (*form[:place], *form[place + 1 :])

    def _place(self, node: Node, operand: int, form: Form, for_a_new_one: bool) -> int | None:
        """The segment at which an element is inserted or erased, if it is known."""
        if len(node.inputs) <= operand or node.inputs[operand] is None:
            position, given = -1, False
        else:
            known = self._facts.of(node.inputs[operand]).ints
            if known is None or len(known) != 1:
                return None
            position, given = known[0], True
        if for_a_new_one and not given:
            return len(form)
        found = item_at(form, position)
        if found is None and for_a_new_one and position == len(form) and all(isinstance(s, Item) for s in form):
            return len(form)
        return 0 if found is None and for_a_new_one and position == 0 else found


def _takes_a_sequence(node: Node) -> bool:
    return is_plain(node, "Identity", "SequenceInsert", "SequenceErase")


def item_at(form: Form, position: int) -> int | None:
    """The number of the segment that is the element at a position, if all before it, or behind it, are items.

    >>> a, b = Item(Value("a")), Item(Value("b"))
    >>> item_at((a, Elements(Value("s")), b), 0), item_at((a, Elements(Value("s")), b), -1), item_at((a, b), 2)
    (0, 2, None)
    """
    before = form[: position + 1] if position >= 0 else form[position:]
    wanted = position + 1 if position >= 0 else -position
    if len(before) != wanted or not all(isinstance(segment, Item) for segment in before):
        return None
    return position if position >= 0 else len(form) + position


def is_known(form: Form) -> bool:
    """Whether all elements are tensors or slices of tensors."""
    return not any(isinstance(segment, Elements) for segment in form)


def parts_of(form: Form) -> list[Value]:
    """The values that a form stands on."""
    return [_part(segment) for segment in form]


def _part(segment: Segment) -> Value:
    if isinstance(segment, Item):
        return segment.value
    return segment.whole if isinstance(segment, Slices) else segment.sequence


def standing_on(form: Form, values: list[Value]) -> Form:
    """A form like this one on other values."""
    return tuple(
        Item(value) if isinstance(segment, Item)
        else Slices(value, segment.axis, segment.keeps_axis) if isinstance(segment, Slices)
        else Elements(value)
        for segment, value in zip(form, values, strict=True)
    )  # fmt: skip


class Rearranging:
    """Adds nodes that rearrange the elements of sequences. What they make has facts at once."""

    def __init__(self, graph: Graph, context: Context):
        self.new, self.facts, self.context = Additions(graph, context), context.facts, context
        self.nodes: list[Node] = []

    def op(self, op: str, *inputs: Value, output: Value | None = None, hint: str = "", **attrs: object) -> Value:
        made = output if output is not None else self.new.value(hint or f"{inputs[0].name}_{op.lower()}")
        node = Node(op, list(inputs), [made], dict(attrs))
        self.nodes.append(node)
        infer_node(node, self.facts)
        return made

    def scalar(self, number: int) -> Value:
        return self.new.constant(np.array(number, np.int64), "number")

    def sizes(self, value: Value, start: int, end: int) -> Value:
        return self.op("Shape", value, hint=f"{value.name}_sizes", start=start, end=end)

    # --- elements ----------------------------------------------------------------------------------------------------

    def element_shape(self, segment: Segment) -> Shape | None:
        """The shape of an element of a segment."""
        if isinstance(segment, Item):
            return self.facts.shape(segment.value)
        if isinstance(segment, Elements):
            return None
        shape = self.facts.shape(segment.whole)
        if shape is None:
            return None
        kept = (1,) if segment.keeps_axis else ()
        return (*shape[: segment.axis], *kept, *shape[segment.axis + 1 :])

    def are_alike(self, form: Form) -> bool:
        """Whether all elements are known to be tensors of one shape and type."""
        shapes = [self.element_shape(segment) for segment in form]
        types = {self.facts.dtype(value) for value in parts_of(form)}
        same = all(shape is not None and None not in shape and shape == shapes[0] for shape in shapes)
        return is_known(form) and same and len(types) == 1 and None not in types

    def length(self, form: Form, output: Value | None = None) -> Value:
        """How many elements there are, a number."""
        items = sum(isinstance(segment, Item) for segment in form)
        total = None if any(isinstance(segment, Slices) for segment in form) else self.scalar(items)
        for segment in form:
            if isinstance(segment, Slices):
                sizes = self.sizes(segment.whole, segment.axis, segment.axis + 1)
                count = self.op("Squeeze", sizes, self.new.ints(0))
                total = count if total is None else self.op("Add", total, count)
        assert total is not None
        if items and any(isinstance(segment, Slices) for segment in form):
            total = self.op("Add", total, self.scalar(items))
        return total if output is None else self.op("Identity", total, output=output)

    def moved(self, value: Value, axis: int, to: int) -> Value:
        """One axis at another place among the others."""
        rank = self.facts.of(value).rank
        assert rank is not None
        if axis == to:
            return value
        order = steps_to_front(axis, rank)
        return self.op("Transpose", value, perm=[order[place] for place in steps_from_front(to, rank)])

    def without_kept_axis(self, segment: Slices) -> Slices:
        if not segment.keeps_axis:
            return segment
        return Slices(self.op("Unsqueeze", segment.whole, self.new.ints(segment.axis + 1)), segment.axis)

    def stacked(self, form: Form, axis: int) -> Value:
        """All elements, which are alike, on a new axis."""
        parts = []
        for segment in form:
            if isinstance(segment, Item):
                parts.append(self.op("Unsqueeze", segment.value, self.new.ints(axis)))
            else:
                assert isinstance(segment, Slices)
                plain = self.without_kept_axis(segment)
                parts.append(self.moved(plain.whole, plain.axis, axis))
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, hint="stacked", axis=axis)

    def joined(self, form: Form, axis: int) -> Value:
        """All elements, one behind the other along an axis that they have."""
        parts = []
        for segment in form:
            if isinstance(segment, Item):
                parts.append(segment.value)
            else:
                assert isinstance(segment, Slices)
                if segment.keeps_axis and segment.axis == axis:
                    parts.append(segment.whole)
                    continue
                plain = self.without_kept_axis(segment)
                parts.append(self.merged(self.moved(plain.whole, plain.axis, axis), axis))
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, hint="joined", axis=axis)

    def merged(self, value: Value, axis: int) -> Value:
        """An axis and the one behind it as one."""
        shape = self.facts.shape(value)
        assert shape is not None
        if shape[axis + 1] == 1 or shape[axis] == 1:
            return self.op("Squeeze", value, self.new.ints(axis + 1 if shape[axis + 1] == 1 else axis))
        numbers = [size for size in shape if isinstance(size, int)]
        if len(numbers) == len(shape):
            target = self.new.ints(*numbers[:axis], prod(numbers[axis : axis + 2]), *numbers[axis + 2 :])
        else:
            both = self.op("Mul", self.sizes(value, axis, axis + 1), self.sizes(value, axis + 1, axis + 2))
            around = [self.sizes(value, 0, axis)] if axis else []
            behind = [self.sizes(value, axis + 2, len(shape))] if axis + 2 < len(shape) else []
            target = self.op("Concat", *around, both, *behind, axis=0)
        return self.op("Reshape", value, target, allowzero=1)

    # --- sequences ---------------------------------------------------------------------------------------------------

    def boxed(self, form: Form, output: Value) -> None:
        """The sequence itself, as `output`."""
        runs: list[Value] = []
        items: list[Value] = []
        for segment in (*form, None):
            if isinstance(segment, Item):
                items.append(segment.value)
                continue
            if items:
                runs.append(self._sequence(Node("SequenceConstruct", list(items), [])))
                items.clear()
            if isinstance(segment, Slices):
                attrs = {"axis": segment.axis, "keepdims": int(segment.keeps_axis)}
                runs.append(self._sequence(Node("SplitToSequence", [segment.whole], [], attrs)))
            elif segment is not None:
                runs.append(segment.sequence)
        if not runs:
            self.nodes.append(Node("SequenceEmpty", [], [output], {"dtype": int(output.dtype or DType.FLOAT)}))
        elif len(runs) > 1:
            self.nodes.append(Node("SequenceJoin", list(runs), [output], {}, "", WEBRNN))
        elif self.nodes and self.nodes[-1].outputs == runs:
            self.nodes[-1].outputs = [output]
        else:
            self.nodes.append(Node("Identity", list(runs), [output]))
        output.container = SEQUENCE

    def _sequence(self, node: Node) -> Value:
        made = self.new.value("sequence")
        made.container = SEQUENCE
        node.outputs = [made]
        self.nodes.append(node)
        return made


def equal_parts(facts: Facts, node: Node) -> bool:
    """Whether a SplitToSequence into parts of one length, of more than one element each, leaves no shorter part."""
    whole, size = facts.of(node.inputs[0]), facts.of(node.inputs[1] if len(node.inputs) > 1 else None)
    if size.shape != () or size.ints is None or not whole.rank or size.ints[0] < 2 or whole.shape is None:
        return False
    length = whole.shape[node.attrs.get("axis", 0) % whole.rank]
    return length is not None and quotient(length, size.ints[0]) is not None
