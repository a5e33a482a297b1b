"""Small models and corpora for tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from onnx import helper
from onnx.parser import parse_model

from tests.onnx.models import floats, initializer, model


def double() -> bytes:
    return parse_model("""<ir_version: 8, opset_import: ["": 17]>
    double (float[n] x) => (float[n] y) { y = Add(x, x) }""").SerializeToString()


def total() -> bytes:
    """A stream: the sum so far, of frames [1, 4]."""
    return parse_model("""<ir_version: 8, opset_import: ["": 17]>
    total (float[1, n] x, float[1] sum_in) => (float[1] sum_out, float[1] mean) {
        axes = Constant<value_ints=[1]>()
        sum = ReduceSum<keepdims=0>(x, axes)
        sum_out = Add(sum_in, sum)
        two = Constant<value_floats=[2.0]>()
        mean = Div(sum_out, two)
    }""").SerializeToString()


@cache
def gru(size: int = 16, inputs: int = 4) -> bytes:
    """[time, batch, inputs] -> [time, 1, batch, size] and the last state."""
    rng = np.random.default_rng(0)
    weights = [
        initializer(name, rng.standard_normal(shape).astype(np.float32) * np.float32(0.3))
        for name, shape in (("W", (1, 3 * size, inputs)), ("R", (1, 3 * size, size)), ("B", (1, 6 * size)))
    ]
    node = helper.make_node("GRU", ["x", "W", "R", "B"], ["y", "h"], hidden_size=size)
    declared = [floats("y", ["time", 1, "batch", size]), floats("h", [1, "batch", size])]
    return model([node], [floats("x", ["time", "batch", inputs])], declared, weights).SerializeToString()


def write_arrays(folder: Path, count: int, steps: int = 8, seed: int = 0) -> Path:
    """So many .npy files for `gru`."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    for number in range(count):
        np.save(folder / f"{number:05d}.npy", rng.standard_normal((steps, 1, 4)).astype(np.float32))
    return folder
