"""Two open sizes that meet in a broadcast may be as large as memory allows: their products are never formed."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.parser import parse_model

import webrnn
from tests.backends import MAIN, UNFUSED

SUM = '<ir_version: 8, opset_import: ["": 17]> f (float[n] x, float[m] y) => (float[k] z) { z = Add(x, y) }'
LATE = """<ir_version: 8, opset_import: ["": 17]> f (float[n] x, int64[1] a, int64[1] b) => (float[k] z)
<int64[1] zero={0}> { p = Slice(x, zero, a)  q = Slice(x, zero, b)  z = Add(p, q) }"""
FITTING = [(5000, 5000), (70_000, 70_000), (1, 70_000), (70_000, 1), (0, 0)]
UNFIT = [(3, 4), (50_000, 70_000), (0, 4)]


def by_sizes(n: int, m: int) -> dict[str, np.ndarray]:
    return {"x": np.arange(n, dtype=np.float32), "y": np.ones(m, np.float32)}


def while_running(n: int, m: int) -> dict[str, np.ndarray]:
    return {"x": np.arange(70_000, dtype=np.float32), "a": np.array([n]), "b": np.array([m])}


@pytest.mark.parametrize(("text", "feeds"), [(SUM, by_sizes), (LATE, while_running)], ids=["before", "while running"])
@pytest.mark.parametrize("backend", [MAIN, UNFUSED])
def test_one_plan_runs_them_all(text, feeds, backend, tmp_path):
    session = webrnn.InferenceSession(parse_model(text).SerializeToString(), backend=backend)
    expected = webrnn.InferenceSession(parse_model(text).SerializeToString(), backend="numpy")
    session.export(tmp_path / "sum.rnn")
    for plan in (session, webrnn.InferenceSession(tmp_path / "sum.rnn", backend=backend)):
        for sizes in FITTING:
            np.testing.assert_array_equal(plan.run(None, feeds(*sizes))[0], expected.run(None, feeds(*sizes))[0])
        for sizes in UNFIT:
            with pytest.raises(webrnn.ShapeError):
                plan.run(None, feeds(*sizes))


def test_the_node_is_named():
    session = webrnn.InferenceSession(parse_model(SUM).SerializeToString())
    with pytest.raises(webrnn.ShapeError, match=r"Add.*\[n\] and \[m\] cannot be broadcast"):
        session.run(None, by_sizes(3, 4))
