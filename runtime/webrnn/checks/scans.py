"""Loops: what goes in step by step, what is carried, what is collected."""

from __future__ import annotations

from webrnn.errors import ModelError
from webrnn.ir import DType, Scan
from webrnn.shapes.facts import Fact, Facts

from .check import Check, spell


def check_scan(c: Check, scan: Scan, facts: Facts) -> None:
    """What a loop takes and gives, whatever its body does in between."""
    for value, what in ((scan.cond, "the condition"), (scan.body_cond, "the condition of the body")):
        check_condition(c, None if value is None else facts.of(value), what)
    if scan.n_steps is not None:
        _is_one(c, facts.of(scan.n_steps), "the number of steps", {DType.INT64, DType.INT32})
    lengths = []
    for item in scan.sequences:
        shape = facts.shape(item.whole)
        axis = c.axis(item.spec.axis, None if shape is None else len(shape), "the axis of a sequence")
        if shape is not None and axis is not None:
            lengths.append(shape[axis])
    for length in lengths[1:]:
        c.equal(lengths[0], length, f"the sequences have different lengths: {lengths[0]} and {length}")
    for state in scan.states:
        before, after = facts.of(state.init).dtype, facts.of(state.body_out).dtype
        if before is not None and after is not None and before is not after:
            name = state.body_in[0].name
            c.fail(f"the state {name} is of {before.text} at first, of {after.text} after a step", kind=ModelError)
    for trace in scan.traces:
        rank = facts.of(trace.element).rank
        c.axis(trace.spec.axis, None if rank is None else rank + 1, "the axis of an output")


def check_condition(c: Check, fact: Fact | None, what: str) -> None:
    if fact is not None:
        _is_one(c, fact, what, {DType.BOOL})


def _is_one(c: Check, fact: Fact, what: str, types: set[DType]) -> None:
    if fact.dtype is not None and fact.dtype not in types:
        c.fail(f"{what} is of {fact.dtype.text}", kind=ModelError)
    for size in fact.shape or ():
        c.equal(size, 1, f"{what} is one element, not {spell(fact.shape)}")
