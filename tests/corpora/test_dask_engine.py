import logging
import os
import signal

import distributed
import numpy as np
import pytest

import webrnn
from tests.corpora.killers import Killer, Slow
from tests.corpora.models import double, gru
from webrnn.corpora import Mapper
from webrnn.errors import BackendError, ModelError


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes, which a nanny starts again."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=logging.CRITICAL
    ) as cluster:
        yield cluster


def test_results_are_those_of_one_process(cluster):
    rng = np.random.default_rng(0)
    items = [rng.standard_normal((n % 7 + 1, 1, 4)).astype(np.float32) for n in range(100)]
    found = list(webrnn.map(gru(), iter(items), dask=cluster.scheduler_address))
    assert [result.index for result in found] == list(range(100))
    for one, other in zip(found, Mapper(gru())(items), strict=True):
        assert one["y"].tobytes() == other["y"].tobytes()


def test_what_is_wrong_for_all_items_comes_through(cluster):
    with distributed.Client(cluster) as client, pytest.raises(ModelError):
        list(webrnn.map(b"nonsense", [np.zeros(1)], dask=client))


def test_a_worker_that_is_lost_is_survived(cluster, tmp_path):
    items = [Slow(x=np.float32([n])) for n in range(120)]
    killed = []
    with distributed.Client(cluster) as client:

        def given():
            for number, item in enumerate(items):
                if number == 60:
                    killed.append(sorted(client.run(os.getpid).values())[0])
                    os.kill(killed[0], signal.SIGKILL)
                yield item

        summary = webrnn.map(double(), given(), tmp_path / "out", dask=client)
        assert client.status == "running", "a client that was given stays open"
    assert killed
    assert (summary.items, summary.failed) == (120, 0)
    results = list(webrnn.corpora.read(tmp_path / "out"))
    assert [result["y"].item() for result in results] == [2 * n for n in range(120)]


def test_an_item_that_ends_workers_is_found(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    summary = webrnn.map(double(), [Killer(x=np.float32([0]))], tmp_path / "out", dask=cluster.scheduler_address)
    assert (summary.items, summary.failed) == (1, 1)
    assert "2 workers ended over it" in webrnn.corpora.read(tmp_path / "out").failed[0].reason


def test_no_scheduler(monkeypatch):
    from webrnn.corpora import dask_engine

    monkeypatch.setattr(dask_engine, "CONNECT_SECONDS", 0.5)
    with pytest.raises(BackendError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
        list(webrnn.map(double(), [np.zeros(1)], dask="tcp://127.0.0.1:1"))
