"""Values that count frames, and frames that are taken by their number."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import webrnn
from tests.backends import KERNELS, MAIN

from .judge import by_steps, cuttings, difference, obstacles
from .pieces import WIDTH, Builder, average_pool

FRAMES = 24
LONG = 300


def proto_of(build, shape=(1, "time", WIDTH)):
    b = Builder(np.random.default_rng(1))
    made = build(b, b.input("x", list(shape)))
    b.nodes.append(helper.make_node("Identity", [made], ["y"]))
    return b.model({"y": None}).SerializeToString()


def session_of(build, backend=MAIN, **options):
    return webrnn.InferenceSession(proto_of(build, **options), backend=backend)


def assert_exact(session, frames=FRAMES, axis=1):
    """Every cutting gives what the whole run gives."""
    stream, rng = session.stream(carry="internal"), np.random.default_rng(2)
    shape = [frames if place == axis else size for place, size in enumerate(session.get_inputs()[0].shape)]
    feeds = {"x": rng.standard_normal(shape).astype(np.float32)}
    whole = {"y": session.run(None, feeds)[0]}
    for lengths in cuttings(frames, stream.stride, rng):
        stream.reset()
        assert not difference(by_steps(stream, feeds, lengths), whole), lengths
    return stream


def count(b, x, axis=1):
    return b.op("Squeeze", b.size(x, axis), b.ints(0))


def numbers(b, x, axis=1, step=1):
    return b.op("Range", b.scalar(0), count(b, x, axis), b.scalar(step))


def valid_conv(b, x):
    turned = b.op("Transpose", x, perm=[0, 2, 1])
    return b.op("Transpose", b.op("Conv", turned, b.weights(WIDTH, WIDTH, 3)), perm=[0, 2, 1])


def sine(b, x):
    phases = b.op("Mul", b.op("Cast", numbers(b, x), to=TensorProto.FLOAT), b.constant(np.float32(0.3)))
    return b.op("Add", x, b.op("Unsqueeze", b.op("Sin", phases), b.ints(1)))


def rows_by_gather(b, x, rows=LONG):
    return b.op("Add", x, b.op("Gather", b.weights(rows, WIDTH), numbers(b, x), axis=0))


def rows_by_slice(b, x, rows=LONG, start=0):
    end = b.op("Add", b.size(x, 1), b.ints(start))
    return b.op("Add", x, b.op("Slice", b.weights(1, rows, WIDTH), b.ints(start), end, b.ints(1)))


def head(b, x):
    is_early = b.op("Unsqueeze", b.op("Less", numbers(b, x), b.scalar(5)), b.ints(1))
    return b.op("Where", is_early, x, b.constant(np.float32([0])))


def windows(b, x, size=5, hop=3, offsets=None, dtype=np.int64, axis=1):
    """As tf.signal.frame and torch's indexing write it."""

    def number(value):
        return b.constant(np.array(value, dtype))

    to = TensorProto.INT64 if dtype is np.int64 else TensorProto.INT32
    total = b.op("Cast", count(b, x, axis), to=to)
    fitting = b.op("Add", b.op("Div", b.op("Sub", total, number(size)), number(hop)), number(1))
    begins = b.op("Range", number(0), b.op("Max", number(0), fitting), number(1))
    column = b.op("Reshape", b.op("Mul", begins, number(hop)), b.ints(-1, 1))
    return b.op("Gather", x, b.op("Add", column, number([np.arange(size) if offsets is None else offsets])), axis=axis)


def in_blocks(b, x, size=6, hop=4, block=2):
    """tf.signal.frame: the signal in blocks, of which frames take several. What fills no block is cut off."""
    whole = b.op("Mul", b.op("Div", b.size(x, 1), b.ints(block)), b.ints(block))
    cut = b.op("Slice", x, b.ints(0), whole, b.ints(1))
    blocks = b.op("Reshape", cut, b.ints(1, -1, block, WIDTH))
    fitting = b.op("Add", b.op("Div", b.op("Sub", count(b, x), b.scalar(size)), b.scalar(hop)), b.scalar(1))
    begins = b.op("Mul", b.op("Range", b.scalar(0), fitting, b.scalar(1)), b.scalar(hop // block))
    index = b.op("Add", b.op("Unsqueeze", begins, b.ints(1)), b.constant(np.arange(size // block)[None]))
    return b.op("Reshape", b.op("Gather", blocks, index, axis=1), b.ints(1, -1, size, WIDTH))


def padded_windows(b, x, size=5, hop=2):
    """tf.signal.frame with pad_end: a window begins at each hop."""
    total = count(b, x)
    fitting = b.op("Neg", b.op("Div", b.op("Neg", total), b.scalar(hop)))
    reach = b.op("Add", b.op("Mul", b.op("Sub", fitting, b.scalar(1)), b.scalar(hop)), b.scalar(size))
    missing = b.op("Unsqueeze", b.op("Max", b.op("Sub", reach, total), b.scalar(0)), b.ints(0))
    padded = b.op("Pad", x, b.op("Concat", b.ints(0, 0, 0, 0), missing, b.ints(0), axis=0))
    begins = b.op("Mul", b.op("Range", b.scalar(0), fitting, b.scalar(1)), b.scalar(hop))
    return b.op(
        "Gather", padded, b.op("Add", b.op("Unsqueeze", begins, b.ints(1)), b.constant(np.arange(size))), axis=1
    )


def by_gather_nd(b, x):
    turned = b.op("Transpose", x, perm=[1, 0, 2])
    begins = b.op("Range", b.scalar(0), b.op("Sub", count(b, x), b.scalar(2)), b.scalar(1))
    index = b.op("Add", b.op("Unsqueeze", begins, b.ints(1)), b.constant(np.arange(3)[None]))
    return b.op("GatherND", turned, b.op("Unsqueeze", index, b.ints(2)))


def padded_to_blocks(b, x):
    """(4 - n % 4) % 4 frames more, and blocks of 4."""
    missing = b.op("Mod", b.op("Sub", b.ints(4), b.op("Mod", b.size(x, 1), b.ints(4))), b.ints(4))
    pads = b.op("Concat", b.ints(0, 0, 0, 0), missing, b.ints(0), axis=0)
    return b.op("Reshape", b.op("Pad", x, pads), b.ints(1, -1, 4, WIDTH))


def padded_by_remainder(b, x):
    """-n % 4 frames more."""
    missing = b.op("Mod", b.op("Neg", b.size(x, 1)), b.ints(4))
    pads = b.op("Concat", b.ints(0, 0, 0, 0), missing, b.ints(0), axis=0)
    return b.op("Reshape", b.op("Pad", x, pads), b.ints(1, -1, 4, WIDTH))


EXACT = {
    "sine": sine,
    "sine behind a delay": lambda b, x: sine(b, average_pool(b, x)),
    "a window over positions": lambda b, x: average_pool(b, sine(b, x)),
    "rows by Gather": rows_by_gather,
    "rows by Slice": rows_by_slice,
    "rows by Slice, later ones": lambda b, x: rows_by_slice(b, x, start=3),
    "rows behind a delay": lambda b, x: rows_by_gather(b, average_pool(b, x)),
    "as many rows as the conv leaves": lambda b, x: rows_by_gather(b, valid_conv(b, x), FRAMES - 2),
    "as many rows as the conv leaves, by Slice": lambda b, x: rows_by_slice(b, valid_conv(b, x), FRAMES - 2),
    "as many rows as frames, behind a delay": lambda b, x: rows_by_slice(b, average_pool(b, x), FRAMES),
    "the first frames": head,
    "windows": windows,
    "windows in int32": lambda b, x: windows(b, x, dtype=np.int32),
    "windows side by side": lambda b, x: windows(b, x, 4, 4),
    "windows with gaps between": lambda b, x: windows(b, x, 2, 4),
    "some frames of each window": lambda b, x: windows(b, x, 5, 2, offsets=[4, 1, 1]),
    "windows behind a delay": lambda b, x: windows(b, average_pool(b, x)),
    "windows of what is padded": lambda b, x: windows(b, b.op("Pad", x, b.ints(0, 4, 0, 0, 2, 0))),
    "windows of what is mirrored": lambda b, x: windows(b, b.op("Pad", x, b.ints(0, 2, 0, 0, 2, 0), mode="reflect")),
    "windows of windows": lambda b, x: windows(b, b.op("ReduceSum", windows(b, x, 3, 1), b.ints(2), keepdims=0), 4, 2),
    "windows in blocks": in_blocks,
    "windows by GatherND": by_gather_nd,
    "windows at each hop": padded_windows,
    "every third frame": lambda b, x: b.op("Gather", x, numbers(b, x, step=3), axis=1),
    "padded to blocks": padded_to_blocks,
    "padded by a remainder": padded_by_remainder,
    "padded by a remainder, behind a conv": lambda b, x: padded_by_remainder(b, valid_conv(b, x)),
}


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("name", EXACT)
def test_exact(name, backend):
    assert not obstacles(assert_exact(session_of(EXACT[name], backend)))


def test_windows_keep_what_overlaps():
    stream = assert_exact(session_of(lambda b, x: windows(b, x, size=5, hop=3)))
    assert (stream.stride, stream.delay) == (3, 3)
    stream.step({"x": np.zeros((1, 3, WIDTH), np.float32)})
    assert stream.state["x.before"].shape == (1, 3, WIDTH)


def test_windows_that_do_not_overlap_keep_nothing():
    assert not session_of(lambda b, x: windows(b, x, 4, 4)).stream(carry="internal").carry


def test_time_first():
    assert_exact(session_of(lambda b, x: windows(b, x, axis=0), shape=("time", 2, WIDTH)), axis=0)


@pytest.mark.parametrize("build", [rows_by_gather, rows_by_slice])
def test_behind_the_end_of_a_table_both_raise(build):
    session = session_of(lambda b, x: build(b, x, 5))
    x = np.ones((1, 6, WIDTH), np.float32)
    with pytest.raises(webrnn.Error):
        session.run(None, {"x": x})
    stream = session.stream(carry="internal")
    parts = [stream.step({"x": x[:, t : t + 1]})[0] for t in range(5)]
    np.testing.assert_array_equal(np.concatenate(parts, 1), session.run(None, {"x": x[:, :5]})[0])
    with pytest.raises(webrnn.ShapeError):
        stream.step({"x": x[:, 5:]})
    assert stream.flush()[0].shape == (1, 0, WIDTH)


REFUSED = {
    "backwards": (
        lambda b, x: b.op("Gather", x, b.op("Sub", b.scalar(30), numbers(b, x)), axis=1),
        "later before earlier",
    ),
    "squares": (lambda b, x: b.op("Gather", x, b.op("Mul", numbers(b, x), numbers(b, x)), axis=1), "no multiple"),
    "in turns": (lambda b, x: b.op("Gather", x, b.op("Mod", numbers(b, x), b.scalar(2)), axis=1), "no multiple"),
    "by data": (
        lambda b, x: b.op("Gather", x, b.op("Cast", b.op("ReduceMax", x, b.ints(0, 2), keepdims=0), to=7), axis=1),
        "no multiple",
    ),
    "each offset its own step": (
        lambda b, x: b.op(
            "Gather",
            x,
            b.op("Mul", b.op("Unsqueeze", numbers(b, x), b.ints(1)), b.constant(np.array([[0, 1]]))),
            axis=1,
        ),
        "no multiple",
    ),
    "the next frame": (
        lambda b, x: b.op("Gather", x, b.op("Add", numbers(b, x), b.scalar(1)), axis=1),
        "behind the end",
    ),
    "the frame before": (
        lambda b, x: b.op("Gather", x, b.op("Sub", numbers(b, x), b.scalar(1)), axis=1),
        "from the end",
    ),
    "the first half": (
        lambda b, x: b.op(
            "Gather", x, b.op("Range", b.scalar(0), b.op("Div", count(b, x), b.scalar(2)), b.scalar(1)), axis=1
        ),
        "as many frames",
    ),
    "counted backwards": (
        lambda b, x: b.op(
            "Gather", x, b.op("Range", b.op("Sub", count(b, x), b.scalar(1)), b.scalar(-1), b.scalar(-1)), axis=1
        ),
        "backwards",
    ),
    "counted from the end": (
        lambda b, x: b.op(
            "Gather", x, b.op("Range", b.op("Sub", count(b, x), b.scalar(3)), count(b, x), b.scalar(1)), axis=1
        ),
        "only known at the end",
    ),
    "every frame beside every other": (
        lambda b, x: b.op(
            "Cast", b.op("Less", numbers(b, x), b.op("Unsqueeze", numbers(b, x), b.ints(1))), to=TensorProto.FLOAT
        ),
        "time",
    ),
    "one frame at least": (
        lambda b, x: b.op(
            "Slice",
            x,
            b.ints(0),
            b.op("Add", b.op("Max", b.op("Sub", b.size(x, 1), b.ints(3)), b.ints(0)), b.ints(1)),
            b.ints(1),
        ),
        "not known",
    ),
    "no more than some": (
        lambda b, x: b.op(
            "Gather", x, b.op("Range", b.scalar(0), b.op("Min", count(b, x), b.scalar(9)), b.scalar(1)), axis=1
        ),
        "",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    build, reason = REFUSED[name]
    session = session_of(build)
    with pytest.raises(webrnn.ModelError) as raised:
        session.stream(carry="internal")
    assert raised.value.node
    assert reason in str(raised.value)


@pytest.mark.parametrize("build", [sine, rows_by_slice, windows])
def test_pools(build):
    """Streams of a pool that began at different times have positions of their own."""
    session = session_of(build, shape=("batch", "time", WIDTH))
    x = np.random.default_rng(3).standard_normal((2, 9, WIDTH)).astype(np.float32)
    pool, alone = session.pool(max_streams=2, carry="internal"), [session.stream(carry="internal") for _ in range(2)]
    streams = [pool.open(), pool.open()]
    pool.submit(streams[0], {"x": x[:1, :3]})
    first = pool.tick()[streams[0]]
    np.testing.assert_array_equal(first[0], alone[0].step({"x": x[:1, :3]})[0])
    for place, stream in enumerate(streams):
        pool.submit(stream, {"x": x[place : place + 1, 3:6]})
    both = pool.tick()
    for place, stream in enumerate(streams):
        np.testing.assert_array_equal(both[stream][0], alone[place].step({"x": x[place : place + 1, 3:6]})[0])
