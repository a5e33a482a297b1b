"""`lookback=N`: attention over time sees the last N frames."""

import numpy as np
import pytest
from onnx import numpy_helper
from onnx.parser import parse_model

import webrnn
from tests.backends import KERNELS, MAIN

FRAMES, BATCH, HEADS, SIZE = 12, 2, 2, 4
WIDTH = HEADS * SIZE
RNG = np.random.default_rng(4)
X = RNG.standard_normal((BATCH, FRAMES, WIDTH)).astype(np.float32)
WEIGHTS = {name: RNG.normal(0, 0.5, (WIDTH, WIDTH)).astype(np.float32) for name in ("wq", "wk", "wv")}

HEADED = """
    heads = Constant<value_ints=[0, 0, 2, 4]>()
    flat = Constant<value_ints=[0, 0, 8]>()
    half = Constant<value_float=0.5>()
    q1 = MatMul(x, wq)  q2 = Reshape(q1, heads)  q = Transpose<perm=[0,2,1,3]>(q2)
    k1 = MatMul(x, wk)  k2 = Reshape(k1, heads)
    v1 = MatMul(x, wv)  v2 = Reshape(v1, heads)  v = Transpose<perm=[0,2,1,3]>(v2)
"""
JOINED = "o1 = Transpose<perm=[0,2,1,3]>(o)  y = Reshape(o1, flat)"
TEXTS = {
    "products": HEADED
    + "k = Transpose<perm=[0,2,3,1]>(k2)  s = MatMul(q, k)  t = Mul(s, half)  p = Softmax(t)  o = MatMul(p, v)"
    + JOINED,
    "Attention": HEADED + "k = Transpose<perm=[0,2,1,3]>(k2)  o = Attention<scale=0.5>(q, k, v)" + JOINED,
    "causal Attention": HEADED
    + "k = Transpose<perm=[0,2,1,3]>(k2)  o = Attention<scale=0.5, is_causal=1>(q, k, v)"
    + JOINED,
    "packed Attention": "q = MatMul(x, wq)  k = MatMul(x, wk)  v = MatMul(x, wv)"
    "  y = Attention<scale=0.5, q_num_heads=2, kv_num_heads=2>(q, k, v)",
}


def session_of(text, backend=MAIN):
    head = f"m (float[batch,time,{WIDTH}] x) => (float[batch,time,{WIDTH}] y)"
    model = parse_model(f'<ir_version: 10, opset_import: ["": 23]> {head} {{ {text} }}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in WEIGHTS.items())
    return webrnn.InferenceSession(model.SerializeToString(), backend=backend)


def expected(lookback):
    q, k, v = ((X @ WEIGHTS[name]).reshape(BATCH, FRAMES, HEADS, SIZE) for name in ("wq", "wk", "wv"))
    scores = np.einsum("bthd,bshd->bhts", q, k).astype(np.float64) * 0.5
    distance = np.arange(FRAMES)[:, None] - np.arange(FRAMES)
    scores[:, :, (distance < 0) | (distance >= lookback)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("bhts,bshd->bthd", weights, v).reshape(BATCH, FRAMES, WIDTH)


def streamed(session, length, **options):
    stream = session.stream(carry="internal", **options)
    parts = [stream.step({"x": X[:, start : start + length]})[0] for start in range(0, FRAMES, length)]
    return np.concatenate([*parts, stream.flush()[0]], axis=1)


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("lookback", [1, 3, FRAMES, 40])
@pytest.mark.parametrize("name", TEXTS)
def test_each_frame_sees_the_last_ones(name, lookback, backend):
    session = session_of(TEXTS[name], backend)
    one, five, whole = (streamed(session, length, lookback=lookback) for length in (1, 5, FRAMES))
    np.testing.assert_allclose(one, expected(lookback), atol=1e-5)
    np.testing.assert_array_equal(one, five)
    np.testing.assert_array_equal(one, whole)


@pytest.mark.parametrize("name", TEXTS)
def test_without_the_option_it_is_refused_by_name(name):
    with pytest.raises(webrnn.ModelError) as raised:
        session_of(TEXTS[name]).stream(carry="internal")
    assert raised.value.node


def test_scores_that_a_mask_changes_are_refused():
    text = (
        HEADED
        + """k = Transpose<perm=[0,2,3,1]>(k2)  s = MatMul(q, k)  bias = Sin(s)  t = Add(s, bias)
        p = Softmax(t)  o = MatMul(p, v)"""
        + JOINED
    )
    with pytest.raises(webrnn.ModelError) as raised:
        session_of(text).stream(carry="internal", lookback=4)
    assert raised.value.node


def test_the_last_frame_sees_all_where_there_are_not_more():
    session = session_of(TEXTS["products"])
    whole = session.run(None, {"x": X})[0]
    np.testing.assert_allclose(streamed(session, 4, lookback=FRAMES)[:, -1], whole[:, -1], atol=1e-5)


@pytest.mark.parametrize("options", [{"lookback": 0, "carry": "internal"}, {"lookback": 3}])
def test_options(options):
    with pytest.raises(ValueError, match="lookback="):
        session_of(TEXTS["products"]).stream(**options)


def test_pools_look_back():
    session = session_of(TEXTS["products"])
    pool = session.pool(max_streams=2, carry="internal", lookback=3)
    first, second = pool.open(), pool.open()
    results = {first: [], second: []}
    for start in range(0, FRAMES, 3):
        pool.submit(first, {"x": X[:1, start : start + 3]})
        if start:
            pool.submit(second, {"x": X[1:, start - 3 : start]})
        for stream, outputs in pool.tick().items():
            results[stream].append(outputs[0])
    whole = streamed(session, 3, lookback=3)
    np.testing.assert_array_equal(np.concatenate(results[first], axis=1), whole[:1])
    np.testing.assert_array_equal(np.concatenate(results[second], axis=1), whole[1:, :-3])
