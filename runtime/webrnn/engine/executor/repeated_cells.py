"""Recurrent cells in numpy, run again and again: gates side by side, results and scratch in buffers that are kept.

Only cells with the usual functions are here, in arithmetic that gives the bits of `fused_ops`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from webrnn.ir import Node
from webrnn.ir.fused import is_cell

Array: TypeAlias = np.ndarray
Writer: TypeAlias = Callable[[list[Any]], list[Array]]
"""Runs a cell; what it gives is overwritten by the next run."""


def writer(node: Node, arguments: list[Any]) -> Writer | None:
    """For operands like these, which were found to be right; None for a cell that is not one of these."""
    if not is_cell(node) or node.op not in _WRITERS:
        return None
    functions, make = _WRITERS[node.op]
    if tuple(node.attrs["activations"]) != functions or node.attrs["params"][0] != np.inf or node.attrs.get("couple"):
        return None
    types = {argument.dtype for argument in arguments if argument is not None}
    if len(arguments) != 3 - (node.op == "RnnCell") or types not in ({np.dtype("f4")}, {np.dtype("f8")}):
        return None
    if not all(np.empty_like(argument).flags.c_contiguous for argument in arguments):
        return None  # results would have another memory layout
    return make(arguments)


def _sigmoid(x: Array) -> None:
    np.negative(x, out=x)
    np.exp(x, out=x)
    np.add(1, x, out=x)
    np.divide(1, x, out=x)


def _rnn(arguments: list[Array]) -> Writer:
    made = np.empty(arguments[0].shape, arguments[0].dtype)

    def run(given: list[Array]) -> list[Array]:
        np.add(given[0], given[1], out=made)
        np.tanh(made, out=made)
        return [made]

    return run


def _gru(arguments: list[Array]) -> Writer:
    state = arguments[2]
    width = state.shape[-1]
    gates = np.empty((*state.shape[:-1], 2 * width), state.dtype)
    z, r = gates[..., :width], gates[..., width:]
    n, made = np.empty(state.shape, state.dtype), np.empty(state.shape, state.dtype)

    def run(given: list[Array]) -> list[Array]:
        xw, hw, h = given
        np.add(xw[..., : 2 * width], hw[..., : 2 * width], out=gates)
        _sigmoid(gates)
        np.multiply(r, hw[..., 2 * width :], out=n)
        np.add(xw[..., 2 * width :], n, out=n)
        np.tanh(n, out=n)
        np.subtract(1, z, out=made)
        np.multiply(made, n, out=made)
        np.multiply(z, h, out=n)
        np.add(made, n, out=made)
        return [made]

    return run


def _lstm(arguments: list[Array]) -> Writer:
    state = arguments[2]
    width = state.shape[-1]
    gates = np.empty((*state.shape[:-1], 4 * width), state.dtype)
    i, o, f, n = (gates[..., k * width : (k + 1) * width] for k in range(4))
    sigmoids = gates[..., : 3 * width]
    h, c = np.empty(state.shape, state.dtype), np.empty(state.shape, state.dtype)

    def run(given: list[Array]) -> list[Array]:
        np.add(given[0], given[1], out=gates)
        _sigmoid(sigmoids)
        np.tanh(n, out=n)
        np.multiply(f, given[2], out=c)
        np.multiply(i, n, out=n)
        np.add(c, n, out=c)
        np.tanh(c, out=h)
        np.multiply(o, h, out=h)
        return [h, c]

    return run


_WRITERS: dict[str, tuple[tuple[str, ...], Callable[[list[Array]], Writer]]] = {
    "RnnCell": (("tanh",), _rnn),
    "GruCell": (("sigmoid", "tanh"), _gru),
    "LstmCell": (("sigmoid", "tanh", "tanh"), _lstm),
}
