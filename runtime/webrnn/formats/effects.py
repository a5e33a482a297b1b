"""What all models of effects have in common: samples in, samples out, and how hosts are to run them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from webrnn.errors import ModelError, ShapeError
from webrnn.ir import DType, Graph, GraphBuilder, Symbol, Value

HOP = 128
"""Samples for a step: those of a quantum of Web Audio."""
RATE = 48000
"""Of a file that does not say its own."""
INPUT, OUTPUT, TIME = "x", "y", "time"
MOST_NESTED = 8
"""How deep metadata are kept."""


@dataclass(frozen=True, eq=False)
class Effect:
    """A model that was read, and what its file says beside it."""

    graph: Graph
    about: dict[str, Any] = field(default_factory=dict)


class Fixed:
    """What a caller binds for good: each name may be taken by who knows it."""

    def __init__(self, given: Mapping[str, Any] | None):
        self._left = dict(given or {})

    def take(self, name: str) -> np.ndarray | None:
        if name not in self._left:
            return None
        try:
            array = np.asarray(self._left.pop(name), np.float32).reshape(-1)
        except (TypeError, ValueError):
            raise ShapeError(f"fixed[{name!r}] is no number and no list of numbers") from None
        if not np.isfinite(array).all():
            raise ShapeError(f"fixed[{name!r}] is not finite")
        return array

    def finish(self, inputs: str) -> None:
        if self._left:
            raise ShapeError(f"fixed names {sorted(self._left)}, which are not what this model leaves open: {inputs}")


def samples_in(b: GraphBuilder, *sizes: int) -> Value:
    """The input of a graph: [time] or [time, sizes...]; sizes of one at the end are left out."""
    while sizes and sizes[-1] == 1:
        sizes = sizes[:-1]
    return b.input(INPUT, DType.FLOAT, (Symbol(TIME), *sizes))


def signal_in(b: GraphBuilder, inputs: int, fixed: Fixed, gain: float = 1.0) -> tuple[Value, Value]:
    """The input of a model that takes a signal and knobs, [time] or [time, inputs]: the signal as [time, 1], and all of
    it as [time, inputs]. fixed={"controls": [...]} binds the knobs; the gain is that of the signal."""
    controls = fixed.take("controls") if inputs > 1 else None
    fixed.finish('"controls", if it has more than one input')
    if controls is not None and len(controls) != inputs - 1:
        raise ShapeError(f"fixed['controls'] has {len(controls)} numbers, the model has {inputs - 1} knobs")
    count = 1 if controls is not None else inputs
    columns = b.op("Reshape", samples_in(b, count), b.ints(-1, count))
    signal = columns if count == 1 else b.op("Slice", columns, b.ints(0), b.ints(1), b.ints(1))
    signal = scaled(b, signal, gain)
    if inputs == 1:
        return signal, signal
    if controls is None:
        gains = np.array([gain, *[1] * (inputs - 1)], np.float32)
        return signal, columns if gain == 1 else b.op("Mul", columns, b.constant(gains, "gain"))
    # signal·[1, 0...] + [0, controls...]: passes join it with the layer behind it
    first, rest = np.eye(1, inputs, dtype=np.float32), np.concatenate([np.zeros(1, np.float32), controls])
    return signal, b.op("Add", b.op("MatMul", signal, b.constant(first)), b.constant(rest, "controls"))


def scaled(b: GraphBuilder, value: Value, gain: float) -> Value:
    return value if gain == 1 else b.op("Mul", value, b.constant(np.float32(gain), "gain"))


def finished(b: GraphBuilder, result: Value, *sizes: int, pace: int = 1) -> Graph:
    """The graph with its output, [time] or [time, sizes...]; `pace` samples of the input make one of it."""
    while sizes and sizes[-1] == 1:
        sizes = sizes[:-1]
    output = b.value(OUTPUT, DType.FLOAT, (Symbol(TIME) if pace == 1 else None, *sizes))
    b.op("Reshape", result, b.ints(-1, *sizes), output=output)
    b.graph.outputs = [output]
    b.graph.drop_unused_constants()
    return b.graph


def about(
    form: str, architecture: str, graph: Graph, rate: float | None, metadata: Mapping[str, Any], is_filter: bool
) -> dict[str, Any]:
    """What a plan of the model says about itself; with "audio" an AudioWorklet knows how to run it."""
    said: dict[str, Any] = {"format": form, "architecture": architecture}
    if metadata:
        said["metadata"] = _plain(metadata)
    sample_rate = RATE if rate is None else rate
    if is_filter and all(len(value.shape or ()) == 1 for value in (*graph.inputs, *graph.outputs)):
        said["audio"] = {
            "kind": "filter",
            "sample_rate": int(sample_rate) if float(sample_rate).is_integer() else sample_rate,
            "frame": HOP,
            "hop": HOP,
            "input": INPUT,
            "output": OUTPUT,
        }
    return said


def _plain(value: Any, depth: int = 0) -> Any:
    """Metadata as JSON for any reader: numbers that are not finite are null, and what is nested deep is left out."""
    if isinstance(value, dict):
        return {key: _plain(item, depth + 1) for key, item in value.items()} if depth < MOST_NESTED else {}
    if isinstance(value, list):
        return [_plain(item, depth + 1) for item in value] if depth < MOST_NESTED else []
    return None if isinstance(value, float) and not math.isfinite(value) else value


def sample_rate_of(value: Any, what: str) -> float | None:
    """A rate as files write it, a number or a text; None if nothing is there."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ModelError(f"{what} is no number")
    try:
        rate = float(value)
    except (ValueError, OverflowError):
        raise ModelError(f"{what} is no number") from None
    if rate == -1:  # how some players write that it is not known
        return None
    if not 1 <= rate <= 10_000_000:
        raise ModelError(f"{what} is {rate:g} Hz")
    return rate
