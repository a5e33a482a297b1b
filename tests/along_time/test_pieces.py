"""Models of random pieces: what is accepted is exact, by chunks of any size, and what is refused names a node."""

import numpy as np
import pytest

import webrnn

from .pieces import BY_COUNTER, HISTORIES, NEEDS_MORE, PLAIN, RECURRENT, build

FRAMES, BATCH = 8, 2
LOOPS = (RECURRENT["walking_loop"], *(HISTORIES[name] for name in ("frame_before", "step_number", "cumulative")))
"""These are streams only behind the passes that make loops plain."""


def feeds_of(session, rng, batch):
    sizes = {"time": FRAMES, "batch": batch}
    return {
        value.name: rng.standard_normal([sizes.get(size, size) for size in value.shape]).astype(np.float32)
        for value in session.get_inputs()
    }


def time_axes(session):
    return {value.name: value.shape.index("time") for value in session.get_inputs() if "time" in value.shape}


def by_chunks(session, feeds, rng, axes):
    """What steps of random lengths and the flush behind them give."""
    stream = session.stream(carry="internal")
    start, results = 0, []
    for length in random_lengths(rng, FRAMES // stream.stride):
        end = start + length * stream.stride
        chunk = {
            name: array.take(range(start, end), axes[name]) if name in axes else array for name, array in feeds.items()
        }
        results.append(stream.step(chunk))
        start = end
    return [*results, stream.flush()]


def random_lengths(rng, count):
    cuts = np.sort(rng.choice(np.arange(1, count), rng.integers(1, min(5, count)), replace=False))
    return np.diff([0, *cuts, count])


def largest_difference(proto, rng, batch=BATCH, backend="numpy", disable=()):
    session = webrnn.InferenceSession(proto.SerializeToString(), backend=backend, disable=disable)
    feeds = feeds_of(session, rng, batch)
    (whole,) = session.run(None, feeds)
    axes = time_axes(session)
    parts = [result[0] for result in by_chunks(session, feeds, rng, axes)]
    streamed = np.concatenate(parts, axis=axes["x"])
    assert streamed.shape == whole.shape
    return np.abs(streamed - whole).max()


@pytest.mark.parametrize("name", [*PLAIN, *RECURRENT, *BY_COUNTER, *HISTORIES])
@pytest.mark.parametrize("batch", [1, "batch"])
def test_piece_that_works_by_frames(name, batch):
    rng = np.random.default_rng(1)
    pieces = [RECURRENT["gru"], (PLAIN | RECURRENT | BY_COUNTER | HISTORIES)[name], RECURRENT["lstm"]]
    difference = largest_difference(build(pieces, rng, batch=batch), rng, 1 if batch == 1 else BATCH)
    assert difference < 1e-5


@pytest.mark.parametrize("name", NEEDS_MORE)
@pytest.mark.parametrize("place", ["before", "after"])
def test_piece_that_needs_more_than_a_frame_is_refused(name, place):
    rng = np.random.default_rng(2)
    pieces = [NEEDS_MORE[name], RECURRENT["gru"]]
    proto = build(pieces if place == "before" else pieces[::-1], rng)
    session = webrnn.InferenceSession(proto.SerializeToString(), backend="numpy")
    session.run(None, feeds_of(session, rng, BATCH))
    with pytest.raises(webrnn.ModelError, match=r'carry="internal".*run whole sequences') as raised:
        session.stream(carry="internal")
    assert raised.value.node


@pytest.mark.parametrize("seed", range(16))
def test_random_stacks_are_exact(seed):
    rng = np.random.default_rng(seed)
    plain = [(PLAIN | HISTORIES)[name] for name in rng.choice([*PLAIN, *HISTORIES], rng.integers(0, 4))]
    pieces = [*plain, *(RECURRENT[name] for name in rng.choice(list(RECURRENT), rng.integers(1, 3)))]
    rng.shuffle(pieces)
    batch = 1 if rng.random() < 0.3 else "batch"
    proto = build(pieces, rng, batch=batch, time_first=bool(rng.random() < 0.5))
    needs_passes = any(piece in LOOPS for piece in pieces)
    disable = ("all",) if rng.random() < 0.2 and not needs_passes else ()
    assert largest_difference(proto, rng, 1 if batch == 1 else BATCH, disable=disable) < 1e-5


def test_inputs_with_the_same_name_of_an_axis_are_of_the_same_time():
    rng = np.random.default_rng(3)
    pieces = [PLAIN[name] for name in ("mask", "tensordot", "over_features")] + [RECURRENT["gru"]]
    assert largest_difference(build(pieces, rng), rng) < 1e-5


@pytest.mark.parametrize("seed", range(16))
def test_random_stacks_with_a_piece_that_needs_more_are_refused(seed):
    rng = np.random.default_rng(100 + seed)
    names = [*rng.choice(list(PLAIN), rng.integers(0, 3)), *rng.choice(list(RECURRENT), rng.integers(1, 3))]
    pieces = [(PLAIN | RECURRENT)[name] for name in names] + [NEEDS_MORE[rng.choice(list(NEEDS_MORE))]]
    rng.shuffle(pieces)
    proto = build(pieces, rng, time_first=bool(rng.random() < 0.5))
    with pytest.raises(webrnn.ModelError) as raised:
        webrnn.InferenceSession(proto.SerializeToString(), backend="numpy").stream(carry="internal")
    assert raised.value.node


@pytest.mark.parametrize(
    "names",
    [
        ("gru", "dense", "lstm"),
        ("padded_conv", "gru", "causal_conv"),
        ("over_features", "gru"),
        ("walking_loop", "layer_norm"),
    ],
)
def test_native_is_exact_to_the_bit(names):
    rng = np.random.default_rng(5)
    pieces = [(PLAIN | RECURRENT | HISTORIES)[name] for name in names]
    assert largest_difference(build(pieces, rng), rng, backend="native") == 0
