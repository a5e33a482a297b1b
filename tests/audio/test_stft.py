"""STFT, its inverse and the filters: against the FFT of each frame, the signal comes back, blocks change no bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.audio.cutting import assert_same_bits, by_blocks, lengths_of_blocks, pieces, signal
from webrnn.audio import STFT, AudioError, FrameFilter, InverseSTFT, SpectrumFilter, istft, stft, window
from webrnn.errors import OptionError

shapes = st.sampled_from(
    [
        (512, 128, "rect", None),
        (512, 128, "hann", None),
        (320, 160, "sqrt-hann", None),
        (320, 160, "hamming", 512),
        (400, 160, "hann", 512),
        (37, 11, "hamming", None),
        (320, 160, np.sqrt(np.hanning(320)), 320),
        (8, 8, "rect", 9),
    ]
)


@given(shapes, st.integers(0, 3000))
def test_spectra_are_those_of_each_frame(shape, n):
    size, hop, kind, n_fft = shape
    samples = signal(n).astype(np.float64)
    padded = np.concatenate([np.zeros(size - hop), samples, np.zeros(size + hop)])
    n_frames = -(-(n + size - hop) // hop) if n else 0
    frames = [padded[k * hop : k * hop + size] * window(kind, size) for k in range(n_frames)]
    expected = np.fft.rfft(np.reshape(frames, (n_frames, size)), n_fft or size)
    found = stft(samples, size, hop, kind, n_fft)
    assert found.dtype == np.complex64
    np.testing.assert_allclose(found, expected, atol=2e-5)


@given(shapes, st.integers(0, 3000))
def test_there_and_back(shape, n):
    size, hop, kind, n_fft = shape
    samples = signal(n)
    back = istft(stft(samples, size, hop, kind, n_fft), size, hop, kind, n_fft)
    np.testing.assert_allclose(back[:n], samples, atol=2e-6)
    assert np.abs(back[n:]).max(initial=0) < 2e-6, "behind the signal are zeros"
    assert istft(stft(samples, size, hop, kind, n_fft), size, hop, kind, n_fft, length=n).shape == (n,)


@given(shapes, lengths_of_blocks, lengths_of_blocks)
def test_blocks_change_no_bit(shape, lengths, others):
    size, hop, kind, n_fft = shape
    samples = signal(3000)
    whole = stft(samples, size, hop, kind, n_fft)
    stream = STFT(size, hop, kind, n_fft)
    for _ in range(2):
        assert_same_bits(by_blocks(stream, pieces(samples, lengths)), whole)
    inverse = InverseSTFT(size, hop, kind, n_fft)
    for _ in range(2):
        assert_same_bits(by_blocks(inverse, pieces(whole, others)), istft(whole, size, hop, kind, n_fft))


@given(shapes, st.integers(0, 3000), lengths_of_blocks)
def test_filters_give_as_many_samples_as_they_get(shape, n, lengths):
    size, hop, kind, n_fft = shape
    samples = signal(n)
    same = SpectrumFilter(lambda spectrum: spectrum, size, hop, kind, n_fft)
    whole = by_blocks(same, [samples])
    np.testing.assert_allclose(whole, samples, atol=2e-6)
    for _ in range(2):
        assert_same_bits(by_blocks(same, pieces(samples, lengths)), whole)


@given(st.integers(0, 2000), lengths_of_blocks)
def test_a_frame_filter_calls_its_function_frame_by_frame(n, lengths):
    samples, seen = signal(n), []
    frame_filter = FrameFilter(lambda frame: seen.append(frame.copy()) or frame / 4, 512, 128)
    np.testing.assert_allclose(by_blocks(frame_filter, pieces(samples, lengths)), samples, atol=1e-6)
    assert len(seen) == (-(-(n + 384) // 128) if n else 0)
    for index, frame in enumerate(seen[: n // 128]):
        assert_same_bits(frame[384:], samples[index * 128 : (index + 1) * 128])


def test_a_filter_delays_no_more_than_it_says():
    frame_filter = FrameFilter(lambda frame: frame, 512, 128)
    out = 0
    for n_in in range(1, 1200):
        out += len(frame_filter.push(np.ones(1, np.float32)))
        assert n_in - out <= 512


def test_windows():
    assert window("sqrt-hann", 8) ** 2 == pytest.approx(window("hann", 8))
    assert window("hann", 6)[1:] == pytest.approx(np.hanning(7)[1:6])
    assert window("hamming", 6) == pytest.approx(np.hamming(7)[:6])
    with pytest.raises(OptionError, match="no window 'kaiser'; there are hann"):
        window("kaiser", 8)
    with pytest.raises(OptionError, match="for frames of 9"):
        window(np.ones(8), 9)


def test_what_cannot_be_undone_is_refused():
    with pytest.raises(OptionError, match="leaves out samples"):
        InverseSTFT(512, 512, "hann")
    with pytest.raises(OptionError, match="an FFT of 256 for frames of 512"):
        STFT(512, 128, n_fft=256)
    with pytest.raises(AudioError, match="257 bins are needed"):
        InverseSTFT(512, 128).push(np.zeros((3, 256), np.complex64))
