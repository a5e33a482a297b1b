"""torch's state_dicts as JSON: those of GuitarML's Proteus and SmartAmp, and those of RTNeural's torch_helpers.

A Proteus file says what its model is (`model_data`). A state_dict alone has names and arrays only: what has one meaning
is read, recurrent and linear layers in the order of the file. A convolution does not say its dilation, and which
function stands between two linear layers is not there either, so these are refused.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from webrnn.ir import GraphBuilder, Value

from .effects import Effect, Fixed, about, finished, sample_rate_of, signal_in
from .entries import Entry
from .recurrences import TORCH_GRU, TORCH_LSTM, gru, lstm

FORM = "state_dict"
_PARAMETER = re.compile(r"((?:.*\.)?)(?:weight|bias)(?:_[ih]h_l\d+)?")
_GATES = {3: "GRU", 4: "LSTM"}


def is_state_dict(data: dict[str, Any]) -> bool:
    return "state_dict" in data or any(isinstance(key, str) and key.endswith("weight_ih_l0") for key in data)


def read_state_dict(data: dict[str, Any], fixed: Fixed) -> Effect:
    whole = Entry(data, "model", "state_dict")
    states = whole.inside("state_dict") if whole.has("state_dict") else whole
    settings = whole.inside("model_data") if whole.has("model_data") else Entry({}, "model_data", whole.op)
    stack = _Stack(states)
    b = GraphBuilder(FORM)
    signal, x = signal_in(b, stack.inputs, fixed)
    y, outputs = stack.run(b, x, stack.inputs)
    if _skip(settings):
        if outputs != 1:
            raise settings.wrong("the signal can only be added to a result of one column", "skip")
        y = b.op("Add", y, signal)
    graph = finished(b, y, outputs)
    metadata = {key: item for key, item in settings.data.items() if isinstance(item, bool | int | float | str)}
    rate = sample_rate_of(data.get("sample_rate", data.get("samplerate")), "sample_rate")
    return Effect(graph, about(FORM, "+".join(stack.kinds), graph, rate, metadata, True))


def _skip(settings: Entry) -> int:
    """Whether the signal is added to the result. The sizes that the file says again are not needed."""
    model = settings.text("model", "SimpleRNN")
    if model != "SimpleRNN":
        raise settings.unsupported(f"the model {model!r} is not known", "model")
    skip: int = settings.count("skip", 0, least=0)
    if skip > 1:
        raise settings.unsupported(f"{skip} inputs are to be added to the result; at most one can be", "skip")
    return skip


class _Stack:
    """The layers of a state_dict, in its order."""

    def __init__(self, states: Entry):
        self.states = states
        self.prefixes: list[str] = []
        for key in states.data:
            found = _PARAMETER.fullmatch(key)
            if found is None:
                raise states.unsupported(f"{key!r} belongs to no layer that is known")
            if found[1] not in self.prefixes:
                self.prefixes.append(found[1])
        self._require_one_meaning()
        self.kinds: list[str] = []
        self.inputs = self._columns(f"{self.prefixes[0]}weight_ih_l0")

    def run(self, b: GraphBuilder, x: Value, inputs: int) -> tuple[Value, int]:
        for prefix in self.prefixes:
            if self._is_recurrent(prefix):
                x, inputs = self._recurrent(b, x, inputs, prefix)
            else:
                x, inputs = self._linear(b, x, inputs, prefix)
        return x, inputs

    def _is_recurrent(self, prefix: str) -> bool:
        return f"{prefix}weight_ih_l0" in self.states.data

    def _require_one_meaning(self) -> None:
        kinds = [self._is_recurrent(prefix) for prefix in self.prefixes]
        if not kinds or not kinds[0] or kinds.count(False) > 1 or (False in kinds and kinds[-1]):
            raise self.states.unsupported(
                "a state_dict alone says what recurrent layers with one linear layer behind them do, and nothing else: "
                "webrnn.build makes a graph of others"
            )
        for prefix in self.prefixes:
            if not self._is_recurrent(prefix) and self._rank(f"{prefix}weight") != 2:
                key = f"{prefix}weight"
                raise self.states.unsupported("a convolution or a norm alone does not say what it does", key)

    def _rank(self, key: str) -> int:
        value, rank = self.states.data.get(key), 0
        while isinstance(value, list):
            value, rank = value[0] if value else None, rank + 1
        return rank

    def _columns(self, key: str) -> int:
        rows = self.states.items(key)
        if not rows or not isinstance(rows[0], list) or not rows[0]:
            raise self.states.wrong("it is no matrix", key)
        return len(rows[0])

    def _recurrent(self, b: GraphBuilder, x: Value, inputs: int, prefix: str) -> tuple[Value, int]:
        states = self.states
        name = prefix.strip(".") or "rec"
        hidden = self._columns(f"{prefix}weight_hh_l0")
        gates, rest = divmod(len(states.items(f"{prefix}weight_hh_l0")), hidden)
        if rest or gates not in _GATES:
            raise states.unsupported("it is no matrix of a GRU or of an LSTM", f"{prefix}weight_hh_l0")
        layers = 0
        while states.has(f"{prefix}weight_ih_l{layers}"):
            layers += 1
        x = b.op("Unsqueeze", x, b.ints(1))
        for layer in range(layers):
            shape, end = (gates * hidden,), f"_l{layer}"
            w = states.array(states.get(f"{prefix}weight_ih{end}"), (*shape, inputs), f"{prefix}weight_ih{end}")
            r = states.array(states.get(f"{prefix}weight_hh{end}"), (*shape, hidden), f"{prefix}weight_hh{end}")
            w_bias, r_bias = (self._bias(f"{prefix}bias_{side}h{end}", shape) for side in "ih")
            kind, label = _GATES[gates], f"{name}{end}"
            if kind == "LSTM":
                x = lstm(b, x, w, r, w_bias + r_bias, TORCH_LSTM, label)
            else:
                x = gru(b, x, w, r, w_bias, r_bias, TORCH_GRU, label)
            self.kinds.append(kind)
            inputs = hidden
        return b.op("Squeeze", x, b.ints(1)), hidden

    def _bias(self, key: str, shape: tuple[int]) -> np.ndarray:
        """Zeros if the layer has none."""
        states = self.states
        return states.array(states.get(key), shape, key) if states.has(key) else np.zeros(shape, np.float32)

    def _linear(self, b: GraphBuilder, x: Value, inputs: int, prefix: str) -> tuple[Value, int]:
        states, key = self.states, f"{prefix}bias"
        outputs = len(states.items(f"{prefix}weight"))
        w = states.array(states.get(f"{prefix}weight"), (outputs, inputs), f"{prefix}weight")
        x = b.op("MatMul", x, b.constant(np.ascontiguousarray(w.T), f"{prefix}w"))
        if states.has(key):
            x = b.op("Add", x, b.constant(states.array(states.get(key), (outputs,), key), f"{prefix}b"))
        self.kinds.append("Linear")
        return x, outputs
