"""LinearAttention and CausalConvWithState: what the reader makes of them against the numpy ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import webrnn
from tests.onnx.models import initializer, model
from webrnn.checks import arrays
from webrnn.ir.check import check
from webrnn.onnx.reader import read_model

RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}
ELEMENT = {np.float32: TensorProto.FLOAT, np.float16: TensorProto.FLOAT16}
TOLERANCE = {np.float32: {"rtol": 1e-5, "atol": 1e-5}, np.float16: {"rtol": 2e-3, "atol": 2e-3}}


def session_of(op, operands, attrs, outputs, symbolic=False, constant=()):
    """A session for one node. `operands` are (name, array) or None in the order of the op's inputs."""
    given = [item for item in operands if item is not None]
    node = helper.make_node(op, [item[0] if item else "" for item in operands], outputs, name="node", **attrs)
    inputs = [
        helper.make_tensor_value_info(
            name, ELEMENT[array.dtype.type], ["batch", *array.shape[1:]] if symbolic else array.shape
        )
        for name, array in given
        if name not in constant
    ]
    constants = [initializer(name, array) for name, array in given if name in constant]
    results = [helper.make_tensor_value_info(name, ELEMENT[given[0][1].dtype.type], None) for name in outputs if name]
    data = model([node], inputs, results, constants, opset=27).SerializeToString()
    session = webrnn.InferenceSession(data, backend="numpy")
    session.as_read = read_model(data)
    return session


def is_lowered(session) -> bool:
    check(session.as_read)
    return all(node.op not in ("LinearAttention", "CausalConvWithState") for node in session.as_read.nodes)


def assert_same(session, op, operands, attrs, outputs, constant=()):
    feeds = {item[0]: item[1] for item in operands if item is not None and item[0] not in constant}
    expected = arrays.call(op, "", [item and item[1] for item in operands], attrs, 2)
    wanted = [array for name, array in zip(outputs, expected, strict=True) if name]
    for result, array in zip(session.run(None, feeds), wanted, strict=True):
        assert result.dtype == array.dtype
        assert result.shape == array.shape
        np.testing.assert_allclose(result, array, **TOLERANCE[array.dtype.type])


@st.composite
def linear_attentions(draw: Any) -> tuple[list, dict, list]:
    batch, steps, heads, group, key, value = (draw(st.integers(low, 3)) for low in (1, 0, 1, 1, 1, 1))
    rule, element = draw(st.sampled_from(sorted(RULES))), draw(st.sampled_from([np.float32, np.float32, np.float16]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))

    def random(name, *shape, dtype=element):
        return name, (0.5 * rng.standard_normal(shape)).astype(dtype)

    uses_decay, uses_beta = RULES[rule]
    state_type = draw(st.sampled_from([element, np.float32]))
    operands: list[Any] = [
        random("query", batch, steps, heads * group * key),
        random("key", batch, steps, heads * key),
        random("value", batch, steps, heads * value),
        random("past", batch, heads, key, value, dtype=state_type) if draw(st.booleans()) else None,
        random("decay", batch, steps, heads * draw(st.sampled_from([1, key]))) if uses_decay else None,
        random("beta", batch, steps, draw(st.sampled_from([1, heads]))) if uses_beta else None,
    ]
    attrs = {"q_num_heads": heads * group, "kv_num_heads": heads, "update_rule": rule}
    if draw(st.booleans()):
        attrs["scale"] = draw(st.sampled_from([0.25, 2.0]))
    return operands, attrs, draw(st.sampled_from([["y", "present"], ["y", ""]]))


@settings(max_examples=150, deadline=None, print_blob=True)
@given(linear_attentions(), st.booleans())
def test_linear_attention_as_scan(case, symbolic):
    operands, attrs, outputs = case
    session = session_of("LinearAttention", operands, attrs, outputs, symbolic)
    assert is_lowered(session)
    assert_same(session, "LinearAttention", operands, attrs, outputs)


@st.composite
def causal_convs(draw: Any) -> tuple[list, dict, list]:
    batch, channels, steps = (draw(st.integers(low, 4)) for low in (1, 1, 0))
    taps = draw(st.sampled_from([1, 2, 3, 4, 8, 9, 12]))
    element = draw(st.sampled_from([np.float32, np.float32, np.float16]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))

    def random(name, *shape):
        return name, (0.5 * rng.standard_normal(shape)).astype(element)

    operands = [
        random("x", batch, channels, steps),
        random("weight", channels, 1, taps),
        random("bias", channels) if draw(st.booleans()) else None,
        random("past", batch, channels, taps - 1) if draw(st.booleans()) else None,
    ]
    activation = draw(st.sampled_from([None, "none", "silu", "swish"]))
    attrs = {} if activation is None else {"activation": activation}
    return operands, attrs, draw(st.sampled_from([["y", "present"], ["y", ""]]))


@settings(max_examples=150, deadline=None, print_blob=True)
@given(causal_convs(), st.sampled_from([(), ("weight", "bias")]))
def test_causal_conv_as_products(case, constant):
    operands, attrs, outputs = case
    session = session_of("CausalConvWithState", operands, attrs, outputs, constant=constant)
    assert is_lowered(session)
    assert_same(session, "CausalConvWithState", operands, attrs, outputs, constant)


ATTENTION = {"q_num_heads": 2, "kv_num_heads": 1, "update_rule": "gated_delta"}


def attention_operands(steps, rng):
    shapes = {"query": 6, "key": 3, "value": 2, "decay": 3, "beta": 1}
    made = {name: (name, 0.5 * rng.standard_normal((2, steps, n)).astype(np.float32)) for name, n in shapes.items()}
    past = ("past", rng.standard_normal((2, 1, 3, 2)).astype(np.float32))
    return [made["query"], made["key"], made["value"], past, made["decay"], made["beta"]]


def test_present_state_continues_where_it_stopped():
    operands = attention_operands(6, np.random.default_rng(0))
    whole = session_of("LinearAttention", operands, ATTENTION, ["y", "present"])
    y, last = whole.run(None, dict(operands))
    halves, state = [], dict(operands)["past"]
    for part in (slice(0, 4), slice(4, 6)):
        piece = [(name, state if name == "past" else array[:, part]) for name, array in operands]
        half, state = session_of("LinearAttention", piece, ATTENTION, ["y", "present"]).run(None, dict(piece))
        halves.append(half)
    np.testing.assert_array_equal(np.concatenate(halves, axis=1), y)
    np.testing.assert_array_equal(state, last)


def change(operands, name, array):
    return [(name, array) if item and item[0] == name else item for item in operands]


@pytest.mark.parametrize(
    ("name", "shape"),
    [("key", (1, 4, 3)), ("value", (2, 3, 2)), ("past", (2, 1, 2, 3)), ("decay", (2, 4, 2)), ("beta", (2, 4, 2))],
)
def test_operands_that_do_not_fit_are_left_to_the_op(name, shape):
    operands = change(attention_operands(4, np.random.default_rng(0)), name, np.ones(shape, np.float32))
    session = session_of("LinearAttention", operands, ATTENTION, ["y", "present"])
    assert not is_lowered(session)
    with pytest.raises(webrnn.Error, match="'node'"):
        session.run(None, dict(operands))


@pytest.mark.parametrize("attrs", [{"update_rule": "other"}, {"q_num_heads": 0}, {"kv_num_heads": 4}])
def test_attributes_that_do_not_fit_are_left_to_the_op(attrs):
    operands = attention_operands(4, np.random.default_rng(0))
    session = session_of("LinearAttention", operands, {**ATTENTION, **attrs}, ["y", "present"])
    assert not is_lowered(session)
    with pytest.raises(webrnn.Error, match="'node'"):
        session.run(None, dict(operands))


def test_unknown_attributes_are_left_to_the_op():
    operands = attention_operands(4, np.random.default_rng(0))
    with pytest.raises(webrnn.UnsupportedOp, match=r"'node' .LinearAttention., attribute 'extra'"):
        session_of("LinearAttention", operands, {**ATTENTION, "extra": 1}, ["y", "present"])


def test_unknown_sizes_are_left_to_the_op():
    operands = attention_operands(4, np.random.default_rng(0))
    node = helper.make_node("LinearAttention", [name for name, _ in operands], ["y", "present"], **ATTENTION)
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * a.ndim) for name, a in operands]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "present")]
    data = model([node], inputs, results, opset=27).SerializeToString()
    session = webrnn.InferenceSession(data, backend="numpy")
    session.as_read = read_model(data)
    assert not is_lowered(session)
    assert_same(session, "LinearAttention", operands, ATTENTION, ["y", "present"])


@pytest.mark.parametrize(
    ("name", "shape"), [("weight", (3, 2, 2)), ("weight", (2, 1, 2)), ("bias", (2,)), ("past", (2, 3, 2))]
)
def test_causal_conv_operands_that_do_not_fit_are_left_to_the_op(name, shape):
    shapes = {"x": (2, 3, 4), "weight": (3, 1, 2), "bias": (3,), "past": (2, 3, 1)}
    operands = [(key, np.ones(shape if key == name else usual, np.float32)) for key, usual in shapes.items()]
    session = session_of("CausalConvWithState", operands, {}, ["y", "present"])
    assert not is_lowered(session)
    with pytest.raises(webrnn.Error, match="'node'"):
        session.run(None, dict(operands))
