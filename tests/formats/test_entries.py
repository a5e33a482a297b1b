from typing import Any

import numpy as np
import pytest

from webrnn.errors import ModelError, UnsupportedOp
from webrnn.formats.entries import MOST, Entry, Weights, parsed

ENTRY = Entry(
    {"n": 3, "whole": 4.0, "big": 2**60, "f": 0.5, "flag": True, "t": "a", "list": [1, 2], "none": None, "inner": {}},
    "layers[0]",
    "conv1d",
)  # fmt: skip


def test_what_is_there() -> None:
    assert (ENTRY.count("n"), ENTRY.count("whole"), ENTRY.count("none", 7)) == (3, 4, 7)
    assert (ENTRY.number("f"), ENTRY.number("n"), ENTRY.number("no", None)) == (0.5, 3.0, None)
    assert (ENTRY.flag("flag", False), ENTRY.flag("no", True)) == (True, True)
    assert (ENTRY.text("t"), ENTRY.last_count("list"), ENTRY.last_count("n")) == ("a", 2, 3)
    assert (ENTRY.counts("list"), ENTRY.inside("inner").node) == ([1, 2], "layers[0].inner")
    np.testing.assert_array_equal(ENTRY.array([[1, 2.5]], (1, 2), "w"), np.float32([[1, 2.5]]))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ENTRY.count("no"), "'layers\\[0\\]' \\(conv1d\\), attribute 'no': it is missing"),
        (lambda: ENTRY.count("f"), "it is 0.5, it needs to be a whole number"),
        (lambda: ENTRY.count("flag"), "it is true or false"),
        (lambda: ENTRY.count("big"), f"needs to be 1 to {MOST}"),
        (lambda: ENTRY.number("t"), "it is a text, it needs to be a number"),
        (lambda: ENTRY.flag("n", True), "it is 3, it needs to be true or false"),
        (lambda: ENTRY.text("n"), "it is 3, it needs to be a text"),
        (lambda: ENTRY.items("inner"), "it is an object, it needs to be a list"),
        (lambda: ENTRY.inside("t"), "it is a text, it needs to be an object"),
        (lambda: ENTRY.array([[1], [2, 3]], (2, 1), "w"), r"needs to be \[2, 1\]"),
        (lambda: ENTRY.array([1, "2"], (2,), "w"), "a text stands where a number is expected"),
        (lambda: ENTRY.array([1, 1e39], (2,), "w"), "not finite"),
        (lambda: ENTRY.array([1, 10**400], (2,), "w"), "not finite"),
    ],
)
def test_what_is_wrong_is_named(call: Any, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        call()


def test_settings_that_are_not_known() -> None:
    with pytest.raises(UnsupportedOp, match="attribute 'f': this setting is not known"):
        ENTRY.refuse_others(set(ENTRY.data) - {"f"})


def test_weights_are_counted() -> None:
    weights = Weights(Entry({"weights": [1, 2, 3]}, "model", "LSTM"))
    assert weights.take((1, 2), "a").tolist() == [[1, 2]]
    with pytest.raises(ModelError, match=r"node 'b' \(LSTM\).*3 weights, which are not enough: \[2\]"):
        weights.take((2,), "b")
    with pytest.raises(ModelError, match="the layers take 2, the file has 3"):
        weights.finish()
    weights.take((1,), "c")
    weights.finish()


def test_parsed_says_what_is_broken() -> None:
    assert parsed(b"\xef\xbb\xbf[1]") == [1]
    with pytest.raises(ModelError, match="broken"):
        parsed(b"[1")
