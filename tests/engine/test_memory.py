"""A session that nobody has any more is gone at once: nothing of it is in a cycle that would wait for the collector."""

import gc

import numpy as np
import pytest

import webrnn
from tests.backends import BACKENDS
from tests.engine.stream_models import CARRY, HIDDEN, feed, stateful
from tests.models.fetch import model_path


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


def left_over(use):
    """What of webrnn and which arrays only the collector finds."""
    use()  # what is kept for good is there now
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    use()
    gc.collect()
    gc.set_debug(0)
    found = [type(item) for item in gc.garbage if isinstance(item, np.ndarray) or "webrnn" in type(item).__module__]
    gc.garbage.clear()
    return found


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("op", ["LSTM", "Scan"])
def test_runs_streams_and_pools(op, backend, tmp_path):
    data = stateful(op).SerializeToString()
    shape = (1, HIDDEN) if op == "Scan" else (1, 1, HIDDEN)
    states = {name: np.zeros(shape, np.float32) for name in CARRY[op]}

    def use():
        session = webrnn.InferenceSession(data, backend=backend)
        session.run(None, {"x": feed(3, 1), **states})
        stream = session.stream()
        stream.step({"x": feed(2, 1)})
        stream.fork().step({"x": feed(2, 1)})
        pool = session.pool(4)
        for handle in [pool.open() for _ in range(3)]:
            pool.submit(handle, {"x": feed(1, 1)})
        pool.tick()
        if backend != "numpy":
            session.export(tmp_path / "m.rnn")
            webrnn.InferenceSession(tmp_path / "m.rnn", backend=backend).run(None, {"x": feed(3, 1), **states})

    assert left_over(use) == []


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("name", ["silero_v6", "dtln_1", "dtln_2", "riann", "nsnet2_16k", "localwake_loop"])
def test_real_models(name):
    assert left_over(lambda: webrnn.InferenceSession(model_path(name))) == []
