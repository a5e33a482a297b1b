"""Mutated models on every backend: a short campaign with a fixed seed, and that the comparison sees what it should."""

from __future__ import annotations

import numpy as np
import pytest

from tests.onnx import fuzz_verdicts
from tests.onnx.fuzz_seeds import own_seeds
from tests.onnx.fuzz_verdicts import Outcome, Trial, difference
from tests.onnx.model_fuzzing import LIMITS, campaign, make_case

pytest.importorskip("wasmtime")


def test_a_short_campaign():
    tally = campaign(models=1500, seed=20_261_116, jobs=1, use_onnxruntime=False)
    print(tally.summary())
    assert tally.models == 1500
    assert 150 < tally.ran < 1350
    assert not tally.failures, tally.table()


def test_models_as_they_are_run_on_all_backends_alike():
    for index, seed in enumerate(own_seeds()):
        trial = Trial(seed.model.SerializeToString(), seed.feeds, index, LIMITS)
        trial.run()
        assert not trial.findings(), f"{seed.name}: {trial.findings()}"


def test_the_same_seed_gives_the_same_model():
    for seed in range(30):
        assert make_case(seed).data == make_case(seed).data


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (np.float32([1, 2]), ""),
        (np.float32([1, 2.0001]), ""),
        (np.float32([1, 2.1]), "numbers"),
        (np.float64([1, 2]), "shape"),
        (np.float32([[1, 2]]), "shape"),
        (np.float32([1, np.nan]), "numbers"),
        (np.float32([1, np.inf]), "numbers"),
    ],
)
def test_what_is_a_difference(other, what):
    assert difference([np.float32([1, 2])], [other]).partition(":")[0] == what


def test_not_a_number_equals_itself():
    array = np.float32([np.nan, np.inf, -np.inf])
    assert difference([array], [array.copy()], exact=True) == ""


def test_a_difference_in_verdicts_names_op_and_backend():
    import webrnn

    row = {
        "native": Outcome(results=[np.float32([1])]),
        "numpy": Outcome(error=webrnn.ShapeError("axis 5 is outside", node="n", op="Softmax")),
    }
    (finding,) = fuzz_verdicts._verdict_difference(row)
    assert finding.signature == "verdict: numpy refuses, Softmax: axis # is outside"


def test_an_exception_of_another_kind_is_a_finding():
    assert Outcome(error=KeyError("x")).verdict == "foreign"
    trial = Trial(b"", {}, 0, LIMITS)
    trial.outcomes = [{"numpy": Outcome(error=KeyError("x"))}]
    trial.feeds = [{}]
    assert [finding.kind for finding in trial.findings()] == ["foreign"]
