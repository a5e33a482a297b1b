import numpy as np
import pytest

from tests.backends import KERNELS
from tests.engine.stream_models import HIDDEN, INPUTS, feed, session, stateful
from webrnn.engine.streams.rows import MOST_BOUND, RowPrograms, Rows, rows_at_once, stream_first


def rows_of(kernels, arrays):
    rows = Rows(kernels, arrays[0].shape, arrays[0].dtype)
    rows.reserve(len(arrays))
    rows.array[: len(arrays)] = arrays
    return rows


def test_room_doubles_and_keeps_what_there_is():
    for kernels in (None, session(stateful("GRU")).pool(2)._batched.program.kernels):
        rows = Rows(kernels, (2, 3), np.dtype(np.float32))
        rows.reserve(3)
        assert len(rows.array) == 8
        assert len(rows.views()) == 8
        rows.array[:] = np.arange(8)[:, None, None]
        rows.reserve(9)
        assert len(rows.array) == len(rows.views()) == 16
        assert rows.array[:8, 1, 2].tolist() == list(range(8))
        rows.views()[12][...] = 5
        assert rows.array[12, 1, 2] == 5


def test_more_weights_leave_less_room():
    sizes = [rows_at_once(n_bytes) for n_bytes in (10, 1 << 17, 1 << 22)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] >= 16
    assert rows_at_once(10, threads=3) == 3 * sizes[0]


def test_the_stream_first():
    array = np.arange(24).reshape(2, 3, 4)
    assert stream_first(array, 1).shape == (3, 2, 1, 4)
    assert stream_first(array, 1).base is not None


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("n", [1, 3, 4, 7])
def test_blocks_of_rows(backend, n, steps):
    """Of one step rows are read where they are; with two, time is the first axis, and they are copied."""
    s = session(stateful("LSTM"), backend)
    model = s._streaming("auto")
    batched = s._batched(model)
    kernels = batched.program.kernels
    shapes = ((steps, 1, INPUTS), (1, 1, HIDDEN), (1, 1, HIDDEN))
    programs = RowPrograms(batched, model.pairs, shapes, 4)
    feeds = [feed(steps, 1, seed) for seed in range(n)]
    starts = [[feed(1, 1, 50 + seed + 9 * which)[..., :1].repeat(HIDDEN, 2) for seed in range(n)] for which in range(2)]
    before = [rows_of(kernels, each) for each in starts]
    after = [rows_of(kernels, each) for each in starts]
    (y,) = programs.run(n, [rows_of(kernels, feeds)], before, after)
    assert programs.overwrites(n) == [False, False]
    for row in range(n):
        stream = s.stream()
        stream.load({"h_in": starts[0][row], "c_in": starts[1][row]})
        assert stream.step({"x": feeds[row]})[0].tobytes() == y[row].tobytes()
        assert [state.tobytes() for state in stream.state.values()] == [rows.array[row].tobytes() for rows in after]
        assert [rows.array[row].tobytes() for rows in before] == [start[row].tobytes() for start in starts]


def test_only_so_many_numbers_of_rows_stay_bound():
    s = session(stateful("GRU"))
    model = s._streaming("auto")
    batched = s._batched(model)
    programs = RowPrograms(batched, model.pairs, ((1, 1, INPUTS), (1, 1, HIDDEN)), 100)
    x, h = (Rows(batched.program.kernels, shape, np.dtype(np.float32)) for shape in ((1, 1, INPUTS), (1, 1, HIDDEN)))
    for rows in (x, h):
        rows.reserve(40)
    for n in range(1, 40):
        assert programs.run(n, [x], [h], [h])[0].shape == (n, 1, 1, 1, HIDDEN)
    assert len(programs._bound) == MOST_BOUND
