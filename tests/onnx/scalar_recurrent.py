"""RNN, GRU and LSTM as ONNX's text defines them, one number at a time. Independent of webrnn, and slow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def _softplus(x: float) -> float:
    return math.log1p(math.exp(-abs(x))) + max(x, 0.0)


def activation(name: str, alpha: float | None, beta: float | None):
    a, b = alpha, beta
    return {
        "Relu": lambda x: max(x, 0.0),
        "Tanh": math.tanh,
        "Sigmoid": lambda x: 0.5 * (1 + math.tanh(0.5 * x)),
        "Affine": lambda x: (1.0 if a is None else a) * x + (0.0 if b is None else b),
        "LeakyRelu": lambda x: x if x >= 0 else (0.01 if a is None else a) * x,
        "ThresholdedRelu": lambda x: x if x > (1.0 if a is None else a) else 0.0,
        "ScaledTanh": lambda x: (1.0 if a is None else a) * math.tanh((1.0 if b is None else b) * x),
        "HardSigmoid": lambda x: min(max((0.2 if a is None else a) * x + (0.5 if b is None else b), 0.0), 1.0),
        "Elu": lambda x: x if x >= 0 else (1.0 if a is None else a) * math.expm1(x),
        "Softsign": lambda x: x / (1 + abs(x)),
        "Softplus": _softplus,
    }[name]


def run(op: str, operands: dict[str, Any], attrs: dict[str, Any]) -> list[np.ndarray]:
    """Y, Y_h and for LSTM Y_c. Operands by ONNX's names, `functions` in attrs is a list of (name, alpha, beta)."""
    batch_first = attrs.get("layout", 0) == 1
    x = operands["X"].astype(float)
    if batch_first:
        x = x.transpose(1, 0, 2)
    steps, batch, _ = x.shape
    directions = {"forward": [1], "reverse": [-1], "bidirectional": [1, -1]}[attrs.get("direction", "forward")]
    hidden = operands["R"].shape[2]
    lengths = operands.get("sequence_lens")
    lengths = [steps] * batch if lengths is None else lengths.tolist()
    y = np.zeros((steps, len(directions), batch, hidden))
    finals = np.zeros((2, len(directions), batch, hidden))
    for d, sign in enumerate(directions):
        for item in range(batch):
            h, c = (_initial(operands.get(name), d, item, hidden, batch_first) for name in ("initial_h", "initial_c"))
            order = range(lengths[item])[::sign]
            for t in order:
                h, c = _STEPS[op](x[t, item], h, c, _weights(operands, d), attrs, d)
                y[t, d, item] = h
            if lengths[item]:
                finals[0, d, item], finals[1, d, item] = h, c
    if batch_first:
        y, finals = y.transpose(2, 0, 1, 3), finals.transpose(0, 2, 1, 3)
    return [y, finals[0], finals[1]][: 3 if op == "LSTM" else 2]


def _initial(whole, d, item, hidden, batch_first):
    if whole is None:
        return [0.0] * hidden
    return [float(v) for v in (whole[item, d] if batch_first else whole[d, item])]


def _weights(operands: dict[str, Any], d: int) -> dict[str, Any]:
    rows = operands["W"].shape[1]
    b = operands.get("B")
    p = operands.get("P")
    return {
        "W": operands["W"][d].astype(float),
        "R": operands["R"][d].astype(float),
        "Wb": np.zeros(rows) if b is None else b[d, :rows].astype(float),
        "Rb": np.zeros(rows) if b is None else b[d, rows:].astype(float),
        "P": np.zeros(3 * operands["R"].shape[2]) if p is None else p[d].astype(float),
    }


def _functions(attrs, d, count):
    clip = attrs.get("clip")

    def clipped(f):
        return f if not clip else lambda v: f(min(max(v, -clip), clip))

    return [clipped(activation(*item)) for item in attrs["functions"][d * count : (d + 1) * count]]


def _dot(row, vector):
    return math.fsum(float(a) * float(b) for a, b in zip(row, vector, strict=True))


def _rnn(x, h, c, w, attrs, d):
    (f,) = _functions(attrs, d, 1)
    return [f(_dot(w["W"][k], x) + _dot(w["R"][k], h) + w["Wb"][k] + w["Rb"][k]) for k in range(len(h))], c


def _gru(x, h, c, w, attrs, d):
    f, g = _functions(attrs, d, 2)
    n = len(h)
    z = [f(_dot(w["W"][k], x) + _dot(w["R"][k], h) + w["Wb"][k] + w["Rb"][k]) for k in range(n)]
    r = [f(_dot(w["W"][n + k], x) + _dot(w["R"][n + k], h) + w["Wb"][n + k] + w["Rb"][n + k]) for k in range(n)]
    result = []
    for k in range(n):
        row = 2 * n + k
        if attrs.get("linear_before_reset"):
            remembered = r[k] * (_dot(w["R"][row], h) + w["Rb"][row])
        else:
            remembered = _dot(w["R"][row], [r[j] * h[j] for j in range(n)]) + w["Rb"][row]
        candidate = g(_dot(w["W"][row], x) + remembered + w["Wb"][row])
        result.append((1 - z[k]) * candidate + z[k] * h[k])
    return result, c


def _lstm(x, h, c, w, attrs, d):
    f, g, _ = _functions(attrs, d, 3)
    last = activation(*attrs["functions"][3 * d + 2])
    n = len(h)
    new_h, new_c = [], []
    for k in range(n):
        sums = [
            _dot(w["W"][gate * n + k], x)
            + _dot(w["R"][gate * n + k], h)
            + w["Wb"][gate * n + k]
            + w["Rb"][gate * n + k]
            for gate in range(4)
        ]
        i = f(sums[0] + w["P"][k] * c[k])
        forget = 1 - i if attrs.get("input_forget") else f(sums[2] + w["P"][2 * n + k] * c[k])
        cell = forget * c[k] + i * g(sums[3])
        o = f(sums[1] + w["P"][n + k] * cell)
        new_c.append(cell)
        new_h.append(o * last(cell))
    return new_h, new_c


_STEPS = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}
