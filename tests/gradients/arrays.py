"""The cases that are compared with torch.autograd, and their inputs and weights, which follow from their names."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

RECORDED = Path(__file__).with_name("torch.npz")
INPUTS, HIDDEN = 3, 4
BATCHES, STEPS = (1, 8), (1, 7, 50)
N_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _weights(op: str, inputs: int, directions: int = 1, prefix: str = "") -> dict[str, tuple[int, ...]]:
    gates = N_GATES[op] * HIDDEN
    return {
        f"{prefix}W": (directions, gates, inputs),
        f"{prefix}R": (directions, gates, HIDDEN),
        f"{prefix}B": (directions, 2 * gates),
    }


SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    **{op: _weights(op, INPUTS) for op in N_GATES},
    "bidirectional": _weights("LSTM", INPUTS, 2),
    "stacked": {**_weights("GRU", INPUTS, prefix="a_"), **_weights("GRU", HIDDEN, prefix="b_")},
    "conv_gru_linear": {
        "filters": (5, INPUTS, 3), "offsets": (5,), **_weights("GRU", 5), "out": (HIDDEN, 2), "out_bias": (2,),
    },
    "scan": {"u": (INPUTS, HIDDEN), "v": (HIDDEN, HIDDEN), "gain": (HIDDEN,), "start": (1, HIDDEN)},
    "loop": {"u": (INPUTS, HIDDEN), "v": (HIDDEN, HIDDEN), "gain": (HIDDEN,)},
}  # fmt: skip
"""By model, the shapes of its weights."""


def cases() -> Iterator[tuple[str, int, int]]:
    """Names, batches and numbers of steps."""
    return ((name, batch, steps) for name in SHAPES for batch in BATCHES for steps in STEPS)


def given(name: str, batch: int, steps: int) -> dict[str, np.ndarray]:
    """The input x [steps, batch, INPUTS] and the weights."""
    rng = np.random.default_rng(zlib.crc32(f"{name}-{batch}-{steps}".encode()))
    shapes = {"x": (steps, batch, INPUTS), **SHAPES[name]}
    return {key: (rng.standard_normal(shape) * 0.5).astype(np.float32) for key, shape in shapes.items()}
