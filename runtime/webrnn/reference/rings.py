"""Ring, an op of streams: the frames that were, kept in a ring, and the windows of them and of the new ones."""

from __future__ import annotations

import numpy as np

from .arrays import Array


def ring(
    ring: Array,
    rows: Array,
    position: Array,
    *,
    axis: int,
    rate: int,
    history: int,
    kernel: int = 1,
    dilation: int = 1,
    stride: int = 1,
    more: int = 0,
) -> tuple[Array, Array]:
    """The next ring, and windows of the last `history` frames and of the new ones.

    Frame j of a stream is in slot j mod slots of `ring[..., slots, ...]`; `rows` are the frames from
    `position * rate` on. `position` has one number, or one for each element of the first axis. Window w is the frames
    `w * stride + k * dilation` for k below `kernel`, counted from the first of the history; windows lie side by side,
    `frames // stride + more` of them.

    >>> import numpy as np
    >>> following, windows = ring(np.array([[8, 9, 6, 7]]), np.array([[10]]), np.array([10]), axis=1, rate=1,
    ...                           history=2, kernel=2, dilation=2)
    >>> following.tolist(), windows.tolist()
    ([[8, 9, 10, 7]], [[8, 10]])
    """
    old, new = np.moveaxis(ring, axis, 1), np.moveaxis(rows, axis, 1)
    batch, slots, frames = old.shape[0], old.shape[1], new.shape[1]
    first = np.broadcast_to(position, (batch,)) % slots * (rate % slots)
    rows_of = np.arange(batch)[:, None]
    before = old[rows_of, (first[:, None] + np.arange(-history, 0)) % slots]
    there = np.concatenate([before, new], 1)
    starts = np.arange(frames // stride + more) * stride
    windows = there[:, (starts[:, None] + np.arange(kernel) * dilation).reshape(-1)]
    following = old.copy()
    kept = np.arange(max(frames - slots, 0), frames)
    following[rows_of, (first[:, None] + kept) % slots] = new[:, kept]
    return np.moveaxis(following, 1, axis), np.moveaxis(windows, 1, axis)
