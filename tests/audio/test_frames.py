"""Fifo, Framer and OverlapAdd: against loops, and the same bits however the signal is cut."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.audio.cutting import assert_same_bits, by_blocks, lengths_of_blocks, pieces, signal
from webrnn.audio import AudioError, Fifo, Framer, OverlapAdd
from webrnn.errors import OptionError

sizes = st.integers(1, 40).flatmap(lambda size: st.tuples(st.just(size), st.integers(1, size)))


def frames_by_loop(samples, size, hop, lead, tail=0):
    padded = np.concatenate([np.zeros(lead, np.float32), samples, np.zeros(tail + size + hop, np.float32)])
    frames, first = [], 0
    covered = 0
    while len(samples) and covered < lead + len(samples) + tail:
        frames.append(padded[first : first + size])
        covered, first = first + size, first + hop
    return np.array(frames, np.float32).reshape(-1, size)


@given(sizes, st.integers(0, 300), st.integers(0, 50), st.none() | st.integers(0, 60), lengths_of_blocks)
def test_frames_are_those_of_a_loop(size_and_hop, n, tail, lead, lengths):
    size, hop = size_and_hop
    samples = signal(n)
    framer = Framer(size, hop, lead)
    expected = frames_by_loop(samples, size, hop, size - hop if lead is None else lead, tail)
    for _ in range(2):  # after flush it starts anew
        frames = by_blocks(framer, pieces(samples, lengths), lambda: framer.flush(tail))
        if n:  # without a sample, zeros in front may fill frames or not
            assert_same_bits(frames, expected)


def test_frames_are_the_callers_own():
    framer = Framer(4, 2)
    frames = framer.push(signal(8))
    before = frames.copy()
    frames[...] = 9
    assert_same_bits(framer.push(signal(8, seed=1))[0], np.concatenate([before[-1, 2:], signal(8, seed=1)[:2]]))


@given(sizes, st.integers(0, 30), lengths_of_blocks, st.integers(0, 60))
def test_overlap_add_is_a_sum(size_and_hop, n_frames, lengths, lead):
    size, hop = size_and_hop
    frames = signal(n_frames * size).reshape(n_frames, size)
    expected = np.zeros(n_frames * hop + size - hop)
    for index, frame in enumerate(frames):
        expected[index * hop : index * hop + size] += frame
    add = OverlapAdd(size, hop, lead)
    whole = by_blocks(add, [frames])
    np.testing.assert_allclose(whole, expected[lead:], atol=1e-5)
    assert_same_bits(by_blocks(add, pieces(frames, lengths)), whole)


@given(st.integers(0, 50), lengths_of_blocks, st.lists(st.integers(0, 400)))
def test_fifo_keeps_order(zeros, lengths, taken):
    samples = signal(3000)
    fifo = Fifo(zeros)
    out = []
    for index, block in enumerate(pieces(samples, lengths)):
        fifo.push(block)
        wanted = taken[index] if index < len(taken) else 3
        out.append(fifo.pop(min(wanted, len(fifo))))
    out.append(fifo.pop())
    assert_same_bits(np.concatenate(out), np.concatenate([np.zeros(zeros, np.float32), samples]))
    assert len(fifo) == 0


def test_fifo_does_not_grow_with_the_length_of_the_signal():
    fifo = Fifo()
    for seed in range(200):
        fifo.push(signal(480, seed=seed))
        fifo.pop(480)
    assert fifo._buffer.nbytes <= 16_000


@pytest.mark.parametrize(("size", "hop"), [(4, 5), (4, 0), (0, 0)])
def test_impossible_frames(size, hop):
    for make in (Framer, OverlapAdd):
        with pytest.raises(OptionError, match="1 <= hop <= size"):
            make(size, hop)


def test_what_is_not_samples():
    framer = Framer(4, 2)
    with pytest.raises(AudioError, match="divide int16 by 32768"):
        framer.push(np.zeros(4, np.int16))
    with pytest.raises(AudioError, match=r"shape \[4, 2\] where \[samples\]"):
        framer.push(np.zeros((4, 2), np.float32))
    assert len(framer.push(np.ones(2, np.float32))) == 1, "a refused block leaves no trace"
    with pytest.raises(AudioError, match="3 samples of a queue that has 2"):
        Fifo(2).pop(3)
    with pytest.raises(AudioError, match=r"frames of shape \[2, 5\]"):
        OverlapAdd(4, 2).push(np.zeros((2, 5)))
