"""LinearAttention and CausalConvWithState against loops over single numbers, and in pieces."""

from __future__ import annotations

import math

import numpy as np
import pytest

from webrnn.checks import arrays
from webrnn.errors import Error, UnsupportedOp

RULES = ["linear", "gated", "delta", "gated_delta"]
BATCH, STEPS, KEY, VALUE = 2, 5, 3, 4


def _feeds(rule, q_heads, kv_heads, decay_per_key=True, beta_per_head=True, steps=STEPS):
    rng = np.random.default_rng(7)

    def random(*shape):
        return (rng.standard_normal(shape) * 0.5).astype(np.float32)

    feeds = [random(BATCH, steps, heads * size) for heads, size in ((q_heads, KEY), (kv_heads, KEY), (kv_heads, VALUE))]
    feeds.append(random(BATCH, kv_heads, KEY, VALUE))
    feeds.append(-np.abs(random(BATCH, steps, kv_heads * (KEY if decay_per_key else 1))) if "gated" in rule else None)
    feeds.append(np.abs(random(BATCH, steps, kv_heads if beta_per_head else 1)) if "delta" in rule else None)
    return feeds


def _scalar_loops(rule, feeds, q_heads, kv_heads):
    query, key, value, state, decay, beta = (None if x is None else x.astype(np.float64) for x in feeds)
    output = np.zeros((*query.shape[:2], q_heads * VALUE))
    for b in range(BATCH):
        for head in range(kv_heads):
            s = state[b, head].copy()
            for t in range(query.shape[1]):
                k = key[b, t, head * KEY : (head + 1) * KEY]
                v = value[b, t, head * VALUE : (head + 1) * VALUE].copy()
                for i in range(KEY):
                    if decay is not None:
                        per_key = decay.shape[2] == kv_heads * KEY
                        s[i] *= math.exp(decay[b, t, head * KEY + i if per_key else head])
                if beta is not None:
                    rate = beta[b, t, head if beta.shape[2] == kv_heads else 0]
                    v = rate * (v - sum(s[i] * k[i] for i in range(KEY)))
                for i in range(KEY):
                    s[i] += k[i] * v
                for q_head in range(head * q_heads // kv_heads, (head + 1) * q_heads // kv_heads):
                    q = query[b, t, q_head * KEY : (q_head + 1) * KEY]
                    output[b, t, q_head * VALUE : (q_head + 1) * VALUE] = sum(q[i] * s[i] for i in range(KEY))
            state[b, head] = s
    return output / math.sqrt(KEY), state


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("q_heads", "kv_heads"), [(2, 2), (4, 2), (3, 1)])
@pytest.mark.parametrize("per_dimension", [True, False])
def test_linear_attention(rule, q_heads, kv_heads, per_dimension):
    feeds = _feeds(rule, q_heads, kv_heads, per_dimension, per_dimension)
    attrs = {"q_num_heads": q_heads, "kv_num_heads": kv_heads, "update_rule": rule}
    outputs = arrays.call("LinearAttention", "", feeds, attrs, 2)
    for result, wanted in zip(outputs, _scalar_loops(rule, feeds, q_heads, kv_heads), strict=True):
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_linear_attention_step_by_step_equals_all_at_once(rule):
    feeds = _feeds(rule, 2, 1)
    attrs = {"q_num_heads": 2, "kv_num_heads": 1, "update_rule": rule}
    whole, last = arrays.call("LinearAttention", "", feeds, attrs, 2)
    state = feeds[3]
    for t in range(STEPS):
        one = [None if x is None else x[:, t : t + 1] for x in feeds]
        one[3] = state
        y, state = arrays.call("LinearAttention", "", one, attrs, 2)
        np.testing.assert_allclose(y, whole[:, t : t + 1], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(state, last, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("activation", ["none", "silu", "swish"])
@pytest.mark.parametrize("taps", [1, 2, 4])
@pytest.mark.parametrize("steps", [1, 2, 6])
def test_causal_conv(activation, taps, steps):
    rng = np.random.default_rng(0)
    x, past = (rng.standard_normal((2, 3, n)).astype(np.float32) for n in (steps, taps - 1))
    weight, bias = rng.standard_normal((3, 1, taps)).astype(np.float32), rng.standard_normal(3).astype(np.float32)
    y, present = arrays.call("CausalConvWithState", "", [x, weight, bias, past], {"activation": activation}, 2)
    history = np.concatenate([past, x], axis=2).astype(np.float64)
    expected = np.zeros(x.shape)
    for t in range(steps):
        expected[:, :, t] = bias + (history[:, :, t : t + taps] * weight[:, 0]).sum(axis=2)
    if activation != "none":
        expected = expected / (1 + np.exp(-expected))
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(present, history[:, :, steps:].astype(np.float32))


def test_mistakes_raise():
    feeds = _feeds("linear", 2, 2)
    attrs = {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"}
    with pytest.raises(UnsupportedOp, match="update_rule"):
        arrays.call("LinearAttention", "", feeds, {**attrs, "update_rule": "other"}, 2)
    with pytest.raises(Error, match="decay"):
        arrays.call("LinearAttention", "", feeds, {**attrs, "update_rule": "gated"}, 2)
    with pytest.raises(Error, match="heads"):
        arrays.call("LinearAttention", "", feeds, {**attrs, "kv_num_heads": 3}, 2)
    with pytest.raises(Error, match="past_state"):
        arrays.call("LinearAttention", "", [*feeds[:3], feeds[3][:1]], attrs, 2)
    x, weight = np.zeros((1, 2, 3), np.float32), np.zeros((2, 1, 2), np.float32)
    with pytest.raises(UnsupportedOp, match="activation"):
        arrays.call("CausalConvWithState", "", [x, weight], {"activation": "relu"}, 2)
    with pytest.raises(Error, match="past_state"):
        arrays.call("CausalConvWithState", "", [x, weight, None, np.zeros((1, 2, 2), np.float32)], {}, 2)
