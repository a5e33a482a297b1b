"""Also of worker.py."""

import os
import signal

import numpy as np
import pytest

import webrnn
from tests.corpora.killers import Killer, Slow
from tests.corpora.models import double, gru
from webrnn.corpora import Mapper, WorkersError, processes
from webrnn.corpora.work import Job
from webrnn.errors import ModelError, OptionError


def alive(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def made(monkeypatch):
    """The process ids of all workers."""
    ids = []
    original = processes._Worker.__init__

    def noted(self):
        original(self)
        ids.append(self.process.pid)

    monkeypatch.setattr(processes._Worker, "__init__", noted)
    return ids


def test_results_are_those_of_one_process(made):
    rng = np.random.default_rng(0)
    items = [rng.standard_normal((n % 7 + 1, 1, 4)).astype(np.float32) for n in range(200)]
    found = list(webrnn.map(gru(), iter(items), processes=2))
    assert [result.index for result in found] == list(range(200))
    for one, other in zip(found, Mapper(gru())(items), strict=True):
        assert one["y"].tobytes() == other["y"].tobytes()
    assert len(made) == 2
    assert not any(map(alive, made))


def test_what_is_wrong_for_all_items_comes_through(made):
    with pytest.raises(ModelError):
        list(webrnn.map(b"nonsense", [np.zeros(1)], processes=1))
    with pytest.raises(OptionError, match="there is no output 'z'"):
        list(webrnn.map(double(), [np.zeros(1)], processes=1, outputs=["z"]))
    assert not any(map(alive, made))


def test_a_reader_that_stops_ends_the_workers(made):
    results = webrnn.map(double(), (np.float32([n]) for n in range(10**9)), processes=1)
    assert next(results)["y"].tolist() == [0]
    results.close()
    assert not any(map(alive, made))


def test_workers_that_are_killed_are_replaced_and_killers_are_found(made, tmp_path):
    items = [Slow(x=np.float32([n])) for n in range(60)]
    items[2] = Killer(x=np.float32([0]))
    killed = []

    def given():
        for number, item in enumerate(items):
            if number == 50:
                os.kill(made[-1], signal.SIGKILL)
                killed.append(made[-1])
            yield item

    summary = webrnn.map(double(), given(), tmp_path / "out", processes=2)
    assert killed
    assert (summary.items, summary.failed) == (60, 1)
    corpus = webrnn.corpora.read(tmp_path / "out")
    assert [result["y"].item() for result in corpus] == [2 * n for n in range(60) if n != 2]
    assert corpus.failed[2].reason == "2 workers ended over it: the last was ended by SIGKILL"
    assert not any(map(alive, made))


def test_workers_that_cannot_start_are_told(monkeypatch):
    monkeypatch.setattr(processes.sys, "path", [])
    engine = processes.Processes(Job(double(), webrnn.corpora.Options()), 1)

    def wait():
        for _ in range(1000):
            engine.wait(1.0)

    with pytest.raises(
        WorkersError, match="6 workers ended one after the other, without a result: the last ended with"
    ):
        wait()
    engine.close()
