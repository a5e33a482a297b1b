from __future__ import annotations

import numpy as np
import pytest

import webrnn
from webrnn.build.keras_files import KerasFile, LayerConfig
from webrnn.build.keras_weights import UNSET, KerasWeights, Layer, option

A = np.ones((2, 3), np.float32)
FLOAT = np.dtype("f4")


def weights(*names: str, folders: dict[str, str] | None = None) -> KerasWeights:
    return KerasWeights(KerasFile(dict.fromkeys(names, A), "'w.h5'", folders or {}))


def test_layers_are_found_by_name_by_folder_and_inside_of_models() -> None:
    found = weights(
        "front/vars/0", "encoder/gru/cell/vars/0", "decoder/dense/vars/0", folders={"front/vars/0": "conv1d/vars/0"}
    )
    assert found.layer_names("front") == {"vars/0": "front/vars/0"}
    assert found.layer_names("conv1d") == {"vars/0": "front/vars/0"}
    assert found.layer_names("gru") == {"cell/vars/0": "encoder/gru/cell/vars/0"}
    assert found.layer_names("encoder/gru") == {"cell/vars/0": "encoder/gru/cell/vars/0"}
    assert found.prefixes() == ["front", "encoder/gru", "decoder/dense"]
    with pytest.raises(webrnn.OptionError, match="no weights below 'dens'; did you mean 'dense'"):
        weights("dense/kernel").layer_names("dens")
    with pytest.raises(webrnn.OptionError, match="several layers 'dense': 'a/dense', 'b/dense'"):
        weights("a/dense/kernel", "b/dense/kernel").layer_names("dense")


def test_a_name_of_a_layer_goes_before_a_folder() -> None:
    found = weights(
        "dense/vars/0", "dense_1/vars/0", folders={"dense_1/vars/0": "dense/vars/0", "dense/vars/0": "x/vars/0"}
    )
    assert found.layer_names("dense") == {"vars/0": "dense/vars/0"}


def test_roles_by_number_and_by_name() -> None:
    for names in (["d/vars/0", "d/vars/1"], ["d/kernel", "d/bias"], ["d/d_cell/kernel", "d/d_cell/bias:0"]):
        layer = Layer(weights(*names), "d", FLOAT)
        assert list(layer.arrays("kernel", "bias", optional=["bias"])) == ["kernel", "bias"]
        assert not layer.weights.unused()
    assert list(Layer(weights("d/vars/0"), "d", FLOAT).arrays("kernel", "bias", optional=["bias"])) == ["kernel"]
    many = Layer(weights(*(f"d/vars/{index}" for index in range(12))), "d", FLOAT)
    assert list(many.arrays(*"abcdefghijkl")) == list("abcdefghijkl")


@pytest.mark.parametrize(
    "names", [["d/vars/0"], ["d/vars/0", "d/vars/1", "d/vars/2"], ["d/kernel"], ["d/kernel", "d/recurrent"]]
)
def test_roles_that_do_not_fit(names: list[str]) -> None:
    with pytest.raises(webrnn.OptionError, match=r"layer 'd' has .* needed are kernel, bias"):
        Layer(weights(*names), "d", FLOAT).arrays("kernel", "bias")


def test_directions() -> None:
    layer = Layer(weights("b/forward_lstm/cell/vars/0", "b/backward_lstm/cell/vars/0"), "b", FLOAT)
    assert layer.side("backward").names == {"cell/vars/0": "b/backward_lstm/cell/vars/0"}
    assert layer.weights.prefixes() == ["b"]
    with pytest.raises(webrnn.OptionError, match="no forward layer"):
        Layer(weights("b/kernel"), "b", FLOAT).side("forward")


def test_options_are_given_or_in_the_file_or_defaults() -> None:
    config = LayerConfig(
        "Conv1D", {"strides": [2], "activation": {"class_name": "function", "config": "relu"}, "x": None}
    )
    assert option(config, "strides", UNSET, 1) == 2
    assert option(config, "strides", 3, 1) == 3
    assert option(config, "padding", UNSET, "valid") == "valid"
    assert option(config, "activation", UNSET, None) == "relu"
    assert option(config, "x", UNSET, 5) is None
    assert option(None, "strides", UNSET, 1) == 1
    assert repr(UNSET) == "as the file says"
