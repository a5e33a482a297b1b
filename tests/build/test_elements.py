from __future__ import annotations

import numpy as np
import pytest

import webrnn
from webrnn.build.elements import BFLOAT16, TYPES_OF_TORCH, shaped, widened


def test_bfloat16_is_the_upper_half_of_a_float() -> None:
    numbers = np.float32([1, -2.5, 0, np.inf, 3e38, 1e-40])
    raw = (numbers.view(np.uint32) >> 16).astype("<u2")
    found = widened(raw, BFLOAT16)
    assert np.array_equal(found.view(np.uint32), numbers.view(np.uint32) & 0xFFFF0000)
    assert np.isnan(widened(np.array([0x7FC0], "<u2"), BFLOAT16)[0])


def test_arrays_are_of_this_machine() -> None:
    for element in TYPES_OF_TORCH.values():
        assert widened(np.zeros(2, element.stored.newbyteorder(">")), element).dtype.isnative


def test_shapes_that_cannot_be() -> None:
    for shape in ((3,), (1,) * 40, (0, 2**62, 2**62)):
        with pytest.raises(webrnn.ModelError, match="tensor 'a'"):
            shaped(np.zeros(2 if shape == (3,) else 1 if len(shape) > 3 else 0), shape, "a")
