"""Recurrent layers of any framework: weights in ONNX's order of gates become the Scans of `webrnn.onnx`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from webrnn.ir import GraphBuilder, Node, Scan, Value
from webrnn.onnx import recurrent as onnx_recurrent
from webrnn.onnx.cells import LstmCell, RecurrentAttributes, Weights
from webrnn.onnx.operands import zeros

from .net import Net
from .tensor import Tensor

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
N_STATES = {"RNN": 1, "GRU": 1, "LSTM": 2}
_EXPAND = {
    "RNN": onnx_recurrent.expand_rnn,
    "GRU": onnx_recurrent.expand_gru,
    "LSTM": onnx_recurrent.expand_lstm,
}


@dataclass
class Direction:
    """The weights of one direction: gates in ONNX's order (GRU z, r, n; LSTM i, o, f, c)."""

    w: np.ndarray
    """[gates * hidden, inputs]"""
    r: np.ndarray
    """[gates * hidden, hidden], or with a projection [gates * hidden, projected]"""
    w_bias: np.ndarray | None = None
    r_bias: np.ndarray | None = None
    projection: np.ndarray | None = None
    """[projected, hidden]: of an LSTM whose h is shorter than its c."""
    reverse: bool = False


@dataclass
class Recurrence:
    """One layer: its kind and what all of its directions share."""

    kind: str
    directions: list[Direction]
    activations: Sequence[tuple[str, float | None, float | None]] = ()
    """ONNX's name, alpha and beta of each function of one direction; none is the default."""
    linear_before_reset: bool = True
    name: str = ""

    @property
    def hidden(self) -> int:
        return self.directions[0].w.shape[0] // GATES[self.kind]

    @property
    def is_projected(self) -> bool:
        return self.directions[0].projection is not None

    def run(self, net: Net, x: Tensor, states: Sequence[Tensor] | None) -> tuple[Tensor, list[Tensor]]:
        """x [steps, batch, inputs] and states [directions, batch, hidden] to the trace of h, [steps, batch,
        directions * hidden], and the last states."""
        if self.is_projected:
            return self._projected(net, x, states)
        trace, finals = self._node(net, x, states)
        return self._joined(Tensor(net, trace)), [Tensor(net, final) for final in finals]

    def _node(self, net: Net, x: Tensor, states: Sequence[Tensor] | None) -> tuple[Value, list[Value]]:
        b = net.core.builder
        made = [b.value(f"{self.name or self.kind}_{part}") for part in ("trace", "h", "c")[: 1 + N_STATES[self.kind]]]
        inputs: list[Value | None] = [
            net._value(x),
            b.constant(np.stack([part.w for part in self.directions]), f"{self.name}_W"),
            b.constant(np.stack([part.r for part in self.directions]), f"{self.name}_R"),
            self._biases(b),
            None,
            *([] if states is None else [net._value(state) for state in states]),
        ]
        since = len(b.graph.nodes)
        _EXPAND[self.kind](b, Node(self.kind, inputs, [*made], self._attributes(), self.name))
        net.core.settle(since)
        return made[0], made[1:]

    def _biases(self, b: GraphBuilder) -> Value | None:
        rows = []
        for part in self.directions:
            if part.w_bias is None and part.r_bias is None:
                continue
            blank = np.zeros(part.w.shape[0], part.w.dtype)
            w_bias, r_bias = (blank if bias is None else bias for bias in (part.w_bias, part.r_bias))
            rows.append(np.concatenate([w_bias, r_bias]))
        return b.constant(np.stack(rows), f"{self.name}_B") if rows else None

    def _attributes(self) -> dict[str, object]:
        reverse = [part.reverse for part in self.directions]
        directions = {(False,): "forward", (True,): "reverse", (False, True): "bidirectional"}
        attrs: dict[str, object] = {"hidden_size": self.hidden, "direction": directions[tuple(reverse)]}
        if self.kind == "GRU":
            attrs["linear_before_reset"] = int(self.linear_before_reset)
        if self.activations:
            rows = [*self.activations] * len(reverse)
            attrs["activations"] = [name for name, _, _ in rows]
            attrs["activation_alpha"] = [alpha for _, alpha, _ in rows if alpha is not None]
            attrs["activation_beta"] = [beta for _, _, beta in rows if beta is not None]
        return attrs

    def _joined(self, trace: Tensor) -> Tensor:
        """[steps, directions, batch, hidden] to [steps, batch, directions * hidden]."""
        if len(self.directions) == 1:
            return trace.squeeze(1)
        net = trace.net
        return net.concat([part.squeeze(1) for part in net.split(trace, len(self.directions), 1)], 2)

    # --------------------------------------------------------------------------------------------------- projections

    def _projected(self, net: Net, x: Tensor, states: Sequence[Tensor] | None) -> tuple[Tensor, list[Tensor]]:
        """An LSTM with a projection: ONNX has none, so the loop is made here."""
        traces, finals = [], []
        for index, part in enumerate(self.directions):
            inits = None if states is None else [net._value(state[index]) for state in states]
            trace, last = self._projected_scan(net, net._value(x), part, inits)
            traces.append(Tensor(net, trace))
            finals.append([Tensor(net, value) for value in last])
        joined = traces[0] if len(traces) == 1 else net.concat(traces, 2)
        return joined, [net.stack(list(same), 0) for same in zip(*finals, strict=True)]

    def _projected_scan(
        self, net: Net, x: Value, part: Direction, inits: list[Value] | None
    ) -> tuple[Value, list[Value]]:
        outside = net.core.builder
        assert part.projection is not None
        name = f"{self.name}_reverse" if part.reverse else self.name
        since = len(outside.graph.nodes)
        if inits is None:
            sizes = part.projection.shape
            inits = [zeros(outside, x, 1, (size,), x.dtype, f"{name}_zeros") for size in sizes]
        net.core.settle(since)
        body = GraphBuilder(f"{name}_step", outside)
        scan = Scan(body.graph, name=name)
        element = body.value("x", x.dtype, None if x.shape is None else x.shape[1:])
        h, c = (body.value(label, init.dtype, init.shape) for label, init in zip("hc", inits, strict=True))
        scan.add_sequence(x, element, reverse=part.reverse)
        weights = Weights(
            outside.constant(part.w.T, f"{name}_WT"),
            outside.constant(part.r.T, f"{name}_RT"),
            None if part.w_bias is None else outside.constant(part.w_bias, f"{name}_B"),
            None if part.r_bias is None else outside.constant(part.r_bias, f"{name}_B"),
            None,
            self.hidden,
        )
        node = Node(self.kind, [], [], {"hidden_size": self.hidden})
        cell = LstmCell(outside, body, weights, RecurrentAttributes.of(node, 3), 0)
        whole, c_next = cell.step(element, h, c)
        h_next = body.op(
            "MatMul", whole, body.capture(outside.constant(part.projection.T, f"{name}_PT")), name="projected"
        )
        finals = [outside.value(f"{name}_final_{label}") for label in "hc"]
        for init, before, after, final in zip(inits, (h, c), (h_next, c_next), finals, strict=True):
            scan.add_state(init, before, after, final)
        trace = outside.value(f"{name}_trace")
        scan.add_trace(h_next, trace, reverse=part.reverse)
        scan.add_captures(body)
        outside.add(scan.to_node())
        net.core.settle(len(outside.graph.nodes) - 1)
        return trace, finals
