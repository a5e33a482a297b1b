"""Each rule beside finite differences, with sizes that are known and with sizes that are not."""

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.onnx.models import bools, floats, initializer, integers, model
from webrnn.errors import UnsupportedOp
from webrnn.ir import DType, GraphBuilder
from webrnn.ops.rows import ROWS

from .cases import cases
from .finite import assert_right

CASES = cases()

ELSEWHERE = {
    ("", "DequantizeLinear"),
    ("", "If"),
    ("", "NegativeLogLikelihoodLoss"),
    ("", "QuantizeLinear"),
    ("", "RotaryEmbedding"),
    ("", "SoftmaxCrossEntropyLoss"),
    ("webrnn", "ExpectShape"),
    ("webrnn", "Expression"),
    ("webrnn", "GruCell"),
    ("webrnn", "GruReset"),
    ("webrnn", "GruUpdate"),
    ("webrnn", "LstmCell"),
    ("webrnn", "RnnCell"),
    ("webrnn", "Scan"),
}
"""Ops with rules that have no case: below and in test_scans.py, test_cells.py and test_random_graphs.py."""


def _needs_sizes(case):
    """Whether there is a gradient only if sizes are known before it runs."""
    if case.op in ("DFT", "Squeeze"):
        return len(case.operands) == 1
    return (
        case.op == "Attention"
        or (case.op == "STFT" and len(case.arguments) == 2)
        or case.attrs.get("auto_pad") == "SAME_UPPER"
    )


def _name(case):
    shapes = ",".join("-" if item is None else "x".join(map(str, item.shape)) for item in case.operands)
    return f"{case.op}[{shapes}]" + "".join(f",{key}={value}" for key, value in case.attrs.items())


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_rule(case):
    assert assert_right(case.graph(), case.arguments) == len(case.arguments)


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_rule_with_sizes_that_are_known_while_running(case):
    if _needs_sizes(case):
        with pytest.raises(webrnn.Error):
            assert_right(case.graph(named_sizes=True), case.arguments)
    else:
        assert_right(case.graph(named_sizes=True), case.arguments)


def test_every_rule_is_tried():
    tried = {(case.domain, case.op) for case in CASES}
    assert {key for key, row in ROWS.items() if row.gradient} - tried == ELSEWHERE
    assert {key for key in tried if not ROWS[key].gradient} == set()


def _gradients(nodes, inputs, wrt, feeds, weights=(), opset=17):
    proto = model(nodes, inputs, [floats("loss", [])], weights, opset).SerializeToString()
    return webrnn.InferenceSession(webrnn.gradient(proto, "loss", wrt), backend="numpy").run(None, feeds)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_cross_entropy(reduction):
    rng = np.random.default_rng(0)
    scores, target = rng.standard_normal((5, 3)).astype(np.float32), rng.integers(0, 3, 5)
    node = helper.make_node("SoftmaxCrossEntropyLoss", ["x", "t"], ["loss"], reduction=reduction)
    _, found = _gradients([node], [floats("x", [5, 3]), integers("t", [5])], ["x"], {"x": scores, "t": target})
    soft = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    wanted = (soft - np.eye(3)[target]) / (5 if reduction == "mean" else 1)
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_negative_log_likelihood():
    rng = np.random.default_rng(0)
    scores, target = rng.standard_normal((5, 3)).astype(np.float32), rng.integers(0, 3, 5)
    node = helper.make_node("NegativeLogLikelihoodLoss", ["x", "t"], ["loss"], reduction="sum")
    _, found = _gradients([node], [floats("x", [5, 3]), integers("t", [5])], ["x"], {"x": scores, "t": target})
    np.testing.assert_allclose(found, -np.eye(3)[target], atol=1e-6)


def test_rotary_embedding():
    """It is linear: the gradient along a direction is the result for it."""
    rng = np.random.default_rng(0)
    feeds = {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in (("x", (1, 2, 3, 4)), ("w", (1, 2, 3, 4)))
    }
    feeds |= {name: rng.standard_normal((1, 3, 2)).astype(np.float32) for name in ("cos", "sin")}
    nodes = [
        helper.make_node("RotaryEmbedding", ["x", "cos", "sin"], ["y"]),
        helper.make_node("Mul", ["y", "w"], ["weighed"]),
        helper.make_node("ReduceSum", ["weighed"], ["loss"], keepdims=0),
    ]
    inputs = [floats(name, item.shape) for name, item in feeds.items()]
    loss, found = _gradients(nodes, inputs, ["x"], feeds, opset=23)
    np.testing.assert_allclose((found * feeds["x"]).sum(), loss, rtol=1e-5)


def test_what_has_no_rule_is_named():
    node = helper.make_node("Det", ["x"], ["loss"], name="determinant")
    with pytest.raises(UnsupportedOp, match=r"node 'determinant' \(Det\): Det has no rule for gradients"):
        _gradients([node], [floats("x", [3, 3])], ["x"], {})


def test_what_has_no_rule_is_named_where_no_shape_is_known():
    nodes = [
        helper.make_node("Compress", ["x", "chosen"], ["some"], name="choice"),
        helper.make_node("ReduceSum", ["some"], ["loss"], keepdims=0),
    ]
    proto = model(nodes, [floats("x", [3]), bools("chosen", [3])], [floats("loss", [])]).SerializeToString()
    with pytest.raises(UnsupportedOp, match=r"node 'choice' \(Compress\): Compress has no rule for gradients"):
        webrnn.gradient(proto, "loss", ["x"])


def test_what_has_no_rule_and_no_gradient_is_left_alone():
    nodes = [helper.make_node("Det", ["x"], ["d"]), helper.make_node("Mul", ["d", "y"], ["loss"])]
    feeds = {"x": np.eye(3, dtype=np.float32) * 2, "y": np.float32(3)}
    loss, found = _gradients(nodes, [floats("x", [3, 3]), floats("y", [])], ["y"], feeds)
    assert (loss, found) == (24, 8)


def test_integers_carry_no_gradient():
    nodes = [
        helper.make_node("Cast", ["x"], ["whole"], to=7),
        helper.make_node("Cast", ["whole"], ["back"], to=1),
        helper.make_node("Mul", ["back", "x"], ["product"]),
        helper.make_node("ReduceSum", ["product"], ["loss"], keepdims=0),
    ]
    x = np.float32([1.5, 2.5])
    _, found = _gradients(nodes, [floats("x", [2])], ["x"], {"x": x})
    assert found.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("op", "attrs", "attribute"),
    [
        ("Resize", {"keep_aspect_ratio_policy": "not_larger"}, "keep_aspect_ratio_policy"),
        ("AveragePool", {"kernel_shape": [2], "ceil_mode": 1}, "ceil_mode"),
    ],
)
def test_refuses_what_a_rule_does_not_do(op, attrs, attribute):
    inputs = [floats("x", [2, 3, 5]), *([integers("i", [3])] if op == "Resize" else [])]
    names = ["x"] if op != "Resize" else ["x", "", "", "i"]
    nodes = [
        helper.make_node(op, names, ["y"], name="n", **attrs),
        helper.make_node("ReduceSum", ["y"], ["loss"], keepdims=0),
    ]
    with pytest.raises(UnsupportedOp, match=attribute):
        _gradients(nodes, inputs, ["x"], {})


def test_attention_that_sees_nothing():
    """A query that may see no key gives zeros, and nothing goes back through it."""
    rng = np.random.default_rng(0)
    feeds = {name: rng.standard_normal((1, 2, 3, 4)).astype(np.float32) for name in "qkv"}
    mask = np.array([[True, False, True], [False, False, False], [True, True, True]])
    nodes = [
        helper.make_node("Attention", ["q", "k", "v", "mask"], ["y"]),
        helper.make_node("ReduceSumSquare", ["y"], ["loss"], keepdims=0),
    ]
    inputs = [floats(name, item.shape) for name, item in feeds.items()]
    _, *found = _gradients(nodes, inputs, ["q", "k", "v"], feeds, [initializer("mask", mask)], opset=23)
    assert all(np.isfinite(item).all() for item in found)
    assert not found[0][:, :, 1].any()
    assert found[0][:, :, 2].all()


def test_softmax_of_rows_that_are_all_masked():
    """PyTorch's exporter writes attention with masks so, and its own gradients are 0 there."""
    x = np.float32([[1, 2], [3, 4]])
    mask = np.float32([[0, 0], [-np.inf, -np.inf]])
    nodes = [
        helper.make_node("Add", ["x", "mask"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["soft"]),
        helper.make_node("IsNaN", ["soft"], ["unseen"]),
        helper.make_node("Where", ["unseen", "zero", "soft"], ["y"]),
        helper.make_node("ReduceSumSquare", ["y"], ["loss"], keepdims=0),
    ]
    weights = [initializer("mask", mask), initializer("zero", np.float32(0))]
    _, found = _gradients(nodes, [floats("x", [2, 2])], ["x"], {"x": x}, weights)
    soft = np.exp([1, 2]) / np.exp([1, 2]).sum()
    np.testing.assert_allclose(found, [2 * soft * (soft - (soft**2).sum()), [0, 0]], atol=1e-6)


@pytest.mark.parametrize("scale", [np.float32(0.1), np.float32([0.1, 0.2])], ids=["one", "by channel"])
def test_quantization_goes_straight_through(scale):
    """As torch.fake_quantize has it: where it does not saturate, as if it did not round."""
    x = np.float32([[0.52, -0.31], [99.0, 0.07], [-12.9, -99.0]])
    zero = np.zeros_like(scale, np.int8) + np.int8(3)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], axis=1),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"], axis=1),
        helper.make_node("ReduceSumSquare", ["y"], ["loss"], keepdims=0),
    ]
    weights = [initializer("scale", scale), initializer("zero", zero)]
    _, found, of_scale = _gradients(nodes, [floats("x", [3, 2])], ["x", "scale"], {"x": x}, weights)
    number = np.round(x / scale)
    kept = np.clip(number, -131, 124)
    np.testing.assert_allclose(found, 2 * kept * scale * (number == kept), rtol=1e-6)
    # the scale itself: what is inside has only what rounding left, what saturates moves with it
    wanted = 2 * kept * scale * (kept - np.where(number == kept, x / scale, 0))
    np.testing.assert_allclose(of_scale, wanted.sum(0) if scale.ndim else wanted.sum(), rtol=1e-5)


def test_the_direction_of_nothing():
    """A row of zeros has no direction: nothing goes back through it, and NaN not at all."""
    x = np.float32([[0, 0], [3, 4]])
    nodes = [
        helper.make_node("LpNormalization", ["x"], ["y"], axis=1),
        helper.make_node("ReduceSum", ["y"], ["loss"], keepdims=0),
    ]
    _, found = _gradients(nodes, [floats("x", [2, 2])], ["x"], {"x": x})
    np.testing.assert_allclose(found, [[0, 0], [0.032, -0.024]], atol=1e-6)


def test_cross_entropy_of_float64():
    rng = np.random.default_rng(0)
    scores, target = rng.standard_normal((5, 3)), rng.integers(0, 3, 5)
    b = GraphBuilder("g")
    x, wanted = b.input("x", DType.DOUBLE, (5, 3)), b.constant(target)
    b.graph.outputs = [b.op("SoftmaxCrossEntropyLoss", x, wanted, reduction="none")]
    assert assert_right(b.graph, [scores]) == 1
