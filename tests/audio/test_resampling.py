"""Resampling: tones keep their pitch and place, blocks change no bit, and no library is needed to do nothing."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings

from tests.audio.cutting import assert_same_bits, by_blocks, lengths_of_blocks, pieces, signal
from webrnn.audio import AudioError, Resampler, resample
from webrnn.errors import BackendError, OptionError

RATES = [(48000, 16000), (16000, 48000), (44100, 16000), (16000, 44100), (8000, 16000)]


@pytest.mark.parametrize(("before", "after"), RATES)
def test_a_tone_stays_where_it_was(before, after):
    tone = np.sin(2 * np.pi * 440 * np.arange(before) / before).astype(np.float32)
    expected = np.sin(2 * np.pi * 440 * np.arange(after) / after)
    found = resample(tone, before, after)
    assert found.shape == (after,)
    inside = slice(after // 10, -after // 10)
    np.testing.assert_allclose(found[inside], expected[inside], atol=1e-3)


@pytest.mark.parametrize(("before", "after"), RATES)
@pytest.mark.parametrize("channels", [1, 2])
@settings(max_examples=20)
@given(lengths=lengths_of_blocks)
def test_blocks_change_no_bit(before, after, channels, lengths):
    samples = signal(5000, channels)
    resampler = Resampler(before, after, channels)
    for _ in range(2):
        assert_same_bits(by_blocks(resampler, pieces(samples, lengths)), resample(samples, before, after))


def test_equal_rates_need_no_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "soxr", None)
    samples = signal(100)
    same = Resampler(16000, 16000).push(samples)
    assert_same_bits(same, samples)
    assert not np.shares_memory(same, samples)
    with pytest.raises(BackendError, match=r"pip install 'webrnn\[audio\]'"):
        Resampler(48000, 16000)


def test_what_is_refused():
    with pytest.raises(OptionError, match="from 0 Hz"):
        Resampler(0, 16000)
    with pytest.raises(OptionError, match="no quality 'best'"):
        Resampler(48000, 16000, quality="best")
    with pytest.raises(AudioError, match=r"where \[samples, 2\] is needed"):
        Resampler(48000, 16000, channels=2).push(signal(10))


def test_one_channel_as_a_column():
    samples = signal(3000)
    assert_same_bits(resample(samples[:, None], 48000, 16000), resample(samples, 48000, 16000)[:, None])
