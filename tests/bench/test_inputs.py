"""Inputs from .npz files: what they may look like, and the case that they become."""

from __future__ import annotations

import numpy as np
import pytest

from webrnn.bench.case import CELLS, WHOLE, built_in, from_argument, make_case
from webrnn.bench.inputs import Stored, stored_inputs
from webrnn.bench.models import sequence
from webrnn.errors import LimitError, OptionError, ShapeError, UnsupportedOp

X = np.full((5, 1, 8), 0.5, np.float32)
H = np.full((1, 1, 8), 0.25, np.float32)


@pytest.fixture
def model(tmp_path):
    file = tmp_path / "gru.onnx"
    file.write_bytes(sequence("GRU", 8, 5, seed=1))
    return str(file)


def names_of(model):
    case = make_case("m", model)
    return list(case.feeds), case.outputs


def test_arrays_are_inputs_by_their_names(tmp_path):
    np.savez(tmp_path / "a.npz", x=X, h=H)
    found = stored_inputs(tmp_path / "a.npz", "anything")
    assert list(found.inputs) == ["x", "h"]
    assert not found.outputs


def test_a_folder_has_a_file_for_each_model(tmp_path):
    np.savez(tmp_path / "a.npz", x=X)
    np.savez(tmp_path / "b.io.npz", in__x=2 * X, out__y=H)
    assert stored_inputs(tmp_path, "a").inputs["x"][0, 0, 0] == 0.5
    found = stored_inputs(tmp_path, "b")
    assert (list(found.inputs), list(found.outputs)) == (["x"], ["y"])
    with pytest.raises(OptionError, match=r"no c\.npz and no c\.io\.npz"):
        stored_inputs(tmp_path, "c")


def test_files_of_other_kinds_are_refused(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"no zip")
    np.save(tmp_path / "b.npy", X)
    np.savez(tmp_path / "c.npz", x=np.array([{}], object))
    for name in ("a.npz", "b.npy", "c.npz", "nowhere.npz"):
        with pytest.raises(OptionError, match=name):
            stored_inputs(tmp_path / name, "m")


def test_what_is_not_stored_is_random(model, tmp_path):
    [first, *rest], _ = names_of(model)
    np.savez(tmp_path / "in.npz", **{first: X})
    case = from_argument(model, {}, {}, tmp_path / "in.npz")
    np.testing.assert_array_equal(case.feeds[first], X)
    assert all(np.ptp(case.feeds[name]) > 0 for name in rest)
    assert (case.section, case.oracle) == (WHOLE, "numpy")
    assert built_in("loop_accum").section == CELLS


def test_stored_outputs_are_what_is_expected(model):
    feeds, outputs = names_of(model)
    ones = {name: np.ones(3, np.float32) for name in outputs}
    case = make_case("m", model, stored=Stored({feeds[0]: X}, ones, "somebody"))
    assert case.oracle == "somebody"
    assert all(array.shape == (3,) for array in case.expected)
    some = make_case("m", model, stored=Stored({feeds[0]: X}, dict(list(ones.items())[1:])))
    assert some.oracle == "numpy"


def test_inputs_that_do_not_fit_are_refused(model):
    with pytest.raises(OptionError, match="there are inputs for nobody"):
        make_case("m", model, stored=Stored({"nobody": X}))
    with pytest.raises(ShapeError):
        make_case("m", model, stored=Stored({names_of(model)[0][0]: X[0, 0]}))


@pytest.mark.parametrize("raised", [LimitError("too long"), UnsupportedOp("no such op")])
def test_without_numpy_another_runtime_says_what_is_right(model, monkeypatch, raised):
    from webrnn.engine.session import InferenceSession

    expected = make_case("m", model).expected
    run = InferenceSession.run

    def refuses_numpy(self, *arguments):
        if self.backend == "numpy":
            raise raised
        return run(self, *arguments)

    monkeypatch.setattr(InferenceSession, "run", refuses_numpy)
    monkeypatch.setattr("webrnn.bench.case._onnxruntime_results", lambda model, feeds: None)
    case = make_case("m", model)
    assert case.oracle == "webrnn"
    for array, other in zip(case.expected, expected, strict=True):
        np.testing.assert_allclose(array, other, atol=1e-5)
