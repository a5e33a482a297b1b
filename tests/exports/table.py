"""The table of architectures: how each is made, what it takes and gives, which states it has and who exports it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Sizes = Mapping[str, int]

EXPORTED: Sizes = {"batch": 2, "steps": 6, "tokens": 5, "height": 8, "samples": 160}
"""Named sizes when a model is exported and first run."""
OTHERS: Sizes = {"batch": 3, "steps": 9, "tokens": 7, "height": 8, "samples": 240}
"""Those of the second run; a model that has no named sizes is run with other numbers only."""
STREAMED_STEPS = 4


@dataclass(frozen=True)
class Input:
    """One input; a size that is a string is open in the export."""

    make: Callable[[np.random.Generator, tuple[int, ...], Sizes], np.ndarray]
    shape: tuple[int | str, ...]

    def value(self, generator: np.random.Generator, sizes: Sizes) -> np.ndarray:
        shape = tuple(sizes[size] if isinstance(size, str) else size for size in self.shape)
        return self.make(generator, shape, sizes)

    @property
    def open_axes(self) -> dict[int, str]:
        return {axis: size for axis, size in enumerate(self.shape) if isinstance(size, str)}


def floats(*shape: int | str) -> Input:
    return Input(lambda generator, shape, _: generator.standard_normal(shape, np.float32), shape)


def positive(*shape: int | str) -> Input:
    return Input(lambda generator, shape, _: generator.uniform(0.1, 2, shape).astype(np.float32), shape)


def integers(high: int, *shape: int | str, low: int = 0) -> Input:
    return Input(lambda generator, shape, _: generator.integers(low, high, shape), shape)


def lengths(longest: str | int, *shape: int | str) -> Input:
    """Lengths of sequences, longest first: what pack_padded_sequence takes unless it is told otherwise."""

    def make(generator: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
        most = sizes[longest] if isinstance(longest, str) else longest
        return np.sort(np.append(generator.integers(1, most + 1, shape[0] - 1), most))[::-1].copy()

    return Input(make, shape)


def bits(*shape: int | str) -> Input:
    """A mask; the first place of the last axis is always set."""

    def make(generator: np.random.Generator, shape: tuple[int, ...], _: Sizes) -> np.ndarray:
        mask = generator.random(shape) < 0.7
        mask[..., 0] = True
        return mask

    return Input(make, shape)


@dataclass(frozen=True)
class Architecture:
    name: str
    family: str
    make: Callable[[], Any]
    inputs: Mapping[str, Input]
    outputs: Sequence[str]
    states: Mapping[str, str]
    """The input that each state comes in by, and the output that it leaves by."""
    exporters: Sequence[str]
    versions: Sequence[str] = ()
    """Names of `versions.py`: the model once more, quantized or in float16."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """More for the exporter, such as the opset."""

    @property
    def seed(self) -> int:
        return zlib.crc32(self.name.encode())

    @property
    def is_open(self) -> bool:
        return any(each.open_axes for each in self.inputs.values())

    def feeds(self, sizes: Sizes, salt: int) -> dict[str, np.ndarray]:
        generator = np.random.default_rng([self.seed, salt])
        return {name: each.value(generator, sizes) for name, each in self.inputs.items()}


class Family:
    """Architectures of one file."""

    def __init__(self, name: str, exporters: Sequence[str]):
        self.name, self.exporters = name, tuple(exporters)
        self.architectures: list[Architecture] = []

    def add(
        self,
        name: str,
        make: Callable[[], Any],
        inputs: Mapping[str, Input],
        outputs: str = "y",
        states: Mapping[str, str] | None = None,
        exporters: Sequence[str] | None = None,
        versions: Sequence[str] = (),
        **options: Any,
    ) -> None:
        chosen = self.exporters if exporters is None else tuple(exporters)
        self.architectures.append(
            Architecture(name, self.name, make, inputs, outputs.split(), states or {}, chosen, tuple(versions), options)
        )
