"""Small weights: what rounding keeps, and what it does to numbers at the ends of their range."""

import numpy as np
import pytest

from webrnn.reference.small import range_for, small_matrix, small_product, small_table

RNG = np.random.default_rng(3)
FORMS = ("int8", "int16")


def _matrices():
    yield RNG.standard_normal((1, 1))
    for k, n in ((3, 5), (64, 7), (256, 16), (2049, 3), (9000, 2)):
        yield RNG.standard_normal((k, n))
        yield np.ones((k, n))
        huge = RNG.standard_normal((k, n)) * 1e-3
        huge[k // 2] = 1e30
        yield huge


@pytest.mark.parametrize("form", FORMS)
def test_no_sum_can_overflow(form):
    for matrix in _matrices():
        small = small_matrix(matrix.astype(np.float32), form)
        assert small.weights.dtype == form
        assert small.range == range_for(form, len(matrix))
        largest = np.abs(small.weights.astype(np.int64)).sum(axis=0) * small.range
        assert largest.max() < 2**31
        assert np.abs(small.weights.astype(np.int64)).max() <= np.iinfo(form).max


@pytest.mark.parametrize("form", FORMS)
def test_weights_are_the_nearest_multiples_of_their_scale(form):
    """Of int8 a few are the next nearest, so that sums are kept: test_small_rounding.py."""
    matrix = RNG.standard_normal((200, 9)).astype(np.float32)
    small = small_matrix(matrix, form)
    error = np.abs(small.weights * small.scales.astype(np.float64) - matrix)
    assert np.mean(error <= small.scales / 2 * (1 + 1e-6)) > (0.95 if form == "int8" else 1 - 1e-9)
    assert (error < small.scales).all()
    steps = np.abs(matrix).max(axis=0) / small.scales
    assert (steps > (126 if form == "int8" else 2047)).all()


@pytest.mark.parametrize("form", FORMS)
def test_a_column_does_not_depend_on_the_others(form):
    """So products that passes merge or cut give what they gave apart."""
    matrix = RNG.standard_normal((300, 6)).astype(np.float32) * np.float32([1, 100, 1e-3, 1, 0, 1e-35])
    whole = small_matrix(matrix, form)
    for column in range(6):
        alone = small_matrix(matrix[:, [column]], form)
        assert np.array_equal(alone.weights[:, 0], whole.weights[:, column])
        assert alone.scales[0] == whole.scales[column]
        assert alone.range == whole.range
    assert not whole.weights[:, 4:].any()
    assert not whole.scales[4:].any()


@pytest.mark.parametrize("form", FORMS)
def test_the_error_of_a_product_is_that_of_its_roundings(form):
    x, w = RNG.standard_normal((20, 256)).astype(np.float32), RNG.standard_normal((256, 40)).astype(np.float32) / 16
    small = small_matrix(w, form)
    y = small_product(x, small.weights, small.scales, small.range)
    exact = x.astype(np.float64) @ w.astype(np.float64)
    assert np.abs(y - exact).max() < (0.05 if form == "int8" else 0.002)
    rounded_weights = x.astype(np.float64) @ (small.weights * small.scales.astype(np.float64))
    assert np.abs(y - rounded_weights).max() < np.abs(x).max() / small.range * np.abs(w).sum(axis=0).max()


@pytest.mark.parametrize("form", FORMS)
def test_numbers_that_cannot_be_rounded(form):
    small = small_matrix(RNG.standard_normal((8, 3)).astype(np.float32), form)
    x = RNG.standard_normal((6, 8)).astype(np.float32)
    x[1, 3], x[2, 0], x[3], x[4] = np.nan, -np.inf, 0, 2.0**-101
    y = small_product(x, small.weights, small.scales, small.range)
    assert np.isnan(y[1:3]).all()
    assert not y[3:5].any()
    assert np.isfinite(y[[0, 5]]).all()
    assert y[[0, 5]].any()
    largest = np.full((1, 8), np.finfo(np.float32).max)
    assert np.isfinite(small_product(largest / 64, small.weights, small.scales, small.range)).all()


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_a_table_have_scales_of_their_own(form):
    table = RNG.standard_normal((5, 8)).astype(np.float32) * np.float32([[1], [1e-3], [1e6], [0], [1e-35]])
    rows, scales = small_table(table, form)
    assert rows.dtype == form
    assert scales.shape == (5, 1)
    error = np.abs(rows * scales.astype(np.float64) - table)
    assert (error[:3] <= scales[:3] / 2 * (1 + 1e-6)).all()
    assert not rows[3:].any()
