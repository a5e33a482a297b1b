"""RTNeural's JSON files, and those of AIDA-X: a list of layers with weights as Keras has them.

The model takes one vector a step. Here it takes a whole signal: x [time] or [time, inputs] gives y [time] or [time,
outputs], and a stream gives the same in parts of any size. Histories of convolutions start from zeros, as RTNeural's do
after `reset()`.

AIDA-X adds `in_gain` and `out_gain` in dB, `in_skip` (the signal is added to the result) and metadata. Inputs behind
the first are its knobs: fixed={"controls": [...]} binds them.
"""

from __future__ import annotations

from typing import Any

from webrnn.ir import GraphBuilder, Value

from .effects import Effect, Fixed, about, finished, sample_rate_of, samples_in, scaled, signal_in
from .entries import Entry
from .rtneural_layers import LAYERS, Frames

FORM = "rtneural"
_LEAST_GAIN = -90.0
"""dB below which AIDA-X plays nothing."""


def read_rtneural(data: dict[str, Any], fixed: Fixed) -> Effect:
    model = Entry(data, "model", "RTNeural")
    sizes = _input_sizes(model)
    b = GraphBuilder(FORM)
    signal, x = _inputs(b, model, sizes, fixed)
    frames = Frames(b, x, sizes)
    layers = model.items("layers")
    if not layers:
        raise model.wrong("the list is empty", "layers")
    for index, item in enumerate(layers):
        layer = Entry.of(item, f"layers[{index}]", "layer")
        kind = layer.text("type")
        layer = Entry(layer.data, f"layers[{index}]", kind)
        if kind not in LAYERS:
            raise layer.unsupported(f"layers of this type are not known; it knows {', '.join(LAYERS)}", "type")
        frames = LAYERS[kind](frames, layer)
    y = _with_skip(b, model, frames, signal)
    graph = finished(b, y, *frames.sizes, pace=frames.pace)
    rate, metadata = _metadata(model)
    return Effect(graph, about(FORM, "+".join(_kinds(layers)), graph, rate, metadata, frames.pace == 1))


def _input_sizes(model: Entry) -> tuple[int, ...]:
    shape = model.items("in_shape")
    if len(shape) == 1 and isinstance(shape[0], list):
        shape = shape[0]
    if not 2 <= len(shape) <= 4:
        raise model.wrong(f"it has {len(shape)} axes, it needs 2 to 4", "in_shape")
    return tuple(model.whole(size, "in_shape") for size in (shape[2:] if len(shape) == 4 else shape[-1:]))


def _inputs(b: GraphBuilder, model: Entry, sizes: tuple[int, ...], fixed: Fixed) -> tuple[Value | None, Value]:
    """The signal alone, if the input has columns, with the gain of the file; and all of the input, [time, sizes...]."""
    gain = _gain(model, "in_gain")
    if len(sizes) == 1:
        return signal_in(b, sizes[0], fixed, gain)
    fixed.finish("nothing")
    if gain != 1:
        raise model.unsupported("a gain is for models of one signal", "in_gain")
    return None, b.op("Reshape", samples_in(b, *sizes), b.ints(-1, *sizes))


def _with_skip(b: GraphBuilder, model: Entry, frames: Frames, signal: Value | None) -> Value:
    skip, gain = model.data.get("in_skip"), _gain(model, "out_gain")
    value = frames.value
    if isinstance(skip, int | float) and skip:
        if skip != 1:
            raise model.unsupported(f"{skip} inputs are to be added to the result; at most one can be", "in_skip")
        if signal is None or frames.sizes != (1,) or frames.pace != 1:
            raise model.wrong("the signal can only be added to a result of one column", "in_skip")
        value = b.op("Add", value, signal)
    return scaled(b, value, gain)


def _gain(model: Entry, key: str) -> float:
    """A gain in dB as a factor; what is no number says nothing, as in AIDA-X."""
    value = model.data.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 1.0
    decibels = model.number(key)
    if decibels > 1000:
        raise model.wrong(f"it is {decibels:g} dB", key)
    return float(10 ** (decibels / 20)) if decibels > _LEAST_GAIN else 0.0


def _metadata(model: Entry) -> tuple[float | None, dict[str, Any]]:
    metadata = model.data.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    for place in (model.data, metadata):
        for key in ("sample_rate", "samplerate"):
            if place.get(key) is not None:
                return sample_rate_of(place[key], key), metadata
    return None, metadata


def _kinds(layers: list[Any]) -> list[str]:
    return [item["type"] for item in layers]
