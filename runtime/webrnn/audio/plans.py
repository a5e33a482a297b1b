"""Whole audio models, one plan each: samples in, samples or a probability out, all states inside.

    python -m webrnn.audio.plans dtln -o denoise.rnn
    python -m webrnn.audio.plans silero -o vad.rnn --weights int16
    python -m webrnn.audio.plans openwakeword melspectrogram.onnx embedding_model.onnx hey_mycroft.onnx -o wake.rnn

A plan like this is what the AudioWorklet processor of webrnn runs (docs/audio-worklet.md). Its metadata say how:
{"audio": {"kind", "sample_rate", "frame", "hop", "input", "output"}}. Every `hop` samples it takes the last `frame`
samples. A "filter" gives as many, which overlap and are added up; an "analyser" gives a few numbers.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from webrnn import models
from webrnn.along_time.over_windows import over_windows
from webrnn.engine.session import InferenceSession
from webrnn.engine.streams.states import states_of
from webrnn.errors import Error, ModelError
from webrnn.ir import DType, Graph, GraphBuilder, Scan, Symbol, Value
from webrnn.onnx.reader import read_model
from webrnn.passes.pipeline import OUT_OF_LOOPS, run_passes

from .filters import FrameFilter

Source = str | os.PathLike[str] | bytes
Weights = str | Mapping[str, str]
"""As InferenceSession takes them."""

RATE = 16000
DTLN_FRAME, DTLN_HOP = 512, 128
SILERO_CHUNK, SILERO_CONTEXT = 512, 64
WAKE_HOP, WAKE_CONTEXT = 1280, 480
WAKE_FRAMES, WAKE_WINDOW, WAKE_BANDS, WAKE_FEATURES = 8, 76, 32, 96


@dataclass(frozen=True, eq=False)
class AudioModel:
    """A model of frames of samples, with the pairs of its states and what its plan says of itself."""

    graph: Graph
    carry: dict[str, str] | str
    audio: dict[str, Any]

    def session(self, backend: str = "auto", weights: Weights = "f32") -> InferenceSession:
        return InferenceSession(self.graph, backend=backend, weights=weights)

    def export(self, path: str | os.PathLike[str], weights: Weights = "f32") -> None:
        """Write the plan."""
        self.session(weights=weights).export(path, carry=self.carry, about={"audio": self.audio})

    def frames(self, backend: str = "auto", weights: Weights = "f32") -> Callable[[np.ndarray], np.ndarray]:
        """A function of one frame after the other, with the states inside."""
        stream = self.session(backend, weights).stream(carry=self.carry)
        fed, place = self.audio["input"], stream.output_names.index(self.audio["output"])
        return lambda frame: stream.step({fed: frame})[place]

    def filter(self, backend: str = "auto", weights: Weights = "f32") -> FrameFilter:
        """A "filter" for signals, by blocks of any size."""
        if self.audio["kind"] != "filter":
            raise ModelError("it gives numbers for frames of samples, not samples")
        return FrameFilter(self.frames(backend, weights), self.audio["frame"], self.audio["hop"])


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
    _output(b, "clean", clean, DTLN_FRAME)
    return _finished(b, "filter", DTLN_FRAME, DTLN_HOP, "clean")


def silero(model: Source | None = None) -> AudioModel:
    """Silero's voice activity detector at 16 kHz: the probability of speech in each 512 samples, in front of which the
    last 64 of those before are kept. By default the model of `webrnn.models`."""
    graph = read_model(model if model is not None else models.fetch("silero_v6"), fixed={"sr": RATE})
    _require(graph, {"input", "state"}, {"output", "stateN"})
    inputs, outputs = (
        {value.name: place for place, value in enumerate(ports)} for ports in (graph.inputs, graph.outputs)
    )
    b = GraphBuilder("silero")
    samples = b.input("samples", DType.FLOAT, (SILERO_CHUNK,))
    context = b.input("context", DType.FLOAT, (SILERO_CONTEXT,))
    state = b.input("state", DType.FLOAT, (2, 1, 128))
    chunk = b.op("Reshape", b.op("Concat", context, samples, axis=0), b.ints(1, SILERO_CONTEXT + SILERO_CHUNK))
    arguments = {inputs["input"]: chunk, inputs["state"]: state}
    results = b.inline(graph, *(arguments[place] for place in range(len(inputs))))
    _output(b, "probability", results[outputs["output"]], 1)
    _output(b, "context_next", b.op("Slice", samples, b.ints(-SILERO_CONTEXT), b.ints(SILERO_CHUNK)), SILERO_CONTEXT)
    _output(b, "state_next", results[outputs["stateN"]], 2, 1, 128)
    return _finished(b, "analyser", SILERO_CHUNK, SILERO_CHUNK, "probability")


def openwakeword(melspec: Source, embedding: Source, head: Source) -> AudioModel:
    """A wake word of openWakeWord: its three models in one, for 1280 samples (80 ms) at a time, on the scale of 16-bit
    numbers. Samples [time] -> scores [time / 1280 - 24, 1]: the first score is that of the first two seconds.

    openWakeWord calls the first model on the last 1760 samples, the second on the last 76 mel frames and the third on
    the last 16 embeddings. Here the second runs by frames: what its windows share is computed once.
    """
    b = GraphBuilder("openwakeword")
    samples = b.input("samples", DType.FLOAT, (Symbol("time"),))
    blocks = b.op("Reshape", samples, b.ints(-1, WAKE_HOP))
    before = b.op("Slice", b.op("Pad", blocks, b.ints(1, 0, 0, 0)), b.ints(0), b.ints(-1), b.ints(0))
    context = b.op("Slice", before, b.ints(WAKE_HOP - WAKE_CONTEXT), b.ints(WAKE_HOP), b.ints(1))
    chunks = b.op("Unsqueeze", b.op("Concat", context, blocks, axis=1), b.ints(1))
    mel = b.op("Reshape", _for_each(b, read_model(melspec), chunks), b.ints(-1, WAKE_BANDS))
    mel = b.op("Add", b.op("Div", mel, b.constant(np.float32(10))), b.constant(np.float32(2)))
    # the first window ends with the tenth block of frames
    mel = b.op("Slice", mel, b.ints(10 * WAKE_FRAMES - WAKE_WINDOW), b.ints(2**31 - 1), b.ints(0))
    frames = b.op("Reshape", mel, b.ints(1, -1, WAKE_BANDS, 1))
    (embeddings,) = over_windows(b, read_model(embedding), frames, WAKE_FRAMES)
    rows = b.op("Reshape", embeddings, b.ints(1, -1, WAKE_FEATURES))
    (scores,) = over_windows(b, _with_plain_loops(read_model(head)), rows, 1)
    b.graph.outputs.append(b.op("Identity", scores, output=b.value("score", DType.FLOAT, (None, 1))))
    audio = dict(kind="analyser", sample_rate=RATE, frame=WAKE_HOP, hop=WAKE_HOP, input="samples", output="score")
    return AudioModel(b.graph, "internal", audio)


def _with_plain_loops(model: Graph) -> Graph:
    """A model whose loops have nothing left that depends on their sequences alone: windows share that then."""
    run_passes(model, OUT_OF_LOOPS)
    return model


def _for_each(b: GraphBuilder, model: Graph, sequence: Value) -> Value:
    """What a model with one input and one output gives for each element of a sequence, stacked."""
    (fed,), (given,) = model.inputs, model.outputs
    scan = Scan(model, name=model.name)
    scan.add_sequence(sequence, fed)
    scan.add_trace(given, b.value(given.name))
    return next(value for value in b.add(scan.to_node()).outputs if value is not None)


class _Stage:
    """A model with one input and one output of a size, and one state."""

    def __init__(self, graph: Graph, size: int):
        pairs = states_of(graph).carry()
        self.graph = graph
        self.fed = [value for value in graph.inputs if value.name not in pairs]
        given = [value for value in graph.outputs if value.name not in pairs.values()]
        if len(pairs) != 1 or len(self.fed) != 1 or len(given) != 1 or (self.fed[0].shape or (None,))[-1] != size:
            raise ModelError(f"a model of frames of {size} numbers with one state is needed, this has {_ports(graph)}")
        ((before, after),) = pairs.items()
        self.before = next(value for value in graph.inputs if value.name == before)
        self.result, self.after = (
            next(place for place, value in enumerate(graph.outputs) if (value.name == after) is is_state)
            for is_state in (False, True)
        )

    def into(self, b: GraphBuilder, state: str, numbers: Value) -> Value:
        """Its result for these numbers; the state becomes an input and an output of the graph."""
        shape = _numbers(self.before)
        held = b.input(state, self.before.dtype, shape)
        fed = b.op("Reshape", numbers, b.ints(*_numbers(self.fed[0])))
        results = b.inline(self.graph, *(held if value is self.before else fed for value in self.graph.inputs))
        _output(b, f"{state}_next", results[self.after], *shape)
        return results[self.result]


def _numbers(value: Value) -> tuple[int, ...]:
    shape = tuple(dim for dim in value.shape or () if isinstance(dim, int))
    if value.shape is None or len(shape) != len(value.shape):
        raise ModelError(f"the shape of {value.name!r} is not known")
    return shape


def _ports(graph: Graph) -> str:
    return ", ".join(f"{value.name}{list(value.shape or ())}" for value in (*graph.inputs, *graph.outputs))


def _require(graph: Graph, inputs: set[str], outputs: set[str]) -> None:
    if {value.name for value in graph.inputs} != inputs or {value.name for value in graph.outputs} != outputs:
        raise ModelError(f"this is not Silero's model: it has {_ports(graph)}")


def _output(b: GraphBuilder, name: str, value: Value, *shape: int) -> None:
    output = b.value(name, DType.FLOAT, shape)
    b.graph.outputs.append(b.op("Reshape", value, b.ints(*shape), output=output))


def _finished(b: GraphBuilder, kind: str, frame: int, hop: int, output: str) -> AudioModel:
    carry = {value.name: f"{value.name}_next" for value in b.graph.inputs if value.name != "samples"}
    audio = dict(kind=kind, sample_rate=RATE, frame=frame, hop=hop, input="samples", output=output)
    return AudioModel(b.graph, carry, audio)


_KINDS: dict[str, tuple[Callable[..., AudioModel], tuple[str, ...], str]] = {
    "dtln": (dtln, ("model_1", "model_2"), "the DTLN denoiser"),
    "silero": (silero, ("model",), "Silero's voice activity detector"),
    "openwakeword": (openwakeword, ("melspec", "embedding", "head"), "a wake word of openWakeWord"),
}
"""How each is made, its files, and what it is."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m webrnn.audio.plans", description="Write a whole audio model as one plan file."
    )
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="model")
    for name, (_, files, what) in _KINDS.items():
        kind = kinds.add_parser(name, help=what, description=what)
        has_own = name != "openwakeword"
        words = f"its .onnx files: {', '.join(files)}" + ("; by default from the package that has them" * has_own)
        kind.add_argument("model", nargs="*" if has_own else len(files), help=words)
        kind.add_argument("--weights", default="f32", metavar="FORM", help="f32, f16, int16 or int8 (%(default)s)")
        kind.add_argument("-o", "--output", default=f"{name}.rnn", help="the plan file (%(default)s)")
    arguments = parser.parse_args(argv)
    build, files, _ = _KINDS[arguments.kind]
    if len(arguments.model) not in (0, len(files)):
        parser.error(f"{arguments.kind} has {len(files)} .onnx file{'s' * (len(files) > 1)}")
    try:
        build(*arguments.model).export(arguments.output, arguments.weights)
    except Error as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(f"{arguments.output}: {os.path.getsize(arguments.output):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
