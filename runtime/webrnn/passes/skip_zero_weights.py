"""Bins of a spectrum that a filter bank multiplies by zero are made only where that could show.

A filter bank that ends below half of the sample rate reads a part of a spectrum, and the window of a transform is often
shorter than the transform. What is multiplied by zero adds nothing, unless it is not finite: then all is NaN.

Requires: facts from infer_shapes; all other passes have come to rest.
Ensures: a MatMul with constant weights, none negative, that has rows of zeros, behind squares or absolute values of
convolutions of one signal with constant weights (their sums and roots too), reads the other rows alone. The
convolutions have the filters that are read, without the zeros that all of those begin and end with. If the signal is so
large that a bin that is not made might not be finite, or is not finite itself, an If makes these bins too, and adds
their zero or NaN. Each sum has the same terms in the same order but for those that are zero: its bits stay, also the
sign of a zero, since nothing is negative. numpy's own products may be rounded otherwise.
Declines: "it reads most of the spectrum, or the spectrum is small", "something else reads the spectrum", "its spectrum
may be too large" for signals that are not loud.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from webrnn.ir import DType, Graph, GraphBuilder, Node, Value, is_plain

from .base import Context, Pass, PassResult
from .rewriting import Names, constant_of, inline, ints_of

MOST_READ = 0.75
"""Of the bins: if more are read, a branch is not worth it."""
FEWEST_WEIGHTS = 1 << 12
"""Of the convolutions: with fewer it is not worth it either."""
_LARGEST = 1e38
"""What is surely finite in float32, however its terms are rounded."""
_LOUDEST, _QUIETEST = 100, 20
"""Powers of two between which the limit for a signal is looked for."""


class SkipZeroWeights(Pass):
    reorders_arithmetic = True

    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        for node in [node for node in graph.nodes if is_plain(node, "MatMul")]:
            weights = constant_of(graph, node.inputs[1])
            if weights is None or weights.ndim != 2 or weights.dtype != np.float32 or not (weights >= 0).all():
                continue
            read = np.any(weights, axis=1)
            spectrum = None if read.all() or not read.any() else _Spectrum.before(graph, node, len(read), context)
            if spectrum is None:
                continue
            limit = spectrum.limit()
            if read.mean() > MOST_READ or spectrum.size < FEWEST_WEIGHTS:
                result.declines_at(node, "it reads most of the spectrum, or the spectrum is small")
            elif not spectrum.is_alone(graph, node):
                result.declines_at(node, "something else reads the spectrum")
            elif limit is None:
                result.declines_at(node, "its spectrum may be too large")
            elif result.fires(f"{np.sum(~read)} of {len(read)} bins of {node.label}"):
                _replace(graph, node, spectrum, read, weights, limit, context)


@dataclass
class _Spectrum:
    """Squares or absolute values of convolutions of one signal, and what is made of them: nothing is negative."""

    constants: dict[Value, np.ndarray]
    count: int
    """How many bins there are."""
    nodes: dict[int, Node] = field(default_factory=dict)
    """By their place in the graph: all that it is made of."""
    axes: dict[Value, int] = field(default_factory=dict)
    """Which axis of each value has the bins."""
    signals: set[Value] = field(default_factory=set)

    @staticmethod
    def before(graph: Graph, node: Node, count: int, context: Context) -> _Spectrum | None:
        spectrum = _Spectrum(graph.constants, count)
        places = {value: place for place, each in enumerate(graph.nodes) for value in each.outputs if value is not None}
        rank, walk = context.facts.of(node.inputs[0]).rank, _Walk(spectrum, graph, context, places)
        is_found = rank is not None and walk.follow(node.inputs[0], rank - 1, True) and len(spectrum.signals) == 1
        return spectrum if is_found else None

    def _takes(self, conv: Node) -> bool:
        arrays = [None if value is None else self.constants.get(value) for value in conv.inputs[1:]]
        if conv.inputs[0] is None or any(array is None or array.dtype != np.float32 for array in arrays):
            return False
        self.signals.add(conv.inputs[0])
        return conv.attrs.get("group", 1) == 1

    def _is_positive(self, value: Value | None) -> bool:
        array = None if value is None else self.constants.get(value)
        return array is not None and array.size == 1 and array.ndim <= 1 and bool((array >= 0).all())

    @property
    def size(self) -> int:
        return sum(self._array(node, 1).size for node in self.nodes.values() if node.op == "Conv")

    def is_alone(self, graph: Graph, reader: Node) -> bool:
        own = {id(reader), *map(id, self.nodes.values())}
        readers = graph.consumers()
        return all(
            value not in graph.outputs and all(id(each) in own for each in readers.get(value, ()))
            for value in self.axes
        )

    def limit(self) -> float | None:
        """Below which a signal gives finite bins."""
        limits = (2.0**power for power in range(_LOUDEST, _QUIETEST, -1))
        return next((limit for limit in limits if self._largest(limit) < _LARGEST), None)

    def _largest(self, loudest: float) -> float:
        """What no value is larger than."""
        bounds = {value: float(array.max(initial=0.0)) for value, array in self.constants.items() if array.size == 1}
        for _, node in sorted(self.nodes.items()):
            operands = [0.0 if value is None else bounds.get(value, 0.0) for value in node.inputs]
            if node.op == "Conv":
                weights = np.abs(self._array(node, 1).astype(np.float64)).reshape(self.count, -1).sum(axis=1)
                bias = float(np.abs(self._array(node, 2)).max()) if len(node.inputs) > 2 else 0.0
                bound = 1.01 * (loudest * float(weights.max()) + bias)
            elif node.op == "Sqrt":
                bound = max(1.0, operands[0])
            else:
                bound = 1.01 * (operands[0] * operands[1] if node.op == "Mul" else sum(operands))
            bounds[_result(node)] = bound
        return max(bounds[value] for value in self.axes)

    def made(self, b: GraphBuilder, signal: Value, read: np.ndarray, is_cut: bool) -> Value:
        """Some of the bins. `is_cut` leaves out zeros that all filters begin or end with."""
        new: dict[Value, Value] = {}
        last = signal
        operands: list[Value]
        for _, node in sorted(self.nodes.items()):
            attrs = dict(node.attrs)
            if node.op == "Conv":
                weights = self._array(node, 1)[read]
                x, weights = _cut(b, signal, weights, node) if is_cut else (signal, weights)
                attrs["kernel_shape"] = weights.shape[2:]
                biases = [self._array(node, 2)[read]] if len(node.inputs) > 2 else []
                operands = [x, *(b.constant(array, "filters") for array in (weights, *biases))]
            else:
                given = {value: self.constants[value] for value in node.inputs if value in self.constants}
                if node.op == "Reshape":
                    (target,) = given.values()
                    sizes = [np.sum(read) if at == self.axes[_result(node)] else size for at, size in enumerate(target)]
                    given = dict.fromkeys(given, np.array(sizes, np.int64))
                operands = [
                    b.constant(given[value]) if value in given else new[value] for value in node.inputs if value
                ]
            last = b.value(_result(node).name)
            b.add(Node(node.op, [*operands], [last], attrs, node.name))
            new[_result(node)] = last
        return last

    def _array(self, node: Node, place: int) -> np.ndarray:
        value = node.inputs[place]
        assert value is not None
        return self.constants[value]


@dataclass
class _Walk:
    """From the end of a spectrum to its convolutions."""

    spectrum: _Spectrum
    graph: Graph
    context: Context
    places: dict[Value, int]

    def follow(self, value: Value | None, axis: int, is_positive: bool) -> bool:
        """Whether a value is bins along an axis, positive ones or results of convolutions."""
        place = None if value is None else self.places.get(value)
        shape = self.context.facts.shape(value)
        if value is None or place is None or shape is None or shape[axis] != self.spectrum.count:
            return False
        if value in self.spectrum.axes:
            return self.spectrum.axes[value] == axis
        maker = self.graph.nodes[place]
        if maker.domain:
            return False
        self.spectrum.nodes[place], self.spectrum.axes[value] = maker, axis
        first = maker.inputs[0]
        if maker.op == "Transpose":
            return self.follow(first, (maker.attrs.get("perm") or range(len(shape))[::-1])[axis], is_positive)
        if maker.op == "Unsqueeze":
            new = ints_of(self.graph, self.context, maker.inputs[1])
            return new is not None and self.follow(first, _without(new, axis, len(shape)), is_positive)
        if maker.op == "Reshape":
            behind = len(shape) - axis
            before, target = self.context.facts.shape(first), ints_of(self.graph, self.context, maker.inputs[1])
            is_kept = before is not None and before[-behind:] == shape[-behind:] and None not in shape[-behind:]
            is_named = (
                target is not None
                and target[axis] == self.spectrum.count
                and maker.inputs[1] in self.spectrum.constants
            )
            return before is not None and is_kept and is_named and self.follow(first, len(before) - behind, is_positive)
        if not is_positive:
            return maker.op == "Conv" and axis == 1 and self.spectrum._takes(maker)
        if maker.op == "Mul":
            return first is maker.inputs[1] and self.follow(first, axis, False)
        if maker.op in ("Abs", "Sqrt"):
            return self.follow(first, axis, maker.op == "Sqrt")
        return maker.op == "Add" and all(
            self.spectrum._is_positive(operand) or self.follow(operand, axis, True) for operand in maker.inputs
        )


def _result(node: Node) -> Value:
    value = node.outputs[0]
    assert value is not None
    return value


def _without(new: Sequence[int], axis: int, rank: int) -> int:
    """An axis without the new ones that are before it; that of a new one is as long as no spectrum."""
    return axis - sum(place % rank < axis for place in new)


def _cut(b: GraphBuilder, signal: Value, weights: np.ndarray, conv: Node) -> tuple[Value, np.ndarray]:
    """A signal of known length and filters without the taps at both ends at which all filters are zero."""
    taps = np.flatnonzero(weights.reshape(-1, weights.shape[-1]).any(axis=0))
    is_plain_conv = weights.ndim == 3 and not any(conv.attrs.get("pads") or []) and len(taps) > 0
    is_dense = conv.attrs.get("dilations", [1]) in ([1], (1,)) and conv.attrs.get("auto_pad", "NOTSET") == "NOTSET"
    length = signal.shape[-1] if signal.shape else None
    if not is_plain_conv or not is_dense or not isinstance(length, int) or length < weights.shape[-1]:
        return signal, weights
    first, behind = int(taps[0]), weights.shape[-1] - 1 - int(taps[-1])
    if not first and not behind:
        return signal, weights
    end = -behind if behind else 2**31 - 1
    return b.op("Slice", signal, b.ints(first), b.ints(end), b.ints(2)), weights[
        ..., first : weights.shape[-1] - behind
    ]


def _replace(
    graph: Graph, node: Node, spectrum: _Spectrum, read: np.ndarray, weights: np.ndarray, limit: float, context: Context
) -> None:
    (signal,) = spectrum.signals
    shape = context.facts.shape(signal)
    b = GraphBuilder("spectrum")
    x = b.input("signal", DType.FLOAT, shape)
    bins = spectrum.made(b, x, read, True)
    product = b.op("MatMul", bins, b.constant(weights[read], "weights"))
    one = b.op("Slice", bins, b.ints(0), b.ints(1), b.ints(-1))
    is_small = b.op("Less", b.op("ReduceMax", b.op("Abs", x), keepdims=0), b.constant(np.float32(limit), "limit"))
    small, large = GraphBuilder("small"), GraphBuilder("large")
    zeros = small.input("one", DType.FLOAT), small.input("signal", DType.FLOAT, shape)
    small.graph.outputs.append(small.op("Mul", zeros[0], small.constant(np.float32(0))))
    large.input("one", DType.FLOAT)
    others = spectrum.made(large, large.input("signal", DType.FLOAT, shape), ~read, False)
    zero = large.op("Mul", others, large.constant(np.float32(0)))
    large.graph.outputs.append(large.op("ReduceSum", zero, large.ints(-1), keepdims=1))
    rest = b.value("rest")
    b.add(Node("If", [is_small, one, x], [rest], {"then_branch": small.graph, "else_branch": large.graph}, node.name))
    b.graph.outputs.append(b.op("Add", product, rest))
    nodes, constants = inline(b.graph, [signal], Names(graph))
    nodes[-1].outputs = node.outputs
    for each in nodes:
        each.name = each.name or node.name
    graph.constants.update(constants)
    place = graph.nodes.index(node)
    gone = {id(node), *map(id, spectrum.nodes.values())}
    before = [each for each in graph.nodes[:place] if id(each) not in gone]
    graph.nodes = [*before, *nodes, *graph.nodes[place + 1 :]]
