import numpy as np
import pytest

import webrnn
from webrnn.formats.effects import finished, samples_in
from webrnn.formats.entries import Entry
from webrnn.formats.signals import Signal, SignalBuilder
from webrnn.ir import GraphBuilder

LAYER = Entry({}, "conv", "ConvNet")
RNG = np.random.default_rng(2)
X = RNG.uniform(-1, 1, 50).astype(np.float32)


def started() -> tuple[SignalBuilder, Signal]:
    b = GraphBuilder("signals")
    x = b.op("Reshape", samples_in(b, 1), b.ints(1, 1, -1))
    return SignalBuilder(b), Signal(x, np.zeros((1, 1, 1)), 1)


def run(s: SignalBuilder, y: Signal, x: np.ndarray = X) -> np.ndarray:
    graph = finished(s.b, s.b.op("Transpose", s.plain(y).value, perm=[0, 2, 1]), y.channels)
    return webrnn.InferenceSession(graph).run(None, {"x": x})[0]


def weights(*shape: int) -> np.ndarray:
    return RNG.uniform(-0.5, 0.5, shape).astype(np.float32)


@pytest.mark.parametrize("is_centered", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_stack_hears_zeros_before_the_signal(is_centered: bool, groups: int) -> None:
    """Behind a bias silence is not zero; what a layer remembers is what the one before gives in silence."""
    first, bias, second = weights(4, 1, 3), weights(4), weights(2, 4 // groups, 3)

    def build() -> tuple[SignalBuilder, Signal]:
        s, x = started()
        y = s.op("Tanh", s.conv(x, first, bias, LAYER, centered=is_centered))
        return s, s.conv(y, second, None, LAYER, 2, groups, centered=is_centered)

    s, y = build()
    assert y.silence is not None
    got = run(s, y)
    s, y = build()
    long = run(s, y, np.concatenate([np.zeros(20, np.float32), X]))
    np.testing.assert_allclose(got, long[20:], atol=1e-6)
    np.testing.assert_allclose(long[10], y.silence.reshape(-1), atol=1e-6)


def test_differences_to_silence_add_up() -> None:
    s, x = started()
    left, right = (s.conv(x, weights(3, 1, 1), weights(3), LAYER, centered=True) for _ in range(2))
    total = s.add(left, right)
    assert total.is_centered
    assert left.is_zero_in_silence
    assert not s.add(left, s.plain(right)).is_centered
    np.testing.assert_allclose(run(s, total, np.zeros(2, np.float32))[0], total.silence.reshape(-1), atol=1e-6)  # type: ignore[union-attr]


def test_halves() -> None:
    s, x = started()
    y = s.conv(x, weights(4, 1, 1), weights(4), LAYER, centered=True)
    first, second = s.halves(y)
    parts = [part.silence for part in (first, second) if part.silence is not None]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), y.silence)


def test_what_is_not_constant_in_silence_has_no_history() -> None:
    s, x = started()
    with pytest.raises(webrnn.UnsupportedOp, match=r"node 'conv' .*not constant in silence"):
        s.conv(Signal(x.value, None, 1), weights(1, 1, 2), None, LAYER)
    assert s.conv(Signal(x.value, None, 1), weights(1, 1, 1), None, LAYER).silence is None
    assert s.halves(s.conv(Signal(x.value, None, 1), weights(2, 1, 1), None, LAYER))[0].silence is None


def test_silence_is_finite() -> None:
    s, x = started()
    with pytest.raises(webrnn.ModelError, match="no finite number"):
        s.conv(Signal(x.value, np.full((1, 1, 1), 1e30), 1), np.full((1, 1, 1), 1e30, np.float32), None, LAYER)
