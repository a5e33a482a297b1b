"""Attention and rotary embeddings are one plan for all sizes; results are those of the numpy functions."""

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.backends import BACKENDS
from tests.onnx.models import floats, integers, model


def _array(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_cache_that_is_empty_at_first(backend):
    node = helper.make_node(
        "Attention", ["q", "k", "v", "", "pk", "pv"], ["y", "k2", "v2"], is_causal=1, q_num_heads=4, kv_num_heads=2
    )
    inputs = [floats("q", ["b", "t", 32]), *(floats(name, ["b", "t", 16]) for name in "kv")]
    inputs += [floats(name, ["b", 2, "p", 8]) for name in ("pk", "pv")]
    outputs = [helper.make_empty_tensor_value_info(name) for name in ("y", "k2", "v2")]
    data = model([node], inputs, outputs, opset=23).SerializeToString()
    session = webrnn.InferenceSession(data, backend=backend)
    reference = webrnn.InferenceSession(data, backend="numpy", disable=["expand_ops"])
    for batch, steps, past in ((2, 3, 0), (1, 1, 3), (1, 4, 2)):
        feeds = {"q": _array(batch, steps, 32), "k": _array(batch, steps, 16), "v": _array(batch, steps, 16)}
        feeds |= {name: _array(batch, 2, past, 8) for name in ("pk", "pv")}
        for result, wanted in zip(session.run(None, feeds), reference.run(None, feeds), strict=True):
            np.testing.assert_allclose(result, wanted, atol=1e-6)
    assert backend == "numpy" or session._program.plan is not None


@pytest.mark.parametrize("backend", BACKENDS)
def test_positions_outside_of_the_cache(backend):
    node = helper.make_node("RotaryEmbedding", ["x", "cos", "sin", "at"], ["y"], name="turn", num_heads=2)
    inputs = [
        floats("x", ["b", "t", 16]),
        *(floats(name, [9, 4]) for name in ("cos", "sin")),
        integers("at", ["b", "t"]),
    ]
    proto = model([node], inputs, [floats("y", None)], opset=23)
    session = webrnn.InferenceSession(proto.SerializeToString(), backend=backend)
    feeds = {"x": _array(1, 2, 16), "cos": _array(9, 4), "sin": _array(9, 4), "at": np.array([[0, 8]], np.int64)}
    before = session.run(None, feeds)[0]
    with pytest.raises(webrnn.ShapeError, match="turn"):
        session.run(None, {**feeds, "at": np.array([[0, 9]], np.int64)})
    assert np.array_equal(session.run(None, feeds)[0], before)
