from __future__ import annotations

import numpy as np
import pytest

from webrnn.checks import arrays
from webrnn.errors import Error

from .onnxruntime_oracle import ints


def _call(op_type, *inputs, **attrs):
    return arrays.call(op_type, "", list(inputs), attrs)[0]


def test_sequences_are_not_changed_in_place():
    one, two = np.float32([1]), np.float32([2])
    sequence = [one]
    assert len(_call("SequenceInsert", sequence, two)) == 2
    assert _call("SequenceInsert", sequence, two, np.array(-1, np.int64))[0] is two
    assert _call("SequenceErase", [one, two])[0] is one
    assert _call("SequenceAt", [one, two], np.array(-1, np.int64)) is two
    assert _call("SequenceLength", sequence) == 1
    assert _call("SequenceEmpty") == []
    assert _call("ConcatFromSequence", [one, two], axis=0, new_axis=1).shape == (2, 1)
    assert [part.tolist() for part in _call("SplitToSequence", ints(1, 2, 3), np.array(2, np.int64))] == [[1, 2], [3]]


def test_optionals():
    assert not _call("OptionalHasElement", None)
    assert not _call("OptionalHasElement")
    assert _call("OptionalHasElement", [])
    with pytest.raises(Error, match="OptionalGetElement"):
        _call("OptionalGetElement", None)


@pytest.mark.parametrize(
    ("op_type", "inputs"),
    [
        ("SequenceAt", ([], np.array(0, np.int64))),
        ("SequenceAt", (np.float32([1]), np.array(0, np.int64))),
        ("SequenceErase", ([],)),
        ("SequenceInsert", ([], np.float32([1]), np.array(1, np.int64))),
        ("SequenceInsert", ([np.float32([1])], np.int32([1]))),
        ("SplitToSequence", (ints(1, 2, 3), np.array(0, np.int64))),
        ("SplitToSequence", (ints(1, 2, 3), ints(1, 1))),
    ],
)
def test_mistakes_raise(op_type, inputs):
    with pytest.raises(Error, match=op_type):
        _call(op_type, *inputs)
