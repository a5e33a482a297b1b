"""What a whole audio model is, and what its makers share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from webrnn.engine.session import InferenceSession
from webrnn.errors import ModelError, OptionError
from webrnn.ir import DType, Graph, GraphBuilder, Value

from .filters import ChannelFilter, Filter, FrameFilter, RateFilter

Source = str | os.PathLike[str] | bytes
Weights = str | Mapping[str, str]
"""As InferenceSession takes them."""

RATE = 16000


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
        return self._frames(self.session(backend, weights))

    def _frames(self, session: InferenceSession) -> Callable[[np.ndarray], np.ndarray]:
        stream = session.stream(carry=self.carry)
        fed, place = self.audio["input"], stream.output_names.index(self.audio["output"])
        return lambda frame: stream.step({fed: frame})[place]

    def filter(
        self, backend: str = "auto", weights: Weights = "f32", *, sample_rate: int | None = None, channels: int = 1
    ) -> Filter:
        """A "filter" for signals, by blocks of any size, with the bits of the audio thread of a page.

        The signal is resampled if its `sample_rate` is not that of the model. Each of several `channels` of a signal
        [samples, channels] has a stream of its own; `webrnn.audio.mono` makes one of them.
        """
        if self.audio["kind"] != "filter":
            raise ModelError("it gives numbers for frames of samples, not samples")
        if channels < 1:
            raise OptionError(f"a signal of {channels} channels")
        rate, session = self.audio["sample_rate"], self.session(backend, weights)

        def one() -> Filter:
            frames = FrameFilter(self._frames(session), self.audio["frame"], self.audio["hop"])
            return frames if sample_rate in (None, rate) else RateFilter(frames, rate, sample_rate)

        return one() if channels == 1 else ChannelFilter([one() for _ in range(channels)])


def sizes_of(value: Value) -> tuple[int, ...]:
    shape = tuple(dim for dim in value.shape or () if isinstance(dim, int))
    if value.shape is None or len(shape) != len(value.shape):
        raise ModelError(f"the shape of {value.name!r} is not known")
    return shape


def one_stream(value: Value) -> tuple[int, ...]:
    """The shape of a state of one stream: what is open is the batch."""
    if value.shape is None:
        raise ModelError(f"the shape of {value.name!r} is not known")
    return tuple(dim if isinstance(dim, int) else 1 for dim in value.shape)


def ports_of(graph: Graph) -> str:
    return ", ".join(f"{value.name}{list(value.shape or ())}" for value in (*graph.inputs, *graph.outputs))


def require_ports(graph: Graph, whose: str, inputs: set[str], outputs: set[str]) -> None:
    if {value.name for value in graph.inputs} != inputs or {value.name for value in graph.outputs} != outputs:
        raise ModelError(f"this is not {whose} model: it has {ports_of(graph)}")


def add_output(b: GraphBuilder, name: str, value: Value, *shape: int) -> None:
    output = b.value(name, DType.FLOAT, shape)
    b.graph.outputs.append(b.op("Reshape", value, b.ints(*shape), output=output))


def finished(b: GraphBuilder, kind: str, frame: int, hop: int, output: str, rate: int = RATE) -> AudioModel:
    """A model whose inputs are "samples", and states whose next values are outputs named "..._next"."""
    carry = {value.name: f"{value.name}_next" for value in b.graph.inputs if value.name != "samples"}
    audio = dict(kind=kind, sample_rate=rate, frame=frame, hop=hop, input="samples", output=output)
    return AudioModel(b.graph, carry, audio)
