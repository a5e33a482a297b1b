from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np
import pytest

import webrnn
from webrnn import build

from . import replay

FILE = replay.keras_file("sequential.keras")


def with_layers(change: Any) -> bytes:
    """The file, with its description changed."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(FILE)) as archive, zipfile.ZipFile(made, "w") as other:
        for entry in archive.namelist():
            data = archive.read(entry)
            if entry == "config.json":
                model = json.loads(data)
                change(model["config"]["layers"])
                data = json.dumps(model).encode()
            other.writestr(entry, data)
    return made.getvalue()


def test_a_whole_model() -> None:
    net = build.keras(FILE)
    y = net.sequential(net.input("x", (1, "time", 8)))
    net.output("y", y)
    session = net.session()
    assert "in numpy" not in session.report()
    found = replay.recorded("keras")
    assert np.allclose(session.run(None, {"x": found["sequential.in0"]})[0], found["sequential.out0"], atol=1e-5)


def test_a_model_that_keeps_its_states() -> None:
    net = build.keras(with_layers(lambda layers: layers.__delitem__(slice(6, None))))
    net.output("y", net.sequential(net.input("x", (1, "time", 8)), states=True))
    assert net.carry == {"memory_h": "memory_h_next"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda layers: layers.append({"class_name": "Attention", "config": {"name": "look"}}),
            r"node 'look' \(Attention\)",
        ),
        (lambda layers: layers.append(3), "no layer"),
        (
            lambda layers: layers.insert(2, {"class_name": "Permute", "config": {"name": "p", "dims": [9]}}),
            r"node 'p' \(Perm",
        ),
        (lambda layers: layers[4]["config"].update(return_state=True), "one output"),
        (lambda layers: layers[4]["config"].update(name="other"), "'other'"),
        (lambda layers: layers[4]["config"].update(activation="bent"), "activation 'bent'"),
        (lambda layers: layers[1]["config"].update(data_format="channels_first"), "channels_last"),
    ],
)
def test_models_that_cannot_be_built(change: Any, words: str) -> None:
    net = build.keras(with_layers(change))
    with pytest.raises(webrnn.Error, match=words):
        net.sequential(net.input("x", (1, "time", 8)))


def test_only_sequential_models_are_built_by_themselves() -> None:
    for form, words in (("model.weights.h5", "weights alone"), ("model.keras", "'Functional'")):
        net = build.keras(replay.keras_file(form))
        with pytest.raises(webrnn.OptionError, match=words):
            net.sequential(net.input("x", (1, 3)))
