"""Loops that append to sequences run wholly on the VM, for all sizes."""

import numpy as np
import pytest

from tests.backends import KERNELS, MAIN
from tests.passes.sequence_models import MODELS, STAY, model
from webrnn.engine.session import InferenceSession


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("name", MODELS)
def test_on_the_vm(name, backend):
    graph, arguments = model(name)
    feeds = dict(zip((value.name for value in graph.inputs), arguments, strict=True))
    expected = InferenceSession(graph, backend="numpy", disable=["all"]).run(None, feeds)
    session = InferenceSession(graph, backend=backend)
    for want, got in zip(expected, session.run(None, feeds), strict=True):
        assert (want.dtype, want.shape) == (got.dtype, got.shape)
        np.testing.assert_allclose(got, want, atol=1e-6)
    assert "plan for all sizes" in session.report() or "one plan" in session.report()
    assert "no plan" not in session.report()


@pytest.mark.parametrize("name", STAY)
def test_what_stays_says_why(name):
    graph, arguments = model(name)
    feeds = dict(zip((value.name for value in graph.inputs), arguments, strict=True))
    expected = InferenceSession(graph, backend="numpy", disable=["all"]).run(None, feeds)
    session = InferenceSession(graph, backend=MAIN)
    for want, got in zip(expected, session.run(None, feeds), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-6)
    assert f"the loop carries a sequence, s; {STAY[name][1]}" in session.report()
