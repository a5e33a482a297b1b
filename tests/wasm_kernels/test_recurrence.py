"""A whole GRU and a whole LSTM put together from kernels: where rounding differences between builds would add up."""

from __future__ import annotations

import numpy as np
import pytest

from wasm_kernels.table import ACTIVATIONS, packed_size
from webrnn.engine.kernels import loading as kernels

from .harness import same_bits

SPECS = kernels.available()
SIGMOID_TANH = ACTIVATIONS.index("sigmoid") | ACTIVATIONS.index("tanh") << 8


def gru(build: kernels.Kernels, x: np.ndarray, hidden: int, seed: int) -> np.ndarray:
    """States [steps, batch, hidden] of a GRU with random weights on x[steps, batch, inputs]."""
    steps, batch, inputs = x.shape
    rng = np.random.default_rng(seed)
    weights = [rng.uniform(-1, 1, (3 * hidden, k)) * hidden**-0.5 for k in (inputs, hidden)]
    packed = []
    for w in weights:
        n, k = w.shape
        source, target = build.buffer(w), build.empty(packed_size(n, k))
        build.pack_panels(source, target, n, k, k, 1)
        packed.append(target)
    params = build.buffer([np.inf, 0, 0, 0, 0])
    sequence = build.buffer(x)
    xw, hw, h = build.empty((steps, batch, 3 * hidden)), build.empty((batch, 3 * hidden)), build.empty((batch, hidden))
    h.array[:] = 0
    gates = 3 * hidden
    build.gemm(sequence, packed[0], None, xw, steps * batch, gates, inputs, inputs, gates)
    states = np.empty((steps, batch, hidden), np.float32)
    for t in range(steps):
        build.gemm(h, packed[1], None, hw, batch, gates, hidden, hidden, gates)
        step = xw.part(t * batch * gates * 4, (batch, gates))
        build.gru_cell(step, hw, h, h, batch, hidden, SIGMOID_TANH, params)
        states[t] = h.array
    return states


def sequence(steps: int, batch: int, inputs: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal((steps, batch, inputs)).astype(np.float32)


def naive_gru(x: np.ndarray, hidden: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    w, r = (np.float32(rng.uniform(-1, 1, (3 * hidden, k)) * hidden**-0.5).astype(float) for k in (x.shape[2], hidden))
    h, states = np.zeros((x.shape[1], hidden)), []
    for frame in x.astype(float):
        xz, xr, xn = np.split(frame @ w.T, 3, axis=1)
        hz, hr, hn = np.split(h @ r.T, 3, axis=1)
        z, reset = 1 / (1 + np.exp(-xz - hz)), 1 / (1 + np.exp(-xr - hr))
        h = (1 - z) * np.tanh(xn + reset * hn) + z * h
        states.append(h)
    return np.stack(states)


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "unfused"])
def test_gru_256_has_the_same_bits_on_all_builds(fused: bool) -> None:
    builds = [b for b in map(kernels.load, SPECS) if b.fused == fused]
    x = sequence(100, 1, 256)
    first, *others = [gru(b, x, 256, seed=1) for b in builds]
    assert all(same_bits(first, other) for other in others)
    np.testing.assert_allclose(first, naive_gru(x, 256, seed=1), atol=2e-5)


def test_simd_and_relaxed_agree_within_tolerance() -> None:
    x = sequence(100, 1, 256)
    relaxed, simd = (gru(kernels.load(spec), x, 256, seed=1) for spec in ("wasm:relaxed", "wasm:simd"))
    np.testing.assert_allclose(relaxed, simd, atol=1e-5)


@pytest.mark.parametrize("hidden", [5, 48, 64])
def test_results_do_not_depend_on_the_batch(build: kernels.Kernels, hidden: int) -> None:
    x = sequence(20, 13, 9)
    together = gru(build, x, hidden, seed=2)
    for b in range(x.shape[1]):
        alone = gru(build, np.ascontiguousarray(x[:, b : b + 1]), hidden, seed=2)
        assert same_bits(alone, np.ascontiguousarray(together[:, b : b + 1])), f"row {b}"
