"""The table of layers of random models over time: each takes a value of [batch, channels, time] and gives such a one.

A layer is a row of `LAYERS`: how often it is drawn, the options of each of its parameters, and how it is built. It
knows how many frames it gives: `rate` times the frames of the inputs, which are a multiple of the stack's stride, plus
`extra`. A layer that does not fit what is before it (an odd number of channels to be split) gives what it got.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from .pieces import Builder

LARGEST_STRIDE = 24
LARGEST_RATE = 4
TO_THE_END = 2**31 - 1


@dataclass(frozen=True)
class Signal:
    """A value of [batch, channels, time]."""

    name: str
    channels: int
    rate: Fraction = Fraction(1)
    extra: int = 0

    def frames(self, time: int) -> int:
        return int(self.rate * time) + self.extra


@dataclass
class Stack:
    """A model under construction."""

    b: Builder
    now: Signal
    stride: int = 1
    """The frames of the inputs are to be a multiple of it."""
    seen: list[Signal] = field(default_factory=list)
    """What later layers may go back to."""
    needs: list[tuple[Signal, int]] = field(default_factory=list)
    """How many frames a value has at least, so that the model can run."""
    outputs: dict[str, Signal] = field(default_factory=dict)
    finals: list[str] = field(default_factory=list)
    """Outputs without time."""

    def strided(self, signal: Signal, by: int) -> bool:
        """Take care that the frames of a value can be cut into groups of `by`; False if strides get too large."""
        rate = signal.rate / by
        stride = math.lcm(self.stride, rate.denominator)
        if stride > LARGEST_STRIDE:
            return False
        self.stride = stride
        return True

    def need(self, signal: Signal, frames: int) -> None:
        self.needs.append((signal, frames))

    def shortest(self) -> int:
        """The fewest frames for which the model runs."""
        least = self.stride
        for signal, frames in self.needs:
            short = Fraction(frames - signal.extra) / signal.rate
            least = max(least, -(-short.numerator // (short.denominator * self.stride)) * self.stride)
        return least


Build = Callable[..., Signal]


@dataclass(frozen=True)
class Layer:
    weight: int
    options: dict[str, tuple[Any, ...]]
    build: Build


LAYERS: dict[str, Layer] = {}


def layer(weight: int, **options: tuple[Any, ...]) -> Callable[[Build], Build]:
    def register(build: Build) -> Build:
        LAYERS[build.__name__] = Layer(weight, options, build)
        return build

    return register


def derived(x: Signal, name: str, channels: int | None = None, **changes: Any) -> Signal:
    return replace(x, name=name, channels=x.channels if channels is None else channels, **changes)


def frames_last(s: Stack, x: Signal, build: Callable[[str], str]) -> str:
    """What is built on [batch, time, channels]."""
    return s.b.op("Transpose", build(s.b.op("Transpose", x.name, perm=[0, 2, 1])), perm=[0, 2, 1])
