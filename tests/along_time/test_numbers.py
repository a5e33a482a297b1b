"""What is known of values that count frames."""

import numpy as np
import pytest

from webrnn.along_time.kinds import Along, Fault
from webrnn.along_time.numbers import Numbers, numbers_of
from webrnn.along_time.paces import STRIDES
from webrnn.ir import DType, Node, Value

FRAMES, OTHER, FIXED = Value("frames"), Value("other"), Value("fixed")
KNOWN = {FRAMES: Numbers(np.array([3]), np.array([5])), OTHER: Numbers(np.array([0]), np.array([1]))}
CONSTANTS = {FIXED: np.array([[0, 10, 20]])}
M = STRIDES


def made(op, *inputs, shape=(M,), along=None, **attrs):
    return numbers_of(Node(op, list(inputs), [Value("made")], attrs), KNOWN, CONSTANTS, shape, along or Along(0))


def test_they_grow_by_the_same_step_everywhere():
    assert KNOWN[FRAMES].step == 2
    assert Numbers(np.array([0, 0]), np.array([1, 2])).step is None


@pytest.mark.parametrize(
    ("op", "inputs", "shape", "first", "step"),
    [
        ("Add", (FRAMES, OTHER), (M,), [3], 3),
        ("Sub", (FRAMES, OTHER), (M,), [3], 1),
        ("Unsqueeze", (FRAMES, FIXED), (M, 1), [[3]], 2),
        ("Reshape", (FRAMES, FIXED), (M, 1, 1), [[[3]]], 2),
        ("Mul", (FRAMES, OTHER), (M,), None, None),
        ("Sin", (FRAMES,), (M,), None, None),
        ("Reshape", (FRAMES, FIXED), (M, 2), None, None),
    ],
)
def test_arithmetic_and_shapes(op, inputs, shape, first, step):
    found = made(op, *inputs, shape=shape)
    assert (found is None) == (first is None)
    if found is not None:
        assert (found.first.tolist(), found.step) == (first, step)


def test_constants_beside_frames():
    known = {FRAMES: KNOWN[FRAMES].both(lambda array: array[:, None])}
    node = Node("Add", [FRAMES, FIXED], [Value("made")])
    found = numbers_of(node, known, CONSTANTS, (M, 3), Along(0))
    assert (found.first.tolist(), found.step) == ([[3, 13, 23]], 2)


def test_only_whole_numbers():
    assert made("Cast", FRAMES, to=DType.INT32) is KNOWN[FRAMES]
    assert made("Cast", FRAMES, to=DType.FLOAT) is None


@pytest.mark.parametrize("along", [Along(), Along(0, inner=2), Along(0, fault=Fault("n", "Add", "no"))])
def test_not_without_frames_of_their_own(along):
    assert made("Identity", FRAMES, along=along) is None
