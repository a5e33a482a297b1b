"""Runs inside the Python of another processor: prints a digest of each built-in benchmark model on each build, then
tries what a user tries first."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

import webrnn
from pyodide_pkg.suite.bits import digest
from webrnn.bench.models import BUILT_IN, FURTHER, streaming_gru
from webrnn.engine.kernels import loading as kernels


def digests() -> dict[str, dict[str, str]]:
    """By build and model."""
    models = {name: make() for name, make in (BUILT_IN | FURTHER).items()}
    found: dict[str, dict[str, str]] = {}
    for spec in kernels.available():
        if spec.startswith("native:") and "avx512" not in spec:
            found[spec] = {name: digest(name, model, spec) for name, model in models.items()}
    return found


def smoke() -> None:
    """A GRU, a stream and an export give the same."""
    session = webrnn.InferenceSession(streaming_gru(), backend="native")
    x = np.random.default_rng(1).standard_normal((7, 1, 64), np.float32)
    h = np.zeros((1, 1, 128), np.float32)
    whole = session.run(["y"], {"x": x, "h_in": h})[0]
    stream = session.stream(carry={"h_in": "h_out"})
    steps = np.concatenate([stream.step({"x": frame[None]})[0] for frame in x])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gru.rnn"
        session.export(file, carry={"h_in": "h_out"})
        again = webrnn.InferenceSession(file).stream()
        plan = np.concatenate([again.step({"x": frame[None]})[0] for frame in x])
    assert whole.tobytes() == steps.tobytes() == plan.tobytes()


if __name__ == "__main__":
    smoke()
    json.dump(digests(), sys.stdout)
