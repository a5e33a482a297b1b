"""Steps of recurrent layers: one op back for each op forward (`ir/fused.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import WEBRNN, Node, Value

from ..registry import Pull, rule

Found = Sequence[Value | None]


def _back(g: Pull, operands: Sequence[Value | None], names: Sequence[str | None]) -> list[Value | None]:
    """The pullback's results; None for one that there is not."""
    made = [None if name is None else g.b.value(name) for name in names]
    g.b.add(Node(f"{g.node.op}Backward", [*operands], [*made], dict(g.node.attrs), g.node.name, WEBRNN))
    return made


def _given(g: Pull, index: int) -> Value:
    found = g.given[index]
    return g.b.zeros_like(g.y(index)) if found is None else found


@rule("RnnCell", domain=WEBRNN)
def rnn_cell(g: Pull) -> Found:
    (d,) = _back(g, [*g.node.inputs, g.d], ["d_gates"])
    return [d, d]


@rule("GruCell", domain=WEBRNN)
def gru_cell(g: Pull) -> Found:
    return _back(g, [*g.node.inputs, g.d], ["d_xw", "d_hw", "d_h"])


@rule("GruReset", domain=WEBRNN)
def gru_reset(g: Pull) -> Found:
    return _back(g, [*g.node.inputs, _given(g, 0), _given(g, 1)], ["d_xw", "d_hw", "d_h"])


@rule("GruUpdate", domain=WEBRNN)
def gru_update(g: Pull) -> Found:
    return _back(g, [*g.node.inputs, g.d], ["d_xw", "d_hn", "d_z", "d_h"])


@rule("LstmCell", domain=WEBRNN)
def lstm_cell(g: Pull) -> Found:
    operands = [g.x(0), g.x(1), g.x(2), g.operand(3), _given(g, 0), _given(g, 1)]
    d, d_c, rows = _back(g, operands, ["d_gates", "d_c", "d_peephole" if g.wants(3) else None])
    return [d, d, d_c, None if rows is None else g.b.summed_to(rows, g.x(3))]
