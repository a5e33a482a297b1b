"""Fourier transforms, windows and the mel filter bank. Complex values are a last axis of (real, imaginary)."""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from webrnn.errors import ModelError, ShapeError

from .arrays import Array, normalize_axis, require_shape, single, widen
from .dtypes import FLOAT, computing_dtype
from .registry import op
from .sizes import check_size


@op("DFT")
def dft(
    x: Array, dft_length: Array | None = None, axis: Array | None = None, *, inverse: int = 0, onesided: int = 0
) -> Array:
    """onesided keeps the first half of the spectrum, or with `inverse` expects only that and gives a real signal."""
    position = normalize_axis(-2 if axis is None else single(axis, "axis"), x.ndim)
    if position == x.ndim - 1:
        raise ShapeError("axis must not be the last one, which holds real and imaginary parts")
    signal = _to_complex(x)
    length = signal.shape[position] if dft_length is None else single(dft_length, "dft_length")
    if inverse and onesided and dft_length is None:
        length = 2 * (signal.shape[position] - 1)
    if length < 1:
        raise ShapeError(f"the transform has a length of {length}")
    check_size([length if i == position else dim for i, dim in enumerate(x.shape)], np.complex128)
    if inverse and onesided:
        return np.fft.irfft(signal, length, position)[..., None].astype(x.dtype)
    if inverse:
        return _from_complex(np.fft.ifft(signal, length, position), x)
    if onesided:
        if np.iscomplexobj(signal):
            raise ModelError("the spectrum of a complex signal has no second half to leave out", attribute="onesided")
        return _from_complex(np.fft.rfft(signal, length, position), x)
    return _from_complex(np.fft.fft(signal, length, position), x)


def _to_complex(x: Array) -> Array:
    wide = widen(x).astype(np.float64, copy=False)
    if x.shape[-1] == 1:
        return wide[..., 0]
    if x.shape[-1] == 2:
        return wide[..., 0] + 1j * wide[..., 1]
    raise ShapeError(f"the last axis must hold 1 or 2 values (real, imaginary), the shape is {list(x.shape)}")


def _from_complex(spectrum: Array, like: Array) -> Array:
    return np.stack([spectrum.real, spectrum.imag], axis=-1).astype(like.dtype)


@op("STFT")
def stft(
    signal: Array,
    frame_step: Array,
    window: Array | None = None,
    frame_length: Array | None = None,
    *,
    onesided: int = 1,
) -> Array:
    """signal is (batch, samples) or (batch, samples, 1 or 2); the result (batch, frames, bins, 2)."""
    samples = _to_complex(signal if signal.ndim != 2 else signal[..., None])
    step = single(frame_step, "frame_step")
    if frame_length is not None:
        length = single(frame_length, "frame_length")
    elif window is not None:
        length = window.size
    else:
        raise ModelError("window or frame_length is required")
    if not 1 <= length <= samples.shape[1] or step < 1:
        raise ShapeError(f"frames of {length} every {step} do not fit {samples.shape[1]} samples")
    frames = sliding_window_view(samples, length, axis=1)[:, ::step]
    if window is not None:
        require_shape(window, (length,), "window")
        frames = frames * window
    check_size((*frames.shape, 2), np.float64)
    if onesided:
        if np.iscomplexobj(samples):
            raise ModelError("the spectrum of a complex signal has no second half to leave out", attribute="onesided")
        return _from_complex(np.fft.rfft(frames, axis=-1), signal)
    return _from_complex(np.fft.fft(frames, axis=-1), signal)


@op("HannWindow")
def hann_window(size: Array, *, output_datatype: int = FLOAT, periodic: int = 1) -> Array:
    return _cosine_window((0.5, -0.5), size, output_datatype, periodic)


@op("HammingWindow")
def hamming_window(size: Array, *, output_datatype: int = FLOAT, periodic: int = 1) -> Array:
    return _cosine_window((25 / 46, -21 / 46), size, output_datatype, periodic)


@op("BlackmanWindow")
def blackman_window(size: Array, *, output_datatype: int = FLOAT, periodic: int = 1) -> Array:
    return _cosine_window((0.42, -0.5, 0.08), size, output_datatype, periodic)


def _cosine_window(weights: tuple[float, ...], size: Array, output_datatype: int, periodic: int) -> Array:
    """The sum of weights[k] cos(2 pi k n / N). A symmetric window of one sample is 0 / 0, as in ONNX's function."""
    dtype = computing_dtype(output_datatype, "output_datatype")
    count = single(size, "size")
    check_size((count,), np.float64)
    period = np.float64(count if periodic else count - 1)
    angle = 2 * math.pi * np.arange(count) / period
    total = np.zeros(count)
    for k, weight in enumerate(weights):
        total += weight * np.cos(k * angle)
    return total.astype(dtype)


@op("MelWeightMatrix")
def mel_weight_matrix(
    num_mel_bins: Array,
    dft_length: Array,
    sample_rate: Array,
    lower_edge_hertz: Array,
    upper_edge_hertz: Array,
    *,
    output_datatype: int = FLOAT,
) -> Array:
    """Triangular filters (spectrogram bins, mel bins), whose corners lie on whole bins, evenly spaced in mel."""
    dtype = computing_dtype(output_datatype, "output_datatype")
    bands, length = single(num_mel_bins, "num_mel_bins"), single(dft_length, "dft_length")
    rate = single(sample_rate, "sample_rate")
    if bands < 1 or length < 1 or rate < 1:
        raise ShapeError(f"{bands} mel bins, a DFT of {length} and a sample rate of {rate} must be positive")
    bins = length // 2 + 1
    weights = np.zeros(check_size((bins, bands), np.float64))
    low, high = (_hertz_to_mel(single(f, "edge")) for f in (lower_edge_hertz, upper_edge_hertz))
    mel = low + np.arange(bands + 2) * (high - low) / (bands + 2)
    corners = ((length + 1) * _mel_to_hertz(mel) // rate).astype(np.int64)
    if corners.min() < 0 or corners[:-1].max() >= bins or corners[-1] > bins:
        raise ShapeError("the edges lie outside the spectrum")
    for band in range(bands):
        left, centre, right = corners[band : band + 3].tolist()
        if left == centre:
            weights[centre, band] = 1
        else:
            rising = np.arange(left, centre + 1)
            weights[rising, band] = (rising - left) / (centre - left)
        if right > centre:
            falling = np.arange(centre, right)
            weights[falling, band] = (right - falling) / (right - centre)
    return weights.astype(dtype)


def _hertz_to_mel(frequency: float) -> float:
    return 2595 * math.log10(1 + frequency / 700)


def _mel_to_hertz(mel: Array) -> Array:
    return 700 * (np.power(10, mel / 2595) - 1)
