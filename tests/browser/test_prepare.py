"""The files of the demo hold a GRU and its right states."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from web_demo.prepare import Gru, Model
from webrnn.engine import kernels, native


def plain_gru(model: Model) -> np.ndarray:
    """States [steps, hidden] in double precision."""
    x, w, r, wb, rb = (t.astype(float) for t in model.tensors().values())
    h, states = np.zeros(r.shape[1]), []
    for frame in x:
        xz, xr, xn = np.split(w @ frame + wb, 3)
        hz, hr, hn = np.split(r @ h + rb, 3)
        z, reset = 1 / (1 + np.exp(-xz - hz)), 1 / (1 + np.exp(-xr - hr))
        h = (1 - z) * np.tanh(xn + reset * hn) + z * h
        states.append(h)
    return np.stack(states)


def test_expected_states_are_those_of_a_gru(demo: Path) -> None:
    states = np.fromfile(demo / "expected.bin", "<f4").reshape(len(native.available()), 100, 256)
    for build in states:
        np.testing.assert_allclose(build, plain_gru(Model.random()), atol=2e-5)


def test_odd_sizes() -> None:
    model = Model.random(steps=3, inputs=5, hidden=7)
    gru = Gru(kernels.load("native"), model)
    gru.run()
    np.testing.assert_allclose(gru.states.array, plain_gru(model), atol=1e-5)


def test_a_run_without_rows_computes_nothing() -> None:
    gru = Gru(kernels.load("native"), Model.random(steps=2, inputs=4, hidden=8))
    gru.states.array[:] = 3
    gru.run(rows=0)
    assert (gru.states.array == 3).all()


def test_model_describes_the_weights(demo: Path) -> None:
    model = json.loads((demo / "model.json").read_text())
    weights = np.fromfile(demo / "weights.bin", "<f4")
    for name, values in Model.random().tensors().items():
        place = model["tensors"][name]
        stored = weights[place["start"] : place["start"] + place["length"]]
        np.testing.assert_array_equal(stored, values.ravel())


def test_every_native_build_is_timed(demo: Path) -> None:
    builds = json.loads((demo / "native.json").read_text())["builds"]
    assert [b["spec"] for b in builds] == native.available()
    assert all(b["ms"] > b["call_ms"] > 0 for b in builds)
