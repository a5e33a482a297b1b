"""The ops Random and Choose of webrnn's own domain.

Random numbers are a function of a seed and of how many were drawn before, which `onnx/random.py` counts.
"""

from __future__ import annotations

import numpy as np

from . import exact
from .arrays import Array, int_list, single
from .sizes import check_size


def random(counter: Array, shape: Array, *, seed: int, normal: int = 0) -> Array:
    """float32 of a shape: uniform from 0 to below 1, or normal."""
    sizes = int_list(shape, "shape")
    check_size(sizes, np.float64)
    bits = exact.random_bits(seed, single(counter, "counter"), int(np.prod(sizes, dtype=np.int64)))
    return (exact.normal if normal else exact.uniform)(bits).reshape(sizes)


def choose(scores: Array, numbers: Array) -> Array:
    """For uniform numbers[batch, n] the classes that they choose of logarithms of weights[batch, classes]."""
    shifted = scores.astype(np.float64) - np.max(scores, axis=1, keepdims=True, initial=-np.inf)
    sums = np.cumsum(exact.exact_exp(shifted), axis=1)
    limits = numbers.astype(np.float64) * sums[:, -1:]
    classes = np.count_nonzero(sums[:, None, :] <= limits[:, :, None], axis=2)
    return np.minimum(classes, scores.shape[1] - 1).astype(np.int64)
