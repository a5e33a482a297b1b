"""Recurrent layers of Keras's: `KerasNet`, all layers of it. x is [batch, time, inputs]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from webrnn.errors import OptionError, ShapeError
from webrnn.ir import SymbolicDim

from .activations import cell_function
from .keras_layers import KerasLayers
from .keras_weights import UNSET, Layer
from .recurrent import GATES, N_STATES, Direction, Recurrence
from .tensor import Tensor
from .weights import require_shape, spelled

_ORDER = {"RNN": (0,), "GRU": (0, 1, 2), "LSTM": (0, 3, 1, 2)}
"""Where ONNX's gates are among Keras's: z, r, h and i, f, c, o."""

_KINDS = {1: "RNN", 3: "GRU", 4: "LSTM"}
_CALLED = {"RNN": "SimpleRNN", "GRU": "GRU", "LSTM": "LSTM"}

MERGES = ("concat", "sum", "ave", "mul")


class KerasNet(KerasLayers):
    """A model of Keras's under construction."""

    def simple_rnn(
        self,
        name: str,
        x: Tensor,
        initial_state: Tensor | None = None,
        *,
        activation: Any = UNSET,
        return_sequences: Any = UNSET,
        return_state: Any = UNSET,
        go_backwards: Any = UNSET,
        states: bool = False,
    ) -> Any:
        """keras.layers.SimpleRNN. See `gru`."""
        options = dict(activation=activation, go_backwards=go_backwards)
        return self._recurrent("RNN", name, x, initial_state, return_sequences, return_state, states, options)

    def gru(
        self,
        name: str,
        x: Tensor,
        initial_state: Tensor | None = None,
        *,
        activation: Any = UNSET,
        recurrent_activation: Any = UNSET,
        reset_after: Any = UNSET,
        return_sequences: Any = UNSET,
        return_state: Any = UNSET,
        go_backwards: Any = UNSET,
        states: bool = False,
    ) -> Any:
        """keras.layers.GRU of x [batch, time, inputs]: the last output, with `return_sequences` all of them, and with
        `return_state` also the last state: y, h.

        `reset_after` is in the weights, if the layer has a bias. With `states` the first state is an input of the model
        that is called like the layer, "gru_h", and the last one an output, "gru_h_next", as a layer with stateful=True
        keeps it: `net.stream()` carries it.
        """
        options = dict(
            activation=activation,
            recurrent_activation=recurrent_activation,
            go_backwards=go_backwards,
            reset_after=reset_after,
        )
        return self._recurrent("GRU", name, x, initial_state, return_sequences, return_state, states, options)

    def lstm(
        self,
        name: str,
        x: Tensor,
        initial_state: Sequence[Tensor] | None = None,
        *,
        activation: Any = UNSET,
        recurrent_activation: Any = UNSET,
        return_sequences: Any = UNSET,
        return_state: Any = UNSET,
        go_backwards: Any = UNSET,
        states: bool = False,
    ) -> Any:
        """keras.layers.LSTM: y, or with `return_state` y, h, c. See `gru`."""
        options = dict(activation=activation, recurrent_activation=recurrent_activation, go_backwards=go_backwards)
        return self._recurrent("LSTM", name, x, initial_state, return_sequences, return_state, states, options)

    def bidirectional(
        self,
        name: str,
        x: Tensor,
        merge_mode: Any = UNSET,
        *,
        activation: Any = UNSET,
        recurrent_activation: Any = UNSET,
        reset_after: Any = UNSET,
        return_sequences: Any = UNSET,
    ) -> Any:
        """keras.layers.Bidirectional of a GRU, an LSTM or a SimpleRNN: which one is in the weights. `merge_mode` is
        "concat", "sum", "ave", "mul" or None, which gives both outputs."""
        with self.layer("Bidirectional", self.full(name)):
            layer = self.named(name)
            mode = layer.option("merge_mode", merge_mode, "concat")
            if mode is not None and mode not in MERGES:
                raise OptionError(f"merge_mode is {mode!r}; it is one of {', '.join(MERGES)} and None")
            sides = [layer.side(direction) for direction in ("forward", "backward")]
            kind = _kind(sides[0])
            options = dict(activation=activation, recurrent_activation=recurrent_activation, reset_after=reset_after)
            sequence = self._time_first(x)
            whole = sides[0].option("return_sequences", return_sequences, False)
            outputs = []
            for side, reverse in zip(sides, (False, True), strict=True):
                built = _recurrence(
                    side, kind, options, reverse, f"{self.full(name)}_{'backward' if reverse else 'forward'}"
                )
                self._require_inputs(x, built)
                trace, last = built.run(self, sequence, None)
                outputs.append(trace.permute(1, 0, 2) if whole else last[0].squeeze(0))
            return self._merged(outputs, mode)

    def _merged(self, outputs: list[Tensor], mode: str | None) -> Any:
        forward, backward = outputs
        if mode is None:
            return forward, backward
        if mode == "concat":
            return self.concat(outputs, -1)
        if mode == "mul":
            return forward * backward
        total = forward + backward
        return total / 2 if mode == "ave" else total

    def _recurrent(
        self,
        kind: str,
        name: str,
        x: Tensor,
        given: Any,
        return_sequences: Any,
        return_state: Any,
        states: bool,
        options: dict[str, Any],
    ) -> Any:
        with self.layer(_CALLED[kind], self.full(name)):
            layer = self.named(name)
            backwards = bool(layer.option("go_backwards", options.pop("go_backwards"), False))
            built = _recurrence(layer, kind, options, backwards, self.full(name))
            sequence = self._time_first(x)
            self._require_inputs(x, built)
            starts = self._starts(given, kind, sequence, built, name, states)
            if states and backwards:
                raise OptionError("states=True: a layer that goes backwards begins at the end of the sequence")
            trace, last = built.run(self, sequence, starts)
            ends = [state.squeeze(0) for state in last]
            if states:
                for label, state in zip("hc", ends, strict=False):
                    self.keep_state(_state_name(name, label), state)
            y = ends[0]
            if layer.option("return_sequences", return_sequences, False):
                y = trace.permute(1, 0, 2)
                y = y[:, ::-1] if backwards else y  # in the order in which the layer made them
            return (y, *ends) if layer.option("return_state", return_state, False) else y

    def _time_first(self, x: Tensor) -> Tensor:
        self._value(x)
        if x.rank != 3:
            raise ShapeError(f"the input is {spelled(x.shape)}, it has to be [batch, time, inputs]")
        return x.permute(1, 0, 2)

    def _require_inputs(self, x: Tensor, built: Recurrence) -> None:
        self.require_size(x, 2, built.directions[0].w.shape[1])

    def _starts(
        self, given: Any, kind: str, x: Tensor, built: Recurrence, name: str, states: bool
    ) -> list[Tensor] | None:
        """The first states, [1, batch, hidden] each."""
        if states:
            if given is not None:
                raise OptionError("either the states are given or states=True makes inputs of them")
            batch = None if x.value.shape is None else x.value.shape[1]
            if not isinstance(batch, int | SymbolicDim) or x.value.dtype is None:
                raise ShapeError("states=True needs a batch that is known or has a name")
            given = [
                self.state(_state_name(name, label), (batch, built.hidden), x.value.dtype)
                for label in "hc"[: N_STATES[kind]]
            ]
        if given is None:
            return None
        found = list(given) if isinstance(given, tuple | list) else [given]
        if len(found) != N_STATES[kind]:
            raise OptionError(f"a {_CALLED[kind]} has {N_STATES[kind]} states, given are {len(found)}")
        for state in found:
            self._value(state)
            if state.rank != 2:
                raise ShapeError(f"a state is {spelled(state.shape)}, it has to be [batch, {built.hidden}]")
            self.require_size(state, 1, built.hidden, "a state")
        return [state.unsqueeze(0) for state in found]


def _state_name(name: str, label: str) -> str:
    return f"{name.replace('/', '_')}_{label}"


def _kind(layer: Layer) -> str:
    """GRU, LSTM or RNN, by the sizes of the weights."""
    arrays = layer.arrays("kernel", "recurrent_kernel", "bias", optional=["bias"])
    r = layer.require(arrays, "recurrent_kernel", None, None)
    found = _KINDS.get(r.shape[1] // r.shape[0]) if r.shape[0] and not r.shape[1] % r.shape[0] else None
    if found is None:
        raise ShapeError(
            f"tensor {layer.name_of('recurrent_kernel')!r} is {spelled(r.shape)}: no GRU, LSTM or SimpleRNN"
        )
    return found


def _recurrence(layer: Layer, kind: str, options: dict[str, Any], reverse: bool, name: str) -> Recurrence:
    """A layer with its weights; gates in ONNX's order."""
    gates = GATES[kind]
    arrays = layer.arrays("kernel", "recurrent_kernel", "bias", optional=["bias"])
    r = layer.require(arrays, "recurrent_kernel", None, None)
    hidden = r.shape[0]
    if not hidden or r.shape[1] != gates * hidden:
        has, rest = divmod(r.shape[1], hidden) if hidden else (0, 1)
        if not rest and has in _KINDS:
            other = _CALLED[_KINDS[has]]
            what = f"{has} gates of {hidden}: these are weights of a {other}, not of a {_CALLED[kind]}"
            raise OptionError(f"tensor {layer.name_of('recurrent_kernel')!r} is {spelled(r.shape)}, {what}")
        require_shape(r, layer.name_of("recurrent_kernel"), (hidden, gates * hidden))
    w = layer.require(arrays, "kernel", None, gates * hidden)
    w_bias, r_bias, after = _biases(layer, arrays, kind, gates * hidden, options.get("reset_after", UNSET))
    direction = Direction(
        _ordered(kind, w.T),
        _ordered(kind, r.T),
        None if w_bias is None else _ordered(kind, w_bias),
        None if r_bias is None else _ordered(kind, r_bias),
        reverse=reverse,
    )
    for option in ("dropout", "recurrent_dropout"):
        layer.option(option, UNSET, 0)
    own = cell_function(layer.option("activation", options["activation"], "tanh"))
    functions = [own]
    if kind != "RNN":
        gate = cell_function(layer.option("recurrent_activation", options["recurrent_activation"], "sigmoid"))
        functions = [gate, own] if kind == "GRU" else [gate, own, own]
    return Recurrence(kind, [direction], functions, linear_before_reset=after, name=name)


def _biases(
    layer: Layer, arrays: dict[str, np.ndarray], kind: str, size: int, reset_after: Any
) -> tuple[np.ndarray | None, np.ndarray | None, bool]:
    """The bias of the input, that of the state, and whether a GRU resets after its product."""
    asked = layer.option("reset_after", reset_after, None) if kind == "GRU" else None
    bias = arrays.get("bias")
    if bias is None:
        return None, None, True if asked is None else bool(asked)
    if kind == "GRU" and bias.ndim == 2:
        layer.require(arrays, "bias", 2, size)
        if asked is False:
            raise OptionError(f"reset_after is False, and the bias is {spelled(bias.shape)}, as with reset_after=True")
        return bias[0], bias[1], True
    layer.require(arrays, "bias", size)
    if asked:
        raise OptionError(f"reset_after is True, and the bias is {spelled(bias.shape)}, as with reset_after=False")
    return bias, None, kind != "GRU"


def _ordered(kind: str, array: np.ndarray) -> np.ndarray:
    parts = np.split(array, GATES[kind])
    return np.concatenate([parts[place] for place in _ORDER[kind]])
