"""One step of a recurrent cell."""

from __future__ import annotations

from webrnn.ir import WEBRNN, Node, Value
from webrnn.ir.fused import ACTIVATIONS

from ..lowering import Lowering, Rule
from ..views import View


def activations(l: Lowering, node: Node) -> tuple[View, int]:
    """The parameters of a cell's activations as a constant, and their numbers, a byte each."""
    codes = [ACTIVATIONS.index(name) for name in node.attrs["activations"]]
    return l.number_vector(tuple(node.attrs["params"])), sum(code << 8 * i for i, code in enumerate(codes))


def _block(l: Lowering, value: Value | None) -> View | None:
    """[rows, width] without gaps, or a vector."""
    if value is None:
        return None
    view = l.dense(l.view(value))
    if view.dtype != "f32":
        raise l.refuse("it is not of float")
    return view if view.rank < 2 else l.reshaped(view, (view.rows, view.shape[-1]))


def _result(l: Lowering, value: Value | None, like: View | None) -> View:
    if value is None:
        assert like is not None
        return l.temporary(like.shape)
    view = l.dense_output(value)
    return l.reshaped(view, (view.rows, view.shape[-1]))


def _cell(instruction: str, n_inputs: int, like: int) -> Rule:
    """A rule for a cell; results that nobody asked for are as large as operand `like`."""

    def rule(l: Lowering, node: Node) -> None:
        inputs = [_block(l, value) for value in node.inputs]
        inputs += [None] * (n_inputs - len(inputs))
        outputs = [_result(l, value, inputs[like]) for value in node.outputs]
        extra = [int(node.attrs["couple"])] if "couple" in node.attrs else []
        l.emit(instruction, *inputs, *outputs, *activations(l, node), *extra)

    return rule


RULES: dict[tuple[str, str], Rule] = {
    (WEBRNN, "RnnCell"): _cell("rnn_cell", 2, like=0),
    (WEBRNN, "GruCell"): _cell("gru_cell", 3, like=2),
    (WEBRNN, "GruReset"): _cell("gru_reset", 3, like=2),
    (WEBRNN, "GruUpdate"): _cell("gru_update", 4, like=3),
    (WEBRNN, "LstmCell"): _cell("lstm_cell", 4, like=2),
}
