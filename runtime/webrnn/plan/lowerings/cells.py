"""One step of a recurrent cell."""

from __future__ import annotations

import numpy as np

from webrnn.ir import WEBRNN, Node, Value

from ..lowering import Lowering, Rule
from ..views import View

ACTIVATIONS = (
    "none", "relu", "tanh", "sigmoid", "affine", "leaky_relu", "thresholded_relu",
    "scaled_tanh", "hard_sigmoid", "elu", "softsign", "softplus",
)  # fmt: skip
"""As in wasm_kernels/table.py."""


def activations(l: Lowering, node: Node) -> tuple[View, int]:
    """The parameters of a cell's activations as a constant, and their numbers, a byte each."""
    codes = [ACTIVATIONS.index(name) for name in node.attrs["activations"]]
    return l.number_vector(tuple(node.attrs["params"])), sum(code << 8 * i for i, code in enumerate(codes))


def _inputs(l: Lowering, node: Node) -> list[View | None]:
    return [None if value is None else _block(l, value) for value in node.inputs]


def _block(l: Lowering, value: Value) -> View:
    view = l.dense(l.view(value))
    if view.dtype != "f32":
        raise l.refuse("it is not of float")
    return view if view.rank < 2 else l.reshaped(view, (_rows(view), view.shape[-1]))


def _rows(view: View):  # type: ignore[no-untyped-def]
    return np.prod(np.array([1, *view.shape[:-1]], object))


def _outputs(l: Lowering, node: Node) -> list[View]:
    found = []
    for value in node.outputs:
        if value is None:
            found.append(l.temporary(found[0].shape) if found else l.temporary(_block(l, node.inputs[2]).shape))  # type: ignore[arg-type]
            continue
        view = l.dense_output(value)
        shaped = view.reshaped((_rows(view), view.shape[-1]))
        assert shaped is not None
        found.append(shaped)
    return found


def _rnn(l: Lowering, node: Node) -> None:
    l.emit("rnn_cell", *_inputs(l, node), *_outputs(l, node), *activations(l, node))


def _gru(l: Lowering, node: Node) -> None:
    l.emit("gru_cell", *_inputs(l, node), *_outputs(l, node), *activations(l, node))


def _gru_reset(l: Lowering, node: Node) -> None:
    l.emit("gru_reset", *_inputs(l, node), *_outputs(l, node), *activations(l, node))


def _gru_update(l: Lowering, node: Node) -> None:
    l.emit("gru_update", *_inputs(l, node), *_outputs(l, node), *activations(l, node))


def _lstm(l: Lowering, node: Node) -> None:
    operands = [*_inputs(l, node), None][:4]
    l.emit("lstm_cell", *operands, *_outputs(l, node), *activations(l, node), int(node.attrs["couple"]))


RULES: dict[tuple[str, str], Rule] = {
    (WEBRNN, "RnnCell"): _rnn,
    (WEBRNN, "GruCell"): _gru,
    (WEBRNN, "GruReset"): _gru_reset,
    (WEBRNN, "GruUpdate"): _gru_update,
    (WEBRNN, "LstmCell"): _lstm,
}
