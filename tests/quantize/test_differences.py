import numpy as np
import pytest

from webrnn.quantize.differences import Difference, difference, worst

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("found", "expected", "error"),
    [
        ([1, 2], [1, 2], 0),
        ([1, -3], [1, -4], 0.25),
        ([0.5, 0], [0, 0], 0.5),
        ([], [], 0),
        ([NAN, INF], [NAN, INF], 0),
        ([NAN, 1], [1, 1], INF),
        ([1, 1], [NAN, 1], INF),
        ([-INF, 1], [INF, 1], INF),
    ],
)
def test_floats(found, expected, error):
    assert difference(np.float32(found), np.float32(expected)).error == error


def test_half_floats_do_not_overflow():
    assert difference(np.float16([60000]), np.float16([-60000])).error == 2


def test_what_is_not_of_floats_counts_by_the_share_that_changed():
    assert difference(np.int64([1, 2, 3, 4]), np.int64([1, 2, 3, 9])).error == 0.25
    assert difference(np.array([True, False]), np.array([True, True])).error == 0.5


def test_results_of_another_shape_are_entirely_wrong():
    assert difference(np.zeros(2), np.zeros(3)).error == INF
    assert difference(np.zeros((2, 1)), np.zeros(2)).error == INF


def test_sequences_and_optional_outputs():
    assert difference([np.float32([1])], [np.float32([2])]).error == 0.5
    assert difference([], [np.float32([2])]).error == INF
    assert difference(None, None).error == 0


def test_the_worst_of_several_runs():
    runs = [[Difference(1, 10), Difference(3, 1)], [Difference(2, 10), Difference(1, 1)]]
    assert worst(runs) == [Difference(2, 10), Difference(3, 1)]
