"""The wide operands of a fused cell: all gates side by side, in ONNX's order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webrnn.ir import WEBRNN, Node, SequenceInput, SequenceSpec, Value
from webrnn.ir.scan import Invariant
from webrnn.shapes.infer import infer_node

from ..base import Context
from ..rewriting import Additions
from .cell import FoundCell
from .sides import owner_of
from .sums import Part, part_of
from .surroundings import Declined, Surroundings


def is_in_order(view: Surroundings, parts: Sequence[Part]) -> bool:
    """Whether the gates are all that a value holds, in this order."""
    first = parts[0]
    width = first.stop - first.start
    whole = view.facts.shape(first.value)
    places = [(width * index, width * index + width) for index in range(len(parts))]
    in_place = all(part.base == first.base for part in parts) and [(part.start, part.stop) for part in parts] == places
    return in_place and whole is not None and whole[-1] == width * len(parts)


class Operands:
    """The operands of one cell, made where they are not there yet. Nothing is changed before `apply`, but for constants
    that `drop_unused` takes back.
    """

    def __init__(self, view: Surroundings, cell: FoundCell, context: Context):
        self.view, self.cell, self.context = view, cell, context
        self.new = Additions(view.graph, context)
        self.new_outside = Additions(view.loop.graph, context) if view.loop is not None else None
        self.nodes: list[Node] = []
        """To be added to the graph of the cell."""
        self.outside: list[tuple[Node, Node]] = []
        """To be added to the graph around the loop, each with the node that it has to stand behind."""
        self._handed_in: list[SequenceInput | Invariant] = []

    def wide(self, parts: Sequence[Part], biases: Sequence[np.ndarray | None]) -> Value:
        """The value that holds these gates, with these constants added."""
        biased = any(bias is not None for bias in biases)
        ordered = is_in_order(self.view, parts)
        if ordered and not biased:
            return self._here(parts[0])
        try:
            return self._product(parts, biases if biased else [None] * len(parts))
        except Declined:
            if not ordered:
                raise
        width = parts[0].stop - parts[0].start
        row = np.concatenate([np.zeros(width, np.float32) if bias is None else bias for bias in biases])
        return self._node("Add", [self._here(parts[0]), self.new.constant(row, "bias")])

    def peepholes(self) -> Value | None:
        """[3 H] for i, o and f."""
        rows = [row for row in self.cell.peepholes if row is not None]
        if not rows:
            return None
        arrays = [array for row in rows if (array := self.view.constant(row)) is not None]
        if len(arrays) == len(rows):
            return self.new.constant(np.concatenate(arrays), "peepholes")
        parts = [part_of(self.view, row) for row in rows]
        return self._here(parts[0]) if is_in_order(self.view, parts) else self._node("Concat", rows, axis=0)

    def apply(self) -> None:
        """Behind the change of the graph: change the graph around the loop, and what is handed in to it."""
        loop, scan = self.view.loop, self.view.scan
        self.new.drop_unused(self.view.graph.nodes)
        if loop is None or scan is None or self.new_outside is None:
            return
        self.new_outside.drop_unused([node for _, node in self.outside])
        for behind, node in self.outside:
            loop.graph.nodes.insert(loop.graph.nodes.index(behind) + 1, node)
        for item in self._handed_in:
            if isinstance(item, Invariant):
                scan.invariants.append(item)
            else:
                scan.sequences.append(item)
        changed = scan.to_node()
        loop.node.inputs, loop.node.attrs = changed.inputs, changed.attrs

    def drop_unused(self) -> None:
        """Take back the constants of a cell that is not fused after all."""
        self.new.drop_unused(())
        if self.new_outside is not None:
            self.new_outside.drop_unused(())

    def _here(self, part: Part) -> Value:
        return self._hand_in(part.value, part.sequence) if part.outside else part.value

    def _hand_in(self, whole: Value, spec: SequenceSpec | None) -> Value:
        for inner, known in self.view.handed_in.items():
            if known == (whole, spec):
                return inner
        inner = self.new.value(whole.name)
        item = Invariant(whole, inner) if spec is None else SequenceInput(spec, whole, inner)
        self._handed_in.append(item)
        return inner

    def _product(self, parts: Sequence[Part], biases: Sequence[np.ndarray | None]) -> Value:
        """A Linear of columns of others."""
        owners = [owner_of(self.view, part) for part in parts]
        weights, rows = [], []
        for part, owner, bias in zip(parts, owners, biases, strict=True):
            if owner is None or owners[0] is None:
                raise Declined("the weights are not constants, so gates cannot be put into ONNX's order")
            view, linear = owner
            columns = slice(part.start, part.stop)
            array, row = view.constant(linear.inputs[1]), _bias_of(view, linear)
            if array is None or row is None:
                raise Declined("the weights are not constants, so gates cannot be put into ONNX's order")
            if view is not owners[0][0] or linear.inputs[0] is not owners[0][1].inputs[0]:
                raise Declined("its gates are products of different values")
            made = linear.outputs[0]
            if made is None or not view.is_read_by(made, self.cell.nodes):
                raise Declined("a gate is read elsewhere")
            weights.append(array[:, columns])
            rows.append(row[columns] if bias is None else row[columns] + bias)
        assert owners[0] is not None
        view, linear = owners[0]
        inside = view is self.view
        new = self.new if inside or self.new_outside is None else self.new_outside
        inputs = [linear.inputs[0], new.constant(np.concatenate(weights, axis=1), "weights")]
        bias = np.concatenate(rows)
        if np.any(bias):
            inputs.append(new.constant(bias, "bias"))
        node = Node("Linear", inputs, [new.value("gates")], {}, linear.name, WEBRNN)
        infer_node(node, self.context.facts)
        (made,) = node.outputs
        assert made is not None
        if inside:
            self.nodes.append(node)
            return made
        specs = {part.sequence if part.outside else self.view.handed_in[part.value][1] for part in parts}
        if len(specs) != 1:
            raise Declined("its gates come in different orders of steps")
        self.outside.append((linear, node))
        return self._hand_in(made, specs.pop())

    def _node(self, op: str, inputs: Sequence[Value | None], **attrs: int) -> Value:
        made = self.new.value("gates")
        self.nodes.append(Node(op, list(inputs), [made], dict(attrs)))
        infer_node(self.nodes[-1], self.context.facts)
        return made


def _bias_of(view: Surroundings, linear: Node) -> np.ndarray | None:
    """The bias of a Linear, zeros if it has none, None if it is no constant."""
    if len(linear.inputs) > 2:
        return view.constant(linear.inputs[2])
    width = view.width(linear.inputs[1])
    return None if width is None else np.zeros(width, np.float32)
