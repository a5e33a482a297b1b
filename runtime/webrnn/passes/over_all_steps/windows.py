"""Ops whose first axis is a batch: the steps join it."""

from __future__ import annotations

from .rewrite import Declined, Rewrite, rule


@rule("Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "InstanceNormalization")
@rule("BatchNormalization", "GroupNormalization")
def on_a_batch(r: Rewrite) -> None:
    r.only_first_has_steps()
    if r.node.attrs.get("training_mode", 0):
        raise Declined("it trains")
    if len([value for value in r.outputs if value is not None]) != 1 or r.outputs[0] is None:
        raise Declined("more than its first result is read")
    before, after = r.sizes(r.node.inputs[0]), r.sizes(r.node.outputs[0])
    joined = r.between("Reshape", [r.first.value, r.axes([-1, *before[1:]])])
    made = r.between(r.node.op, [joined, *r.values()[1:]], **r.node.attrs)
    r.result("Reshape", [made, r.axes([-1, *after])])
