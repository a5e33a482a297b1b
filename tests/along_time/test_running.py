"""`running=True`: statistics over time are those of the frames so far."""

import numpy as np
import pytest

import webrnn
from tests.backends import KERNELS, MAIN

from .loop_texts import BATCH, WIDTH, proto_of

FRAMES = 12
X = np.random.default_rng(3).standard_normal((FRAMES, BATCH, WIDTH)).astype(np.float32) + 0.5
TURN = "t = Transpose<perm=[1,2,0]>(x)"
BACK = "y = Transpose<perm=[2,0,1]>(nn)"
ONES = "ones = Constant<value_floats=[1.0,1.0,1.0,1.0]>()  bias = Constant<value_floats=[0.0,0.5,1.0,1.5]>()"
TWO = "ones = Constant<value_floats=[1.0,1.0]>()  bias = Constant<value_floats=[0.5,1.5]>()"
SCALE, SHIFT = np.ones(WIDTH, np.float32), np.float32([0, 0.5, 1, 1.5])


def session_of(text, backend=MAIN, **options):
    return webrnn.InferenceSession(proto_of(text, **options).SerializeToString(), backend=backend)


def streamed(session, length):
    stream = session.stream(carry="internal", running=True)
    parts = [stream.step({"x": X[start : start + length]})[0] for start in range(0, FRAMES, length)]
    return parts, stream.flush()[0]


def so_far(statistic):
    """At each frame what a function gives for the frames up to it, its last frame."""
    return np.stack([statistic(X[: t + 1].astype(np.float64))[-1] for t in range(FRAMES)])


def standardized(x, axes, epsilon=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def grouped(x):
    return standardized(x.reshape(len(x), BATCH, 2, WIDTH // 2), (0, 3)).reshape(x.shape) + np.float32(
        [0.5, 0.5, 1.5, 1.5]
    )


CASES = {
    "centred": ("m = ReduceMean(x, first_axis)  y = Sub(x, m)", lambda x: x - x.mean(0, keepdims=True)),
    "put back": (
        "m = ReduceMean<keepdims=0>(x, first_axis)  k = Unsqueeze(m, first_axis)  y = Sub(x, k)",
        lambda x: x - x.mean(0, keepdims=True),
    ),
    "sum": ("m = ReduceSum(x, first_axis)  y = Mul(x, m)", lambda x: x * x.sum(0, keepdims=True)),
    "largest": ("m = ReduceMax(x, first_axis)  y = Sub(x, m)", lambda x: x - x.max(0, keepdims=True)),
    "smallest": ("m = ReduceMin(x, first_axis)  y = Sub(x, m)", lambda x: x - x.min(0, keepdims=True)),
    "norm": (
        "m = ReduceL2(x, first_axis)  y = Div(x, m)",
        lambda x: x / np.sqrt((x * x).sum(0, keepdims=True)),
    ),
    "largest of all": (
        "a = Abs(x)  m = ReduceMax(a, both)  y = Div(x, m)",
        lambda x: x / np.abs(x).max((0, 2), keepdims=True),
    ),
    "variance by hand": (
        "m = ReduceMean(x, first_axis)  c = Sub(x, m)  q = Mul(c, c)  v = ReduceMean(q, first_axis)"
        "  e = Constant<value_float=0.00001>()  w1 = Add(v, e)  r = Sqrt(w1)  y = Div(c, r)",
        lambda x: standardized(x, 0),
    ),
    "variance by Pow": (
        "m = ReduceMean(x, both)  c = Sub(x, m)  p = Constant<value_float=2.0>()  q = Pow(c, p)"
        "  v = ReduceMean(q, both)  e = Constant<value_float=0.00001>()  w1 = Add(v, e)  r = Sqrt(w1)  y = Div(c, r)",
        lambda x: standardized(x, (0, 2)),
    ),
    "InstanceNormalization": (
        f"{TURN} {ONES} nn = InstanceNormalization(t, ones, bias) {BACK}",
        lambda x: standardized(x, 0) * SCALE + SHIFT,
    ),
    "GroupNormalization": (f"{TURN} {TWO} nn = GroupNormalization<num_groups=2>(t, ones, bias) {BACK}", grouped),
    "LayerNormalization": (
        "b = Transpose<perm=[1,0,2]>(x)  f = Constant<value_float=1.0>()  nn = LayerNormalization<axis=1>(b, f)"
        "  y = Transpose<perm=[1,0,2]>(nn)",
        lambda x: standardized(x, (0, 2)),
    ),
    "gate by GlobalAveragePool": (
        f"{TURN} m = GlobalAveragePool(t)  g = Sigmoid(m)  nn = Mul(t, g) {BACK}",
        lambda x: x / (1 + np.exp(-x.mean(0, keepdims=True))),
    ),
}


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("name", CASES)
def test_each_frame_meets_the_statistic_of_those_so_far(name, backend):
    text, statistic = CASES[name]
    session = session_of("both = Constant<value_ints=[0,2]>()" + text, backend)
    results = {}
    for length in (1, 3, FRAMES):
        parts, rest = streamed(session, length)
        results[length] = np.concatenate([*parts, rest])
    np.testing.assert_allclose(results[1], so_far(statistic), atol=2e-5, rtol=2e-5)
    for length in (3, FRAMES):
        np.testing.assert_array_equal(results[length], results[1])
    whole = session.run(None, {"x": X})[0]
    np.testing.assert_allclose(results[1][-1], whole[-1], atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceMax", "ReduceSum"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_what_meets_no_frames_again_is_that_of_all_so_far(op, keepdims):
    text = f"m = {op}<keepdims={keepdims}>(x, first_axis)  y = MatMul(m, w)"
    session = session_of(text, y="float[a,b] y" if not keepdims else "float[a,b,c] y")
    stream = session.stream(carry="internal", running=True)
    for start in range(0, FRAMES, 4):
        (result,) = stream.step({"x": X[start : start + 4]})
        np.testing.assert_allclose(result, session.run(None, {"x": X[: start + 4]})[0], atol=1e-5)


def test_without_the_option_they_are_refused_by_name():
    for name, (text, _) in CASES.items():
        with pytest.raises(webrnn.ModelError) as raised:
            session_of("both = Constant<value_ints=[0,2]>()" + text).stream(carry="internal")
        assert raised.value.node, name


def test_behind_a_centred_convolution():
    """The first and the last frames are no part of the statistic."""
    text = f"{TURN} c = Conv<pads=[1,1]>(t, kernel)  m = ReduceMean(c, last_axis)  nn = Sub(c, m) {BACK}"
    text = "last_axis = Constant<value_ints=[2]>()" + text
    session = session_of(text)
    one, seven = (np.concatenate([*parts, rest]) for parts, rest in (streamed(session, 1), streamed(session, 7)))
    np.testing.assert_array_equal(one, seven)
    whole = session.run(None, {"x": X})[0]
    assert one.shape == whole.shape
    np.testing.assert_allclose(one[-1], whole[-1], atol=1e-5)


def test_it_is_for_internal_states_only():
    with pytest.raises(ValueError, match="running= is for"):
        session_of(CASES["centred"][0]).stream(running=True)


def test_an_axis_that_is_not_time_stays_what_it_is():
    session = session_of("m = ReduceMean(x, last)  y = Sub(x, m)".replace("last", "minus_one"))
    (result,) = session.stream(carry="internal", running=True).step({"x": X})
    np.testing.assert_array_equal(result, session.run(None, {"x": X})[0])
