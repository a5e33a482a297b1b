"""What operands say that are fed: all backends refuse the same, and take the same, whenever they find it out."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.parser import parse_model

import webrnn
from tests.backends import BACKENDS

from .harness import Case, case, f, same_results, verdicts


def fed(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


REFUSED: list[Case] = [
    case("Unsqueeze", f(2, 3), fed(0, 0)),
    case("Unsqueeze", f(2, 3), fed(1, -3)),
    case("Squeeze", f(1, 1), fed(0, 0)),
    case("ReduceSum", f(2, 3), fed(1, 1)),
    case("ReduceSum", f(2, 3), fed(1, -1), keepdims=0),
    case("MaxUnpool", f(1, 1, 2, 2), fed(5, 7, 13, 15).reshape(1, 1, 2, 2), fed(1, 1, 5, 5).reshape(1, 4),
         kernel_shape=[2, 2], strides=[2, 2]),
    case("MaxUnpool", f(1, 1, 2, 2), fed(5, 7, 13, 15).reshape(1, 1, 2, 2), fed(1, 5, 5),
         kernel_shape=[2, 2], strides=[2, 2]),
    case("Col2Im", f(1, 9, 4), fed(5, 5), fed(3, 3), strides=[2, 2, -1]),
    case("Col2Im", f(1, 9, 4), fed(5, 5), fed(3, 3), strides=[2, 2], dilations=[1]),
    case("Col2Im", f(1, 9, 4), fed(5, 5), fed(3, 3), strides=[2, 2], pads=[0, 0]),
    case("Col2Im", f(1, 9, 4), fed(5, 5), fed(3), strides=[2, 2]),
    case("STFT", f(1, 128, 1), np.array(8), f(16), np.array(8)),
    case("Div", np.arange(3), fed(0)),
    case("Mod", np.arange(3), fed(2, 0, 1)),
]  # fmt: skip
TAKEN: list[Case] = [
    case("Unsqueeze", f(2, 3), fed(3, 0)),
    case("MaxUnpool", f(1, 1, 2, 2), fed(5, 7, 13, 15).reshape(1, 1, 2, 2), fed(1, 1, 5, 5),
         kernel_shape=[2, 2], strides=[2, 2]),
    case("Col2Im", f(1, 9, 4), fed(5, 5), fed(3, 3), strides=[2, 2]),
    case("STFT", f(1, 128, 1), np.array(8), f(16), np.array(16)),
    case("Div", np.zeros(0, np.int64), np.array(0)),
    case("Mod", np.zeros((2, 0), np.int64), np.zeros((2, 1), np.int64)),
    case("Resize", f(1, 1, 4, 4), None, None, fed(0, 0, 0, 0), mode="cubic", antialias=1),
    case("Resize", f(1, 1, 4, 4), None, None, fed(1, 1, 0, 3), mode="linear", antialias=1),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused_by_all(case):
    found = verdicts(case)
    assert all(isinstance(each, webrnn.Error) for each in found.values()), found


@pytest.mark.parametrize("case", TAKEN, ids=str)
def test_taken_by_all(case):
    assert not same_results(verdicts(case))


MODELS = {
    "bools are not multiplied": "g (optional(float[2]) x) => (float y) { h = OptionalHasElement(x) y = Mul(h, h) }",
    "nor cut": "g (optional(float[2]) x) => (float y) { h = OptionalHasElement(x) y = Relu(h) }",
    "an axis that is not there": "g (float[2,3] x) => (seq(float[3]) y) { y = SplitToSequence <axis = 2> (x) }",
    "parts that are not the whole": """g (float[2,3] x) => (seq(float[3]) y)
        { n = Constant <value = int64[2] {1, 2}> () y = SplitToSequence (x, n) }""",
    "an element of another type": "g (seq(int64[n]) s, float[3] x) => (seq(int64[n]) y) { y = SequenceInsert (s, x) }",
    "lengths that are no integers": """g (float[2,2,3] x, float[1,4,3] w, float[1,4,4] r) => (float[1,2,4] y)
        { n = Constant <value = float[2] {2.0, 2.0}> () "", y = RNN <hidden_size = 4> (x, w, r, "", n) }""",
    "more steps than there are": """g (float[2,2,3] x, float[1,4,3] w, float[1,4,4] r) => (float[1,2,4] y)
        { n = Constant <value = int32[2] {2, 3}> () "", y = RNN <hidden_size = 4> (x, w, r, "", n) }""",
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_models_that_are_refused_when_they_are_opened(name, backend):
    model = parse_model(f'<ir_version: 9, opset_import: ["": 21]> {MODELS[name]}')
    with pytest.raises(webrnn.Error):
        webrnn.InferenceSession(model.SerializeToString(), backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sequence_that_is_declared_with_another_type_than_it_gets(backend):
    """What a graph says of its own values counts for nothing."""
    model = parse_model(
        """<ir_version: 9, opset_import: ["": 21]> g (float[3] x) => (seq(int64[3]) y)
        { s = SequenceEmpty <dtype = 1> () y = SequenceInsert (s, x) }"""
    )
    (y,) = webrnn.InferenceSession(model.SerializeToString(), backend=backend).run(None, {"x": f(3)})
    np.testing.assert_array_equal(y[0], f(3))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("pads", [[3, 0, 0, 1], [-2, -2, -5, -5], [2**62, 0, 0, 0]])
def test_a_loop_of_no_steps_has_no_elements_whatever_their_size_would_be(backend, pads):
    model = parse_model(
        """<ir_version: 9, opset_import: ["": 21]> g (float[2,3] x, int64[4] p) => (float[] y)
        {
            n = Constant <value = int64 {0}> ()
            y = Loop <body = b (int64 i, bool c) => (bool on, float[] z) { z = Pad (x, p) on = Identity (c) }> (n, "")
        }"""
    )
    session = webrnn.InferenceSession(model.SerializeToString(), backend=backend)
    (y,) = session.run(None, {"x": f(2, 3), "p": np.array(pads, np.int64)})
    assert (y.ndim, y.shape[0], y.dtype) == (3, 0, np.float32)
