"""What exporters write in ways of their own."""

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.onnx.models import floats, model, recurrent


@pytest.mark.parametrize("unknown", [-1, "?", "-1", "None"])
def test_an_axis_of_unknown_size(unknown):
    node = helper.make_node("Relu", ["x"], ["y"])
    proto = model([node], [floats("x", [unknown, 3, unknown])], [floats("y", [unknown, 3, unknown])])
    session = webrnn.InferenceSession(proto.SerializeToString())
    assert session.get_inputs()[0].shape == [None, 3, None]
    assert session.run(None, {"x": np.ones((2, 3, 4), np.float32)})[0].shape == (2, 3, 4)


def test_an_empty_auto_pad_is_the_default():
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2], auto_pad="", pads=[1, 0])
    proto = model([node], [floats("x", [1, 1, 3])], [floats("y", [1, 1, 3])])
    x = np.float32([[[1, 3, 2]]])
    assert webrnn.InferenceSession(proto.SerializeToString()).run(None, {"x": x})[0].tolist() == [[[1, 3, 3]]]


def test_more_parameters_of_activations_than_functions_need():
    x = np.random.default_rng(0).normal(size=(3, 2, 4)).astype(np.float32)
    plain, more = (
        webrnn.InferenceSession(recurrent("LSTM", **attrs).SerializeToString()).run(None, {"X": x})
        for attrs in ({}, {"activation_alpha": [1.0, 2.0, 3.0, 4.0], "activation_beta": [1.0] * 9})
    )
    assert all(np.array_equal(*pair) for pair in zip(plain, more, strict=True))
