"""Losses as simpler ops."""

import numpy as np
import pytest

import webrnn
from tests.backends import BACKENDS
from tests.passes.expansions.harness import check_node, proto_of


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("ignored", [None, 2, -7])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses(reduction, ignored, weighted):
    rng = np.random.default_rng(0)
    for rest in ((), (4,), (2, 3)):
        scores = rng.standard_normal((3, 5, *rest)).astype(np.float32)
        target = rng.integers(0, 5, (3, *rest))
        if ignored is not None:
            target.reshape(-1)[1] = ignored
        operands = (scores, target, np.linspace(0.5, 2, 5, dtype=np.float32) if weighted else None)
        attrs = {"reduction": reduction} | ({} if ignored is None else {"ignore_index": ignored})
        named = [["n", 5, *rest], ["n", *rest], [5]]
        check_node("NegativeLogLikelihoodLoss", *operands, **attrs)
        check_node("SoftmaxCrossEntropyLoss", *operands, n_outputs=2, sizes=named, **attrs)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_wrong(backend):
    scores = np.zeros((2, 3, 4), np.float32)
    session = webrnn.InferenceSession(
        proto_of("NegativeLogLikelihoodLoss", [scores, np.zeros((2, 4), np.int64)]), backend=backend
    )
    with pytest.raises(webrnn.ShapeError):
        session.run(None, {"x0": scores, "x1": np.full((2, 4), 3, np.int64)})
    for target, weight in (((1, 4), 3), ((2, 3), 3), ((2, 4), 2)):
        operands = [scores, np.zeros(target, np.int64), np.ones(weight, np.float32)]
        with pytest.raises(webrnn.ShapeError):
            webrnn.InferenceSession(proto_of("NegativeLogLikelihoodLoss", operands), backend=backend)
