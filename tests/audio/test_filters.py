"""Filters of signals at other rates and of several channels: as many samples out as in, whatever the blocks."""

import numpy as np
import pytest
from hypothesis import given, settings

from tests.audio.cutting import assert_same_bits, by_blocks, lengths_of_blocks, pieces, signal
from tests.models.fetch import model_path as fetch
from webrnn.audio import AudioError, ChannelFilter, FrameFilter, RateFilter, Resampler, mono, plans
from webrnn.errors import OptionError


def copies() -> FrameFilter:
    return FrameFilter(lambda frame: frame / 4, size=512, hop=128)


@pytest.mark.parametrize("rate", [8000, 16000, 44100, 48000])
@settings(max_examples=10, deadline=None)
@given(lengths=lengths_of_blocks)
def test_blocks_change_no_bit(rate, lengths):
    samples = signal(4001)
    whole = by_blocks(RateFilter(copies(), 16000, rate), [samples])
    assert whole.shape == samples.shape
    at_rate = RateFilter(copies(), 16000, rate)
    for _ in range(2):
        assert_same_bits(by_blocks(at_rate, pieces(samples, lengths)), whole)


@pytest.mark.parametrize("rate", [44100, 48000])
def test_it_is_resampled_filtered_and_resampled(rate):
    samples = signal(20000)
    lower = by_blocks(copies(), [by_blocks(Resampler(rate, 16000), [samples])])
    expected = by_blocks(Resampler(16000, rate), [lower])[: len(samples)]
    assert_same_bits(by_blocks(RateFilter(copies(), 16000, rate), [samples]), expected)


@pytest.mark.parametrize("rate", [11025, 44100, 48000, 96000])
@pytest.mark.parametrize("block", [1, 64, 128, 441])
def test_no_block_waits_with_the_latency_and_one_does_with_less(rate, block):
    at_rate = RateFilter(copies(), 16000, rate)
    latency = at_rate.latency(block)
    done, least = 0, latency
    for taken in range(block, 5000 + 100 * block, block):
        done += len(at_rate.push(np.zeros(block, np.float32)))
        least = min(least, latency + done - taken)
    assert least == 0 or (block > 1 and 0 <= least < block), "the end of a period may come later than this signal"


def test_latency_of_plain_frames():
    assert copies().latency(128) == 384
    assert copies().latency(100) == 508
    assert RateFilter(copies(), 16000, 16000).latency(100) == 508
    assert RateFilter(FrameFilter(lambda frame: frame, 65521, 65521), 16000, 44100).latency(128) > 65521


def test_each_channel_is_filtered_alone():
    samples = signal(5000, 2)
    both = ChannelFilter([RateFilter(copies(), 16000, 48000) for _ in range(2)])
    found = by_blocks(both, [samples[:999], samples[999:]])
    for channel in range(2):
        alone = by_blocks(RateFilter(copies(), 16000, 48000), [samples[:, channel]])
        assert_same_bits(np.ascontiguousarray(found[:, channel]), alone)
    assert both.latency() == RateFilter(copies(), 16000, 48000).latency()
    with pytest.raises(AudioError, match=r"where \[samples, 2\] is needed"):
        both.push(samples[:, 0])


def test_a_model_at_another_rate():
    model = plans.dtln(fetch("dtln_1"), fetch("dtln_2"))
    samples = signal(9600, 2)
    both = by_blocks(model.filter(sample_rate=48000, channels=2), [samples])
    assert both.shape == samples.shape
    for channel in range(2):
        alone = by_blocks(model.filter(sample_rate=48000), [samples[:, channel]])
        assert_same_bits(np.ascontiguousarray(both[:, channel]), alone)
    with pytest.raises(OptionError, match="0 channels"):
        model.filter(channels=0)
    with pytest.raises(OptionError, match="too many filters"):
        model.filter(sample_rate=44101)


def test_the_mean_of_channels_is_taken_in_their_order():
    samples = signal(1000, 9)
    total = samples[:, 0]
    for channel in range(1, 9):
        total = total + samples[:, channel]
    assert_same_bits(mono(samples), total / np.float32(9))
    assert_same_bits(mono(samples[:, :1]), np.ascontiguousarray(samples[:, 0]))
