"""Where somebody speaks in a recording, by Silero's voice activity detector.

`segments` has the parameters of silero-vad's `get_speech_timestamps` and gives what that gives, without torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from webrnn.errors import OptionError

from .errors import AudioError
from .samples import as_samples

if TYPE_CHECKING:
    from .plans_model import AudioModel, Source

RATE = 16000
WINDOWS = {16000: 512, 8000: 256}
"""Samples of a frame, at each rate that the model takes."""

Segment = dict[str, Any]
"""{"start": ..., "end": ...}, in samples or in seconds."""


def segments(
    samples: Any,
    rate: int = RATE,
    *,
    threshold: float = 0.5,
    min_speech_duration_ms: float = 250,
    max_speech_duration_s: float = math.inf,
    min_silence_duration_ms: float = 100,
    speech_pad_ms: float = 30,
    return_seconds: bool = False,
    time_resolution: int = 1,
    progress_tracking_callback: Callable[[float], None] | None = None,
    neg_threshold: float | None = None,
    min_silence_at_max_speech: float = 98,
    use_max_poss_sil_at_max_speech: bool = True,
    model: Source | None = None,
    backend: str = "auto",
) -> list[Segment]:
    """Where somebody speaks: [{"start": ..., "end": ...}] in samples of `rate`, or in seconds.

    `samples` are one channel at 16 or 8 kHz, or at a multiple of 16 kHz, of which then every second, third, ... sample
    is taken, as silero-vad does; `webrnn.audio.resample` is better. A segment begins with a frame (32 ms) above
    `threshold` and ends where `min_silence_duration_ms` of frames were below `neg_threshold`, by default .15 less. One
    that is no longer than `min_speech_duration_ms` is left out. One that is longer than `max_speech_duration_s` is cut:
    in its longest silence, or in its last one without `use_max_poss_sil_at_max_speech`, if one is longer than
    `min_silence_at_max_speech`. All are made longer by `speech_pad_ms` on both sides. `model` is an .onnx file of
    Silero's, by default the one of `webrnn.models`.

    >>> segments(np.zeros(16000, np.float32))
    []
    """
    given = _one_channel(samples)
    step = rate // RATE if rate > RATE and rate % RATE == 0 else 1
    cutting = _Cutting(
        rate // step,
        threshold,
        neg_threshold,
        min_speech_duration_ms,
        max_speech_duration_s,
        min_silence_duration_ms,
        speech_pad_ms,
        min_silence_at_max_speech,
        use_max_poss_sil_at_max_speech,
    )
    given = np.ascontiguousarray(given[::step])
    found = cutting.of(_probabilities(given, rate // step, model, backend, progress_tracking_callback), len(given))
    return _in_units(found, rate // step, len(given), step, return_seconds, time_resolution)


def probabilities(samples: Any, rate: int = RATE, *, model: Source | None = None, backend: str = "auto") -> np.ndarray:
    """The probability of speech in each frame of 32 ms, of samples at 16 or 8 kHz.

    >>> probabilities(np.zeros(1000, np.float32)).shape
    (2,)
    """
    _window(rate)
    return np.array(_probabilities(_one_channel(samples), rate, model, backend), np.float32)


def segments_of(
    probabilities: Sequence[float] | np.ndarray,
    rate: int = RATE,
    *,
    length: int | None = None,
    threshold: float = 0.5,
    min_speech_duration_ms: float = 250,
    max_speech_duration_s: float = math.inf,
    min_silence_duration_ms: float = 100,
    speech_pad_ms: float = 30,
    return_seconds: bool = False,
    time_resolution: int = 1,
    neg_threshold: float | None = None,
    min_silence_at_max_speech: float = 98,
    use_max_poss_sil_at_max_speech: bool = True,
) -> list[Segment]:
    """What `segments` makes of probabilities, one for each frame; `length` is that of the signal in samples.

    >>> segments_of([0.1, 0.9, 0.9, 0.9, 0.1, 0.1, 0.1, 0.1, 0.1], min_speech_duration_ms=50, speech_pad_ms=0)
    [{'start': 512, 'end': 2048}]
    """
    cutting = _Cutting(
        rate,
        threshold,
        neg_threshold,
        min_speech_duration_ms,
        max_speech_duration_s,
        min_silence_duration_ms,
        speech_pad_ms,
        min_silence_at_max_speech,
        use_max_poss_sil_at_max_speech,
    )
    length = len(probabilities) * _window(rate) if length is None else length
    found = cutting.of([float(probability) for probability in probabilities], length)
    return _in_units(found, rate, length, 1, return_seconds, time_resolution)


def _window(rate: int) -> int:
    if rate not in WINDOWS:
        raise AudioError(f"speech is looked for at 16000 or 8000 Hz, or a multiple of 16000, not {rate}: use resample")
    return WINDOWS[rate]


def _one_channel(samples: Any) -> np.ndarray:
    array = np.asarray(samples)
    if array.ndim > 1 and array.size == max(array.shape):
        array = array.reshape(-1)  # [1, samples], [samples, 1]
    if array.ndim == 2:
        raise AudioError(f"samples of shape {list(array.shape)} have more channels than one: use mono")
    array = as_samples(array)
    if not np.isfinite(array).all():
        raise AudioError(f"sample {int(np.flatnonzero(~np.isfinite(array))[0])} is not finite")
    return array


@lru_cache(maxsize=4)
def _of_the_package(rate: int) -> AudioModel:
    from .plans_speech import silero  # what a model needs is imported when there is one

    return silero(rate=rate)


def _probabilities(
    samples: np.ndarray,
    rate: int,
    model: Source | None,
    backend: str,
    tell: Callable[[float], None] | None = None,
) -> list[float]:
    from .plans_speech import silero

    size = _window(rate)
    frames = (_of_the_package(rate) if model is None else silero(model, rate)).frames(backend)
    found = []
    for first in range(0, len(samples), size):
        frame = samples[first : first + size]
        if len(frame) < size:
            frame = np.concatenate([frame, np.zeros(size - len(frame), np.float32)])
        found.append(float(frames(frame)[0]))
        if tell is not None:
            tell(min(first + size, len(samples)) / len(samples) * 100)
    return found


def _in_units(
    found: list[Segment], rate: int, length: int, step: int, in_seconds: bool, resolution: int
) -> list[Segment]:
    if not in_seconds:
        return [{"start": each["start"] * step, "end": each["end"] * step} for each in found]
    return [
        {
            "start": max(round(each["start"] / rate, resolution), 0),
            "end": min(round(each["end"] / rate, resolution), length / rate),
        }
        for each in found
    ]


@dataclass(frozen=True)
class _Cutting:
    """The rules of `get_speech_timestamps` of silero-vad 6.2.3."""

    rate: int
    threshold: float
    neg_threshold: float | None
    min_speech_ms: float
    max_speech_s: float
    min_silence_ms: float
    pad_ms: float
    min_pause_ms: float
    in_longest_pause: bool

    def __post_init__(self) -> None:
        _window(self.rate)
        for name in ("threshold", "neg_threshold"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise OptionError(f"{name}={value}: a probability is expected")
        for name in ("min_speech_ms", "max_speech_s", "min_silence_ms", "pad_ms", "min_pause_ms"):
            if not getattr(self, name) >= 0:
                raise OptionError(f"a duration of {getattr(self, name)} ({name})")

    def of(self, probabilities: Sequence[float], length: int) -> list[Segment]:
        return self._padded(self._found(probabilities, length), length)

    def _samples(self, ms: float) -> float:
        return self.rate * ms / 1000

    def _found(self, probabilities: Sequence[float], length: int) -> list[Segment]:
        size, threshold = _window(self.rate), self.threshold
        below = max(threshold - 0.15, 0.01) if self.neg_threshold is None else self.neg_threshold
        least, least_silence = self._samples(self.min_speech_ms), self._samples(self.min_silence_ms)
        least_pause = self._samples(self.min_pause_ms)
        most = self.rate * self.max_speech_s - size - 2 * self._samples(self.pad_ms)

        found: list[Segment] = []
        start: int | None = None  # of the segment that is open
        silence = 0  # where it fell silent, 0 if it did not
        last_end = next_start = 0  # of its last pause that was long enough, and where speech went on behind it
        pauses: list[tuple[int, int]] = []  # where it may be cut, and how long it was silent there

        def close(end: int) -> None:
            nonlocal start, silence, last_end, next_start, pauses
            found.append({"start": start, "end": end})
            start, silence, last_end, next_start, pauses = None, 0, 0, 0, []

        for index, probability in enumerate(probabilities):
            at = size * index
            if probability >= threshold and silence:
                if at - silence > least_pause:
                    pauses.append((silence, at - silence))
                silence = 0
                if next_start < last_end:
                    next_start = at
            if start is None:
                if probability >= threshold:
                    start = at
                continue
            if at - start > most:
                if self.in_longest_pause and pauses:
                    end, pause = max(pauses, key=lambda each: each[1])
                    close(end)
                    start = end + pause if pause < at else None
                elif last_end:
                    resumed = next_start if next_start >= last_end else None
                    close(last_end)
                    start = resumed
                else:
                    close(at)
                    continue
            if probability >= below or start is None:
                continue
            silence = silence or at
            if not self.in_longest_pause and at - silence > least_pause:
                last_end = silence
            if at - silence >= least_silence:
                is_long = silence - start > least
                close(silence)
                if not is_long:
                    found.pop()
        if start is not None and length - start > least:
            close(length)
        return found

    def _padded(self, found: list[Segment], length: int) -> list[Segment]:
        """Each is longer on both sides, up to the middle of what lies between two."""
        pad = self._samples(self.pad_ms)
        for place, segment in enumerate(found):
            if place == 0:
                segment["start"] = int(max(0, segment["start"] - pad))
            if place == len(found) - 1:
                segment["end"] = int(min(length, segment["end"] + pad))
                continue
            following = found[place + 1]
            between = following["start"] - segment["end"]
            if between < 2 * pad:
                segment["end"] += int(between // 2)
                following["start"] = int(max(0, following["start"] - between // 2))
            else:
                segment["end"] = int(min(length, segment["end"] + pad))
                following["start"] = int(max(0, following["start"] - pad))
        return found
