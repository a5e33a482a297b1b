"""Recurrent layers in numpy, written from the formulas in the documentation of PyTorch and Keras."""

from __future__ import annotations

import numpy as np


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def torch_gru(x: np.ndarray, h: np.ndarray, w: np.ndarray, u: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """r, z, n = chunks; n = tanh(W x + b + r * (U h + c)); h' = (1 - z) n + z h. All steps of x [time, batch, in]."""
    rows = []
    for x_t in x:
        r_x, z_x, n_x = np.split(x_t @ w.T + b, 3, -1)
        r_h, z_h, n_h = np.split(h @ u.T + c, 3, -1)
        r, z = sigmoid(r_x + r_h), sigmoid(z_x + z_h)
        h = (1 - z) * np.tanh(n_x + r * n_h) + z * h
        rows.append(h)
    return np.stack(rows)


def torch_lstm(
    x: np.ndarray, h: np.ndarray, c: np.ndarray, w: np.ndarray, u: np.ndarray, bias: np.ndarray, p: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """i, f, g, o = chunks; c' = f c + i g; h' = o tanh(c'), times the projection."""
    rows = []
    for x_t in x:
        i, f, g, o = np.split(x_t @ w.T + h @ u.T + bias, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        h = h if p is None else h @ p.T
        rows.append(h)
    return np.stack(rows), c


def keras_gru(x: np.ndarray, w: np.ndarray, u: np.ndarray, bias: np.ndarray, reset_after: bool) -> np.ndarray:
    """z, r, h = chunks; x [batch, time, in]. All steps, [batch, time, units]."""
    units = u.shape[0]
    h = np.zeros((x.shape[0], units))
    inner = bias[0] if reset_after else bias
    outer = bias[1] if reset_after else np.zeros(3 * units)
    rows = []
    for x_t in x.swapaxes(0, 1):
        x_z, x_r, x_h = np.split(x_t @ w + inner, 3, -1)
        if reset_after:
            h_z, h_r, h_h = np.split(h @ u + outer, 3, -1)
            z, r = sigmoid(x_z + h_z), sigmoid(x_r + h_r)
            new = np.tanh(x_h + r * h_h)
        else:
            z = sigmoid(x_z + h @ u[:, :units])
            r = sigmoid(x_r + h @ u[:, units : 2 * units])
            new = np.tanh(x_h + (r * h) @ u[:, 2 * units :])
        h = z * h + (1 - z) * new
        rows.append(h)
    return np.stack(rows, 1)


def keras_lstm(x: np.ndarray, w: np.ndarray, u: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """i, f, c, o = chunks."""
    h = c = np.zeros((x.shape[0], u.shape[0]))
    rows = []
    for x_t in x.swapaxes(0, 1):
        i, f, g, o = np.split(x_t @ w + h @ u + bias, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        rows.append(h)
    return np.stack(rows, 1)
