"""One step of a recurrent cell, and its pullback."""

from __future__ import annotations

from webrnn.ir import WEBRNN, Node, Value
from webrnn.ir.fused import BACKWARD_CELLS, CELLS, PEEPHOLES

from ..instructions import PULLBACKS
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
    inputs += [None] * (len(form.widths) - len(inputs))
    outputs = [_result(l, value, inputs[like]) for value in node.outputs]
    if any(view is not None and view.dtype != "f32" for view in inputs):
        lower_plain(l, node, inputs, outputs)
        return
    extra = [int(node.attrs["couple"])] if "couple" in node.attrs else []
    l.emit(instruction, *inputs, *outputs, *activations(l, node), *extra)


_BACKWARD = {op: name for name, op in PULLBACKS.items()}


@rule(*_BACKWARD, domain=WEBRNN)
def _backward_cell(l: Lowering, node: Node) -> None:
    form = BACKWARD_CELLS[node.op]
    inputs = [_block(l, value) for value in node.inputs]
    if any(view is not None and view.dtype != "f32" for view in inputs):
        raise l.refuse("it is not of float32")
    state = inputs[form.state]
    assert state is not None
    rows, hidden = state.shape
    has_peepholes = PEEPHOLES not in form.widths or inputs[form.widths.index(PEEPHOLES)] is not None
    outputs = [
        _result(l, value, None) if value is not None else l.temporary((rows, hidden * width), "f32")
        for value, width in zip(node.outputs, form.results if has_peepholes else form.results[:-1], strict=False)
    ]
    extra = [int(node.attrs["couple"])] if "couple" in node.attrs else []
    l.emit(_BACKWARD[node.op], *inputs, *outputs, *([] if has_peepholes else [None]), *activations(l, node), *extra)
