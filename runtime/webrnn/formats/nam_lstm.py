"""NAM's LSTM: layers one behind the other, each with the states that it starts from, and a head of one output."""

from __future__ import annotations

import numpy as np

from .entries import Entry, Weights
from .recurrences import TORCH_LSTM, lstm
from .signals import Signal, SignalBuilder

_STEPS_OF_SILENCE = 64
_STILL = 1e-6


def lstm_model(s: SignalBuilder, x: Signal, config: Entry, weights: Weights) -> Signal:
    config.refuse_others({"input_size", "hidden_size", "num_layers"})
    inputs, hidden = config.count("input_size", 1), config.count("hidden_size")
    if x.channels != inputs:
        raise config.wrong(f"it takes {inputs} signals and gets {x.channels}", "input_size")
    x = s.plain(x)
    b, silent = s.b, None
    if x.silence is not None:
        silent = np.repeat(x.silence[0].T, _STEPS_OF_SILENCE, axis=0)
    steps = b.op("Transpose", x.value, perm=[2, 0, 1])
    for index in range(config.count("num_layers", 1)):
        name = f"lstm_{index}"
        both = weights.take((4 * hidden, inputs + hidden), name)
        bias = weights.take((4 * hidden,), name)
        starts = tuple(weights.take((1, hidden), name) for _ in range(2))
        w, r = both[:, :inputs], both[:, inputs:]
        steps = lstm(b, steps, w, r, bias, TORCH_LSTM, name, (starts[0], starts[1]))
        if silent is not None:
            silent = _in_silence(silent, w, r, bias, starts[0][0], starts[1][0])
        inputs = hidden
    w, bias = weights.take((1, hidden), "head"), weights.take((1,), "head")
    y = b.op("Add", b.op("MatMul", steps, b.constant(np.ascontiguousarray(w.T), "head.w")), b.constant(bias, "head.b"))
    silence = None
    if silent is not None:
        ends = silent @ w[0].astype(np.float64) + bias[0]
        silence = ends[-1].reshape(1, 1, 1) if np.ptp(ends) < _STILL else None
    return Signal(b.op("Transpose", y, perm=[1, 2, 0]), silence, 1)


def _in_silence(
    x: np.ndarray, w: np.ndarray, r: np.ndarray, bias: np.ndarray, h: np.ndarray, c: np.ndarray
) -> np.ndarray:
    """What a layer gives in the first steps of silence: all the same if its file was written by the trainer."""
    trace = []
    h, c = h.astype(np.float64), c.astype(np.float64)
    for row in x:
        i, f, g, o = np.split(w @ row + r @ h + bias, 4)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        trace.append(h)
    return np.array(trace)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 + 0.5 * np.tanh(0.5 * x)
