"""Sizes that a model leaves open and that then do not fit raise on all backends; nothing is computed from them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.parser import parse_model

import webrnn
from tests.backends import MAIN, UNFUSED

RNN = "<float[1,2,3] w={1,2,3,4,5,6}, float[1,2,2] r={1,2,3,4}>"
CASES = {
    "reshape to fewer": ("(float[n,3] x) => (float[1,3] y) <int64[2] s={1,3}> { y = Reshape(x, s) }", [(2, 3)]),
    "reshape to more": ("(float[n,3] x) => (float[2,3] y) <int64[2] s={2,3}> { y = Reshape(x, s) }", [(1, 3)]),
    "reshape to no whole": ("(float[n,3] x) => (float[m,2] y) <int64[2] s={-1,2}> { y = Reshape(x, s) }", [(1, 3)]),
    "squeeze": ("(float[n,3] x) => (float[3] y) <int64[1] a={0}> { y = Squeeze(x, a) }", [(2, 3)]),
    "expand": ("(float[n,3] x) => (float[2,3] y) <int64[2] s={2,3}> { y = Expand(x, s) }", [(3, 3)]),
    "concat less": ("(float[n,3] x, float[m,4] z) => (float[n,7] y) { y = Concat<axis=1>(x, z) }", [(3, 3), (2, 4)]),
    "concat more": ("(float[n,3] x, float[m,4] z) => (float[n,7] y) { y = Concat<axis=1>(x, z) }", [(2, 3), (3, 4)]),
    "split less": (
        "(float[n,3] x) => (float[k,3] y, float[l,3] z) <int64[2] s={1,2}> { y, z = Split<axis=0>(x, s) }",
        [(4, 3)],
    ),
    "split more": (
        "(float[n,3] x) => (float[k,3] y, float[l,3] z) <int64[2] s={1,2}> { y, z = Split<axis=0>(x, s) }",
        [(2, 3)],
    ),
    "product": ("(float[n,m] x) => (float[n,2] y) <float[2,2] w={1,2,3,4}> { y = MatMul(x, w) }", [(2, 3)]),
    "channels": ("(float[1,c,t] x) => (float[1,1,k] y) <float[1,2,1] w={1,2}> { y = Conv(x, w) }", [(1, 3, 2)]),
    "window": ("(float[1,1,t] x) => (float[1,1,k] y) <float[1,1,3] w={1,2,3}> { y = Conv(x, w) }", [(1, 1, 2)]),
    "features": (f"(float[t,b,i] x) => (float[t,1,b,2] y) {RNN} {{ y = RNN<hidden_size=2>(x, w, r) }}", [(2, 1, 2)]),
    "initial state": (
        f"(float[t,b,3] x, float[1,c,2] h) => (float[t,1,b,2] y) {RNN} {{ y = RNN<hidden_size=2>(x, w, r, , , h) }}",
        [(2, 2, 3), (1, 1, 2)],
    ),
}


@pytest.mark.parametrize("backend", ["numpy", MAIN, UNFUSED])
@pytest.mark.parametrize("disable", [(), ("all",)], ids=["passes", "no passes"])
@pytest.mark.parametrize("case", CASES)
def test_raises(case, disable, backend):
    text, shapes = CASES[case]
    model = parse_model(f'<ir_version: 8, opset_import: ["": 17]> f {text}')
    session = webrnn.InferenceSession(model.SerializeToString(), backend=backend, disable=disable)
    feeds = {value.name: np.ones(shape, np.float32) for value, shape in zip(session.inputs, shapes, strict=True)}
    with pytest.raises(webrnn.ShapeError):
        session.run(None, feeds)
