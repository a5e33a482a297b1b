"""The network that learns gestures in the page: its ONNX file, the plan of a step of training, and that of a guess."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import webrnn
from webrnn.bench.onnx_file import GraphFile

STEPS, HIDDEN, KINDS = 24, 16, 3
"""As web_demo/learn/gestures.js has them."""
RATE, SEED = 0.01, 3


def model() -> bytes:
    """x [batch, steps, 2], steps along a path, to scores [batch, kinds]. Weights are drawn as PyTorch draws them."""
    rng = np.random.default_rng(SEED)

    def drawn(*shape: int) -> np.ndarray:
        return rng.uniform(-(HIDDEN**-0.5), HIDDEN**-0.5, shape).astype(np.float32)

    graph = GraphFile("gestures")
    graph.constant("W", drawn(1, 3 * HIDDEN, 2))
    graph.constant("R", drawn(1, 3 * HIDDEN, HIDDEN))
    graph.constant("B", drawn(1, 6 * HIDDEN))
    graph.constant("V", drawn(HIDDEN, KINDS))
    graph.constant("c", drawn(KINDS))
    graph.constant("directions", np.array([0], np.int64))
    graph.node("Transpose", ["x"], ["steps"], perm=[1, 0, 2])
    graph.node("GRU", ["steps", "W", "R", "B"], ["", "h"], hidden_size=HIDDEN, linear_before_reset=1)
    graph.node("Squeeze", ["h", "directions"], ["last"])
    graph.node("MatMul", ["last", "V"], ["product"])
    graph.node("Add", ["product", "c"], ["scores"])
    return graph.model({"x": ["batch", STEPS, 2]}, {"scores": ["batch", KINDS]})


def write(folder: Path) -> dict[str, Any]:
    """The files; returns what the page has to know of them."""
    folder.mkdir(parents=True, exist_ok=True)
    data = model()
    trainer = webrnn.trainer(data, "cross_entropy", "adam", lr=RATE)
    train, predict = folder / "learn.rnn", folder / "learned.rnn"
    trainer.export(train, predict=predict)
    (folder / "gestures.onnx").write_bytes(data)
    return {
        "train": f"bundled/{train.name}",
        "predict": f"bundled/{predict.name}",
        "bytes": train.stat().st_size + predict.stat().st_size,
        "onnx": {"file": "bundled/gestures.onnx", "offsets": _offsets(data, trainer.parameters())},
    }


def _offsets(data: bytes, parameters: dict[str, np.ndarray]) -> dict[str, int]:
    """Where the elements of each parameter are in the file: a page writes others there."""
    found = {}
    for name, array in parameters.items():
        found[name] = data.index(array.tobytes())
        assert data.count(array.tobytes()) == 1
    return found
