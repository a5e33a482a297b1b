"""Voice activity: samples in, the probability of speech out."""

from __future__ import annotations

from webrnn import models
from webrnn.errors import OptionError
from webrnn.ir import DType, GraphBuilder
from webrnn.onnx.reader import read_model

from .plans_model import RATE, AudioModel, Source, add_output, finished, require_ports

SILERO_CHUNKS = {16000: 512, 8000: 256}
"""Samples that it takes at a time, at each of its rates."""


def silero(model: Source | None = None, rate: int = RATE) -> AudioModel:
    """Silero's voice activity detector: the probability of speech in each 512 samples (256 at 8 kHz), in front of which
    an eighth of those before is kept. By default the model of `webrnn.models`."""
    if rate not in SILERO_CHUNKS:
        raise OptionError(f"Silero's detector takes {' or '.join(map(str, SILERO_CHUNKS))} Hz, not {rate}")
    graph = read_model(model if model is not None else models.fetch("silero_v6"), fixed={"sr": rate})
    require_ports(graph, "Silero's", {"input", "state"}, {"output", "stateN"})
    inputs, outputs = (
        {value.name: place for place, value in enumerate(ports)} for ports in (graph.inputs, graph.outputs)
    )
    size = SILERO_CHUNKS[rate]
    kept = size // 8
    b = GraphBuilder("silero")
    samples = b.input("samples", DType.FLOAT, (size,))
    context = b.input("context", DType.FLOAT, (kept,))
    state = b.input("state", DType.FLOAT, (2, 1, 128))
    chunk = b.op("Reshape", b.op("Concat", context, samples, axis=0), b.ints(1, kept + size))
    arguments = {inputs["input"]: chunk, inputs["state"]: state}
    results = b.inline(graph, *(arguments[place] for place in range(len(inputs))))
    add_output(b, "probability", results[outputs["output"]], 1)
    add_output(b, "context_next", b.op("Slice", samples, b.ints(-kept), b.ints(size)), kept)
    add_output(b, "state_next", results[outputs["stateN"]], 2, 1, 128)
    return finished(b, "analyser", size, size, "probability", rate)
