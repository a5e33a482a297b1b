"""`--against`: this revision and another one, a process each, in interleaved rounds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.errors import BackendError, Error, OptionError

from .pairs import PairEffort, Sitting, in_us, sit
from .revision import KERNELS, OWN_PACKAGE, Revision, revision
from .rounds import apart
from .verdict import Verdict, verdict

SCRIPT = Path(__file__).with_name("revision_worker.py")
ANSWER_SECONDS = 600
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
"""numpy's products run on one thread, as everything else that is timed does."""
THIS, OTHER = "this", "other"


@dataclass(frozen=True)
class Place:
    """Where a revision is."""

    python: str
    package: Path | None = None
    """The package that has to be the one that runs; None: whichever that Python has installed."""


def own_place() -> Place:
    return Place(sys.executable, OWN_PACKAGE)


def place_of(text: str) -> Place:
    """The root of a checkout, whose kernels are built; or a Python, or an environment's folder, with webrnn in it."""
    path = Path(text)
    if text and path.is_dir():
        package = path.resolve() / "runtime" / "webrnn"
        if (package / "__init__.py").exists():
            if not (package / KERNELS / "kernels.json").exists():
                raise OptionError(f"--against {text}: its kernels are not built: run `make setup` there")
            return Place(sys.executable, package)
        python = next((path / name for name in ("bin/python", "Scripts/python.exe") if (path / name).exists()), None)
        if python is not None:
            return Place(str(python.absolute()))
    elif path.is_file() and os.access(path, os.X_OK):
        return Place(str(path.absolute()))
    raise OptionError(
        f"--against {text}: that is neither the root of a checkout of webrnn nor a Python that has it installed"
    )


class Worker:
    """A process that runs one revision."""

    def __init__(self, place: Place, folder: Path):
        """`folder` is its own, or that of workers of the same bench."""
        script = folder / SCRIPT.name
        shutil.copyfile(SCRIPT, script)
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        environment |= ONE_THREAD
        if place.package is not None:
            environment["PYTHONPATH"] = str(place.package.parent)
        self._said = folder / f"said-{id(self)}.txt"
        with open(self._said, "w") as said:
            self._process = subprocess.Popen(
                [place.python, str(script)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True, env=environment, cwd=folder,
            )  # fmt: skip
        try:
            self.about = self.ask("about")
            package = Path(self.about["package"])
            if place.package not in (None, package):
                raise BackendError(f"it runs {package}, not {place.package}")
        except BaseException:
            self.close()
            raise

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, what: str, **request: Any) -> dict[str, Any]:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(ANSWER_SECONDS, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps({"what": what, **request}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            raise BackendError(f"the process has ended: {self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise BackendError(answer["error"])
        return answer

    def _last_words(self) -> str:
        code = self._process.wait()
        lines = self._said.read_text().strip().splitlines()
        return ": ".join([f"code {code}", *lines[-1:]])

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except BrokenPipeError:
                pass
        self._process.wait()


class _WorkerSide:
    def __init__(self, worker: Worker, name: str):
        self._worker, self._name = worker, name

    def block(self, calls: int) -> float:
        return float(self._worker.ask("block", name=self._name, calls=calls)["seconds"])


@dataclass(frozen=True)
class Job:
    """What both revisions run."""

    model: str
    """Its name."""
    way: str
    depth: int
    how: Mapping[str, Any]
    """What a worker takes to prepare it."""


@dataclass
class Paired:
    """Both revisions on a job."""

    job: Job
    sittings: list[Sitting] = field(default_factory=list)
    """The other revision is the base."""
    seconds: dict[str, list[float]] = field(default_factory=lambda: {THIS: [], OTHER: []})
    """Of all calls of each side."""
    off: float | None = None
    """How far results are apart; 0 if they have the same bits."""
    failures: dict[str, str] = field(default_factory=dict)
    """Why a side cannot run it."""

    @property
    def verdict(self) -> Verdict | None:
        return verdict([each.ratio for each in self.sittings]) if self.sittings and not self.failures else None

    def as_data(self) -> dict[str, Any]:
        said = self.verdict
        return {
            "model": self.job.model,
            "way": self.job.way,
            "depth": self.job.depth,
            "us": {side: in_us(seconds) for side, seconds in self.seconds.items() if seconds},
            "verdict": said.as_data() if said else None,
            "sittings": [each.as_data() for each in self.sittings],
            "difference": self.off,
            "failures": self.failures,
        }


class Against:
    """Runs jobs on two revisions. Each sitting has new processes."""

    def __init__(self, other: Place, this: Place | None = None, start: Callable[[Place, Path], Any] = Worker):
        self.places = {THIS: this or own_place(), OTHER: other}
        self.revisions: dict[str, Revision] = {}
        self.notes: list[str] = []
        self._start = start
        self._about: dict[str, dict[str, Any]] = {}

    def find_out(self) -> None:
        """Which revisions they are; raises if one cannot be started."""
        with tempfile.TemporaryDirectory(prefix="webrnn-bench-") as folder, self._workers(Path(folder)) as workers:
            for side, worker in workers.items():
                self._about[side] = worker.about
                self.revisions[side] = revision(Path(worker.about["package"]), worker.about["version"])
        if self.revisions[THIS].is_the_code_of(self.revisions[OTHER]):
            self.notes.append("both revisions are the same code: what differs is noise")
        for what in ("python", "numpy"):
            here, there = (self._about[side][what] for side in (THIS, OTHER))
            if here != there:
                self.notes.append(f"this revision runs on {what} {here}, the other on {there}")

    @contextmanager
    def _workers(self, folder: Path) -> Iterator[dict[str, Any]]:
        with ExitStack() as stack:
            workers = {}
            for side, place in self.places.items():
                try:
                    workers[side] = self._start(place, folder)
                except (Error, OSError) as error:
                    raise BackendError(f"the {side} revision cannot be started ({place.python}): {error}") from None
                stack.callback(workers[side].close)
            yield workers

    def run(
        self, jobs: Sequence[Job], effort: PairEffort, say: Callable[[str], None] = lambda line: None
    ) -> list[Paired]:
        """What noise hides after all sittings gets as many again, once."""
        found = [Paired(job) for job in jobs]
        chosen = found
        for number in range(2):
            for sitting in range(effort.n_sittings):
                left = [each for each in chosen if not each.failures]
                self._sit_until_done(left, effort.part(), number * effort.n_sittings + sitting, say)
            chosen = [each for each in found if each.verdict is not None and each.verdict.is_loud]
        return found

    def _sit_until_done(self, left: list[Paired], part: PairEffort, sitting: int, say: Callable[[str], None]) -> None:
        while left:  # a process that ends takes one job with it, not those behind
            with tempfile.TemporaryDirectory(prefix="webrnn-bench-") as folder:
                left = self._sit(left, Path(folder), part, sitting, say)

    def _sit(
        self, left: list[Paired], folder: Path, part: PairEffort, sitting: int, say: Callable[[str], None]
    ) -> list[Paired]:
        """What is left because a process has ended."""
        with self._workers(folder) as workers:
            sides = list(workers)[:: 1 if sitting % 2 == 0 else -1]
            for place, each in enumerate(left):
                say(f"sitting {sitting + 1}: {each.job.model} {each.job.way} {each.job.depth}")
                self._prepare(each, {side: workers[side] for side in sides}, folder)
                if not each.failures:
                    try:
                        self._measure(each, workers, folder, part)
                    except BackendError as error:
                        each.failures[_who_ended(workers)] = str(error)
                if not all(worker.is_alive for worker in workers.values()):
                    return left[place + 1 :]
        return []

    def _prepare(self, each: Paired, workers: Mapping[str, Any], folder: Path) -> None:
        results = {}
        for side, worker in workers.items():
            file = folder / f"{side}.npz"
            try:
                worker.ask("prepare", name="job", results=str(file), **each.job.how)
                with np.load(file, allow_pickle=False) as arrays:
                    results[side] = [arrays[name] for name in arrays.files]
            except (BackendError, ValueError) as error:
                each.failures[side] = str(error)
        if not each.failures:
            each.off = apart(results[THIS], results[OTHER])

    def _measure(self, each: Paired, workers: Mapping[str, Any], folder: Path, part: PairEffort) -> None:
        sides = {side: _WorkerSide(worker, "job") for side, worker in workers.items()}
        each.sittings.append(sit(sides[OTHER], sides[THIS], part))
        for side, worker in workers.items():
            file = folder / f"{side}.npy"
            worker.ask("finish", name="job", times=str(file))
            each.seconds[side] += np.load(file).tolist()


def _who_ended(workers: Mapping[str, Any]) -> str:
    return next((side for side, worker in workers.items() if not worker.is_alive), THIS)
