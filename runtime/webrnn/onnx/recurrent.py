"""RNN, GRU and LSTM as Scans: one for each direction, over a body of products and cells (cells.py).

The body computes `X·Wᵀ + B` first, from the sequence alone, so that it can be done for all steps at once. Constant
weights are cut, transposed and added here, once.

With `sequence_lens` a mask keeps the states of a finished sequence and zeroes its outputs, and the reverse direction
reads and writes through ReverseSequence, because the elements of a batch then begin at different steps. A sequence of
length 0 ends in zeros, whatever it starts from; as in onnxruntime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from webrnn.errors import ModelError, UnsupportedOp
from webrnn.ir import WEBRNN, DType, GraphBuilder, Node, Scan, Value

from .cells import Cell, GruCell, LstmCell, RecurrentAttributes, RnnCell, WeightCutter, Weights, scalar_like
from .operands import expect_shape, zeros

X, W, R, B, SEQUENCE_LENS, INITIAL_H, INITIAL_C, P = range(8)


def expand_rnn(builder: GraphBuilder, node: Node) -> bool:
    return _expand(RnnCell, 1, 1, 1, builder, node)


def expand_gru(builder: GraphBuilder, node: Node) -> bool:
    return _expand(GruCell, 3, 2, 1, builder, node)


def expand_lstm(builder: GraphBuilder, node: Node) -> bool:
    return _expand(LstmCell, 4, 3, 2, builder, node)


def _expand(
    cell_type: Callable[..., Cell], n_gates: int, n_activations: int, n_states: int, builder: GraphBuilder, node: Node
) -> bool:
    attributes = RecurrentAttributes.of(node, n_activations)
    Layer(builder, node, attributes, cell_type, n_gates, n_states).run()
    return True


@dataclass
class _Direction:
    """What one Scan gives: the trace of H as [steps, batch, hidden] and the final states as [batch, hidden]."""

    trace: Value
    finals: list[Value]


class Layer:
    """A node, and the Scans that stand for it."""

    def __init__(
        self,
        builder: GraphBuilder,
        node: Node,
        attributes: RecurrentAttributes,
        cell_type: Callable[..., Cell],
        n_gates: int,
        n_states: int,
    ):
        self.b, self.node, self.attributes = builder, node, attributes
        self.cell_type, self.n_gates, self.n_states = cell_type, n_gates, n_states
        self.prefix = node.name or node.op.lower()
        most = 8 if node.op == "LSTM" else 6
        if not 3 <= len(node.inputs) <= most or len(node.outputs) > 1 + n_states:
            raise ModelError(f"{len(node.inputs)} inputs and {len(node.outputs)} outputs given")
        self.inputs = [*node.inputs, *[None] * (8 - len(node.inputs))]

    def run(self) -> None:
        n_directions = len(self.attributes.directions)
        x = self._checked_input(self._required(X, "X"))
        if self.attributes.batch_first:
            x = self.b.op("Transpose", x, perm=[1, 0, 2])
        cutter = WeightCutter(self.b, self.n_gates, n_directions, self._hidden_size(), self.prefix)
        mask, lengths = self._mask(x)
        inits = self._initial_states(x, cutter.hidden, lengths)
        results = [
            self._scan(index, reverse, x, cutter, [init[index] for init in inits], mask, lengths)
            for index, reverse in enumerate(self.attributes.directions)
        ]
        self._join(results)

    def _required(self, index: int, name: str) -> Value:
        value = self.inputs[index]
        if value is None:
            raise ModelError(f"input {name} is missing")
        return value

    def _checked_input(self, x: Value) -> Value:
        w = self._required(W, "W")
        if x.dtype is not None and w.dtype is not None and x.dtype != w.dtype:
            raise ModelError(f"X is of type {x.dtype.text}, W of {w.dtype.text}")
        is_open = x.shape is None or not all(isinstance(size, int) for size in x.shape[-1:])
        inputs = w.shape[2] if is_open and w.shape is not None and len(w.shape) == 3 else None
        return expect_shape(self.b, x, (None, None, inputs if isinstance(inputs, int) else None), "X", self.prefix)

    def _hidden_size(self) -> int:
        declared = self.attributes.hidden_size
        r = self._required(R, "R")
        from_weights = r.shape[2] if r.shape is not None and len(r.shape) == 3 else None
        hidden = declared if declared is not None else from_weights
        if not isinstance(hidden, int):
            raise UnsupportedOp("hidden_size is not given and the shape of R is not known", attribute="hidden_size")
        if hidden <= 0 or hidden >= 2**31:
            raise ModelError(f"hidden_size is {hidden}", attribute="hidden_size")
        return hidden

    def _mask(self, x: Value) -> tuple[Value | None, Value | None]:
        """[steps, batch, 1] of bool that is true while a sequence lasts; None if all last to the end."""
        lengths = self.inputs[SEQUENCE_LENS]
        if lengths is None:
            return None, None
        mask = self.b.value(f"{self.prefix}_mask")
        self.b.add(Node("SequenceMask", [lengths, x], [mask], {}, self.node.name, WEBRNN))
        return mask, self.b.op("Cast", lengths, to=7)

    def _initial_states(self, x: Value, hidden: int, lengths: Value | None) -> list[list[Value]]:
        """For each state and each direction a value of [batch, hidden]."""
        blank: list[Value] = []
        states = []
        for index in (INITIAL_H, INITIAL_C)[: self.n_states]:
            whole = self.inputs[index]
            if whole is None:
                if not blank:
                    blank = [zeros(self.b, x, 1, (hidden,), self._state_type(x), f"{self.prefix}_zeros")]
                states.append(blank * len(self.attributes.directions))
                continue
            if self.attributes.batch_first:
                whole = self.b.op("Transpose", whole, perm=[1, 0, 2])
            name = "initial_h" if index == INITIAL_H else "initial_c"
            sizes = (len(self.attributes.directions), None, hidden)
            whole = expect_shape(self.b, whole, sizes, name, self.prefix, like=x, same=((1, 1),))
            if lengths is not None:
                begins = self.b.op("Unsqueeze", self.b.op("Greater", lengths, self.b.constant(0)), self.b.ints(1))
                whole = self.b.op("Where", begins, whole, scalar_like(self.b, 0.0, whole))
            states.append(self._unstack(whole, name))
        return states

    def _state_type(self, x: Value) -> DType | None:
        return self._required(W, "W").dtype or x.dtype

    def _unstack(self, whole: Value, name: str) -> list[Value]:
        """[directions, ...] to one value for each direction."""
        if len(self.attributes.directions) == 1:
            parts = [whole]
        else:
            parts = self.b.split(whole, [f"{self.prefix}_{name}"] * 2, axis=0)
        axis = self.b.ints(0)
        return [self.b.op("Squeeze", part, axis, name=f"{self.prefix}_{name}") for part in parts]

    def _scan(
        self,
        index: int,
        reverse: bool,
        x: Value,
        cutter: WeightCutter,
        inits: Sequence[Value],
        mask: Value | None,
        lengths: Value | None,
    ) -> _Direction:
        by_masks = lengths is not None
        if reverse and by_masks:
            x = self.b.op("ReverseSequence", x, lengths, time_axis=0, batch_axis=1)
        in_scan_reverse = reverse and not by_masks
        name = f"{self.prefix}_reverse" if reverse else self.prefix
        body = GraphBuilder(f"{name}_step", self.b)
        scan = Scan(body.graph, name=name)
        element = body.value("x", x.dtype, None if x.shape is None else x.shape[1:])
        scan.add_sequence(x, element, reverse=in_scan_reverse)
        states = [body.value(state, init.dtype, init.shape) for state, init in zip("hc", inits, strict=False)]
        running = None
        if mask is not None:
            running = body.value("running")
            scan.add_sequence(mask, running)
        cell = self.cell_type(self.b, body, self._weights(cutter, index), self.attributes, index)
        cell.running = running
        next_states = cell.step(element, *states)
        emitted = next_states[0]
        if running is not None:
            next_states = [body.op("Where", running, new, old) for new, old in zip(next_states, states, strict=True)]
            emitted = body.op("Where", running, emitted, scalar_like(body, 0.0, states[0]))
        finals = [self.b.value(f"{name}_final_{state}") for state in "hc"[: len(states)]]
        for state, init, new, final in zip(states, inits, next_states, finals, strict=True):
            scan.add_state(init, state, new, final)
        trace = self.b.value(f"{name}_trace")
        scan.add_trace(emitted, trace, reverse=in_scan_reverse)
        scan.add_captures(body)
        self.b.add(scan.to_node())
        if reverse and by_masks:
            trace = self.b.op("ReverseSequence", trace, lengths, time_axis=0, batch_axis=1)
        return _Direction(trace, finals)

    def _weights(self, cutter: WeightCutter, index: int) -> Weights:
        return Weights(
            cutter.input_weights(self._required(W, "W"), index),
            cutter.recurrent_weights(self._required(R, "R"), index),
            cutter.bias(self.inputs[B], 0, index),
            cutter.bias(self.inputs[B], 1, index),
            cutter.peepholes(self.inputs[P], index),
            cutter.hidden,
        )

    def _join(self, results: list[_Direction]) -> None:
        """Write the node's outputs: the directions become an axis again."""
        batch_first = self.attributes.batch_first
        outputs = [*self.node.outputs, *[None] * (3 - len(self.node.outputs))]
        if outputs[0] is not None:
            self._stack([result.trace for result in results], 1, outputs[0], [2, 0, 1, 3] if batch_first else None)
        for index in range(self.n_states):
            output = outputs[1 + index]
            if output is not None:
                self._stack([result.finals[index] for result in results], 0, output, [1, 0, 2] if batch_first else None)

    def _stack(self, parts: list[Value], axis: int, output: Value, perm: list[int] | None) -> None:
        axes = self.b.ints(axis)
        last = output if perm is None else None
        if len(parts) == 1:
            joined = self.b.op("Unsqueeze", parts[0], axes, output=last)
        else:
            joined = self.b.op(
                "Concat", *(self.b.op("Unsqueeze", part, axes) for part in parts), axis=axis, output=last
            )
        if perm is not None:
            self.b.op("Transpose", joined, perm=perm, output=output)
