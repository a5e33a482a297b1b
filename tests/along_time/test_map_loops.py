"""Loops that run a model for each sequence of a batch, as tf.map_fn is exported: a stream has one sequence."""

import numpy as np
import onnx
import pytest

import webrnn
from tests.backends import KERNELS, MAIN

from .judge import by_steps, cuttings, difference

FRAMES = 24
TIME = {"x": 1}


def model_of(shape="batch,n", body_end="traced = Mul(sums, weights)", more_inputs="", after="y = Relu(all)"):
    """Overlapping windows of each sequence, summed."""
    text = f"""<ir_version: 8, opset_import: ["": 18]>
    each (float[{shape}] x{more_inputs}) => (float[a,b] y) {{
        zero = Constant<value_int=0>() one = Constant<value_int=1>() yes = Constant<value = bool {{1}}>()
        sizes = Shape<start=0,end=1>(x)
        first = Constant<value_ints=[0]>() last = Constant<value_ints=[1]>()
        count = Squeeze(sizes, first)
        all = Loop(count, yes) <body = body (int64 i, bool go) => (bool goes, float[k] traced) {{
            goes = Identity(go)
            row = Gather<axis=0>(x, i)
            total = Shape(row)
            n = Squeeze(total, first)
            size = Constant<value_int=4>() hop = Constant<value_int=2>()
            rest = Sub(n, size)
            steps = Div(rest, hop)
            more = Add(steps, one)
            frames = Max(zero, more)
            numbers = Range(zero, frames, one)
            begins = Mul(numbers, hop)
            column = Unsqueeze(begins, last)
            offsets = Constant<value = int64[1,4] {{0,1,2,3}}>()
            index = Add(column, offsets)
            windows = Gather<axis=0>(row, index)
            sums = ReduceSum<keepdims=0>(windows, last)
            weights = Constant<value_float=0.5>()
            {body_end}
        }}>
        {after}
    }}"""
    model = onnx.parser.parse_model(text)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def session_of(backend=MAIN, disable=(), **options):
    return webrnn.InferenceSession(model_of(**options), backend=backend, disable=disable)


def feeds(batch=1, frames=FRAMES):
    return {"x": np.random.default_rng(4).standard_normal((batch, frames)).astype(np.float32)}


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize(
    ("shape", "time"), [("n,samples", TIME), ("batch,samples", None), ("p,q", None), ("p,q", TIME)]
)
def test_one_sequence_is_exact(backend, shape, time):
    """Also where only the loop says which of two open axes is no time."""
    session = session_of(backend, shape=shape)
    stream, given = session.stream(carry="internal", time=time), feeds()
    assert (stream.timing.inputs, stream.stride) == ({"x": 1}, 2)
    whole = {"y": session.run(None, given)[0]}
    for lengths in cuttings(FRAMES, stream.stride, np.random.default_rng(5)):
        stream.reset()
        assert not difference(by_steps(stream, given, lengths), whole)


def test_several_sequences_at_once_raise():
    session = session_of()
    assert session.run(None, feeds(3))[0].shape == (3, 11)
    with pytest.raises(webrnn.ShapeError):
        session.stream(carry="internal", time=TIME).step(feeds(3))


def test_what_works_frame_by_frame_keeps_its_batch():
    session = webrnn.InferenceSession(model_of(body_end="traced = Relu(row)", shape="p,q"), backend=MAIN)
    stream, given = session.stream(carry="internal", time=TIME), feeds(3)
    parts = [stream.step({"x": given["x"][:, start : start + 8]})[0] for start in (0, 8, 16)]
    np.testing.assert_array_equal(np.concatenate(parts, 1), session.run(None, given)[0])


def test_what_the_loop_does_is_refused_by_its_own_node():
    ends = "top = ReduceMax<keepdims=0>(sums, first)  traced = Div(sums, top)"
    with pytest.raises(webrnn.ModelError, match="it reduces over all frames") as raised:
        session_of(body_end=ends).stream(carry="internal", time=TIME)
    assert raised.value.op == "ReduceMax"


def test_without_inlining_the_loop_is_in_the_way():
    with pytest.raises(webrnn.ModelError, match="inside it") as raised:
        session_of(disable=["inline_single_step"]).stream(carry="internal", time=TIME)
    assert raised.value.op == "Scan"


def test_a_fixed_number_of_sequences_stays_refused():
    with pytest.raises(webrnn.ModelError, match="inside it"):
        session_of(shape="3,n").stream(carry="internal", time=TIME)


@pytest.mark.parametrize("name", ["x", "audio", "frames"])
@pytest.mark.parametrize("size", ["", "rows"])
def test_an_open_axis_without_a_name_for_time_is_none_if_nothing_is_kept(name, size):
    """It may as well be the batch."""
    value = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [size or None, 4])
    made = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [None, 4])
    nodes = [onnx.helper.make_node("Softmax", [name], ["y"], axis=1)]
    graph = onnx.helper.make_graph(nodes, "g", [value], [made])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8)
    session = webrnn.InferenceSession(model.SerializeToString(), backend=MAIN)
    with pytest.raises(webrnn.ModelError, match="time="):
        session.stream(carry="internal")
    stream = session.stream(carry="internal", time={name: 0})
    assert stream.step({name: np.ones((3, 4), np.float32)})[0].shape == (3, 4)
