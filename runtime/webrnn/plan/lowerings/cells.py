"""One step of a recurrent cell."""

from __future__ import annotations

from webrnn.ir import WEBRNN, Node, Value
from webrnn.ir.fused import CELLS

from ..lowering import Lowering, rule
from ..views import View
from .plain_cells import lower_plain
from .sequences import activations


def _block(l: Lowering, value: Value | None) -> View | None:
    """[rows, width] without gaps, or a vector."""
    if value is None:
        return None
    view = l.dense(l.view(value))
    if view.dtype not in ("f32", "f64"):
        raise l.refuse("it is not of float")
    return view if view.rank < 2 else l.reshaped(view, (view.rows, view.shape[-1]))


def _result(l: Lowering, value: Value | None, like: View | None) -> View:
    if value is None:
        assert like is not None
        return l.temporary(like.shape, like.dtype)
    view = l.dense_output(value)
    return l.reshaped(view, (view.rows, view.shape[-1]))


_INSTRUCTIONS = {
    "RnnCell": ("rnn_cell", 0),
    "GruCell": ("gru_cell", 2),
    "GruReset": ("gru_reset", 2),
    "GruUpdate": ("gru_update", 3),
    "LstmCell": ("lstm_cell", 2),
}
"""Of each cell, and the operand that is as large as a result that nobody asked for."""


@rule(*_INSTRUCTIONS, domain=WEBRNN)
def _cell(l: Lowering, node: Node) -> None:
    instruction, like = _INSTRUCTIONS[node.op]
    form = CELLS[node.op]
    inputs = [_block(l, value) for value in node.inputs]
    inputs += [None] * (form.required + form.optional - len(inputs))
    outputs = [_result(l, value, inputs[like]) for value in node.outputs]
    if any(view is not None and view.dtype != "f32" for view in inputs):
        lower_plain(l, node, inputs, outputs)
        return
    extra = [int(node.attrs["couple"])] if "couple" in node.attrs else []
    l.emit(instruction, *inputs, *outputs, *activations(l, node), *extra)
