"""Weights of products, packed in panels as the kernels read them."""

from __future__ import annotations

import numpy as np

from webrnn.ir import Dim

from .opcodes import GRAIN, PANEL


def packed_size(n: Dim, k: Dim) -> Dim:
    """Floats of the packed form of a product with n results of k terms; for a size that is not known, at most."""
    return -(-n // GRAIN) * GRAIN * k if isinstance(n, int) else (n + GRAIN - 1) * k


def pack(weights: np.ndarray) -> np.ndarray:
    """[k, n] in panels, as wr_pack_panels writes them.

    >>> pack(np.arange(4, dtype=np.float32).reshape(2, 2))[:3], pack(np.zeros((2, 30))).shape
    (array([0., 1., 0.], dtype=float32), (64,))
    """
    k, n = weights.shape
    width = -(-n // GRAIN) * GRAIN
    padded = np.zeros((k, width), np.float32)
    padded[:, :n] = weights
    return np.concatenate(
        [padded[:, first : first + PANEL].reshape(-1) for first in range(0, width, PANEL)] or [padded.reshape(-1)]
    )
