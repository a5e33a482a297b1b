"""Signals, and ways to cut them into blocks."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st


def signal(n: int, channels: int = 1, seed: int = 0) -> np.ndarray:
    shape = n if channels == 1 else (n, channels)
    return (0.3 * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)


lengths_of_blocks = st.lists(st.one_of(st.integers(0, 7), st.integers(0, 700)), max_size=12)


def pieces(samples: np.ndarray, lengths: Sequence[int]) -> list[np.ndarray]:
    """Blocks of these lengths, as far as the samples go, and one with the rest."""
    return np.split(samples, np.cumsum(lengths).clip(max=len(samples)))


def by_blocks(stream: Any, blocks: Sequence[np.ndarray], flush: Callable[[], np.ndarray] | None = None) -> np.ndarray:
    return np.concatenate([*[stream.push(block) for block in blocks], (flush or stream.flush)()])


def assert_same_bits(a: np.ndarray, b: np.ndarray) -> None:
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.tobytes() == b.tobytes()
