"""The backend as a user names it."""

from pathlib import Path

import numpy as np
import pytest

import webrnn
from tests.engine.stream_models import HIDDEN, feed, stateful
from webrnn.engine.kernels import loading as kernels

ROOT = Path(__file__).resolve().parents[3]
FEEDS = {"x": feed(5, 2), "h_in": np.zeros((1, 2, HIDDEN), np.float32)}


def session(backend="auto"):
    return webrnn.InferenceSession(stateful("GRU").SerializeToString(), backend=backend)


def test_auto_is_pyodide():
    assert session().backend == "pyodide"
    assert "backend pyodide" in session().report()


@pytest.mark.parametrize("variant", ["relaxed", "simd", "scalar"])
def test_a_variant_can_be_named(variant):
    if f"pyodide:{variant}" not in kernels.available():
        pytest.skip("this engine does not know its instructions")
    s = session(f"pyodide:{variant}")
    for ours, expected in zip(s.run(None, FEEDS), session("numpy").run(None, FEEDS), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-6)


def test_small_weights_run_on_an_unfused_side_module():
    backend = kernels.available()[0]
    assert kernels.load(backend).unfused().spec == backend.replace("relaxed", "simd")
    (file,) = ROOT.glob("bench_models/gru_128.onnx")
    s = webrnn.InferenceSession(file, weights="int16")
    assert ("on the unfused build pyodide:simd" in s.report()) == (backend == "pyodide:relaxed")


def test_the_environment_can_name_a_variant(monkeypatch):
    assert kernels.load("pyodide").spec == kernels.available()[0]
    monkeypatch.setenv("WEBRNN_VARIANT", "scalar")
    assert kernels.load("pyodide").spec == "pyodide:scalar"
    assert kernels.load("pyodide:simd").spec == "pyodide:simd"
    monkeypatch.setenv("WEBRNN_VARIANT", "mmx")
    with pytest.raises(webrnn.BackendError, match="unknown variant pyodide:mmx"):
        kernels.load("pyodide")


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        ("native", "do not run inside Pyodide"),
        ("wasm", "needs wasmtime"),
        ("pyodide:avx", "unknown variant"),
        ("quantum", "is not one of auto"),
    ],
)
def test_backends_that_are_not_here(backend, message):
    with pytest.raises(webrnn.BackendError, match=message):
        session(backend)


def test_integers_of_numpy_are_short_here():
    from tests.engine.stream_models import lookup

    s = webrnn.InferenceSession(lookup().SerializeToString())
    with pytest.raises(webrnn.ShapeError, match=r"'index' is int32, .* give dtype=np.int64"):
        s.run(None, {"index": np.array([2]), "sum_in": np.zeros((1, 3), np.float32)})


def test_large_arrays_go_by_address():
    s = session()
    x = np.random.default_rng(0).random((4000, 2, 4), np.float32)
    (y, _) = s.run(None, {**FEEDS, "x": x})
    program = s._program.plan
    assert program.bound.is_direct
    assert not np.shares_memory(y, program.outputs[0])
    parts, h = [], FEEDS["h_in"]
    for first in range(0, 4000, 1000):
        part, h = s.run(None, {"x": x[first : first + 1000], "h_in": h})
        parts.append(part)
    np.testing.assert_array_equal(np.concatenate(parts), y)
