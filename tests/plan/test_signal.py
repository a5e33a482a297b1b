"""Fourier transforms."""

from __future__ import annotations

import numpy as np
import pytest

import webrnn
from tests.passes.expansions.harness import proto_of
from tests.plan.harness import BUILDS, check_graph, graph_of, plan_of, run_plan
from wasm_kernels import naive
from webrnn.engine.kernels import loading as kernels
from webrnn.engine.programs.plan_program import PlanProgram
from webrnn.plan.lowering import NotLowered
from webrnn.plan.lowerings.fourier import twiddles

FAST = tuple(spec for spec in BUILDS if spec in ("native", "wasm:relaxed", "wasm:simd")) or BUILDS[:1]


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


@pytest.mark.parametrize("n", [1, 2, 3, 5, 60, 100, 127, 320, 441, 480])
def test_any_length(n):
    """By a matrix, by parts (320, 480), by a chirp (100, 127, 441)."""
    length, tolerance = np.array(n, np.int64), 3e-5 * max(n, 8) ** 0.5
    check_graph(graph_of(lambda b, x: b.op("DFT", x, onesided=1), f"f n {n} 1"), builds=FAST, tolerance=tolerance)
    back = graph_of(lambda b, x: b.op("DFT", x, b.constant(length), onesided=1, inverse=1), f"f n {n // 2 + 1} 2")
    check_graph(back, builds=FAST)
    for inverse in (0, 1):
        graph = graph_of(lambda b, x: b.op("DFT", x, inverse=inverse), f"f n {n} 2")  # noqa: B023
        check_graph(graph, builds=FAST, tolerance=tolerance)


@pytest.mark.parametrize("n", [5, 9, 12, 64, 300])
@pytest.mark.parametrize("axis", [0, 1])
def test_cut_or_padded(n, axis):
    length = np.array(n, np.int64)
    for attrs, last in (({"onesided": 1}, 1), ({"inverse": 1}, 2), ({"onesided": 1, "inverse": 1}, 2), ({}, 1)):

        def build(b, x):
            return b.op("DFT", x, b.constant(length), _axis(b, axis), **attrs)  # noqa: B023

        check_graph(graph_of(build, f"f 9 20 {last}"), tolerance=1e-4, builds=FAST)


@pytest.mark.parametrize("n", [20, 100, 320])
def test_what_is_not_read_of_any_spectrum(n):
    length = np.array(n, np.int64)
    graph = graph_of(lambda b, x: b.op("DFT", x, b.constant(length), onesided=1, inverse=1), f"f 1 {n // 2 + 1} 2")
    spectrum = np.random.default_rng(0).standard_normal((1, n // 2 + 1, 2)).astype(np.float32)
    same = spectrum.copy()
    same[0, [0, -1], 1] = np.nan
    for spec in FAST:
        (first,), (second,) = run_plan(plan_of(graph), spec, [[spectrum], [same]])
        assert first.tobytes() == second.tobytes()


def test_stft_of_complex_signals():
    window = np.hanning(20).astype(np.float32)
    check_graph(
        graph_of(lambda b, x: b.op("STFT", x, b.ints(7), None, b.ints(20), onesided=0), "f n 90"), tolerance=1e-4
    )
    check_graph(
        graph_of(lambda b, x: b.op("STFT", x, b.ints(7), b.constant(window), onesided=0), "f n 90 2"), tolerance=1e-4
    )


LENGTHS = [{"n": n, "t": t} for n, t in ((3, 5), (1, 2), (2, 8), (1, 100), (0, 3))]


@pytest.mark.parametrize(("last", "attrs"), [(1, {"onesided": 1}), (1, {}), (2, {"inverse": 1}), (2, {})])
def test_lengths_that_are_known_only_while_running(last, attrs):
    check_graph(graph_of(lambda b, x: b.op("DFT", x, **attrs), f"f n t {last}"), sizes=LENGTHS, builds=FAST)
    along_first = graph_of(lambda b, x: b.op("DFT", x, None, _axis(b, 0), **attrs), f"f t n {last}")
    check_graph(along_first, sizes=LENGTHS, builds=FAST)
    graph = graph_of(lambda b, x, axis: b.op("DFT", x, None, axis, **attrs), f"f n 4 t {last}", "i")
    x = np.random.default_rng(0).standard_normal((2, 4, 5, last)).astype(np.float32)
    check_graph(graph, *([x, np.array(axis, np.int64)] for axis in (0, 1, 2, -2, -4)), builds=FAST)


def test_half_spectra_of_open_lengths():
    graph = graph_of(lambda b, x: b.op("DFT", x, onesided=1, inverse=1), "f n t 2")
    check_graph(graph, sizes=LENGTHS, builds=FAST)


def test_frames_that_are_known_only_while_running():
    def build(b, x, step, length):
        return b.op("STFT", x, step, None, length)

    graph = graph_of(build, "f n t", "i", "i")
    x = np.random.default_rng(0).standard_normal((2, 50)).astype(np.float32)
    check_graph(graph, *([x, np.array(a), np.array(b)] for a, b in ((7, 20), (1, 50), (60, 3))), builds=FAST)
    program = PlanProgram(plan_of(graph), kernels.load(FAST[0]))
    for step, length in ((0, 20), (5, 51), (5, 0)):
        with pytest.raises(webrnn.ShapeError):
            program.run([x, np.array(step), np.array(length)])


def test_a_window_for_frames_of_another_length():
    graph = graph_of(
        lambda b, x, window, length: b.op("STFT", x, b.constant(np.array(4, np.int64)), window, length),
        "f n t",
        "f w",
        "i",
    )
    x, window = (np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in ((2, 50), (16,)))
    check_graph(graph, [x, window, np.array(16, np.int64)], builds=FAST)
    program = PlanProgram(plan_of(graph), kernels.load(FAST[0]))
    for length in (8, 15, 17):
        with pytest.raises(webrnn.ShapeError):
            program.run([x, window, np.array(length, np.int64)])


@pytest.mark.parametrize("attrs", [{}, {"inverse": 1}, {"onesided": 1}])
@pytest.mark.parametrize("backend", FAST)
def test_whether_numbers_are_complex_comes_with_the_input(backend, attrs):
    """Along an axis that comes with it too."""
    arrays = [np.random.default_rng(0).standard_normal((2, 4, 5, 1)).astype(np.float32), np.array(1, np.int64)]
    data = proto_of("DFT", [arrays[0], None, arrays[1]], sizes=[[2, 4, 5, "parts"], None, []], **attrs)
    session, oracle = (webrnn.InferenceSession(data, backend=name) for name in (backend, "numpy"))
    for last in (1, 2) if "onesided" not in attrs else (1,):
        feeds = {"x0": np.repeat(arrays[0], last, axis=3), "x2": arrays[1]}
        np.testing.assert_allclose(session.run(None, feeds)[0], oracle.run(None, feeds)[0], atol=1e-5)


def test_long_ones_get_a_plan_for_their_shape():
    data = proto_of("DFT", [np.zeros((1, 2048, 1), np.float32)], sizes=[["n", "t", 1]])
    session = webrnn.InferenceSession(data, backend=FAST[0])
    x = np.random.default_rng(0).standard_normal((1, 2048, 1)).astype(np.float32)
    wanted = np.fft.fft(x[..., 0])
    np.testing.assert_allclose(session.run(None, {"x0": x})[0], np.stack([wanted.real, wanted.imag], -1), atol=1e-3)
    assert "numpy" not in session.report()


def test_constants_are_those_of_the_kernels():
    for n, real in ((8, True), (8, False), (512, True), (4096, False)):
        np.testing.assert_allclose(twiddles(n, real), naive.twiddles(n, real), atol=1e-7)


@pytest.mark.parametrize(
    ("build", "shape", "reason"),
    [
        (lambda b, x: b.op("DFT", x, onesided=1), "f 2 65538 1", "no power of two"),
        (lambda b, x: b.op("DFT", x, b.constant(np.array(64, np.int64)), onesided=1), "f 2 t 1", "cut or padded"),
        (lambda b, x: b.op("DFT", x, onesided=1), "f 2 16 2", "no second half"),
    ],
)
def test_reasons_to_refuse(build, shape, reason):
    with pytest.raises(NotLowered, match=reason):
        plan_of(graph_of(build, shape))
