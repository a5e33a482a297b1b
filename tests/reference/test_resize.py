"""resize.py and image.py against onnxruntime; detection.py, loss.py and text.py are covered by the node cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webrnn.checks import arrays

from .onnxruntime_oracle import check, ints

COORDINATES = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]


@given(st.sampled_from(["linear", "cubic"]), st.sampled_from(COORDINATES), st.integers(2, 9), st.integers(2, 9))
@settings(max_examples=60, deadline=None)
def test_resize(mode, coordinates, height, width):
    x = np.random.default_rng(0).standard_normal((1, 2, 4, 5)).astype(np.float32)
    attrs = {"mode": mode, "coordinate_transformation_mode": coordinates}
    check("Resize", x, None, None, ints(1, 2, height, width), atol=1e-4, **attrs)


@pytest.mark.parametrize("nearest_mode", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric"])
@pytest.mark.parametrize("scale", [2.0, 0.5, 4.0])
def test_resize_to_the_nearest(nearest_mode, coordinates, scale):
    x = np.random.default_rng(0).standard_normal((1, 2, 4, 8)).astype(np.float32)
    attrs = {"nearest_mode": nearest_mode, "coordinate_transformation_mode": coordinates}
    check("Resize", x, None, np.float32([1, 1, scale, scale]), **attrs)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [0, 1])
def test_grid_sample(mode, padding_mode, align_corners):
    rng = np.random.default_rng(0)
    x, grid = (
        rng.standard_normal((2, 3, 4, 5)).astype(np.float32),
        rng.uniform(-1.5, 1.5, (2, 3, 6, 2)).astype(np.float32),
    )
    check("GridSample", x, grid, mode=mode, padding_mode=padding_mode, align_corners=align_corners, atol=1e-4)


def test_grid_sample_of_an_empty_batch():
    (y,) = arrays.call("GridSample", "", [np.ones((0, 2, 3, 3), np.float32), np.ones((0, 4, 5, 2), np.float32)], {})
    assert y.shape == (0, 2, 4, 5)
