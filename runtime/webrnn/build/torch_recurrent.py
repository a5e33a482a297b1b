"""Recurrent layers of PyTorch's: `TorchNet`, all layers of it.

Each takes the prefix of its weights in the state_dict and gives what PyTorch's gives: output and last states. How many
layers and directions there are, sizes, biases and projections are in the weights.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from webrnn.errors import OptionError, ShapeError
from webrnn.ir import SymbolicDim

from .activations import cell_function
from .recurrent import GATES, N_STATES, Direction, Recurrence
from .tensor import Tensor
from .torch_layers import TorchLayers
from .torch_weights import Module
from .weights import few, require_shape, spelled

States = tuple[Tensor, Tensor]

_ORDER = {"RNN": (0,), "GRU": (1, 0, 2), "LSTM": (0, 3, 1, 2)}
"""Where ONNX's gates are among PyTorch's: r, z, n and i, f, g, o."""

_KIND_BY_GATES = {1: "RNN", 3: "GRU", 4: "LSTM"}


class TorchNet(TorchLayers):
    """A model of PyTorch's under construction."""

    def rnn(
        self,
        prefix: str,
        x: Tensor,
        hx: Tensor | None = None,
        *,
        nonlinearity: str = "tanh",
        batch_first: bool = False,
        states: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """torch.nn.RNN: `output, h_n`. See `gru`."""
        if nonlinearity not in ("tanh", "relu"):
            raise OptionError(f"nonlinearity is {nonlinearity!r}; it is tanh or relu")
        y, last = self._recurrent("RNN", prefix, x, _tuple(hx), batch_first, states, nonlinearity)
        return y, last[0]

    def gru(
        self, prefix: str, x: Tensor, hx: Tensor | None = None, *, batch_first: bool = False, states: bool = False
    ) -> tuple[Tensor, Tensor]:
        """torch.nn.GRU: `output, h_n`, of x [time, batch, inputs], or [batch, time, inputs] with `batch_first`.

        `hx` is the first state, [layers * directions, batch, hidden]; zeros if it is left out. With `states` it is an
        input of the model that is called like the layer, "rnn_h", and the last state is an output, "rnn_h_next":
        `net.stream()` carries it.
        """
        y, last = self._recurrent("GRU", prefix, x, _tuple(hx), batch_first, states)
        return y, last[0]

    def lstm(
        self, prefix: str, x: Tensor, hx: States | None = None, *, batch_first: bool = False, states: bool = False
    ) -> tuple[Tensor, States]:
        """torch.nn.LSTM: `output, (h_n, c_n)`, with `proj_size` if the weights have one. See `gru`."""
        if hx is not None and not (isinstance(hx, tuple | list) and len(hx) == 2):
            raise OptionError("the states of an LSTM are two: (h, c)", node=self.full(prefix), op="LSTM")
        y, last = self._recurrent("LSTM", prefix, x, hx, batch_first, states)
        return y, (last[0], last[1])

    # --------------------------------------------------------------------------------------------------------- cells

    def rnn_cell(self, prefix: str, x: Tensor, hx: Tensor | None = None, *, nonlinearity: str = "tanh") -> Tensor:
        """torch.nn.RNNCell: the next h, of x [batch, inputs] and h [batch, hidden]."""
        if nonlinearity not in ("tanh", "relu"):
            raise OptionError(f"nonlinearity is {nonlinearity!r}; it is tanh or relu")
        return self._cell("RNN", prefix, x, _tuple(hx), nonlinearity)[0]

    def gru_cell(self, prefix: str, x: Tensor, hx: Tensor | None = None) -> Tensor:
        """torch.nn.GRUCell: the next h, of x [batch, inputs] and h [batch, hidden]."""
        return self._cell("GRU", prefix, x, _tuple(hx))[0]

    def lstm_cell(self, prefix: str, x: Tensor, hx: States | None = None) -> States:
        """torch.nn.LSTMCell: the next (h, c)."""
        if hx is not None and not (isinstance(hx, tuple | list) and len(hx) == 2):
            raise OptionError("the states of an LSTM are two: (h, c)", node=self.full(prefix), op="LSTMCell")
        h, c = self._cell("LSTM", prefix, x, hx)
        return h, c

    def _cell(
        self, kind: str, prefix: str, x: Tensor, hx: Sequence[Tensor] | None, nonlinearity: str = "tanh"
    ) -> list[Tensor]:
        with self.layer(f"{kind}Cell", self.full(prefix)):
            module = self.module(prefix)
            direction = _direction(module, kind, "", "")
            self.require_size(x, -1, direction.w.shape[1])
            if x.rank not in (1, 2):
                raise ShapeError(f"the input is {spelled(x.shape)}, it has to be [batch, inputs]")
            is_single = x.rank == 1
            layer = _recurrence(kind, [direction], nonlinearity, self.full(prefix))
            sizes = [direction.r.shape[1]] * N_STATES[kind]
            given = None if hx is None else [self._checked_state(state, x, sizes[0], x.rank) for state in hx]
            if given is not None:
                given = [state.unsqueeze(0, 1) if is_single else state.unsqueeze(0) for state in given]
            _, last = layer.run(self, x.unsqueeze(0, 1) if is_single else x.unsqueeze(0), given)
            return [state.squeeze(0, 1) if is_single else state.squeeze(0) for state in last]

    def _checked_state(self, state: Tensor, x: Tensor, size: int, rank: int) -> Tensor:
        self._value(state)
        if state.rank != rank:
            raise ShapeError(f"a state is {spelled(state.shape)}, it needs {rank} axes, as the input has")
        self.require_size(state, -1, size, "a state")
        return state

    # -------------------------------------------------------------------------------------------------------- layers

    def _recurrent(
        self,
        kind: str,
        prefix: str,
        x: Tensor,
        hx: Sequence[Tensor] | None,
        batch_first: bool,
        states: bool,
        nonlinearity: str = "tanh",
    ) -> tuple[Tensor, list[Tensor]]:
        with self.layer(kind, self.full(prefix)):
            layers = _layers(self.module(prefix), kind)
            self._value(x)
            if x.rank not in (2, 3):
                raise ShapeError(f"the input is {spelled(x.shape)}, it has to have 2 or 3 axes")
            self.require_size(x, -1, layers[0][0].w.shape[1])
            is_single = x.rank == 2
            if is_single:
                x = x.unsqueeze(1)
            elif batch_first:
                x = x.transpose(0, 1)
            sizes = [_h_size(layers[0][0]), layers[0][0].w.shape[0] // GATES[kind]][: N_STATES[kind]]
            count = sum(len(layer) for layer in layers)
            if states:
                hx = self._state_inputs(prefix, hx, x, sizes, layers)
            given = (
                None
                if hx is None
                else [self._given(item, count, x, size, is_single) for item, size in zip(hx, sizes, strict=True)]
            )
            y, last = self._stacked(kind, prefix, x, layers, given, nonlinearity)
            if states:
                for label, state in zip("hc", last, strict=False):
                    self.keep_state(_state_name(prefix, label), state)
            if is_single:
                return y.squeeze(1), [state.squeeze(1) for state in last]
            return y.transpose(0, 1) if batch_first else y, last

    def _stacked(
        self, kind: str, prefix: str, x: Tensor, layers: list[list[Direction]], given: Any, nonlinearity: str
    ) -> tuple[Tensor, list[Tensor]]:
        """Layer upon layer; the last states of all of them along the first axis."""
        ends: list[list[Tensor]] = []
        place = 0
        for index, directions in enumerate(layers):
            name = self.full(prefix) or kind.lower()
            layer = _recurrence(kind, directions, nonlinearity, name if len(layers) == 1 else f"{name}_l{index}")
            count = len(directions)
            starts = None if given is None else [_rows(state, place, count, len(layers)) for state in given]
            x, last = layer.run(self, x, starts)
            ends.append(last)
            place += count
        if len(ends) == 1:
            return x, ends[0]
        return x, [self.concat(list(same), 0) for same in zip(*ends, strict=True)]

    def _state_inputs(
        self, prefix: str, hx: Any, x: Tensor, sizes: list[int], layers: list[list[Direction]]
    ) -> list[Tensor]:
        if hx is not None:
            raise OptionError("either the states are given or states=True makes inputs of them")
        if len(layers[0]) > 1:
            raise OptionError("states=True: the backward direction of a layer begins at the end of the sequence")
        batch = None if x.value.shape is None else x.value.shape[1]
        if not isinstance(batch, int | SymbolicDim) or x.value.dtype is None:
            raise ShapeError("states=True needs a batch that is known or has a name")
        return [
            self.state(_state_name(prefix, label), (len(layers), batch, size), x.value.dtype)
            for label, size in zip("hc", sizes, strict=False)
        ]

    def _given(self, state: Tensor, count: int, x: Tensor, size: int, is_single: bool) -> Tensor:
        self._value(state)
        if is_single and state.rank == 2:
            state = state.unsqueeze(1)
        if state.rank != 3:
            raise ShapeError(f"a state is {spelled(state.shape)}, it has to be [layers * directions, batch, hidden]")
        self.require_size(state, 0, count, "a state")
        self.require_size(state, 2, size, "a state")
        return state


def _state_name(prefix: str, label: str) -> str:
    return f"{prefix.replace('.', '_')}_{label}" if prefix else label


def _rows(state: Tensor, place: int, count: int, n_layers: int) -> Tensor:
    return state if n_layers == 1 else state[place : place + count]


def _tuple(state: Any) -> Any:
    if isinstance(state, tuple | list):
        raise OptionError("this layer has one state, not a tuple of them")
    return None if state is None else (state,)


def _h_size(direction: Direction) -> int:
    return direction.r.shape[1]


def _recurrence(kind: str, directions: list[Direction], nonlinearity: str, name: str) -> Recurrence:
    functions = [cell_function(nonlinearity)] if kind == "RNN" else []
    return Recurrence(kind, directions, functions, name=name)


def _layers(module: Module, kind: str) -> list[list[Direction]]:
    """The weights of all layers, for each of them those of its directions."""
    names = module.weights.below(module.prefix)
    numbers = sorted(
        {int(found[1]) for name in names if (found := re.fullmatch(r"weight_hh_l(\d{1,6})(?:_.*)?", name))}
    )
    numbers = numbers or sorted(
        {
            int(found[1])
            for name in names
            if (found := re.fullmatch(r"parametrizations\.weight_hh_l(\d{1,6})\..*", name))
        }
    )
    if not numbers:
        raise module.weights.missing(module.prefix, "weight_hh_l0")
    if numbers != list(range(len(numbers))):
        raise OptionError(f"layers {numbers} have weights below {module.prefix!r}; some are missing")
    is_double = module.has("weight_hh_l0_reverse")
    layers = []
    inputs: int | None = None
    for index in numbers:
        suffixes = (f"_l{index}", f"_l{index}_reverse")[: 1 + is_double]
        layer = [
            _direction(module, kind, suffix, "_reverse" if place else "", inputs)
            for place, suffix in enumerate(suffixes)
        ]
        if len(layer) == 2:
            for name, one, other in (("weight_ih", layer[0].w, layer[1].w), ("weight_hh", layer[0].r, layer[1].r)):
                require_shape(other, module.full(f"{name}{suffixes[1]}"), one.shape)
        layers.append(layer)
        inputs = _h_size(layer[0]) * len(layer)
    if not is_double and any(module.has(f"weight_hh_l{index}_reverse") for index in numbers):
        raise OptionError(f"only some layers below {module.prefix!r} have a reverse direction: {few(names)}")
    return layers


def _direction(module: Module, kind: str, suffix: str, reverse: str, inputs: int | None = None) -> Direction:
    """The weights of one direction, gates in ONNX's order."""
    gates = GATES[kind]
    r = module.get(f"weight_hh{suffix}", None, None)
    projection = module.maybe(f"weight_hr{suffix}", r.shape[1], None)
    if projection is not None and kind != "LSTM":
        raise OptionError(f"{module.full(f'weight_hr{suffix}')!r}: only an LSTM has a projection")
    hidden = r.shape[1] if projection is None else projection.shape[1]
    if not hidden or r.shape[0] != gates * hidden:
        has, rest = divmod(r.shape[0], hidden) if hidden else (0, 1)
        found = _KIND_BY_GATES.get(has) if not rest else None
        if found:
            what = f"{r.shape[0]} rows are {has} gates of {hidden}: these are weights of a layer {found}, not {kind}"
            raise OptionError(f"tensor {module.full(f'weight_hh{suffix}')!r} is {spelled(r.shape)}: {what}")
        require_shape(r, module.full(f"weight_hh{suffix}"), (gates * hidden, r.shape[1]))
        raise ShapeError(f"tensor {module.full(f'weight_hh{suffix}')!r} is {spelled(r.shape)}")
    w = module.get(f"weight_ih{suffix}", gates * hidden, inputs)
    biases = [module.maybe(f"bias_{side}{suffix}", gates * hidden) for side in ("ih", "hh")]
    w, r = (_ordered(kind, array) for array in (w, r))
    w_bias, r_bias = (None if bias is None else _ordered(kind, bias) for bias in biases)
    return Direction(w, r, w_bias, r_bias, projection, bool(reverse))


def _ordered(kind: str, array: np.ndarray) -> np.ndarray:
    """PyTorch's gates in ONNX's order, along the first axis."""
    parts = np.split(array, GATES[kind])
    return np.concatenate([parts[place] for place in _ORDER[kind]])
