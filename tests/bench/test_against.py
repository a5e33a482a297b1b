"""Two revisions: which they are, what is said of them, and what a worker does. Times are made up."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from webrnn.bench import pair_report
from webrnn.bench.against import OTHER, THIS, Against, Job, Place, Worker, own_place, place_of
from webrnn.bench.pairs import PairEffort
from webrnn.bench.revision import OWN_PACKAGE
from webrnn.errors import BackendError, OptionError
from webrnn.web.folders import CHECKOUT

TEN = PairEffort(0, 20)
JOB = Job("m", "native", 1, {"model": "m.onnx"})


class Pretended:
    """A worker whose calls take what its revision is said to take."""

    about = {"package": str(OWN_PACKAGE), "version": "1.0", "python": "3", "numpy": "2"}  # noqa: RUF012
    seconds = {THIS: 1e-3, OTHER: 1e-3}  # noqa: RUF012
    noise = 0.01
    n_started = 0
    refused: dict[str, str] = {}  # noqa: RUF012
    dies_of: dict[str, str] = {}  # noqa: RUF012
    """By model, the side that ends while it is timed."""
    results: dict[str, float] = {}  # noqa: RUF012

    def __init__(self, place, folder):
        self.side = place.python
        type(self).n_started += 1
        self._rng = np.random.default_rng(type(self).n_started)
        self._here = 1 + self._rng.normal(0, self.noise)
        self.is_alive, self._model = True, ""

    def ask(self, what, **request):
        return getattr(self, f"_{what}")(**request)

    def _prepare(self, name, results, model):
        self._model = model
        if self.refused.get(model) == self.side:
            raise BackendError("UnsupportedOp: no Loop")
        with open(results, "wb") as file:
            np.savez(file, np.float32([self.results.get(self.side, 1.0)]))
        return {}

    def _block(self, name, calls):
        if self.dies_of.get(self._model) == self.side:
            self.is_alive = False
            raise BackendError("the process has ended: code -11")
        return {"seconds": self.seconds[self.side] * self._here * (1 + abs(self._rng.normal(0, self.noise)))}

    def _finish(self, name, times):
        np.save(times, np.array([self.seconds[self.side]]))
        return {}

    def close(self):
        pass


def pretended(**attributes):
    return type("Worker", (Pretended,), attributes)


def against(worker):
    found = Against(Place(OTHER), Place(THIS), start=worker)
    found.find_out()
    return found


def said(found, made):
    return pair_report.revisions(found, made, "there")


def test_the_same_code_is_the_same():
    made = against(pretended())
    [found] = made.run([JOB], TEN)
    assert str(found.verdict).startswith("the same within ")
    assert len(found.sittings) == 10
    text = said([found], made)
    assert "both revisions are the same code" in text
    assert text.splitlines()[-2].split()[-1] == "same"


@pytest.mark.parametrize(("this", "verdict"), [(1.05e-3, "slower by "), (0.95e-3, "faster by ")])
def test_five_percent_are_found(this, verdict):
    made = against(pretended(seconds={THIS: this, OTHER: 1e-3}))
    [found] = made.run([JOB], TEN)
    assert str(found.verdict).startswith(verdict)
    assert verdict in said([found], made)


def test_new_processes_in_each_sitting():
    worker = pretended()
    made = against(worker)
    made.run([JOB, JOB], PairEffort(0, 6))
    assert worker.n_started == 2 * (1 + 6)


def test_a_revision_that_cannot_run_a_model_is_told():
    made = against(pretended(refused={"old.onnx": OTHER}))
    jobs = [Job("old", "native", 1, {"model": "old.onnx"}), JOB]
    failed, right = made.run(jobs, TEN)
    assert failed.verdict is None
    assert failed.as_data()["failures"] == {OTHER: "UnsupportedOp: no Loop"}
    assert right.verdict is not None
    assert "other: UnsupportedOp: no Loop" in said([failed, right], made)


def test_a_process_that_ends_takes_one_model_with_it():
    made = against(pretended(dies_of={"bad.onnx": THIS}))
    jobs = [Job("bad", "native", 1, {"model": "bad.onnx"}), JOB]
    failed, right = made.run(jobs, TEN)
    assert failed.failures == {THIS: "the process has ended: code -11"}
    assert len(right.sittings) == 10
    assert right.verdict is not None


def test_other_results_are_told():
    made = against(pretended(results={THIS: 1.0, OTHER: 1.25}))
    [found] = made.run([JOB], TEN)
    assert found.off == 0.25
    assert "differ, 2e-01" in said([found], made)


def test_noise_that_hides_changes_is_told():
    made = against(pretended(noise=0.3))
    [found] = made.run([JOB], TEN)
    assert "noise hides changes" in said([found], made)
    assert len(found.sittings) == 20, "noise gets as many sittings again"


def test_data_is_plain_json():
    made = against(pretended())
    data = json.loads(json.dumps([each.as_data() for each in made.run([JOB], PairEffort(0, 2))]))
    assert data[0]["us"][THIS] == {"calls": 2, "p50": 1000.0, "p99": 1000.0, "worst": 1000.0}
    assert data[0]["verdict"]["says"] == "not known: below 6 sittings"
    assert len(data[0]["sittings"]) == 2


def test_other_environments_are_told():
    class Different(Pretended):
        def __init__(self, place, folder):
            super().__init__(place, folder)
            if self.side == OTHER:
                self.about = {**self.about, "numpy": "1"}

    assert "this revision runs on numpy 2, the other on 1" in against(Different).notes


# --- places and real processes ---------------------------------------------------------------------------------------

SESSION = """
class InferenceSession:
    def __init__(self, model, backend="auto", fixed=None):
        print("not an answer")
        if "refused" in model: raise ValueError("no such op\\nand a long story")
        if "crash" in model:
            import os; os._exit(7)
    def run(self, names, feeds):
        return [feeds["x"] + 1]
    def stream(self, carry):
        return Stream()
    def pool(self, depth, carry):
        return Pool()

class Stream:
    total = 0
    def step(self, feeds):
        self.total += feeds["x"]
        return [self.total]

class Pool:
    def __init__(self):
        self.fed, self.n = {}, 0
    def open(self):
        self.n += 1
        return self.n
    def submit(self, handle, feeds):
        self.fed[handle] = feeds
    def tick(self):
        return {handle: [feeds["x"]] for handle, feeds in self.fed.items()}
"""


@pytest.fixture
def checkout(tmp_path):
    """With a webrnn that does little."""
    package = tmp_path / "checkout" / "runtime" / "webrnn"
    (package / "_kernels").mkdir(parents=True)
    (package / "__init__.py").write_text(f'__version__ = "9.9"\n{SESSION}')
    (package / "_kernels" / "kernels.json").write_text("{}")
    return tmp_path / "checkout"


@pytest.fixture
def feeds(tmp_path):
    np.savez(tmp_path / "feeds.npz", **{f"{number}:x": np.float32([number]) for number in range(3)})
    return str(tmp_path / "feeds.npz")


def test_a_worker_runs_the_revision_of_its_place(checkout, feeds, tmp_path):
    worker = Worker(place_of(str(checkout)), tmp_path)
    assert worker.about["package"] == str((checkout / "runtime" / "webrnn").resolve())
    assert worker.about["version"] == "9.9"
    how = {"model": "m", "backend": "native", "fixed": {}, "feeds": feeds}
    expected = {"run": [3.0], "stream": [3.0], "pool": [2.0, 0.0]}
    for name, options in (("run", {}), ("stream", {"carry": "auto"}), ("pool", {"carry": "auto", "depth": 2})):
        worker.ask("prepare", name=name, results=str(tmp_path / "r.npz"), **how, **options)
        with np.load(tmp_path / "r.npz") as arrays:
            assert [float(arrays[each][0]) for each in arrays.files] == expected[name]
        assert worker.ask("block", name=name, calls=5)["seconds"] > 0
        worker.ask("finish", name=name, times=str(tmp_path / "t.npy"))
        assert np.load(tmp_path / "t.npy").shape == (5,)
    with pytest.raises(BackendError, match=r"^ValueError: no such op$"):
        worker.ask("prepare", name="a", results="", **{**how, "model": "refused"})
    assert worker.is_alive
    with pytest.raises(BackendError, match="has ended: code 7"):
        worker.ask("prepare", name="a", results="", **{**how, "model": "crash"})
    with pytest.raises(BackendError, match="has ended"):
        worker.ask("about")
    worker.close()


def test_code_of_another_revision_in_a_worker_is_refused(checkout, feeds, tmp_path):
    stranger = tmp_path / "stranger.py"
    stranger.write_text("")
    with open(checkout / "runtime" / "webrnn" / "__init__.py", "a") as file:
        file.write("\nimport importlib.util as u, sys\n")
        file.write(f"spec = u.spec_from_file_location('webrnn.x', {str(stranger)!r})\n")
        file.write("sys.modules['webrnn.x'] = u.module_from_spec(spec)\n")
    worker = Worker(place_of(str(checkout)), tmp_path)
    with pytest.raises(BackendError, match=r"not the revision alone: .*stranger\.py"):
        worker.ask("prepare", name="a", results="", model="m", backend="native", fixed={}, feeds=feeds)
    worker.close()


def test_another_package_than_that_of_the_place_is_refused(checkout, tmp_path):
    wrong = Place(sys.executable, checkout / "runtime" / "other")
    (checkout / "runtime" / "other").mkdir()
    with pytest.raises(BackendError, match=r"it runs .*, not .*other"):
        Worker(wrong, tmp_path)


def test_a_revision_that_does_not_start_is_named(checkout):
    (checkout / "runtime" / "webrnn" / "__init__.py").write_text("import no_such_module")
    with pytest.raises(BackendError, match=r"the other revision cannot be started .*No module named 'no_such_module'"):
        Against(place_of(str(checkout))).find_out()


def test_places(checkout, tmp_path):
    assert place_of(str(checkout)) == Place(sys.executable, (checkout / "runtime" / "webrnn").resolve())
    assert place_of(str(CHECKOUT)) == own_place()
    assert place_of(sys.executable) == Place(sys.executable)
    environment = tmp_path / "environment"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(sys.executable)
    assert place_of(str(environment)) == Place(str(environment / "bin" / "python"))
    (checkout / "runtime" / "webrnn" / "_kernels" / "kernels.json").unlink()
    with pytest.raises(OptionError, match="kernels are not built: run `make setup`"):
        place_of(str(checkout))
    with pytest.raises(OptionError, match="neither"):
        place_of("")
    for wrong in (tmp_path, tmp_path / "nowhere", Path(__file__)):
        with pytest.raises(OptionError, match="neither the root of a checkout of webrnn nor a Python"):
            place_of(str(wrong))
