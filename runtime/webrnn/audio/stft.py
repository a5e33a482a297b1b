"""The short-time Fourier transform and its inverse."""

from __future__ import annotations

from typing import Any

import numpy as np

from webrnn.errors import OptionError

from .errors import AudioError
from .frames import Framer, OverlapAdd, require_frames
from .windows import Window, dual_window, window


class Transform:
    """Frames [..., size] to spectra [..., bins] and back."""

    def __init__(self, size: int, hop: int, kind: Window, n_fft: int | None):
        require_frames(size, hop)
        self.size, self.hop, self.n_fft = size, hop, size if n_fft is None else n_fft
        if self.n_fft < size:
            raise OptionError(f"an FFT of {n_fft} for frames of {size}")
        self.n_bins = self.n_fft // 2 + 1
        self._analysis = window(kind, size)
        self._synthesis = dual_window(self._analysis, hop)

    def forward(self, frames: np.ndarray) -> np.ndarray:
        return np.fft.rfft(frames * self._analysis, self.n_fft)

    def backward(self, spectra: Any) -> np.ndarray:
        """Windowed frames that overlap-add to the signal."""
        spectra = np.asarray(spectra, np.complex64)
        if spectra.shape[-1:] != (self.n_bins,):
            raise AudioError(f"spectra of shape {list(spectra.shape)} where {self.n_bins} bins are needed")
        return np.fft.irfft(spectra, self.n_fft)[..., : self.size] * self._synthesis


class STFT:
    """Spectra of frames of `size` samples, one every `hop`; the first hop samples complete the first frame.

    >>> stft = STFT(size=320, hop=160)
    >>> spectra = stft.push(np.ones(1000, np.float32))
    >>> spectra.shape, spectra.dtype
    ((6, 161), dtype('complex64'))
    >>> stft.flush().shape
    (2, 161)

    `window` is "hann", "sqrt-hann", "hamming", "rect" or an array; frames are filled up with zeros to `n_fft`.
    """

    def __init__(self, size: int, hop: int, window: Window = "sqrt-hann", n_fft: int | None = None):
        self._transform = Transform(size, hop, window, n_fft)
        self._framer = Framer(size, hop)

    def push(self, samples: Any) -> np.ndarray:
        """The spectra [frames, bins] that these samples complete."""
        return self._transform.forward(self._framer.push(samples))

    def flush(self) -> np.ndarray:
        """The spectra that remain, with zeros behind the signal until its last sample has left the frames."""
        return self._transform.forward(self._framer.flush(tail=self._framer.lead))


class InverseSTFT:
    """The signal of the spectra of an `STFT` with the same arguments.

    >>> signal = np.cos(np.arange(500)).astype(np.float32)
    >>> there, back = STFT(256, 64, "hann"), InverseSTFT(256, 64, "hann")
    >>> again = np.concatenate([back.push(there.push(signal)), back.push(there.flush())])
    >>> bool(np.allclose(again[:500], signal, atol=1e-6))
    True

    It undoes the window, whichever that is: samples that all frames leave as they are come back as they were. They
    come size - hop samples late; the zeros that filled the last frame come behind the signal.
    """

    def __init__(self, size: int, hop: int, window: Window = "sqrt-hann", n_fft: int | None = None):
        self._transform = Transform(size, hop, window, n_fft)
        self._add = OverlapAdd(size, hop, lead=size - hop)

    def push(self, spectra: Any) -> np.ndarray:
        """The samples that no later spectrum changes."""
        return self._add.push(self._transform.backward(spectra))

    def flush(self) -> np.ndarray:
        """The last size - hop samples: zeros, after the spectra of `STFT.flush`."""
        return self._add.flush()


def stft(samples: Any, size: int, hop: int, window: Window = "sqrt-hann", n_fft: int | None = None) -> np.ndarray:
    """The spectra [frames, bins] of a whole signal, as `STFT` gives them.

    >>> stft(np.ones(1000, np.float32), 320, 160).shape
    (8, 161)
    """
    stream = STFT(size, hop, window, n_fft)
    return np.concatenate([stream.push(samples), stream.flush()])


def istft(
    spectra: Any,
    size: int,
    hop: int,
    window: Window = "sqrt-hann",
    n_fft: int | None = None,
    length: int | None = None,
) -> np.ndarray:
    """The signal of all spectra of `stft`, cut to `length` samples.

    >>> signal = np.cos(np.arange(500)).astype(np.float32)
    >>> bool(np.allclose(istft(stft(signal, 256, 64), 256, 64, length=500), signal, atol=1e-6))
    True
    """
    stream = InverseSTFT(size, hop, window, n_fft)
    return np.concatenate([stream.push(spectra), stream.flush()])[:length]
