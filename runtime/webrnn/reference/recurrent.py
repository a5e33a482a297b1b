"""Ops that are recurrences of their own: LinearAttention and CausalConvWithState."""

from __future__ import annotations

import numpy as np

from webrnn.errors import ModelError, ShapeError, UnsupportedOp

from .activation import swish
from .arrays import Array, require_rank, require_shape, widen
from .conv import convolve
from .registry import op
from .windows import place_windows

_USES_DECAY = {"linear": False, "gated": True, "delta": False, "gated_delta": True}
_USES_BETA = {"linear": False, "gated": False, "delta": True, "gated_delta": True}


@op("LinearAttention")
def linear_attention(
    query: Array,
    key: Array,
    value: Array,
    past_state: Array | None = None,
    decay: Array | None = None,
    beta: Array | None = None,
    *,
    q_num_heads: int,
    kv_num_heads: int,
    chunk_size: int = 64,
    scale: float = 0.0,
    update_rule: str = "gated_delta",
) -> tuple[Array, Array]:
    """query, key and value are (batch, steps, heads * size); the state is (batch, kv heads, key size, value size).

    A step multiplies the state by exp(decay), adds key ⊗ value (for the delta rules key ⊗ beta (value - what the
    state holds for this key)), and reads it with the query. chunk_size is a hint that does not affect the result.
    """
    _check_rule(update_rule, decay, beta)
    for name, x in (("query", query), ("key", key), ("value", value)):
        require_rank(x, 3, name)
    if kv_num_heads < 1 or q_num_heads < 1 or q_num_heads % kv_num_heads:
        raise ModelError(f"{q_num_heads} query heads are not a multiple of {kv_num_heads} key heads")
    batch, steps, _ = query.shape
    q, k, v = _heads(query, q_num_heads), _heads(key, kv_num_heads), _heads(value, kv_num_heads)
    key_size, value_size = k.shape[-1], v.shape[-1]
    if q.shape[-1] != key_size or k.shape[:2] != (batch, steps) or v.shape[:2] != (batch, steps):
        raise ShapeError(f"query {list(query.shape)}, key {list(key.shape)} and value {list(value.shape)} do not fit")
    forget = None if decay is None else np.exp(_decay_heads(decay, kv_num_heads, key_size, batch, steps))
    rate = None if beta is None else _beta_heads(beta, kv_num_heads, batch, steps)

    state = np.zeros((batch, kv_num_heads, key_size, value_size), q.dtype)
    if past_state is not None:
        require_shape(past_state, state.shape, "past_state")
        state = widen(past_state)
    factor = q.dtype.type(scale if scale else 1 / np.sqrt(key_size))
    grouped = q.reshape(batch, steps, kv_num_heads, q_num_heads // kv_num_heads, key_size)
    output = np.empty((batch, steps, kv_num_heads, q_num_heads // kv_num_heads, value_size), q.dtype)
    for t in range(steps):
        if forget is not None:
            state = state * forget[:, t, :, :, None]
        written = v[:, t, :, None, :]
        if rate is not None:
            written = rate[:, t, :, None, None] * (written - k[:, t, :, None, :] @ state)
        state = state + k[:, t, :, :, None] * written
        output[:, t] = factor * (grouped[:, t] @ state)
    y = output.reshape(batch, steps, q_num_heads * value_size).astype(query.dtype, copy=False)
    return y, state.astype(query.dtype if past_state is None else past_state.dtype, copy=False)


def _check_rule(update_rule: str, decay: Array | None, beta: Array | None) -> None:
    if update_rule not in _USES_DECAY:
        raise UnsupportedOp(f"{update_rule!r} is not one of {', '.join(_USES_DECAY)}", attribute="update_rule")
    for name, value, used in (("decay", decay, _USES_DECAY[update_rule]), ("beta", beta, _USES_BETA[update_rule])):
        if (value is not None) != used:
            raise ModelError(f"update_rule {update_rule!r} {'needs' if used else 'does not take'} the input {name}")


def _heads(x: Array, count: int) -> Array:
    if x.shape[-1] % count:
        raise ShapeError(f"{x.shape[-1]} values cannot be divided into {count} heads")
    return widen(x).reshape(*x.shape[:-1], count, x.shape[-1] // count)


def _decay_heads(decay: Array, heads: int, key_size: int, batch: int, steps: int) -> Array:
    """One decay for each head, or for each key dimension of each head."""
    if decay.shape == (batch, steps, heads):
        return widen(decay)[..., None]
    require_shape(decay, (batch, steps, heads * key_size), "decay")
    return _heads(decay, heads)


def _beta_heads(beta: Array, heads: int, batch: int, steps: int) -> Array:
    if beta.shape != (batch, steps, 1):
        require_shape(beta, (batch, steps, heads), "beta")
    return widen(beta)


@op("CausalConvWithState")
def causal_conv_with_state(
    x: Array, weight: Array, bias: Array | None = None, past_state: Array | None = None, *, activation: str = "none"
) -> tuple[Array, Array]:
    """Depthwise over the last axis, x (batch, channels, steps); the state is the last k - 1 inputs."""
    require_rank(x, 3, "input")
    require_rank(weight, 3, "weight")
    batch, channels, _ = x.shape
    taps = weight.shape[2]
    require_shape(weight, (channels, 1, taps), "weight")
    if taps < 1:
        raise ShapeError("the kernel is empty")
    if past_state is None:
        past_state = np.zeros((batch, channels, taps - 1), x.dtype)
    require_shape(past_state, (batch, channels, taps - 1), "past_state")
    history = np.concatenate([past_state, x], axis=2)
    present_state = history[:, :, history.shape[2] - (taps - 1) :]
    if x.shape[2] == 0:
        return x, present_state
    y = convolve(widen(history), widen(weight), place_windows(history, (taps,)), group=channels)
    if bias is not None:
        require_shape(bias, (channels,), "bias")
        y = y + bias[:, None]
    if activation in ("silu", "swish"):
        y = swish(y)
    elif activation != "none":
        raise UnsupportedOp(f"{activation!r} is not one of none, silu, swish", attribute="activation")
    return y.astype(x.dtype, copy=False), present_state
