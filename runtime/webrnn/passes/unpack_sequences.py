"""What is read of a sequence is read from the tensors that it is made of.

Requires: facts from infer_shapes.
Ensures: SequenceAt, SequenceLength and ConcatFromSequence of a sequence whose elements are known tensors, or slices of
tensors, are ops on these: an element at a known position is itself, at any other it is gathered from all of them;
ConcatFromSequence is a Concat. SplitToSequence into parts of known lengths is a Split, into parts of equal lengths a
Reshape. OptionalHasElement and OptionalGetElement of what is known to be there, or not, are constants and identities.
Sequences that nobody reads any more are gone.
Declines: "it is not known what the sequence is made of", "its elements may have different shapes", "the sequence is
empty", "how many parts there are is not known".
"""

from __future__ import annotations

import numpy as np

from webrnn.ir import WEBRNN, Graph, Node, Value, is_plain
from webrnn.ir.containers import MAKES_SEQUENCES

from .base import Context, Pass, PassResult
from .rewriting import drop_nodes
from .sequence_forms import Form, Forms, Item, Rearranging, Slices, equal_parts, is_known, item_at

MOST_PARTS = 64
"""Into more parts of different lengths nothing is split."""


READERS = frozenset(
    {
        "SequenceAt", "SequenceLength", "ConcatFromSequence", "SplitToSequence", "OptionalHasElement",
        "OptionalGetElement",
    }
)  # fmt: skip


class UnpackSequences(Pass):
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        forms = Forms(graph, context.facts)
        nodes: list[Node] = []
        for node in graph.nodes:
            if node.domain or node.op not in READERS:
                nodes.append(node)
                continue
            read = _Read(graph, node, forms, context)
            try:
                acts = read.add_nodes()
            except _Decline as decline:
                read.take.new.drop_unused(())
                result.declines_at(node, str(decline))
                acts = False
            if acts and result.fires(f"{node.op} {node.label}"):
                for made in read.take.nodes:
                    made.name = made.name or node.name
                nodes += read.take.nodes
            else:
                nodes.append(node)
        graph.nodes = nodes
        _drop_unread(graph, result)


def _drop_unread(graph: Graph, result: PassResult) -> None:
    read: set[Value | None] = set(graph.outputs)
    dead = []
    for node in reversed(graph.nodes):
        makes_one = node.op in MAKES_SEQUENCES and node.domain in ("", WEBRNN)
        if makes_one and node.outputs[0] not in read and result.fires(f"{node.op} {node.label}"):
            dead.append(node)
        else:
            read.update(node.inputs)
    drop_nodes(graph, dead)


class _Decline(Exception):
    """Why a node stays."""


class _Read:
    """One node, and what takes its place."""

    def __init__(self, graph: Graph, node: Node, forms: Forms, context: Context):
        self.graph, self.node, self.forms = graph, node, forms
        self.facts, self.take = context.facts, Rearranging(graph, context)

    def add_nodes(self) -> bool:
        """Whether there is something that takes the place of the node."""
        node = self.node
        if not node.outputs or node.outputs[0] is None:
            return False
        rules = {
            "SequenceAt": self._at,
            "SequenceLength": self._length,
            "ConcatFromSequence": self._joined,
            "SplitToSequence": self._split,
            "OptionalHasElement": self._has_element,
            "OptionalGetElement": self._element,
        }
        return rules[node.op](node.outputs[0])

    def _known_form(self) -> Form:
        form = self.forms.of(self.node.inputs[0])
        if not is_known(form):
            raise _Decline("it is not known what the sequence is made of")
        return form

    def _length(self, output: Value) -> bool:
        self.take.length(self._known_form(), output)
        return True

    def _at(self, output: Value) -> bool:
        position = self.node.inputs[1]
        known = self.facts.of(position).ints
        form = self.forms.of(self.node.inputs[0])
        place = item_at(form, known[0]) if known is not None and len(known) == 1 else None
        if place is not None:
            segment = form[place]
            assert isinstance(segment, Item)
            self.take.op("Identity", segment.value, output=output)
            return True
        form = self._known_form()
        if not form or position is None:
            raise _Decline("the sequence is empty")
        index = (
            self.take.op("Reshape", position, self.take.new.ints()) if self.facts.shape(position) != () else position
        )
        if len(form) == 1 and isinstance(form[0], Slices):
            whole, axis, keeps_axis = form[0].whole, form[0].axis, form[0].keeps_axis
        elif self.take.are_alike(form):
            whole, axis, keeps_axis = self.take.stacked(form, 0), 0, False
        else:
            raise _Decline("its elements may have different shapes")
        if keeps_axis:
            element = self.take.op("Gather", whole, index, axis=axis)
            self.take.op("Unsqueeze", element, self.take.new.ints(axis), output=output)
        else:
            self.take.op("Gather", whole, index, axis=axis, output=output)
        return True

    def _joined(self, output: Value) -> bool:
        form, on_new_axis = self._known_form(), bool(self.node.attrs.get("new_axis", 0))
        if not form:
            raise _Decline("the sequence is empty")
        shapes = [self.take.element_shape(segment) for segment in form]
        if any(shape is None or len(shape) != len(shapes[0] or ()) for shape in shapes):
            raise _Decline("its elements may have different shapes")
        rank = len(shapes[0] or ()) + on_new_axis
        axis = self.node.attrs.get("axis", 0)
        if not -rank <= axis < rank:
            return False
        join = self.take.stacked if on_new_axis else self.take.joined
        self.take.op("Identity", join(form, axis % rank), output=output)
        return True

    def _split(self, output: Value) -> bool:
        """Parts that are no slices of one element: slices of a tensor of another shape, or the results of a Split."""
        node = self.node
        whole, lengths = node.inputs[0], node.inputs[1] if len(node.inputs) > 1 else None
        fact, parts = self.facts.of(whole), self.facts.of(lengths)
        if whole is None or lengths is None or fact.shape is None or not fact.shape or len(self.forms.of(output)) != 1:
            return False
        axis = node.attrs.get("axis", 0) % len(fact.shape)
        if isinstance(self.forms.of(output)[0], Slices):
            return False
        if equal_parts(self.facts, node) and not isinstance(fact.shape[axis], int):
            assert parts.ints is not None
            before, behind = ([self.take.sizes(whole, *ends)] if ends[0] < ends[1] else [] for ends in (
                (0, axis), (axis + 1, len(fact.shape))
            ))  # fmt: skip
            count = self.take.op("Div", self.take.sizes(whole, axis, axis + 1), self.take.new.ints(parts.ints[0]))
            sizes = self.take.op("Concat", *before, count, self.take.new.ints(parts.ints[0]), *behind, axis=0)
            cut = self.take.op("Reshape", whole, sizes, allowzero=1)
            self.take.boxed((Slices(cut, axis),), output)
            return True
        numbers = self._lengths(fact.shape[axis], parts.ints, parts.shape == ())
        if not 0 < len(numbers) <= MOST_PARTS:
            return False
        pieces = [self.take.new.value(f"{output.name}_{index}") for index in range(len(numbers))]
        self.take.nodes.append(Node("Split", [whole, self.take.new.ints(*numbers)], [*pieces], {"axis": axis}))
        self.take.boxed(tuple(Item(piece) for piece in pieces), output)
        return True

    def _lengths(self, length: object, numbers: tuple[int, ...] | None, is_one_for_all: bool) -> list[int]:
        if numbers is None or (is_one_for_all and not isinstance(length, int)):
            raise _Decline("how many parts there are is not known")
        if not is_one_for_all or not isinstance(length, int) or numbers[0] < 1:
            return list(numbers)
        return [min(numbers[0], length - start) for start in range(0, length, numbers[0])]

    # --- optionals ---------------------------------------------------------------------------------------------------

    def _optional(self) -> tuple[bool, Value | None]:
        """Whether it is known what an optional holds, and that: None is nothing."""
        value = self.node.inputs[0] if self.node.inputs else None
        producer = next((node for node in self.graph.nodes if value is not None and value in node.outputs), None)
        if value is None or "optional" not in value.container:
            return True, value
        if producer is None or not is_plain(producer, "Optional"):
            return False, None
        return True, producer.inputs[0] if producer.inputs else None

    def _has_element(self, output: Value) -> bool:
        is_known_, value = self._optional()
        if is_known_:
            self.take.op("Identity", self.take.new.constant(np.array(value is not None), "is_there"), output=output)
        return is_known_

    def _element(self, output: Value) -> bool:
        is_known_, value = self._optional()
        if not is_known_ or value is None:
            return False
        self.take.op("Identity", value, output=output)
        return True
