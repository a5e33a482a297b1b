"""Files of weights, written by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np


def safetensors(shapes: Mapping[str, tuple[int, ...]], number: float = 0.01) -> bytes:
    """A file with arrays of one number, of these shapes."""
    header, data = {}, b""
    for name, shape in shapes.items():
        array = np.full(shape, number, np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(array)]}
        data += array
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def gru(inputs: int, hidden: int) -> dict[str, tuple[int, ...]]:
    """The shapes of a GRU of PyTorch's that is called rnn."""
    rows = 3 * hidden
    shapes = {"weight_ih": (rows, inputs), "weight_hh": (rows, hidden), "bias_ih": (rows,), "bias_hh": (rows,)}
    return {f"rnn.{name}_l0": shape for name, shape in shapes.items()}
