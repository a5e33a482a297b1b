from __future__ import annotations

import numpy as np
import pytest

import webrnn
from webrnn.build.weights import Weights, few, floats, require_shape

WEIGHTS = {"enc.rnn.weight": np.ones((2, 3)), "enc.rnn.bias": np.ones(2), "out.weight": np.ones(1)}


def test_what_is_taken_is_used() -> None:
    weights = Weights(WEIGHTS, ".", "a dict")
    assert weights.prefixes() == ["enc.rnn", "out"]
    assert weights.below("enc") == ["rnn.weight", "rnn.bias"]
    assert "out.weight" in weights
    assert weights.unused() == list(WEIGHTS)
    weights["out.weight"]
    assert weights.unused() == ["enc.rnn.weight", "enc.rnn.bias"]


def test_errors_say_what_there_is() -> None:
    weights = Weights(WEIGHTS, ".", "'model.pt'")
    assert str(weights.missing("enc.rnn", "scale")) == (
        "'model.pt' has no 'enc.rnn.scale'; below 'enc.rnn' it has 'weight', 'bias'"
    )
    assert str(weights.missing("enc.rn", "weight")) == (
        "'model.pt' has no weights below 'enc.rn'; did you mean 'enc.rnn'? It has 'enc.rnn', 'out'"
    )
    assert str(weights.unknown("x")) == "'model.pt' has no weights below 'x'. It has 'enc.rnn', 'out'"
    assert few([str(number) for number in range(30)]).endswith("'23' and 6 more")


def test_types_of_weights() -> None:
    assert floats(np.ones(2, np.float16), "a", np.dtype("f4")).dtype == np.float32
    with pytest.raises(webrnn.UnsupportedOp, match="'a' is of type int8"):
        floats(np.ones(2, np.int8), "a", np.dtype("f4"))


@pytest.mark.parametrize(
    ("shape", "needed", "words"),
    [
        ((2, 3), (3, 2), r"'a' is \[2, 3\], it needs to be \[3, 2\]: it is transposed"),
        ((2, 3), (None, 4), r"'a' is \[2, 3\], it needs to be \[\?, 4\]$"),
        ((2,), (2, 1), r"'a' is \[2\], it needs to be \[2, 1\]$"),
    ],
)
def test_wrong_shapes(shape: tuple[int, ...], needed: tuple[int | None, ...], words: str) -> None:
    with pytest.raises(webrnn.ShapeError, match=words):
        require_shape(np.ones(shape), "a", needed)
