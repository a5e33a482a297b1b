"""Fourier transforms of rows, of any length. Complex numbers are pairs of float32 (real, imaginary).

power of two       the instruction `fft`
small              a product with the matrix of the transform
p times a power q  p transforms of q numbers, turned and put together by products with a matrix of p numbers
others             Bluestein: the convolution with a chirp, by transforms of a power of two
"""

from __future__ import annotations

from functools import cache

import numpy as np

from webrnn.ir import Dim
from webrnn.ir.dims import floor_divide

from ..instructions import FFT_SLACK, FFTS, MAX_FFT, MIN_FFT
from ..lowering import Lowering
from ..views import View
from .chirps import Complex, chirp_of, constants, parts, power_for, turns
from .expressions import Register, Writer
from .open_fourier import transform_open

MOST_BY_MATRIX = 64
MOST_PARTS = 75
"""The largest p."""


@cache
def twiddles(n: int, real: bool) -> np.ndarray:
    """The constants of a transform of n numbers, as wasm_kernels/fft.c reads them.

    >>> twiddles(8, False)
    array([ 1.        ,  0.70710677,  0.        , -0.70710677, -0.        ,
           -0.70710677, -1.        , -0.70710677], dtype=float32)
    """
    m = n // 2 if real else n
    return np.concatenate([_circle(m // 2, m), _circle(m, n)] if real else [_circle(m // 2, m)])


def _circle(count: int, turn: int) -> np.ndarray:
    """cos and -sin of the first `count` of `turn` steps around the circle, exact where they are 0."""
    steps = np.arange(count)
    angles = 2 * np.pi * steps / turn
    cosine, sine = np.where(4 * steps == turn, 0, np.cos(angles)), np.sin(angles)
    return np.concatenate([cosine, -sine]).astype(np.float32)


def transform(l: Lowering, kind: str, n: Dim, x: View, y: View) -> None:
    """Rows of x to rows of y, neither with gaps: n samples, or n // 2 + 1 or n pairs."""
    if not isinstance(n, int):
        _open(l, kind, n, x, y)
    elif MIN_FFT <= n <= MAX_FFT and n.bit_count() == 1:
        _by_powers(l, kind, n, x, y)
    elif n <= MOST_BY_MATRIX:
        if kind == "irfft":
            x = l.reshaped(_completed(l, l.reshaped(x, (x.shape[0], n // 2 + 1, 2)), n), (x.shape[0], 2 * n))
        l.emit("gemm", x, l.packed(_matrix(kind, n)), None, y)
    elif 2 * n - 1 <= MAX_FFT:
        _complex(l, kind, n, x, y)
    else:
        raise l.refuse(f"its length of {n} is above {MAX_FFT // 2} and no power of two")


def _by_powers(l: Lowering, kind: str, n: int, x: View, y: View) -> None:
    real = kind in ("rfft", "irfft")
    scratch = l.temporary((4 * ((n // 2 if real else n) + 2 * FFT_SLACK),))
    l.emit("fft", x, l.constant(twiddles(n, real)), y, scratch, FFTS.index(kind))


@cache
def _matrix(kind: str, n: int) -> np.ndarray:
    """What a row is multiplied with."""
    if kind == "rfft":
        return np.fft.rfft(np.eye(n)).view(np.float64).astype(np.float32)
    function = np.fft.fft if kind == "fft" else np.fft.ifft
    numbers = function(np.eye(2 * n).view(np.complex128))
    return (numbers.real if kind == "irfft" else numbers.view(np.float64)).astype(np.float32)


def _open(l: Lowering, kind: str, n: Dim, x: View, y: View) -> None:
    rows, bins = x.shape[0], floor_divide(n, 2) + 1
    if kind == "irfft":
        pairs = _completed(l, l.reshaped(x, (rows, bins, 2)), n)
        transform_open(l, n, pairs, l.reshaped(y, (rows, n, 1)), True)
    else:
        pairs = l.reshaped(x, (rows, n, 1 if kind == "rfft" else 2))
        transform_open(l, n, pairs, l.reshaped(y, (rows, bins if kind == "rfft" else n, 2)), kind == "ifft")


def _complex(l: Lowering, kind: str, n: int, x: View, y: View) -> None:
    """A transform of n pairs, for real ones too: their spectra are completed or cut."""
    rows, bins, inverse = x.shape[0], n // 2 + 1, kind in ("irfft", "ifft")
    pairs = l.reshaped(x, (rows, n if kind != "irfft" else bins, 1 if kind == "rfft" else 2))
    if kind == "rfft":
        pairs = as_complex(l, pairs)
    elif kind == "irfft":
        pairs = _completed(l, pairs, n)
    target = y.reshaped((rows, n, 2)) if kind in ("fft", "ifft") else l.temporary((rows, n, 2))
    assert target is not None
    powers = n & -n
    if powers >= MIN_FFT and n // powers <= MOST_PARTS:
        _by_parts(l, n // powers, powers, pairs, target, inverse)
    else:
        _bluestein(l, n, pairs, target, inverse)
    if kind == "rfft":
        l.copy(target.sliced(1, 0, bins), l.reshaped(y, (rows, bins, 2)))
    elif kind == "irfft":
        l.copy(target.sliced(2, 0, 1), l.reshaped(y, (rows, n, 1)))


def as_complex(l: Lowering, view: View) -> View:
    """[..., 1] as [..., 2] with imaginary parts of 0."""
    pairs = l.temporary((*view.shape[:-1], 2))
    l.emit("fill", pairs, 0.0)
    l.copy(view, pairs.sliced(pairs.rank - 1, 0, 1))
    return pairs


def _completed(l: Lowering, half: View, n: Dim) -> View:
    """The spectrum of n real samples of its first half. The imaginary part of a number that stands for itself is 0."""
    rows, bins, _ = half.shape
    whole = l.temporary((rows, n, 2))
    l.emit("fill", whole, 0.0)
    l.copy(half.sliced(2, 0, 1), whole.sliced(1, 0, bins).sliced(2, 0, 1))
    mirrored = n - floor_divide(n, 2) - 1
    if mirrored != 0:
        l.copy(half.sliced(1, 1, mirrored), whole.sliced(1, 1, mirrored))
        back = half.sliced(1, mirrored, mirrored, -1)
        l.copy(back.sliced(2, 0, 1), whole.sliced(1, n - mirrored, mirrored).sliced(2, 0, 1))
        w = Writer(l)
        turned = w.op("neg", w.view(back.sliced(2, 1, 1)))
        w.write([(whole.sliced(1, n - mirrored, mirrored).sliced(2, 1, 1), turned)])
    return whole


def _multiply(l: Lowering, x: View, factors: Complex, real: View, imaginary: View) -> None:
    """The parts of the products of x[..., 2] and factors; the results may lie where x does."""
    w = Writer(l)
    numbers = [w.view(part) for part in parts(x)]
    others = [w.view(part) for part in factors]

    def product(a: int, b: int) -> Register:
        return w.op("mul", numbers[a], others[b])

    difference = w.op("sub", product(0, 0), product(1, 1))
    w.write([(real, difference), (imaginary, w.op("add", product(0, 1), product(1, 0)))])


def _by_parts(l: Lowering, p: int, q: int, x: View, y: View, inverse: bool) -> None:
    """x[j p + r] for each r is transformed to q numbers; number k of part r, turned by r k steps, are the p numbers
    whose transform are the results k, k + q, k + 2 q ..."""
    rows = x.shape[0]
    sources, spectra = l.temporary((rows * p, 2 * q)), l.temporary((rows * p, 2 * q))
    l.copy(l.reshaped(x, (rows, q, p, 2)).transposed([0, 2, 1, 3]), l.reshaped(sources, (rows, p, q, 2)))
    _by_powers(l, "ifft" if inverse else "fft", q, sources, spectra)
    turned = l.temporary((rows, q, 2, p))
    places = [turned.without_axis(2, index).transposed([0, 2, 1]) for index in (0, 1)]
    turned_by = constants(l, turns(np.outer(np.arange(p), np.arange(q)), p * q, inverse))
    _multiply(l, l.reshaped(spectra, (rows, p, q, 2)), turned_by, *places)
    joined = l.temporary((rows * q, 2 * p))
    matrix = turns(np.outer(np.arange(p), np.arange(p)), p, inverse) / (p if inverse else 1)
    l.emit("gemm", l.reshaped(turned, (rows * q, 2 * p)), l.packed(_real_matrix(matrix)), None, joined)
    l.copy(l.reshaped(joined, (rows, q, p, 2)).transposed([0, 2, 1, 3]), l.reshaped(y, (rows, p, q, 2)))


def _real_matrix(matrix: np.ndarray) -> np.ndarray:
    """For rows of all real parts, then all imaginary ones, to rows of pairs."""
    real, imaginary = (
        np.stack([part.real, part.imag], axis=-1).reshape(len(matrix), -1) for part in (matrix, 1j * matrix)
    )
    return np.concatenate([real, imaginary]).astype(np.float32)


def _bluestein(l: Lowering, n: int, x: View, y: View, inverse: bool) -> None:
    """See chirps.py."""
    rows = x.shape[0]
    chirp = chirp_of(l, n, inverse, twiddles(power_for(n), False))
    m = chirp.m
    padded, spectra = l.temporary((rows, m, 2)), l.temporary((rows, m, 2))
    l.emit("fill", padded, 0.0)
    _multiply(l, x, chirp.first, *parts(padded.sliced(1, 0, n)))
    flat = [l.reshaped(view, (rows, 2 * m)) for view in (padded, spectra)]
    _by_powers(l, "fft", m, *flat)
    _multiply(l, spectra, chirp.wave, *parts(spectra))
    _by_powers(l, "ifft", m, *reversed(flat))
    _multiply(l, padded.sliced(1, 0, n), chirp.last, *parts(y))
