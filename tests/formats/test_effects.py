import numpy as np
import pytest

import webrnn
from webrnn.formats.effects import Fixed, finished, sample_rate_of, samples_in, signal_in
from webrnn.ir import GraphBuilder


def test_sizes_of_one_are_left_out() -> None:
    b = GraphBuilder("g")
    assert [str(size) for size in samples_in(b, 3, 1).shape or ()] == ["time", "3"]
    assert [str(size) for size in samples_in(GraphBuilder("g"), 1, 1).shape or ()] == ["time"]


@pytest.mark.parametrize("gain", [1.0, 2.0])
def test_signal_and_knobs(gain: float) -> None:
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    for fixed, given in (({}, x), ({"controls": [2, 3]}, x[:, 0])):
        b = GraphBuilder("g")
        signal, columns = signal_in(b, 3, Fixed(fixed), gain)
        graph = finished(b, b.op("Concat", signal, columns, axis=1), 4)
        (got,) = webrnn.InferenceSession(graph).run(None, {"x": given})
        knobs = x[:, 1:] if not fixed else [[2, 3], [2, 3]]
        assert np.array_equal(got, np.column_stack([gain * x[:, 0], gain * x[:, 0], knobs]))


@pytest.mark.parametrize(("value", "rate"), [(48000, 48000), ("44100", 44100), (None, None), (-1.0, None)])
def test_rates(value: object, rate: float | None) -> None:
    assert sample_rate_of(value, "rate") == rate


@pytest.mark.parametrize("value", ["", [48000], True, 0, 1e9, float("nan"), 10**400])
def test_what_is_no_rate(value: object) -> None:
    with pytest.raises(webrnn.ModelError, match="rate is"):
        sample_rate_of(value, "rate")


def test_what_is_fixed_is_taken_or_refused() -> None:
    fixed = Fixed({"a": 1, "b": [[2.0]]})
    assert fixed.take("c") is None
    assert (fixed.take("a"), fixed.take("b")) == (np.float32([1]), np.float32([2]))
    fixed.finish("nothing")
    with pytest.raises(webrnn.ShapeError, match=r"fixed names \['d'\].*leaves open: \"e\""):
        Fixed({"d": 1}).finish('"e"')
    for wrong in ("loud", float("inf"), object()):
        with pytest.raises(webrnn.ShapeError, match="fixed\\['a'\\]"):
            Fixed({"a": wrong}).take("a")
