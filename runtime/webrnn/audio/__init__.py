"""What stands around an audio model: frames, spectra, wav files, sample rates. All of it by blocks of any size.

Samples are float32, full scale is 1, and one channel is an array [samples]. Each class takes blocks with `push`, gives
what is complete, and gives the rest with `flush`, after which it starts anew. How a signal is cut into blocks never
changes the result, bit for bit.

>>> import numpy as np
>>> signal = np.sin(np.arange(1000) / 10).astype(np.float32)
>>> half = SpectrumFilter(lambda spectrum: spectrum / 2, size=320, hop=160)
>>> halved = np.concatenate([half.push(signal[:123]), half.push(signal[123:]), half.flush()])
>>> halved.shape, bool(np.allclose(halved, signal / 2, atol=1e-6))
((1000,), True)
"""

from .errors import AudioError
from .fifo import Fifo
from .filters import ChannelFilter, FrameFilter, RateFilter, SpectrumFilter
from .frames import Framer, OverlapAdd
from .resampling import Resampler, resample
from .samples import mono
from .speech import probabilities as speech_probabilities
from .speech import segments, segments_of
from .stft import STFT, InverseSTFT, istft, stft
from .wav import WavReader, WavWriter, read_wav, write_wav
from .windows import window

__all__ = [
    "STFT",
    "AudioError",
    "ChannelFilter",
    "Fifo",
    "FrameFilter",
    "Framer",
    "InverseSTFT",
    "OverlapAdd",
    "RateFilter",
    "Resampler",
    "SpectrumFilter",
    "WavReader",
    "WavWriter",
    "istft",
    "mono",
    "read_wav",
    "resample",
    "segments",
    "segments_of",
    "speech_probabilities",
    "stft",
    "window",
    "write_wav",
]
