"""What models give, as a digest of all bits: computed natively before, and inside Pyodide."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

import webrnn
from webrnn.engine.kernels import loading as kernels
from webrnn.engine.streams.carry import Carry

SIZES: dict[str, dict[str, tuple[int, ...]]] = {
    "silero_v6": {"input": (1, 576), "state": (2, 1, 128)},
    "silero_v6_op15": {"input": (1, 576), "state": (2, 1, 128)},
    "silero_v6_op18_ifless": {"input": (1, 576), "state": (2, 1, 128)},
    "silero_v6_seq": {"input": (3, 576)},
    "nsnet2_16k": {"input": (2, 6, 161)},
    "localwake_loop": {"samples:0": (1, 16000)},
}
"""Shapes of inputs whose sizes the models leave open; others are 1 there."""
FIXED = {name: {"sr": 16000} for name in ("silero_v6", "silero_v6_op15")}
"""At a rate that is known only when it runs, parts of silero_v6 are numpy's, whose bits differ between platforms."""
CARRY: dict[str, Carry] = {"gru_128_t1": {"h": "h_n"}, "riann": {"h0": "hn"}, "nsnet2_16k": "internal"}
"""Models that are also run as streams."""


def reference_backend() -> str | None:
    """A build outside of Pyodide with fused multiply-adds; None if this processor has none."""
    specs = [spec for spec in kernels.available() if kernels.load(spec).fused]
    return specs[0] if specs else None


def digest(name: str, model: Path | bytes, backend: str, weights: str = "f32") -> str:
    """Of the results of two runs with other inputs and, where a state is carried, three steps of a stream."""
    session = webrnn.InferenceSession(model, backend=backend, fixed=FIXED.get(name), weights=weights)
    found = hashlib.sha256()
    rng = np.random.default_rng(7)
    shapes = {item.name: SIZES.get(name, {}).get(item.name) or _ones(item.shape) for item in session.get_inputs()}
    for _ in range(2):
        _add(found, session.run(None, {key: _array(key, shape, rng) for key, shape in shapes.items()}))
    if name in CARRY:
        stream = session.stream(carry=CARRY[name])
        fed = [key for key in shapes if key not in stream.carry]
        for _ in range(3):
            _add(found, stream.step({key: _array(key, shapes[key], rng) for key in fed}))
    return found.hexdigest()


def _ones(shape: Any) -> tuple[int, ...]:
    return tuple(size if isinstance(size, int) else 1 for size in shape)


def _array(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Of numbers that every platform draws alike."""
    if name == "sr":
        return np.array(16000, np.int64)
    return 2 * rng.random(shape, np.float32) - 1


def _add(found: Any, results: list[np.ndarray]) -> None:
    for array in results:
        found.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
