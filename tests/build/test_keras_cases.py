"""Layers of Keras's give what Keras gave: tests/build/in_keras.py wrote it down."""

from __future__ import annotations

import pytest

from webrnn import build

from . import replay
from .cases import Case

FORMS = ("model.keras", "model.h5", "model.weights.h5")


@pytest.fixture(scope="module", params=FORMS)
def weights(request: pytest.FixtureRequest) -> tuple[str, build.Weights]:
    return request.param, build.keras(replay.keras_file(request.param)).weights


@pytest.mark.parametrize("case", replay.cases("keras"), ids=lambda case: case.name)
def test_as_in_keras(case: Case, weights: tuple[str, build.Weights]) -> None:
    """A file of a whole model says how its layers were made, one of weights alone does not."""
    form, found = weights
    net = build.KerasModel(found)
    fed = replay.numbers("keras", case, "in")
    x, *states = replay.inputs(net, fed)
    hx = [states] if states else []
    call = case.call if form == "model.weights.h5" else {}
    made = getattr(net, case.method)(case.name, x, *hx, **call)
    replay.require_equal(replay.results(net, made, fed), replay.numbers("keras", case, "out"))


@pytest.mark.parametrize("form", FORMS)
def test_every_weight_belongs_to_a_case(form: str) -> None:
    net = build.keras(replay.keras_file(form))
    for case in replay.cases("keras"):
        net.weights.used.update(net.weights.layer_names(case.name).values())
    assert not net.weights.unused()
