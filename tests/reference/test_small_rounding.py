"""int8 weights keep the sum of each column."""

import numpy as np
import pytest

from webrnn.reference.small import small_matrix


def steps_off(weights, made):
    """Errors of weights in steps."""
    scales = np.where(made.scales > 0, made.scales, 1).astype(np.float64)
    return made.weights - weights / scales


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (128, 40), (1000, 9)])
@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_sums_are_kept_to_half_a_step(shape, mean):
    weights = np.random.default_rng(0).normal(mean, 1, shape).astype(np.float32)
    made = small_matrix(weights, "int8")
    errors = steps_off(weights, made)
    assert np.abs(errors.sum(axis=0)).max() <= 0.5 + 1e-6
    assert np.abs(errors).max() < 1
    assert made.weights.flags.c_contiguous


def test_few_weights_are_turned_and_errors_grow_little():
    weights = np.random.default_rng(1).standard_normal((512, 64)).astype(np.float32)
    made = small_matrix(weights, "int8")
    errors = steps_off(weights, made)
    assert np.mean(np.abs(errors) > 0.5) < 0.02
    assert np.sqrt(np.mean(errors**2)) < 1.01 / np.sqrt(12)


def test_an_operand_with_a_mean_meets_smaller_errors():
    rng = np.random.default_rng(2)
    weights, rows = rng.standard_normal((384, 64)).astype(np.float32), rng.uniform(0, 1, (50, 384))
    made = small_matrix(weights, "int8")
    nearest = np.rint(weights / made.scales.astype(np.float64))
    kept, plain = (np.std(rows @ (each * made.scales.astype(np.float64) - weights)) for each in (made.weights, nearest))
    assert kept < 0.7 * plain


def test_zeros_and_feeble_columns():
    weights = np.zeros((40, 3), np.float32)
    weights[:, 1], weights[3, 2] = 2.0**-110, 5.0
    made = small_matrix(weights, "int8")
    assert made.scales.tolist()[:2] == [0, 0]
    assert not made.weights[:, :2].any()
    assert made.weights[:, 2].tolist() == [0] * 3 + [127] + [0] * 36


def test_extremes_stay_within_eight_bits():
    weights = np.where(np.random.default_rng(3).random((999, 20)) < 0.5, -1.0, 1.0).astype(np.float32)
    weights[::3] *= 0.999
    made = small_matrix(weights, "int8")
    assert np.abs(made.weights.astype(int)).max() <= 127
    assert int(np.abs(made.weights.astype(np.int64)).sum(axis=0).max()) * made.range < 2**31
