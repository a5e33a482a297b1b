"""Pyodide's heap never gets smaller: what sessions leave behind would stay for the life of the page."""

import ctypes
import gc

import numpy as np
import pyodide_js
import pytest

import webrnn
from tests.engine.stream_models import CARRY, feed, stateful

HIDDEN = 128
FEED = {"x": feed(4, 1)}
STATE = {"h_in": np.zeros((1, 1, HIDDEN), np.float32)}


class _Mallinfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "free", "top")
    ]


def heap_bytes():
    return pyodide_js._module.HEAPU8.length


def used_bytes():
    """What malloc has given out."""
    gc.collect()
    mallinfo = ctypes.CDLL(None).mallinfo
    mallinfo.restype = _Mallinfo
    return mallinfo().uordblks


DATA = stateful("GRU", hidden=HIDDEN).SerializeToString()


def open_and_run():
    webrnn.InferenceSession(DATA).run(None, {**FEED, **STATE})


def open_a_stream():
    stream = webrnn.InferenceSession(DATA).stream(carry=CARRY["GRU"])
    stream.step(FEED)
    stream.fork().step(FEED)


SESSION = webrnn.InferenceSession(DATA)


def streams_of_one_session():
    SESSION.stream(carry=CARRY["GRU"]).step(FEED)


def ticks_of_pools():
    pool = SESSION.pool(8, carry=CARRY["GRU"])
    for handle in [pool.open() for _ in range(5)]:
        pool.submit(handle, {"x": feed(1, 1)})
    pool.tick()


@pytest.mark.parametrize(
    ("use", "times"),
    [(open_and_run, 1000), (open_a_stream, 100), (streams_of_one_session, 1000), (ticks_of_pools, 100)],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_the_heap_stays_as_it_is_after_the_first_ten(use, times):
    weights = 3 * HIDDEN * HIDDEN * 4
    for _ in range(10):
        use()
    heap, used = heap_bytes(), used_bytes()
    for _ in range(times - 10):
        use()
    assert heap_bytes() == heap
    assert used_bytes() - used < weights / 2
