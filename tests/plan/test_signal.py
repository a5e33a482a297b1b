"""Fourier transforms."""

from __future__ import annotations

import numpy as np
import pytest

from tests.plan.harness import BUILDS, check_graph, graph_of, plan_of, run_plan
from wasm_kernels import naive
from webrnn.plan.lowering import NotLowered
from webrnn.plan.lowerings.signal import twiddles


def _axis(b, axis):
    return None if axis is None else b.constant(np.array(axis, np.int64))


@pytest.mark.parametrize("n", [8, 16, 64, 512, 2048])
def test_real_there_and_back(n):
    check_graph(graph_of(lambda b, x: b.op("DFT", x, onesided=1), f"f n {n} 1"), tolerance=1e-5 * n**0.5)
    check_graph(graph_of(lambda b, x: b.op("DFT", x, onesided=1, inverse=1), f"f n {n // 2 + 1} 2"), tolerance=1e-5)


@pytest.mark.parametrize("last", [1, 2])
@pytest.mark.parametrize("inverse", [0, 1])
def test_complex(last, inverse):
    check_graph(graph_of(lambda b, x: b.op("DFT", x, inverse=inverse), f"f 3 64 {last}"), tolerance=1e-4)


@pytest.mark.parametrize("axis", [0, 1, -2, -3])
def test_axes(axis):
    for attrs in ({"onesided": 1}, {}, {"inverse": 1}):
        check_graph(graph_of(lambda b, x: b.op("DFT", x, None, _axis(b, axis), **attrs), "f 16 32 1"), tolerance=1e-4)  # noqa: B023
    back = {"onesided": 1, "inverse": 1}
    check_graph(graph_of(lambda b, x: b.op("DFT", x, None, _axis(b, axis), **back), "f 17 33 2"), tolerance=1e-5)


def test_length_that_is_the_input_s():
    length = np.array(64, np.int64)
    check_graph(graph_of(lambda b, x: b.op("DFT", x, b.constant(length), onesided=1), "f 2 64 1"), tolerance=1e-4)
    check_graph(
        graph_of(lambda b, x: b.op("DFT", x, b.constant(length), onesided=1, inverse=1), "f 2 33 2"), tolerance=1e-5
    )


def test_between_other_instructions():
    def masked(b, x):
        spectrum = b.op("DFT", b.op("Tanh", x), onesided=1)
        quieter = b.op("Mul", spectrum, b.constant(np.linspace(0, 1, 33, dtype=np.float32)[:, None]))
        return b.op("Relu", b.op("DFT", quieter, onesided=1, inverse=1))

    check_graph(graph_of(masked, "f n 64 1"), tolerance=1e-5)


def test_what_is_not_read_of_a_spectrum():
    """The first and the last number of a real signal's spectrum have no imaginary part."""
    graph = graph_of(lambda b, x: b.op("DFT", x, onesided=1, inverse=1), "f 1 9 2")
    spectrum = np.random.default_rng(0).standard_normal((1, 9, 2)).astype(np.float32)
    same = spectrum.copy()
    same[0, [0, 8], 1] = np.nan
    for spec in BUILDS:
        (first,), (second,) = run_plan(plan_of(graph), spec, [[spectrum], [same]])
        assert np.isfinite(first).all()
        assert first.tobytes() == second.tobytes()


def test_stft():
    window = np.hanning(32).astype(np.float32)

    def windowed(b, x):
        return b.op("STFT", x, b.constant(np.array(8, np.int64)), b.constant(window))

    def plain(b, x):
        return b.op("STFT", x, b.constant(np.array(16, np.int64)), None, b.constant(np.array(32, np.int64)))

    for build in (windowed, plain):
        check_graph(graph_of(build, "f 2 100 1"), tolerance=1e-4)
        check_graph(graph_of(build, "f n t"), sizes=[{"n": 2, "t": 100}, {"n": 1, "t": 32}], tolerance=1e-4)


def test_constants_are_those_of_the_kernels():
    for n, real in ((8, True), (8, False), (512, True), (4096, False)):
        np.testing.assert_allclose(twiddles(n, real), naive.twiddles(n, real), atol=1e-7)


@pytest.mark.parametrize(
    ("build", "shape", "reason"),
    [
        (lambda b, x: b.op("DFT", x, onesided=1), "f 2 60 1", "not a power of two"),
        (lambda b, x: b.op("DFT", x, onesided=1), "f 2 4 1", "not a power of two"),
        (lambda b, x: b.op("DFT", x), "f 2 t 1", "not a power of two"),
        (lambda b, x: b.op("DFT", x, b.constant(np.array(64, np.int64)), onesided=1), "f 2 60 1", "cut or padded"),
        (lambda b, x: b.op("DFT", x, b.constant(np.array(64, np.int64)), onesided=1, inverse=1), "f 2 9 2", "padded"),
        (lambda b, x: b.op("DFT", x, onesided=1), "f 2 16 2", "no second half"),
        (lambda b, x: b.op("STFT", x, b.ints(4), None, b.ints(16), onesided=0), "f 1 60", "half spectrum"),
    ],
)
def test_reasons_to_refuse(build, shape, reason):
    with pytest.raises(NotLowered, match=reason):
        plan_of(graph_of(build, shape))
