"""Files of Neural Amp Modeler, `.nam`: an architecture, its sizes, and all weights one behind the other.

x [time] gives y [time]: what the trainer's package gives for `model(x, pad_start=True)`. Before the signal there are
zeros, as many as the model looks back; an LSTM starts from the states that its file has.

A file with several sizes of a model (a SlimmableContainer, or a WaveNet that may use a part of its channels) is read in
its largest; fixed={"size": 0.5} asks for another, from 0, the smallest, to 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from webrnn.errors import ShapeError
from webrnn.ir import GraphBuilder

from .effects import Effect, Fixed, about, finished, sample_rate_of, samples_in
from .entries import Entry, Weights
from .nam_convs import convnet, linear
from .nam_lstm import lstm_model
from .nam_wavenet import wavenet
from .signals import Signal, SignalBuilder

FORM = "nam"
MOST_INSIDE = 8
"""How deep models may contain models."""

_ARCHITECTURES = ("ConvNet", "LSTM", "Linear", "Sequential", "SlimmableContainer", "WaveNet")


def read_nam(data: dict[str, Any], fixed: Fixed) -> Effect:
    size = _size(fixed)
    model = Entry(data, "model", "NAM")
    rate = sample_rate_of(model.data.get("sample_rate"), "sample_rate")
    inputs = _input_channels(model)
    b = GraphBuilder(FORM)
    x = b.op("Reshape", samples_in(b, inputs), b.ints(-1, inputs))
    rows = b.op("Unsqueeze", b.op("Transpose", x, perm=[1, 0]), b.ints(0))
    net = _Nets(SignalBuilder(b), size)
    y = net.s.plain(net.run(Signal(rows, np.zeros((1, inputs, 1)), inputs), model))
    graph = finished(b, b.op("Transpose", b.op("Squeeze", y.value, b.ints(0)), perm=[1, 0]), y.channels)
    said = about(FORM, model.text("architecture"), graph, rate, _metadata(model), True)
    return Effect(graph, said)


class _Nets:
    """Models inside models: each gets a signal and gives one."""

    def __init__(self, s: SignalBuilder, size: float):
        self.s, self.size = s, size

    def run(self, x: Signal, model: Entry, depth: int = 0) -> Signal:
        kind = model.text("architecture")
        model = Entry(model.data, model.node, kind if kind in _ARCHITECTURES else "NAM")
        if depth > MOST_INSIDE:
            raise model.wrong("models are nested too deep")
        config = model.inside("config")
        if kind == "SlimmableContainer":
            return self.run(x, _chosen(model, config, self.size), depth + 1)
        if kind == "Sequential":
            return self._sequence(x, model, config, depth)
        if kind not in _ARCHITECTURES:
            raise model.unsupported(f"the architecture {kind!r} is not known; it knows {', '.join(_ARCHITECTURES)}")
        weights = Weights(model)
        y = self._plain(kind, x, config, weights, depth)
        weights.finish()
        return y

    def _plain(self, kind: str, x: Signal, config: Entry, weights: Weights, depth: int) -> Signal:
        config = Entry(config.data, config.node, kind)
        if kind == "LSTM":
            return lstm_model(self.s, x, config, weights)
        if kind == "ConvNet":
            return convnet(self.s, x, config, weights)
        if kind == "Linear":
            return linear(self.s, x, config, weights)
        condition = x
        if config.has("condition_dsp"):
            condition = self.run(x, config.inside("condition_dsp", "NAM"), depth + 1)
        return wavenet(self.s, x, condition, config, weights, self.size)

    def _sequence(self, x: Signal, model: Entry, config: Entry, depth: int) -> Signal:
        """One model behind the other. The trainer writes their sizes without their architectures, and all weights
        together; a file may also have whole models in it."""
        items = config.items("models")
        if not items:
            raise config.wrong("the list is empty", "models")
        weights = Weights(model)
        for index, item in enumerate(items):
            inner = Entry.of(item, f"{config.node}.models[{index}]", "Sequential")
            if inner.has("architecture"):
                x = self.run(x, inner, depth + 1)
            else:
                x = self._plain(_architecture_of(inner), x, inner, weights, depth)
        weights.finish()
        return x


def _architecture_of(config: Entry) -> str:
    for key, kind in (
        ("layers", "WaveNet"),
        ("hidden_size", "LSTM"),
        ("receptive_field", "Linear"),
        ("dilations", "ConvNet"),
    ):
        if config.has(key):
            return kind
    raise config.unsupported("it does not say what model it is")


def _chosen(model: Entry, config: Entry, size: float) -> Entry:
    """Of several sizes the first that goes up to `size`."""
    found = []
    for index, item in enumerate(config.items("submodels")):
        entry = Entry.of(item, f"{config.node}.submodels[{index}]", model.op)
        found.append((entry.number("max_value"), entry.inside("model", "NAM")))
    if not found:
        raise config.wrong("the list is empty", "submodels")
    found.sort(key=lambda pair: pair[0])
    return next((inner for most, inner in found if size < most), found[-1][1])


def _input_channels(model: Entry) -> int:
    """1 for nearly all: only an LSTM may have knobs beside its signal."""
    config = model.data.get("config")
    if model.data.get("architecture") == "LSTM" and isinstance(config, dict):
        inputs: int = Entry(config, "config", "LSTM").count("input_size", 1)
        return inputs
    return 1


def _size(fixed: Fixed) -> float:
    given = fixed.take("size")
    fixed.finish('"size", if it has several')
    if given is None:
        return 1.0
    if given.size != 1 or not 0 <= given[0] <= 1:
        raise ShapeError("fixed['size'] is a number from 0 to 1")
    return float(given[0])


def _metadata(model: Entry) -> dict[str, Any]:
    metadata = model.data.get("metadata")
    found = dict(metadata) if isinstance(metadata, dict) else {}
    if isinstance(model.data.get("version"), str):
        found["version"] = model.data["version"]
    return found
