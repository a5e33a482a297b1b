"""Resampling: its quality in numbers, tones keep their pitch and place, blocks change no bit, and so does no build."""

import numpy as np
import pytest
from hypothesis import given, settings

from tests.audio.cutting import assert_same_bits, by_blocks, lengths_of_blocks, pieces, signal
from wasm_kernels import naive
from webrnn.audio import AudioError, Resampler, resample
from webrnn.audio.resampling import filter_size
from webrnn.engine.kernels import loading
from webrnn.errors import OptionError

RATES = [(48000, 16000), (16000, 48000), (44100, 16000), (16000, 44100), (8000, 16000)]
ALL_RATES = (8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000, 88200, 96000, 192000)


def sweep(rate: int, top: float, seconds: float = 2) -> np.ndarray:
    time = np.arange(int(rate * seconds)) / rate
    return np.sin(2 * np.pi * (20 * time + (top - 20) * time**2 / (2 * seconds))).astype(np.float32)


def decibels(ratio: float) -> float:
    return float(20 * np.log10(ratio))


@pytest.mark.parametrize("rate", [44100, 48000, 96000])
def test_a_sweep_there_and_back(rate):
    samples = sweep(rate, 0.9 * 8000)
    back = resample(resample(samples, rate, 16000), 16000, rate)
    assert len(back) == pytest.approx(len(samples), abs=rate // 16000)
    inside = slice(rate // 50, -rate // 50)
    error = (back[: len(samples)][inside] - samples[inside]).astype(np.float64)
    assert decibels(samples[inside].std() / error.std()) > 100
    # at its worst, which is near the end of the pass band
    windows = error[: len(error) // 1000 * 1000].reshape(-1, 1000)
    assert decibels(0.5**0.5 / np.sqrt((windows**2).mean(axis=1).max())) > 92


@pytest.mark.parametrize("rate", [44100, 48000])
def test_images_are_gone(rate):
    """Whatever a signal at 16 kHz holds: noise has all frequencies."""
    up = resample(signal(32000), 16000, rate)[2000:-2000]
    spectrum = np.abs(np.fft.rfft(up * np.blackman(len(up)) ** 2))
    frequency = np.fft.rfftfreq(len(up), 1 / rate)
    assert decibels(spectrum[frequency > 8020].max() / spectrum[frequency < 7000].max()) < -90


@pytest.mark.parametrize("rate", [44100, 48000])
def test_aliases_are_gone(rate):
    high = np.sin(2 * np.pi * 8100 * np.arange(rate) / rate).astype(np.float32)
    assert decibels(np.abs(resample(high, rate, 16000)[1000:-1000]).max()) < -90


@pytest.mark.parametrize(("before", "after"), RATES)
def test_a_tone_stays_where_it_was(before, after):
    tone = np.sin(2 * np.pi * 440 * np.arange(before) / before).astype(np.float32)
    expected = np.sin(2 * np.pi * 440 * np.arange(after) / after)
    found = resample(tone, before, after)
    assert found.shape == (after,)
    inside = slice(after // 10, -after // 10)
    np.testing.assert_allclose(found[inside], expected[inside], atol=2e-5)


@pytest.mark.parametrize("before", ALL_RATES)
def test_every_rate_to_every_other(before):
    """A constant stays, and a result is there as soon as the samples are that it waits for."""
    for after in ALL_RATES:
        resampler = Resampler(before, after)
        ones = np.ones(before // 10, np.float32)
        done = resampler.push(ones)
        rest = resampler.flush()
        assert len(done) + len(rest) == -(-len(ones) * after // before)
        assert len(done) == max(0, -(-(len(ones) - resampler.reach) * after // before))
        np.testing.assert_allclose(done[len(done) // 4 :], 1, atol=2e-6)


@pytest.mark.parametrize(("before", "after"), [(192000, 24), (24, 192000), (1, 2000), (3, 2)])
def test_extreme_ratios(before, after):
    ones = np.ones(300 * max(1, before // after), np.float32)
    found = resample(ones, before, after)
    assert len(found) == -(-len(ones) * after // before)
    np.testing.assert_allclose(found[len(found) // 3 : len(found) // 2], 1, atol=1e-4)


@pytest.mark.parametrize(("before", "after"), RATES)
@pytest.mark.parametrize("channels", [1, 2])
@settings(max_examples=20, deadline=None)
@given(lengths=lengths_of_blocks)
def test_blocks_change_no_bit(before, after, channels, lengths):
    samples = signal(5000, channels)
    resampler = Resampler(before, after, channels)
    for _ in range(2):
        assert_same_bits(by_blocks(resampler, pieces(samples, lengths)), resample(samples, before, after))


def test_channels_are_apart():
    samples = signal(3000, 3)
    both = resample(samples, 44100, 16000)
    for channel in range(3):
        assert_same_bits(np.ascontiguousarray(both[:, channel]), resample(samples[:, channel], 44100, 16000))


@pytest.mark.parametrize(("up", "down"), [(1, 3), (441, 160)])
def test_all_builds_have_the_same_bits(up, down):
    """Fused ones too: nothing is fused here."""
    taps = filter_size(up, down)[1]
    found = []
    for build in map(loading.load, loading.available()):
        table, y = build.empty(up * taps), build.empty(50)
        build.resample_table(table, up, down, taps)
        x = build.buffer(signal(50 * down // up + taps + 1))
        build.resample(x, table, y, 50, 0, up, down, taps)
        found.append((table.array.tobytes(), y.array.tobytes()))
    assert len(set(found)) == 1
    assert np.abs(np.frombuffer(found[0][0], np.float32) - naive.resample_table(up, down, taps)).max() < 1e-7


def test_equal_rates_change_nothing():
    samples = signal(100)
    resampler = Resampler(16000, 16000.0)
    same = resampler.push(samples)
    assert_same_bits(same, samples)
    assert not np.shares_memory(same, samples)
    assert resampler.reach == len(resampler.flush()) == 0


def test_what_is_refused():
    for rate in (0, -8000, float("inf"), float("nan")):
        with pytest.raises(OptionError, match=f"from {rate} Hz"):
            Resampler(rate, 16000)
    with pytest.raises(OptionError, match="16000 / 44101 in lowest terms, which needs too many filters"):
        Resampler(44101, 16000)
    with pytest.raises(OptionError, match="0 channels"):
        Resampler(48000, 16000, channels=0)
    with pytest.raises(AudioError, match=r"where \[samples, 2\] is needed"):
        Resampler(48000, 16000, channels=2).push(signal(10))


def test_one_channel_as_a_column():
    samples = signal(3000)
    assert_same_bits(resample(samples[:, None], 48000, 16000), resample(samples, 48000, 16000)[:, None])
