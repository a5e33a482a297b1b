"""Wake words: samples in, embeddings or scores out, every 80 ms."""

from __future__ import annotations

import numpy as np

from webrnn import models
from webrnn.along_time.over_windows import over_windows
from webrnn.errors import OptionError
from webrnn.ir import DType, Graph, GraphBuilder, Scan, Symbol, Value
from webrnn.onnx.reader import read_model
from webrnn.passes.pipeline import OUT_OF_LOOPS, run_passes

from .plans_model import RATE, AudioModel, Source

FULL_SCALE = 32768.0
"""Of the samples that openWakeWord's models take."""
WAKE_HOP, WAKE_CONTEXT = 1280, 480
WAKE_FRAMES, WAKE_WINDOW, WAKE_BANDS, WAKE_FEATURES = 8, 76, 32, 96


def openwakeword(melspec: Source, embedding: Source, head: Source, full_scale: float = FULL_SCALE) -> AudioModel:
    """A wake word of openWakeWord: its three models in one, for 1280 samples (80 ms) at a time, on the scale of 16-bit
    numbers. Samples [time] -> scores [time / 1280 - 24, 1]: the first score is that of the first two seconds.

    openWakeWord calls the first model on the last 1760 samples, the second on the last 76 mel frames and the third on
    the last 16 embeddings. Here the second runs by frames: what its windows share is computed once. `full_scale` is the
    largest sample: 1 for what an audio device gives.
    """
    b = GraphBuilder("openwakeword")
    embeddings = _embeddings(b, melspec, embedding, full_scale)
    rows = b.op("Reshape", embeddings, b.ints(1, -1, WAKE_FEATURES))
    (scores,) = over_windows(b, _with_plain_loops(read_model(head)), rows, 1)
    b.graph.outputs.append(b.op("Identity", scores, output=b.value("score", DType.FLOAT, (None, 1))))
    return _by_80_ms(b, "score")


def wake_word_front(
    melspec: Source | None = None, embedding: Source | None = None, full_scale: float = 1.0
) -> AudioModel:
    """What wake words of openWakeWord share: mel spectrum and Google's speech embedding, for heads of one's own.
    Samples [time] -> embeddings [time / 1280 - 9, 96]. By default the models of `webrnn.models`.

    A head takes the last embeddings, 16 in openWakeWord, and gives a score: any plan of [1, 16, 96] -> [1, 1].
    """
    melspec = melspec if melspec is not None else models.fetch("oww_melspec")
    embedding = embedding if embedding is not None else models.fetch("oww_embedding")
    b = GraphBuilder("wake_word_front")
    rows = b.op("Reshape", _embeddings(b, melspec, embedding, full_scale), b.ints(-1, WAKE_FEATURES))
    b.graph.outputs.append(b.op("Identity", rows, output=b.value("embedding", DType.FLOAT, (None, WAKE_FEATURES))))
    return _by_80_ms(b, "embedding")


def _by_80_ms(b: GraphBuilder, output: str) -> AudioModel:
    audio = dict(kind="analyser", sample_rate=RATE, frame=WAKE_HOP, hop=WAKE_HOP, input="samples", output=output)
    return AudioModel(b.graph, "internal", audio)


def _embeddings(b: GraphBuilder, melspec: Source, embedding: Source, full_scale: float) -> Value:
    """Of the samples, an input; one for 1280 of them, from the tenth time on."""
    if not full_scale > 0:
        raise OptionError(f"a full scale of {full_scale}")
    samples = b.input("samples", DType.FLOAT, (Symbol("time"),))
    if full_scale != FULL_SCALE:
        samples = b.op("Mul", samples, b.constant(np.float32(FULL_SCALE / full_scale)))
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
    return embeddings


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
