"""Models that take or give sequences and optionals run on the VM, on the tensors that these hold."""

import numpy as np
import pytest

from tests.backends import BACKENDS, MAIN
from tests.passes.differential import floats, graph_of
from webrnn.engine.session import InferenceSession

SUM = """g (seq(float[n]) s, optional(float[n]) o, float[n] x) => (y, seq(float[n]) t, there) {
    l = SequenceLength(s) there = OptionalHasElement(o) k = Constant<value=int64 {0}>() e = SequenceAt(s, k)
    y = Add(x, e) t = SequenceInsert(s, x) }"""
TRACE = """g (float[T,2] x) => (seq(float[2]) all) { n = Shape(x) z = Constant<value=int64 {0}>() k = Gather(n, z)
    empty = SequenceEmpty<dtype=1>() go = Constant<value=bool {1}>()
    all = Loop(k, go, empty) <body = b (int64 i, bool c, seq(float[2]) s) => (bool c2, seq(float[2]) s2) {
        r = Gather<axis=0>(x, i) h = Tanh(r) s2 = SequenceInsert(s, h) c2 = Identity(c) }> }"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_of_several_lengths(backend):
    session = InferenceSession(graph_of(SUM), backend=backend)
    for count in (1, 3):
        items = [floats(4, seed=index) for index in range(count)]
        for held in (None, floats(4)):
            y, t, there = session.run(None, {"s": items, "o": held, "x": floats(4, seed=9)})
            np.testing.assert_array_equal(y, floats(4, seed=9) + items[0])
            assert len(t) == count + 1
            np.testing.assert_array_equal(t[-1], floats(4, seed=9))
            assert bool(there) == (held is not None)
    assert "in numpy" not in session.report()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_trace_as_a_sequence(backend):
    session = InferenceSession(graph_of(TRACE), backend=backend)
    for steps in (3, 0, 1):
        (rows,) = session.run(None, {"x": floats(steps, 2)})
        assert len(rows) == steps
        for row, x in zip(rows, floats(steps, 2), strict=True):
            np.testing.assert_allclose(row, np.tanh(x), rtol=1e-6)
    assert "in numpy" not in session.report()


def test_results_are_the_callers_own():
    session = InferenceSession(graph_of(TRACE), backend=MAIN)
    (first,) = session.run(None, {"x": floats(2, 2)})
    kept = [row.copy() for row in first]
    session.run(None, {"x": floats(2, 2, seed=5)})
    assert all(np.array_equal(*pair) for pair in zip(first, kept, strict=True))
