"""Fourier transforms and windows."""

from __future__ import annotations

from webrnn.errors import ModelError
from webrnn.ir import Dim
from webrnn.reference.dtypes import computing_dtype
from webrnn.shapes.facts import size_of

from .check import ANY, Check, spell
from .registry import check


def _holds_complex(c: Check) -> None:
    """The last axis holds real numbers, or real and imaginary parts."""
    shape = c.shape(0)
    size = shape[-1] if shape else None
    if isinstance(size, int):
        c.that(size in (1, 2), f"the last axis must hold 1 or 2 values (real, imaginary), the shape is {spell(shape)}")
    elif size is not None:
        c.one_is_zero([size - 1, size - 2], f"the last axis of {spell(shape)} must hold 1 or 2 values")


@check("DFT")
def dft(c: Check) -> None:
    c.has_rank(0, "input", 2, ANY)
    _holds_complex(c)
    shape, rank = c.shape(0), c.rank(0)
    length: Dim | None = None
    if c.given(1):
        c.is_single(1, "dft_length")
        length = (c.content(1) or (None,))[0]
    axis: int | None = -2
    if c.given(2):
        c.is_single(2, "axis")
        axis = (c.ints(2) or (None,))[0]
    position = c.axis(axis, rank)
    if position is not None and shape is not None:
        c.that(position != len(shape) - 1, "axis must not be the last one, which holds real and imaginary parts")
        if not c.given(1):
            length = shape[position]
            if length is not None and c.attribute("inverse", 0) and c.attribute("onesided", 0):
                length = 2 * (length - 1)
    c.at_least(length, 1, f"the transform has a length of {length}")
    if c.attribute("onesided", 0) and not c.attribute("inverse", 0) and shape is not None:
        _is_real(c, shape[-1])


def _is_real(c: Check, size: Dim | None) -> None:
    c.equal(size, 1, "the spectrum of a complex signal has no second half to leave out", "onesided")


@check("STFT")
def stft(c: Check) -> None:
    c.has_rank(0, "signal", 2, 3)
    shape = c.shape(0)
    if shape is not None and len(shape) == 3:
        _holds_complex(c)
        if c.attribute("onesided", 1):
            _is_real(c, shape[2])
    c.is_single(1, "frame_step")
    c.that(c.given(2) or c.given(3), "window or frame_length is required", kind=ModelError)
    for step in c.content(1) or ():
        c.at_least(step, 1, f"frame_step is {step}")
    length: Dim | None = None
    window = c.shape(2)
    c.has_rank(2, "window", 1)
    if c.given(3):
        c.is_single(3, "frame_length")
        length = (c.content(3) or (None,))[0]
        if window is not None and length is not None:
            c.has_shape(2, (length,), "window")
    elif window is not None:
        length = size_of(window)
    c.at_least(length, 1, f"frames of {length}")
    if shape is not None:
        c.at_least(shape[1], length, f"frames of {length} do not fit {shape[1]} samples")


@check("HannWindow", "HammingWindow", "BlackmanWindow")
def window(c: Check) -> None:
    c.is_single(0, "size")
    computing_dtype(c.attribute("output_datatype", 1), "output_datatype")
    for size in c.content(0) or ():
        c.at_least(size, 0, f"size is {size}")


@check("MelWeightMatrix")
def mel_weight_matrix(c: Check) -> None:
    computing_dtype(c.attribute("output_datatype", 1), "output_datatype")
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    for index, name in enumerate(names):
        c.is_single(index, name)
    for index, name in enumerate(names[:3]):
        for number in c.content(index) or ():
            c.at_least(number, 1, f"{name} is {number}")
