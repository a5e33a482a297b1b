"""Ops that draw random numbers: the same numbers on every build, others in each step of a loop and of a stream."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import webrnn
from tests.backends import BACKENDS, KERNELS, UNFUSED
from tests.onnx.models import floats, graph, model

INFO = helper.make_tensor_value_info
X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


def _session(nodes, inputs, outputs, backend, **settings):
    return webrnn.InferenceSession(model(nodes, inputs, outputs, **settings).SerializeToString(), backend=backend)


def _everything(backend):
    nodes = [
        helper.make_node("RandomNormal", [], ["a"], shape=[3, 5], seed=3.0, mean=1.0, scale=2.0),
        helper.make_node("RandomUniformLike", ["x"], ["b"], low=-1.0, high=3.0),
        helper.make_node("Bernoulli", ["p"], ["c"], dtype=TensorProto.BOOL),
        helper.make_node("Multinomial", ["x"], ["d"], sample_size=7, dtype=TensorProto.INT64),
        helper.make_node("Dropout", ["x", "ratio", "trains"], ["e", "mask"]),
        helper.make_node("RandomUniform", [], ["f"], shape=[2], dtype=TensorProto.DOUBLE),
    ]
    inputs = [floats("x", ["n", 4]), floats("p", ["n", 4]), floats("ratio", []), INFO("trains", TensorProto.BOOL, [])]
    outputs = [helper.make_empty_tensor_value_info(name) for name in ("a", "b", "c", "d", "e", "mask", "f")]
    return _session(nodes, inputs, outputs, backend)


FEEDS = {"x": X, "p": np.abs(X) / 3, "ratio": np.float32(0.3), "trains": np.array(True)}


@pytest.mark.parametrize("backend", [*BACKENDS, UNFUSED])
def test_the_same_bits_everywhere(backend):
    wanted = _everything("numpy").run(None, FEEDS)
    session = _everything(backend)
    for _ in range(2):
        for result, want in zip(session.run(None, FEEDS), wanted, strict=True):
            assert result.dtype == want.dtype
            assert (result == want).all()
    assert backend == "numpy" or "numpy" not in session.report()


def test_what_they_are():
    _, uniform, heads, chosen, kept, mask, double = _everything("numpy").run(None, FEEDS)
    assert -1 <= uniform.min() <= uniform.max() < 3
    assert (heads.dtype, chosen.dtype, double.dtype) == (np.bool_, np.int64, np.float64)
    assert set(chosen.reshape(-1)) <= {0, 1, 2, 3}
    np.testing.assert_array_equal(kept, np.where(mask, X * np.float32(1 / np.float32(0.7)), 0))
    *_, whole, all_kept, _ = _everything("numpy").run(None, {**FEEDS, "trains": np.array(False)})
    assert (whole == X).all()
    assert all_kept.all()


def _many(op, **attrs):
    nodes = [helper.make_node(op, [], ["y"], shape=[200_000], **attrs)]
    return _session(nodes, [], [helper.make_empty_tensor_value_info("y")], KERNELS[0]).run(None, {})[0]


def test_distributions():
    normal, uniform = _many("RandomNormal"), _many("RandomUniform", seed=1.0)
    for numbers, mean, deviation in ((normal, 0, 1), (uniform, 0.5, 12**-0.5)):
        assert abs(numbers.mean() - mean) < 0.01
        assert abs(numbers.std() - deviation) < 0.01
        assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < 0.01
    assert abs((np.abs(normal) < 1).mean() - 0.6827) < 0.005
    assert abs((np.abs(normal) > 3).mean() - 0.0027) < 0.0005
    assert not np.array_equal(uniform, _many("RandomUniform", seed=2.0))


def _loop():
    """Five steps of a Loop that draws two numbers in each, and an If in it that draws more."""
    drawing = graph([helper.make_node("RandomUniform", [], ["more"], shape=[2])], [], [floats("more", [2])])
    plain = graph([helper.make_node("Identity", ["zeros"], ["less"])], [], [floats("less", [2])])
    nodes = [
        helper.make_node("RandomUniform", [], ["drawn"], shape=[2]),
        helper.make_node("If", ["keep"], ["chosen"], then_branch=drawing, else_branch=plain),
        helper.make_node("Add", ["drawn", "chosen"], ["element"]),
        helper.make_node("Identity", ["keep"], ["again"]),
    ]
    boolean = [INFO("keep", TensorProto.BOOL, []), INFO("again", TensorProto.BOOL, [])]
    body = graph(nodes, [INFO("i", TensorProto.INT64, []), boolean[0]], [boolean[1], floats("element", [2])])
    zeros = helper.make_tensor("zeros", TensorProto.FLOAT, [2], [0, 0])
    five = helper.make_tensor("five", TensorProto.INT64, [], [5])
    after = helper.make_node("RandomUniform", [], ["last"], shape=[2])
    outputs = [floats("elements", [5, 2]), floats("last", [2])]
    nodes = [helper.make_node("Loop", ["five", "start"], ["elements"], body=body), after]
    return model(nodes, [INFO("start", TensorProto.BOOL, [])], outputs, [zeros, five]).SerializeToString()


def test_loops_draw_others_in_each_step():
    feeds = {"start": np.array(True)}
    wanted = webrnn.InferenceSession(_loop(), backend="numpy").run(None, feeds)
    assert len(np.unique(wanted[0])) == 10
    assert not np.isin(wanted[1], wanted[0]).any()
    for backend in KERNELS:
        for result, want in zip(
            webrnn.InferenceSession(_loop(), backend=backend).run(None, feeds), wanted, strict=True
        ):
            assert (result == want).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_streams_carry_the_counter(backend, tmp_path):
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["noise"]),
        helper.make_node("Add", ["x", "h"], ["h_next"]),
        helper.make_node("Add", ["h_next", "noise"], ["y"]),
    ]
    states = [floats("x", [1, 2]), floats("h", [1, 2])]
    session = _session(nodes, states, [floats("y", [1, 2]), floats("h_next", [1, 2])], backend)
    stream = session.stream(carry={"h": "h_next"})
    x = {"x": np.zeros((1, 2), np.float32)}
    first, second = stream.step(x)[0], stream.step(x)[0]
    assert (first == session.run(["y"], {**x, "h": np.zeros((1, 2), np.float32)})[0]).all()
    assert not (first == second).any()
    assert stream.state["random_counter"] == 4
    saved, third = stream.state, stream.step(x)[0]
    stream.load(saved)
    assert (stream.step(x)[0] == third).all()
    if backend != "numpy":
        session.export(tmp_path / "model.rnn", carry={"h": "h_next"})
        again = webrnn.InferenceSession(tmp_path / "model.rnn", backend=backend).stream()
        assert [(again.step(x)[0] == want).all() for want in (first, second, third)] == [True] * 3


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("attrs", [{"seed": [1.0]}, {"shape": ["a"]}, {"shape": [0.5]}, {"low": "x"}, {"dtype": 0.5}])
def test_attributes_of_other_types_are_refused(attrs, backend):
    nodes = [helper.make_node("RandomUniform", [], ["y"], **({"shape": [2]} | attrs))]
    with pytest.raises(webrnn.ModelError, match=next(iter(attrs))):
        _session(nodes, [], [floats("y", [2])], backend).run(None, {})
