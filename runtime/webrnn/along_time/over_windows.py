"""A model of one window, for all windows of a sequence: what windows share is computed once.

A window of a convolution's result is the convolution of a window, and likewise for pools, for products of each frame
with weights and for what is done to each element: as long as nothing pads or mixes the axis of the window, such ops run
once, on the sequence. Where an op needs the window, or has made it one frame, windows become the batch of the model.
Both ways give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from webrnn.errors import ModelError
from webrnn.ir import WEBRNN, Graph, GraphBuilder, Node, Value
from webrnn.ops.sets import ELEMENTWISE, RESHAPES
from webrnn.shapes.facts import Facts
from webrnn.shapes.infer import infer

TO_THE_END = 2**31 - 1


@dataclass(frozen=True)
class _Sliding:
    """Window j is `size` frames of `base` from frame j * `hop` on, along `axis`; the axis `batch` of `base` is 1."""

    base: Value
    axis: int
    size: int
    hop: int
    batch: int = 0


def over_windows(b: GraphBuilder, model: Graph, sequence: Value, hop: int, axis: int = 1) -> list[Value]:
    """The outputs of a model for each window of a sequence, one behind the other on their first axis.

    The model has one input, [batch, ...], whose `axis` is a window of a fixed size. The sequence is as that input, with
    a batch of 1 and the frames of all windows on `axis`. A window begins every `hop` frames.

    >>> from webrnn.ir import DType, GraphBuilder, Symbol
    >>> inner = GraphBuilder("twice")
    >>> x = inner.input("x", DType.FLOAT, (Symbol("batch"), 3, 2))
    >>> inner.graph.outputs.append(inner.op("Add", x, x))
    >>> b = GraphBuilder("g")
    >>> (y,) = over_windows(b, inner.graph, b.input("frames", DType.FLOAT, (1, Symbol("time"), 2)), hop=1)
    >>> [node.op for node in b.graph.nodes]
    ['Add', 'Shape', 'Sub', 'Squeeze', 'Range', 'Unsqueeze', 'Add', 'Gather', 'Squeeze']
    """
    if len(model.inputs) != 1:
        raise ModelError(f"a model of windows has one input, this has {[value.name for value in model.inputs]}")
    shape = model.inputs[0].shape or ()
    size = shape[axis] if 0 < axis < len(shape) else None
    if not isinstance(size, int):
        raise ModelError(f"the input {model.inputs[0].name!r} has no fixed size on axis {axis}")
    walk = _Walk(b, model.copy())
    walk.values[walk.model.inputs[0]] = _Sliding(sequence, axis, size, hop)
    return walk.run()


class _Walk:
    def __init__(self, b: GraphBuilder, model: Graph):
        self.b, self.model = b, model
        self.facts: Facts = infer(model)
        self.values: dict[Value, Value | _Sliding] = {}
        self.stacked: dict[_Sliding, Value] = {}
        for value, array in model.constants.items():
            self.values[value] = b.constant(array, value.name, value.dtype)

    def run(self) -> list[Value]:
        for node in self.model.nodes:
            made = self._sizes(node) or self._on_sequence(node)
            if made is not None:
                self.values[_first(node)] = made
                continue
            inputs = [None if value is None else self._stacked(value) for value in node.inputs]
            outputs = [None if value is None else value.like(self.b.unique_name(value.name)) for value in node.outputs]
            for value, renewed in zip(node.outputs, outputs, strict=True):
                if value is not None and renewed is not None:
                    renewed.shape = None
                    self.values[value] = renewed
            self.b.add(Node(node.op, inputs, outputs, node.attrs, node.name, node.domain))
        return [self._stacked(value) for value in self.model.outputs]

    def _sizes(self, node: Node) -> Value | None:
        """The sizes of windows, without the windows."""
        known = self.values[_operand(node)] if node.op == "Shape" and not node.domain else None
        if not isinstance(known, _Sliding) or node.attrs:
            return None
        sizes = [
            self.b.op("Shape", known.base, start=axis, end=axis + 1) for axis in range(len(self._shape(_operand(node))))
        ]
        sizes[known.axis], sizes[known.batch] = self.b.ints(known.size), self._count(known)
        return self.b.op("Concat", *sizes, axis=0)

    def _on_sequence(self, node: Node) -> _Sliding | None:
        """What a node gives if it may run on the sequence."""
        sliding = [self.values[value] for value in node.inputs if value is not None]
        windows = [value for value in sliding if isinstance(value, _Sliding)]
        if not windows or len([v for v in node.outputs if v is not None]) != 1:
            return None
        first = windows[0]
        is_alone = len(windows) == 1 and node.inputs[0] is not None and self.values[node.inputs[0]] is first
        if node.op in ("MatMul", "Linear") and node.domain in ("", WEBRNN):
            return self._product(node, first) if is_alone else None
        if node.domain:
            return None
        if node.op in ELEMENTWISE:
            return self._element_wise(node, windows)
        if not is_alone:
            return None
        if node.op == "Transpose":
            places = list(node.attrs.get("perm") or reversed(range(len(self._shape(_operand(node))))))
            return self._same(node, first, axis=places.index(first.axis), batch=places.index(first.batch))
        if node.op == "Pad":
            pads = self._ints(node, 1)
            ends = len(pads) // 2
            kept = [pads[place + end] for place in (first.axis, first.batch) for end in (0, ends)] if pads else [1]
            return self._same(node, first) if len(node.inputs) < 4 and not any(kept) else None
        if first.batch:
            return None
        if node.op in ("Conv", "MaxPool", "AveragePool"):
            return self._convolution(node, first)
        if node.op == "BatchNormalization":
            return self._same(node, first) if first.axis > 1 else None
        return self._reshape(node, first) if node.op in RESHAPES else None

    def _product(self, node: Node, x: _Sliding) -> _Sliding | None:
        """Rows times weights, each row a frame of its own."""
        rank = len(self._shape(_operand(node)))
        weights = [value for value in node.inputs[1:] if value is not None]
        are_plain = all(value in self.model.constants for value in weights) and len(self._shape(weights[0])) == 2
        return self._same(node, x) if are_plain and max(x.axis, x.batch) < rank - 1 else None

    def _element_wise(self, node: Node, windows: Sequence[_Sliding]) -> _Sliding | None:
        """Each operand is windows of one kind, or a constant that is the same for all frames."""
        rank = max(len(self._shape(value)) for value in node.inputs if value is not None)
        first = windows[0]
        for value in node.inputs:
            if value is None:
                continue
            known = self.values[value]
            shape = self._shape(value)
            if isinstance(known, _Sliding):
                if replace(known, base=first.base) != first or len(shape) != rank:
                    return None
                continue
            places = [place - rank + len(shape) for place in (first.axis, first.batch)]
            varies = any(place >= 0 and shape[place] != 1 for place in places)
            if value not in self.model.constants or varies:
                return None
        return self._same(node, first)

    def _convolution(self, node: Node, x: _Sliding) -> _Sliding | None:
        place = x.axis - 2
        spatial = len(self._shape(_operand(node))) - 2
        if place < 0:
            return None
        kernel = node.attrs.get("kernel_shape")
        if not kernel:
            weights = node.inputs[1] if len(node.inputs) > 1 else None
            kernel = self._shape(weights)[2:] if weights is not None else ()
        stride = (node.attrs.get("strides") or [1] * spatial)[place]
        dilation = (node.attrs.get("dilations") or [1] * spatial)[place]
        pads = node.attrs.get("pads") or [0] * (2 * spatial)
        width = kernel[place]
        if not isinstance(width, int):
            return None
        extent = (width - 1) * dilation + 1
        is_padded = pads[place] or pads[place + spatial] or node.attrs.get("ceil_mode")
        same = str(node.attrs.get("auto_pad", "NOTSET")).startswith("SAME")
        if is_padded or (same and (extent > 1 or stride > 1)) or x.hop % stride or extent > x.size:
            return None
        return self._same(node, x, size=(x.size - extent) // stride + 1, hop=x.hop // stride)

    def _reshape(self, node: Node, x: _Sliding) -> _Sliding | None:
        """The axis of the window stays as it is, somewhere."""
        before, after = self._shape(_operand(node)), self.facts.shape(_first(node))
        if x.size == 1 or after is None or not after or after[0] != before[0]:
            return None
        sizes = [size if isinstance(size, int) else 0 for size in after[1:]]
        ahead = prod(size for size in before[1 : x.axis] if isinstance(size, int))
        for place, size in enumerate(sizes):
            if size == x.size and prod(sizes[:place]) == ahead and all(sizes):
                target = [1, *sizes]
                target[place + 1] = -1
                return _Sliding(self.b.op("Reshape", x.base, self.b.ints(*target)), place + 1, x.size, x.hop)
        return None

    def _same(self, node: Node, x: _Sliding, **changes: int) -> _Sliding:
        """The node itself, on the sequence."""
        inputs = []
        for value in node.inputs:
            known = None if value is None else self.values[value]
            inputs.append(known.base if isinstance(known, _Sliding) else known)
        made = self.b.value(_first(node).name)
        self.b.add(Node(node.op, inputs, [made], node.attrs, node.name, node.domain))
        return replace(x, base=made, **changes)

    def _stacked(self, value: Value) -> Value:
        """A value with windows as its batch."""
        known = self.values[value]
        if not isinstance(known, _Sliding):
            return known
        if known not in self.stacked:
            rank = len(self._shape(value))
            self.stacked[known] = self._frames(known, rank) if known.size == 1 else self._windows(known, rank)
        return self.stacked[known]

    def _frames(self, x: _Sliding, rank: int) -> Value:
        """Windows of one frame."""
        b, frames, order = self.b, x.base, list(range(rank))
        order[x.axis], order[x.batch] = x.batch, x.axis
        if x.hop > 1:
            frames = b.op("Slice", frames, b.ints(0), b.ints(TO_THE_END), b.ints(x.axis), b.ints(x.hop))
        return b.op("Transpose", frames, perm=order)

    def _windows(self, x: _Sliding, rank: int) -> Value:
        """Frame i * hop + k for each window i and each place k in it."""
        b = self.b
        begins = b.op("Range", b.constant(np.int64(0)), b.op("Squeeze", self._count(x)), b.constant(np.int64(1)))
        if x.hop > 1:
            begins = b.op("Mul", begins, b.ints(x.hop))
        places = np.arange(x.size)
        is_before = x.batch < x.axis
        index = b.op(
            "Add",
            b.op("Unsqueeze", begins, b.ints(1 if is_before else 0)),
            b.constant(places if is_before else places[:, None], "places"),
        )
        gathered = b.op("Gather", x.base, index, axis=x.axis)
        gathered = b.op("Squeeze", gathered, b.ints(x.batch if is_before else x.batch + 1))
        order = list(range(rank))
        order.insert(x.batch, order.pop(x.axis - 1 if is_before else x.axis + 1))
        return gathered if order == sorted(order) else b.op("Transpose", gathered, perm=order)

    def _count(self, x: _Sliding) -> Value:
        """How many windows there are, int64[1]."""
        b = self.b
        frames = b.op("Sub", b.op("Shape", x.base, start=x.axis, end=x.axis + 1), b.ints(x.size - x.hop))
        return b.op("Div", frames, b.ints(x.hop)) if x.hop > 1 else frames

    def _shape(self, value: Value) -> Sequence[object]:
        shape = self.facts.shape(value)
        if shape is None:
            raise ModelError(f"the rank of {value.name!r} is only known when it runs")
        return shape

    def _ints(self, node: Node, index: int) -> tuple[int, ...]:
        value = node.inputs[index] if index < len(node.inputs) else None
        return () if value is None else self.facts.of(value).ints or ()


def _operand(node: Node) -> Value:
    value = node.inputs[0]
    assert value is not None
    return value


def _first(node: Node) -> Value:
    return next(value for value in node.outputs if value is not None)
