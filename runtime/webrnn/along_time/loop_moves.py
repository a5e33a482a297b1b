"""Loops that walk along time, in a stream: they go on from the states that the step before ended with."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from webrnn.ir import Dim, DType, Graph, Node, Scan, Value

from .kinds import Along, BreaksTime
from .moves import Move
from .paces import Pace
from .writer import Writer


def loop_move(node: Node, results: Sequence[Along], delay: int, frames: Dim, fed: Collection[Value]) -> Move:
    rest = 0 if isinstance(frames, int) else Pace.of(frames).left(delay)
    return Move(results, lambda writer: _write(writer, node, delay, frames, fed), rest=rest)


def _write(writer: Writer, node: Node, delay: int, frames: Dim, fed: Collection[Value]) -> None:
    original = Scan.of(node)
    taken = [None if value is None else writer.at(value, delay) for value in node.inputs]
    made = [None if value is None else writer.builder.value(value.name, value.dtype) for value in node.outputs]
    body: Graph = node.attrs["body"]
    scan = Scan.of(Node(node.op, taken, made, {**node.attrs, "body": body.copy()}, node.name, node.domain))
    writer.new.update((old, new) for old, new in zip(node.outputs, made, strict=True) if old and new)
    if scan.sequences:
        scan.n_steps = None
    elif scan.n_steps is not None:
        scan.n_steps = writer.builder.op("Squeeze", writer.sizes([frames]), writer.builder.ints(0))
    is_final_read = any(state.final is not None and state.final in writer.needed for state in original.states)
    at_end = writer.flushes and is_final_read
    if scan.states and (delay > 0 or at_end):
        ranks = [writer.facts.of(state.init).rank for state in original.states]
        _gate(writer, scan, ranks, Along(0, length=frames, delay=delay), at_end)
    carried = []
    for state, old in zip(scan.states, original.states, strict=True):
        name = f"{scan.name or 'scan'}.{old.body_in[0].name}"
        before = writer.carried(name, old.init, is_fed=old.init in fed)
        if state.final is None:
            state.final = writer.builder.value(f"{name}.final", before.dtype)
        state.init = writer.at_first(before, old.init) if old.init in fed else before
        carried.append((before, state.final))
    writer.builder.add(scan.to_node())
    for before, after in carried:
        writer.next_state(before, after)


def _gate(writer: Writer, scan: Scan, ranks: Sequence[int | None], along: Along, at_end: bool) -> None:
    """Let states stay what they are in steps that are no frames of the whole run."""
    valid = writer.builder.op("Transpose", writer.valid(along, along.delay > 0, at_end), perm=[1, 0])
    body = scan.body
    element = Value(_fresh(body, "valid"), DType.BOOL)
    scan.add_sequence(valid, element)
    for index, (state, rank) in enumerate(zip(scan.states, ranks, strict=True)):
        if not state.spec.is_plain or rank is None:
            raise BreaksTime("its state has several steps, and frames that do not count come before the first")
        shape = np.array([-1, *[1] * (rank - 1)] if rank else [], np.int64)
        sizes = Value(_fresh(body, f"sizes_{index}"), DType.INT64, shape.shape)
        body.constants[sizes] = shape
        shaped = Value(_fresh(body, f"counts_{index}"), DType.BOOL)
        kept = Value(_fresh(body, f"kept_{index}"), state.body_out.dtype)
        body.nodes.append(Node("Reshape", [element, sizes], [shaped]))
        body.nodes.append(Node("Where", [shaped, state.body_out, state.body_in[0]], [kept]))
        state.body_out = kept


def _fresh(graph: Graph, hint: str) -> str:
    """A name that no value of a graph has."""
    made = (value for node in graph.nodes for value in node.outputs if value is not None)
    taken = {value.name for value in (*graph.inputs, *graph.constants, *made)}
    while hint in taken:
        hint += "_"
    return hint
