"""Streams with timing, written by hand: averages over windows of time, of maxima over strides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import webrnn
from tests.backends import MAIN
from webrnn.engine.streams.stream import Stream
from webrnn.ir import DType, Graph, GraphBuilder, Symbol
from webrnn.ir.timing import TimedOutput, Timing

NEVER = np.int64(2**62)
CHANNELS = 3
STRIDES = Symbol("M")


@dataclass(frozen=True)
class Averages:
    """y: the averages of `width` values, `left` and `right` zeros around all of them; a value is the largest of
    `stride` frames of x. With `gain`, an input without frames, y is multiplied by it; with `total` the sum of all
    values is an output without frames. With `second`, x2 is added to x."""

    width: int = 3
    left: int = 1
    right: int = 1
    stride: int = 1
    axis: int = 1
    """That of time: 1, or 2 with the channels before it."""
    gain: bool = False
    total: bool = False
    second: bool = False
    named: bool = True
    """Whether the batch is open."""
    held: bool = False
    """Whether each frame of y is there as often as a stride has frames."""
    channels: int = CHANNELS
    strides: Any = STRIDES
    carry: dict[str, str] = field(default_factory=dict, init=False, compare=False)
    starts: dict[str, np.ndarray] = field(default_factory=dict, init=False, compare=False)

    def __str__(self) -> str:
        return f"{self.width}-{self.left}-{self.right}-stride{self.stride}-axis{self.axis}"

    @property
    def delay(self) -> int:
        return self.width - 1 - self.left

    @property
    def rate(self) -> int:
        return self.stride if self.held else 1

    @property
    def has_end(self) -> bool:
        return self.right > 0

    @property
    def timing(self) -> Timing:
        extra = self.left + self.right - self.width + 1
        names = ("x", "x2") if self.second else ("x",)
        return Timing(
            self.stride,
            dict.fromkeys(names, self.axis),
            {"y": TimedOutput(self.axis, self.rate, self.rate * self.delay, self.rate * extra)},
            "time.end" if self.has_end else None,
        )

    def graph(self) -> Graph:
        b = GraphBuilder("averages")
        batch = Symbol("batch") if self.named else 1
        frames = self.strides * self.stride
        shape = (batch, frames, self.channels) if self.axis == 1 else (batch, self.channels, frames)
        fed = [b.input(name, DType.FLOAT, shape) for name in self.timing.inputs]
        gain = b.input("gain", DType.FLOAT, (self.channels,)) if self.gain else None
        x = b.op("Add", *fed) if self.second else fed[0]
        x = x if self.axis == 1 else b.op("Transpose", x, perm=[0, 2, 1])
        strided = b.op("Reshape", x, b.ints(0, -1, self.stride, self.channels))
        values = b.op("ReduceMax", strided, b.ints(2), keepdims=0)
        n = b.op("Squeeze", b.op("Slice", b.op("Shape", values), b.ints(1), b.ints(2)), b.ints(0))
        if self.has_end or self.delay:
            position = b.input("time.position", DType.INT64, (1,))
            self._state(b, "time.position", b.op("Add", position, n), ())
        if self.has_end:
            end = b.input("time.end", DType.INT64, (1,))
            self._state(b, "time.end", b.op("Identity", end), ())
            self.starts["time.end"] = np.array([NEVER])
            steps = b.op("Range", b.constant(np.int64(0)), n, b.constant(np.int64(1)))
            number = b.op("Add", b.op("Unsqueeze", position, b.ints(1)), steps)
            valid = b.op("Less", number, b.op("Unsqueeze", end, b.ints(1)))
            values = b.op("Where", b.op("Unsqueeze", valid, b.ints(2)), values, b.constant(np.float32(0)))
        history = b.input("history", DType.FLOAT, (batch, self.width - 1, self.channels))
        joined = b.op("Concat", history, values, axis=1)
        self._state(
            b, "history", b.op("Slice", joined, b.ints(1 - self.width), b.ints(2**31), b.ints(1)), history.shape
        )
        y = values
        for back in range(self.width):
            windowed = b.op("Slice", joined, b.ints(back), b.op("Add", b.ints(back), n), b.ints(1))
            y = windowed if back == 0 else b.op("Add", y, windowed)
        y = b.op("Mul", y, b.constant(np.float32(1 / self.width)))
        if gain is not None:
            y = b.op("Mul", y, gain)
        if self.held:
            y = b.op("Expand", b.op("Unsqueeze", y, b.ints(2)), b.ints(1, 1, self.stride, 1))
            y = b.op("Reshape", y, b.op("Concat", b.ints(0), b.ints(-1), b.ints(self.channels), axis=0))
        y = y if self.axis == 1 else b.op("Transpose", y, perm=[0, 2, 1])
        n_frames = self.strides * self.rate
        y_shape = (batch, n_frames, self.channels) if self.axis == 1 else (batch, self.channels, n_frames)
        b.graph.outputs.insert(0, b.op("Identity", y, output=b.value("y", DType.FLOAT, y_shape)))
        if self.total:
            total = b.input("total_before", DType.FLOAT, (batch, self.channels))
            added = b.op("Add", total, b.op("ReduceSum", values, b.ints(1), keepdims=0))
            self._state(b, "total_before", added, total.shape)
            b.graph.outputs.insert(1, b.op("Identity", added, output=b.value("total", DType.FLOAT, total.shape)))
        return b.graph

    def _state(self, b: GraphBuilder, name: str, after: Any, shape: Any) -> None:
        dtype = DType.INT64 if name.startswith("time.") else DType.FLOAT
        output = b.value(f"{name}.next", dtype, shape or (1,))
        b.graph.outputs.append(b.op("Identity", after, output=output))
        self.carry[name] = output.name

    def session(self, backend: str = MAIN) -> webrnn.InferenceSession:
        """`stream`, `pool` and `export` of it with `carry=self.carry` have the timing."""
        session = webrnn.InferenceSession(self.graph(), backend=backend)
        model = session._streaming(self.carry)
        model.timing, model._starts = self.timing, self.starts
        return session

    def stream(self, backend: str = MAIN, **options: Any) -> Stream:
        return self.session(backend).stream(self.carry, **options)

    def whole(self, x: np.ndarray, gain: np.ndarray | None = None) -> np.ndarray:
        """y of the whole sequence."""
        x = x if self.axis == 1 else x.swapaxes(1, 2)
        values = x.reshape(x.shape[0], -1, self.stride, self.channels).max(2)
        padded = np.pad(values, ((0, 0), (self.left, self.right), (0, 0)))
        n = max(0, padded.shape[1] - self.width + 1)
        y = padded[:, :n]
        for back in range(1, self.width):
            y = y + padded[:, back : back + n]
        y = y * np.float32(1 / self.width)
        y = y if gain is None else y * gain
        y = y.repeat(self.rate, 1)
        return y if self.axis == 1 else y.swapaxes(1, 2)

    def feed(self, n_strides: int, batch: int = 1, seed: int = 0) -> np.ndarray:
        x = np.random.default_rng(seed).standard_normal((batch, n_strides * self.stride, self.channels), np.float32)
        return x if self.axis == 1 else np.ascontiguousarray(x.swapaxes(1, 2))

    def frames(self, x: np.ndarray, first: int, end: int) -> np.ndarray:
        """Of an input, by strides."""
        cut = slice(first * self.stride, end * self.stride)
        return x[:, cut] if self.axis == 1 else x[:, :, cut]
