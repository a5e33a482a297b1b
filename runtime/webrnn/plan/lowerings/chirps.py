"""What Bluestein's transform of n numbers takes.

-2 j k = (k - j)^2 - j^2 - k^2: numbers that are turned by a chirp are convolved with one, and turned again. The
convolution is a product of transforms of m numbers, a power of two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..instructions import MIN_FFT
from ..lowering import Lowering
from ..views import View

Complex = tuple[View, View]
"""Real and imaginary parts."""


@dataclass(frozen=True)
class Chirp:
    m: int
    twiddles: View
    """Of the transforms of m numbers."""
    first: Complex
    """What the n numbers are multiplied with."""
    wave: Complex
    """The spectrum of what they are convolved with, m numbers."""
    last: Complex
    """What the results are multiplied with."""


def turns(steps: np.ndarray, turn: int, inverse: bool) -> np.ndarray:
    """exp(-2 pi i steps / turn), or its conjugate."""
    angles = 2 * np.pi * (steps % turn) / turn
    return np.cos(angles) + (1j if inverse else -1j) * np.sin(angles)


def constants(l: Lowering, numbers: np.ndarray) -> Complex:
    real, imaginary = (l.constant(np.ascontiguousarray(part, np.float32)) for part in (numbers.real, numbers.imag))
    return real, imaginary


def parts(pairs: View) -> Complex:
    last = pairs.rank - 1
    return pairs.without_axis(last, 0), pairs.without_axis(last, 1)


def chirp_of(l: Lowering, n: int, inverse: bool, twiddles: np.ndarray) -> Chirp:
    m, steps = power_for(n), np.arange(n, dtype=np.int64)
    chirp = turns(steps * steps, 2 * n, inverse)
    wave = np.zeros(m, np.complex128)
    wave[:n] = chirp.conj()
    wave[m - n + 1 :] = chirp.conj()[:0:-1]
    spectrum = constants(l, np.fft.fft(wave))
    return Chirp(m, l.constant(twiddles), constants(l, chirp), spectrum, constants(l, chirp / (n if inverse else 1)))


def power_for(n: int) -> int:
    return max(1 << (2 * n - 2).bit_length(), MIN_FFT)
