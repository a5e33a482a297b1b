"""Softmax and LogSoftmax of doubles."""

from __future__ import annotations

from webrnn.ir import DType, Node

from .emitter import Declined, Emitter, Expansion


def _softmax_of_doubles(e: Emitter, node: Node) -> None:
    """There is an instruction for floats."""
    x = node.inputs[0]
    assert x is not None
    if e.dtype(x) is not DType.DOUBLE:
        raise Declined
    axis = e.ints(node.attrs.get("axis", -1))
    rest = e.op("Sub", x, e.op("ReduceMax", x, axis, keepdims=1))
    exponentials = e.op("Exp", rest)
    total = e.op("ReduceSum", exponentials, axis, keepdims=1)
    if node.op == "Softmax":
        e.op("Div", exponentials, total, output=node.outputs[0])
    else:
        e.op("Sub", rest, e.op("Log", total), output=node.outputs[0])


EXPANSIONS: dict[str, Expansion] = {"Softmax": _softmax_of_doubles, "LogSoftmax": _softmax_of_doubles}
