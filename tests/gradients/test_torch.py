"""Gradients beside those that torch.autograd gave (`in_torch.py`), on every backend; fused builds agree bit for bit."""

import numpy as np
import pytest

import webrnn
from tests.backends import KERNELS, MAIN

from .arrays import RECORDED, cases, given
from .models import onnx_model

TOLERANCE = 1e-4
"""Of the largest element."""


@pytest.fixture(scope="module")
def recorded():
    return dict(np.load(RECORDED))


def session_of(case, backend, **options):
    wrt = list(given(*case))
    return webrnn.InferenceSession(webrnn.gradient(onnx_model(*case), "loss", wrt, **options), backend=backend)


def assert_as_recorded(case, results, recorded):
    key = "-".join(map(str, case))
    for name, found in zip(["loss", *given(*case)], results, strict=True):
        wanted = recorded[f"{key}.{name}"]
        assert found.shape == wanted.shape, name
        np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE * np.abs(wanted).max() + 1e-9, err_msg=name)


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: "-".join(map(str, case)))
def test_as_in_torch(case, recorded):
    assert_as_recorded(case, session_of(case, "numpy").run(None, {"x": given(*case)["x"]}), recorded)


@pytest.mark.parametrize("case", [case for case in cases() if case[1:] == (8, 7)], ids=lambda case: case[0])
def test_in_plans(case, recorded):
    x = given(*case)["x"]
    results = {backend: session_of(case, backend).run(None, {"x": x}) for backend in KERNELS}
    assert_as_recorded(case, results[MAIN], recorded)
    for found in results.values():
        assert all(np.array_equal(*pair) for pair in zip(found, results[MAIN], strict=True))


@pytest.mark.parametrize("options", [{"truncate": 50}, {"truncate": 1000}, {"every": 7}, {"every": 10}, {"every": 50}])
@pytest.mark.parametrize("name", ["GRU", "bidirectional", "scan"])
def test_truncated_or_recomputed(name, options, recorded):
    case = name, 8, 50
    assert_as_recorded(case, session_of(case, "numpy", **options).run(None, {"x": given(*case)["x"]}), recorded)
