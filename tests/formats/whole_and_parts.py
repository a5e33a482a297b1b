"""Runs of a model on a signal, whole and in parts."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np

import webrnn


def encoded(data: Any) -> bytes:
    return json.dumps(data).encode()


def run_both(model: bytes, x: np.ndarray, seed: int = 0, **options: Any) -> np.ndarray:
    """What a model gives for a signal. A stream gives the same bits, whatever parts come."""
    session = webrnn.InferenceSession(model, **options)
    (whole,) = session.run(None, {"x": x})
    rng, stream = np.random.default_rng(seed), session.stream()
    cuts = np.unique(np.concatenate([[0, len(x)], rng.integers(0, len(x), 12)]))
    parts = [stream.step({"x": x[a:b]})[0] for a, b in pairwise(cuts)]
    if options.get("backend") == "numpy":  # numpy's products depend on how many rows there are
        np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-6)
    else:
        assert np.array_equal(np.concatenate(parts), whole)
    return whole
