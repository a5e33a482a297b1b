"""The geometry that convolutions and pools share: kernels, strides, dilations and pads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from webrnn.errors import ShapeError, UnsupportedOp

from .arrays import Array, Index, require_rank_at_least
from .sizes import check_size


@dataclass(frozen=True)
class Windows:
    """Where windows lie on the spatial axes of an input; each field has one entry for each of these axes."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    output: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.kernel)

    @property
    def extent(self) -> tuple[int, ...]:
        """The length that a dilated kernel covers."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    def pad(self, x: Array, fill: Any) -> Array:
        """The input with its pads, and as much more at the end as a rounded-up last window needs."""
        spatial = x.shape[-self.rank :]
        needed = [max(o - 1, 0) * s + e for o, s, e in zip(self.output, self.strides, self.extent, strict=True)]
        extra = [max(a, n - d - b) for a, n, d, b in zip(self.after, needed, spatial, self.before, strict=True)]
        lengths = [d + b + e for d, b, e in zip(spatial, self.before, extra, strict=True)]
        leading = x.shape[: -self.rank]
        padded = np.full(check_size((*leading, *lengths), x.dtype), fill, x.dtype)
        inner: Index = (..., *(slice(b, b + d) for b, d in zip(self.before, spatial, strict=True)))
        padded[inner] = x
        return padded

    def view(self, padded: Array) -> Array:
        """All windows of a padded input (..., spatial) as a view (..., output, kernel)."""
        axes = tuple(range(-self.rank, 0))
        everything = sliding_window_view(padded, self.extent, axis=axes)
        starts = (slice(0, (o - 1) * s + 1 if o else 0, s) for o, s in zip(self.output, self.strides, strict=True))
        index: Index = (..., *starts, *(slice(None, None, d) for d in self.dilations))
        return everything[index]


def place_windows(
    x: Array,
    kernel: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
) -> Windows:
    """Check the attributes of a convolution or pool over x (batch, channels, spatial...) and complete them."""
    require_rank_at_least(x, 3, "the input")
    spatial = x.shape[2:]
    rank = len(spatial)
    steps = per_axis(strides, 1, rank, "strides")
    spread = per_axis(dilations, 1, rank, "dilations")
    size = per_axis(kernel, 1, rank, "kernel_shape")
    extent = [(k - 1) * d + 1 for k, d in zip(size, spread, strict=True)]
    before, after = split_pads(pads, rank)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        output = tuple(-(-d // s) for d, s in zip(spatial, steps, strict=True))
        total = [max((o - 1) * s + e - d, 0) for o, s, e, d in zip(output, steps, extent, spatial, strict=True)]
        small, large = tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)
        before, after = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
        return Windows(size, steps, spread, before, after, output)
    if auto_pad == "VALID":
        before = after = (0,) * rank
    elif auto_pad != "NOTSET":
        raise UnsupportedOp(f"{auto_pad!r} is not one of NOTSET, SAME_UPPER, SAME_LOWER, VALID", attribute="auto_pad")
    output = tuple(
        _window_count(d, b, a, e, s, ceil_mode)
        for d, b, a, e, s in zip(spatial, before, after, extent, steps, strict=True)
    )
    return Windows(size, steps, spread, before, after, output)


def _window_count(length: int, before: int, after: int, extent: int, stride: int, ceil_mode: int) -> int:
    room = length + before + after - extent
    if room < 0 and not ceil_mode:
        raise ShapeError(f"a window of {extent} does not fit a padded length of {length + before + after}")
    if not ceil_mode:
        return room // stride + 1
    count = -(-room // stride) + 1
    starts_in_the_pads = (count - 1) * stride >= length + before
    if count < 1:
        raise ShapeError(f"a window of {extent} does not fit a padded length of {length + before + after}")
    return count - 1 if starts_in_the_pads else count


def per_axis(values: Sequence[int] | None, default: int, rank: int, name: str) -> tuple[int, ...]:
    if values is None:
        return (default,) * rank
    if len(values) != rank:
        raise ShapeError(f"{list(values)} for {rank} spatial axes", attribute=name)
    if min(values) < 1:
        raise ShapeError(f"{list(values)} must be positive", attribute=name)
    return tuple(int(value) for value in values)


def split_pads(pads: Sequence[int] | None, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """ONNX lists the pads of all starts, then of all ends."""
    if pads is None:
        return (0,) * rank, (0,) * rank
    if len(pads) != 2 * rank:
        raise ShapeError(f"{list(pads)} for {rank} spatial axes", attribute="pads")
    if min(pads) < 0:
        raise UnsupportedOp(f"{list(pads)} has a negative entry", attribute="pads")
    return tuple(pads[:rank]), tuple(pads[rank:])
