"""Fourier transforms: a transform is linear, and it goes back as the other one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webrnn.ir import Value

from ..registry import Pull, rule

Found = Sequence[Value | None]


@rule("DFT")
def dft(g: Pull) -> Found:
    b, x = g.b, g.x(0)
    rank, is_inverse = b.rank(x), bool(g.attr("inverse", 0))
    given = g.ints(2, "axes") if g.operand(2) is not None else [-2]
    axis = given[0] % rank
    size, parts = b.shape(x)[axis], b.shape(x)[-1]
    length = g.ints(1, "sizes")[0] if g.operand(1) is not None else size
    if not isinstance(length, int) or parts not in (1, 2):
        raise g.refusal("its size is known only while it runs")
    if is_inverse and g.attr("onesided", 0):
        return _signal_of_half(g, axis, length if g.operand(1) is not None else 2 * (length - 1))
    d = b.padded(g.d, axis, 0, b.arithmetic("Sub", length, b.size(g.d, axis)))
    made = b.op("DFT", d, b.constant(length), b.constant(axis), inverse=int(not is_inverse))
    made = b.times(made, 1 / length if is_inverse else length)
    if parts == 1:
        made = b.sliced(made, rank - 1, 0, 1)
    return [_resized(g, made, axis, length)]


def _signal_of_half(g: Pull, axis: int, length: int) -> Found:
    """All bins of a half but the first, and the last of an even length, count twice: for the half that is not there."""
    b, x = g.b, g.x(0)
    counts = np.full(length // 2 + 1, 2 / length)
    counts[0] = 1 / length
    if length % 2 == 0:
        counts[-1] = 1 / length
    spectrum = b.op("DFT", g.d, b.constant(length), b.constant(axis), onesided=1)
    along = [-1 if other == axis else 1 for other in range(b.rank(x))]
    share = b.constant(counts.astype(b.dtype(x).array_type).reshape(along), "share")
    made = b.op("Mul", spectrum, share)
    if b.shape(x)[-1] == 1:
        made = b.sliced(made, b.rank(x) - 1, 0, 1)
    return [_resized(g, made, axis, len(counts))]


def _resized(g: Pull, made: Value, axis: int, count: int) -> Value:
    """So many elements as the operand has: zeros for those that a transform has left out."""
    size = g.b.size(g.x(0), axis)
    if size == count:
        return made
    taken = g.b.arithmetic("Min", size, count)
    return g.b.padded(g.b.sliced(made, axis, 0, taken), axis, 0, g.b.arithmetic("Sub", size, taken))


@rule("STFT")
def stft(g: Pull) -> Found:
    """Frames, times the window, and a transform of each."""
    b, signal, window = g.b, g.x(0), g.operand(2)
    step, samples = g.ints(1, "steps")[0], b.shape(signal)[1]
    length = b.shape(window)[0] if window is not None else g.ints(3, "sizes")[0]
    if not isinstance(length, int):
        raise g.refusal("how long its frames are is known only while it runs")
    if isinstance(samples, int):
        places = b.constant(np.arange(0, samples - length + 1, step)[:, None] + np.arange(length))
    else:
        behind = b.arithmetic("Sub", b.size(signal, 1), length - 1)
        zero, by = b.constant(np.int64(0)), b.constant(np.int64(step))
        starts = b.op("Range", zero, b.op("Squeeze", b.as_value(behind), b.ints(0)), by)
        places = b.op("Add", b.op("Unsqueeze", starts, b.ints(1)), b.ints(*range(length)))

    def forward() -> Value:
        whole = signal if b.rank(signal) == 3 else b.op("Unsqueeze", signal, b.ints(2))
        frames = b.op("Gather", whole, places, axis=1)
        if window is not None:
            frames = b.op("Mul", frames, b.op("Unsqueeze", window, b.ints(1)))
        return b.op("DFT", frames, None, b.constant(2), onesided=int(g.number("onesided", 1)))

    return g.through(forward)
