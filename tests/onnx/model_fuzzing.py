"""Mutated models on every backend, and on onnxruntime: `python -m tests.onnx.model_fuzzing --models 1000 --seed 7`.

A model is refused by all backends with a webrnn.Error, or runs on all with the same results. Everything else is a
failure: another exception, a crash, a run without end, memory without bounds, verdicts or results that differ, numbers
that differ from onnxruntime's. Failures of one cause are one line of the table at the end; the line names the seeds of
models, and `--reproduce SEED` shows such a model and what each backend made of it.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing import connection
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from onnx import ModelProto, printer

import webrnn
from tests.onnx.fuzz_deviations import deviation_in, has_ordinary_numbers
from tests.onnx.fuzz_mutations import mutate
from tests.onnx.fuzz_seeds import all_seeds, own_seeds, suite_seeds
from tests.onnx.fuzz_verdicts import Finding, Trial, are_empty, difference, is_finite
from tests.onnx.mutations import mutated
from webrnn import net
from webrnn.reference import sizes

LARGEST_TENSOR = 1 << 24
MOST_GROWTH = 1 << 20
"""In KiB: how much more memory one model may take than all before it."""
SECONDS = 60
"""After which a model that still runs is a failure; the limits of a run end it much earlier."""
ONNXRUNTIME_SECONDS = 10
SECONDS_BETWEEN_LINES = 15
WASM_BYTES = 1 << 26
"""When so much of a wasm instance's memory is used, there is a new one."""
LIMITS = webrnn.Limits(loop_steps=1000, run_steps=5000, seconds=10)
STEPS = {
    "Floor",
    "Ceil",
    "Round",
    "Sign",
    "Cast",
    "ArgMax",
    "ArgMin",
    "TopK",
    "Hardmax",
    "Equal",
    "Less",
    "Greater",
    "Mod",
    "Sqrt",
    "Log",
    "DFT",
    "STFT",
    "GroupNormalization",
}
"""Ops that make a large difference of a small one, and those that onnxruntime computes less exactly."""

FORGET_NAN = {"ReduceMax", "ReduceMin", "Max", "Min", "MaxPool", "GlobalMaxPool", "Clip", "Relu"}

_FORK = multiprocessing.get_context("fork")


@dataclass
class Case:
    """A model to try, and how it was made."""

    data: bytes
    text: str
    """What was done to which model."""
    known: dict[str, Any]
    is_parsed: bool
    """Whether it is a model that was changed as one, not bytes."""


def make_case(seed: int) -> Case:
    """The model of a seed; the same on every machine that has the same `onnx`."""
    rng = random.Random(seed)
    chosen = rng.choice(own_seeds() if rng.random() < 0.6 else suite_seeds())
    if rng.random() < 0.15:
        other = rng.choice(all_seeds())
        files = [chosen.model.SerializeToString(), other.model.SerializeToString()]
        return Case(mutated(files, np.random.default_rng(seed)), f"bytes of {chosen.name}, {other.name}", {}, False)
    model = ModelProto()
    model.CopyFrom(chosen.model)
    done = mutate(model, rng) if rng.random() < 0.97 else ["as it is"]
    return Case(model.SerializeToString(), f"{chosen.name}: {'; '.join(done)}", chosen.feeds, True)


@dataclass
class Tally:
    """What a campaign found."""

    models: int = 0
    ran: int = 0
    compared: int = 0
    """With onnxruntime."""
    notes: Counter[str] = field(default_factory=Counter)
    """What is counted and is no failure."""
    failures: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """By signature: seeds, and what was seen."""

    def add(self, seed: int, findings: Iterable[Finding], text: str = "") -> None:
        for finding in findings:
            self.failures.setdefault(finding.signature, []).append((seed, f"{finding.what} [{text[:160]}]"))

    def table(self) -> str:
        lines = []
        for signature, cases in sorted(self.failures.items(), key=lambda item: -len(item[1])):
            seeds = " ".join(str(seed) for seed, _ in cases[:3])
            lines.append(f"{len(cases):6} {signature}\n       {seeds}: {cases[0][1]}")
        return "\n".join(lines)

    def summary(self) -> str:
        notes = "".join(f"\n  {count} {what}" for what, count in self.notes.most_common(40))
        failed = sum(map(len, self.failures.values()))
        return (
            f"{self.models} models, {self.ran} ran, {self.compared} compared with onnxruntime, "
            f"{failed} failures of {len(self.failures)} kinds{notes}"
        )


class OnnxRuntime:
    """onnxruntime in a process of its own, which may crash."""

    def __init__(self) -> None:
        self._process: Any = None

    def run(self, data: bytes, feeds: dict[str, Any]) -> list[Any] | str:
        """Results, or why there are none."""
        if self._process is None:
            self._pipe, theirs = _FORK.Pipe()
            self._process = _FORK.Process(target=_serve_onnxruntime, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        try:
            self._pipe.send((data, feeds))
            if self._pipe.poll(ONNXRUNTIME_SECONDS):
                return self._pipe.recv()
            return self._end("onnxruntime does not end")
        except (EOFError, OSError):  # also in the middle of a message
            return self._end("onnxruntime crashes")

    def _end(self, why: str) -> str:
        self._process.kill()
        self._process.join()
        self._process = None
        return why


def _serve_onnxruntime(pipe: Any) -> None:
    # Ends of pipes that others wait on, which a fork has too: their owner's death would go unnoticed.
    os.closerange(3, pipe.fileno())
    os.closerange(pipe.fileno() + 1, 1024)
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    while True:
        try:
            data, feeds = pipe.recv()
        except EOFError:
            return
        try:
            session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
            pipe.send(session.run(None, feeds))
        except Exception:
            pipe.send("onnxruntime refuses")


class Tester:
    """Tries models, in one process."""

    def __init__(self, use_onnxruntime: bool):
        self.onnxruntime = OnnxRuntime() if use_onnxruntime else None
        share_wasm_instances()
        net.strict = False
        sizes.set_max_bytes(LARGEST_TENSOR)

    def try_model(self, seed: int) -> tuple[Case, Trial, list[Finding], list[str]]:
        """What was found, and what is only counted."""
        case = make_case(seed)
        trial = Trial(case.data, case.known, seed, LIMITS)
        net.caught.clear()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        trial.run()
        findings = trial.findings()
        notes = [f"caught by the net: {what}" for what in net.caught]
        growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        if growth > MOST_GROWTH:
            findings.append(Finding("memory", trial.ops(), f"{growth >> 10} MiB"))
        if self.onnxruntime is not None and case.is_parsed and not findings:
            found, note = self._compare(case, trial)
            findings += found
            notes += [note]
        return case, trial, findings, notes

    def _compare(self, case: Case, trial: Trial) -> tuple[list[Finding], str]:
        """With onnxruntime, where it accepts what we accept."""
        feeds, ours = trial.feeds[0], trial.outcomes[0]["numpy"]
        arrays = [item for value in feeds.values() for item in (value if isinstance(value, list) else [value])]
        if any(item is None or item.dtype.names for item in arrays):
            return [], "feeds that onnxruntime does not take"
        if not all(map(is_finite, feeds.values())) or not has_ordinary_numbers(case.data):
            return [], "infinities, or what soon is one, for which onnxruntime's ops have no rule"
        deviation = deviation_in(case.data, feeds)
        if deviation is not None:
            return [], f"onnxruntime {deviation}"
        theirs = self.onnxruntime.run(case.data, feeds)  # type: ignore[union-attr]
        if isinstance(theirs, str):
            return [], f"{theirs}, we {'run' if ours.results is not None else 'refuse'}"
        if ours.results is None:
            return [], f"onnxruntime runs, we refuse: {getattr(ours.error, 'op', None) or trial.ops()}"
        ops = trial.ops().split()
        pairs = list(zip(theirs, ours.results, strict=False))
        finite = all(map(is_finite, ours.results))
        if "Scan" in ops:  # the shapes of what a loop of no steps gives are whatever is declared
            pairs = [pair for pair in pairs if not all(map(are_empty, [pair[:1], pair[1:]]))]
        what = difference([theirs for theirs, _ in pairs], [ours for _, ours in pairs])
        if what.startswith("numbers") and {"Scan", "Shape"} <= {*ops}:
            return [], "shapes of what a loop gives: of one without steps onnxruntime has others"
        if what.startswith("shape") and trial.counts_numbers():
            return [], "sizes that depend on roundings, of which onnxruntime has others"
        if what.startswith("numbers") and len(ops) > 1 and any(a.dtype == np.float16 for a in arrays):
            return [], "half floats, which onnxruntime rounds less often"
        if what.startswith("numbers") and any(a.dtype == np.float16 for a in arrays) and not finite:
            return [], "half floats beyond their range, which onnxruntime reaches elsewhere"
        if what.startswith("numbers") and FORGET_NAN.intersection(ops) and not finite:
            return [], "NaN, which onnxruntime forgets in a maximum"
        if what.startswith("numbers") and len(ops) > 1 and STEPS.intersection(ops):
            return [], "numbers behind a step that differ from onnxruntime's"
        if what and not (what.startswith("numbers") and trial.is_sensitive(feeds, ours.results, theirs)):
            return [Finding("onnxruntime", trial.ops(), what)], "compared"
        return [], "compared"


def share_wasm_instances() -> None:
    """Let programs share an instance until it is full: a new one for each takes longer than a small model."""
    from webrnn.engine.kernels import loading as kernels
    from webrnn.engine.programs import backends

    original = backends.kernels_of
    current: dict[str, Any] = {}

    def shared(backend: str, threads: int = 1) -> Any:
        if not backend.startswith("wasm"):
            return original(backend, threads)
        found = current.get(backend)
        if found is None or found._top > WASM_BYTES:
            found = current[backend] = kernels.load(backend)
        return lambda: found

    backends.kernels_of = shared


def _work(pipe: Any, log: str, seeds: Iterable[int], use_onnxruntime: bool) -> None:
    """A worker: it says which seed it begins before it does, so that its death has a cause."""
    tester = Tester(use_onnxruntime)
    with open(log, "w") as file:
        faulthandler.enable(file)
        for seed in seeds:
            pipe.send(seed)
            file.seek(0)
            file.truncate()
            faulthandler.dump_traceback_later(SECONDS, exit=True, file=file)
            try:
                case, trial, findings, notes = tester.try_model(seed)
            except BaseException:
                traceback.print_exc(file=file)
                raise
            faulthandler.cancel_dump_traceback_later()
            pipe.send((seed, case.text, trial.ran, findings, notes))
    pipe.send(None)


class Worker:
    """A worker as its parent sees it; one that dies is replaced by one that goes on behind the fatal model."""

    def __init__(self, seeds: range, use_onnxruntime: bool, folder: str):
        self.seeds, self.use_onnxruntime = seeds, use_onnxruntime
        self.log = os.path.join(folder, f"worker_{seeds.start}")
        self._start(seeds)

    def _start(self, seeds: range) -> None:
        self.at, self.is_done = seeds.start, False
        self.pipe, theirs = _FORK.Pipe(duplex=False)
        self.process = _FORK.Process(target=_work, args=(theirs, self.log, seeds, self.use_onnxruntime))
        self.process.start()
        theirs.close()

    def receive(self, tally: Tally) -> None:
        try:
            message = self.pipe.recv()
        except EOFError:
            self._bury(tally)
            return
        if message is None:
            self.is_done = True
            self.process.join()
        elif isinstance(message, int):
            self.at = message
        else:
            seed, text, ran, findings, notes = message
            tally.models += 1
            tally.ran += ran
            tally.compared += notes.count("compared")
            tally.notes.update(note for note in notes if note != "compared")
            tally.add(seed, findings, text)

    def _bury(self, tally: Tally) -> None:
        self.process.join()
        with open(self.log) as file:
            lines = file.read().splitlines()
        places = [line.strip() for line in lines if "/webrnn/" in line or "/tests/" in line]
        kind = "hang" if any("Timeout" in line for line in lines) else f"crash ({self.process.exitcode})"
        where = places[0].partition("webrnn/")[2].rpartition("webrnn/")[2] if places else "?"
        tally.models += 1
        tally.add(self.at, [Finding(kind, where, " < ".join(places[:4]))], make_case(self.at).text)
        self._start(self.seeds[self.seeds.index(self.at) + 1 :])

    def stop(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.process.join()


def campaign(models: int, seed: int, jobs: int = 1, use_onnxruntime: bool = True, quiet: bool = True) -> Tally:
    """Try the models of seeds from `seed` on."""
    all_seeds()
    tally, started = Tally(), time.monotonic()
    last, shown = started, 0
    with tempfile.TemporaryDirectory() as folder:
        workers = [Worker(range(seed + job, seed + models, jobs), use_onnxruntime, folder) for job in range(jobs)]
        try:
            while active := [worker for worker in workers if not worker.is_done]:
                ready = connection.wait([worker.pipe for worker in active], timeout=5)
                for worker in active:
                    if worker.pipe in ready:
                        worker.receive(tally)
                if not quiet:
                    for signature in list(tally.failures)[shown:]:
                        shown += 1
                        print(f"  {signature} ({tally.failures[signature][0][0]})", flush=True)
                if not quiet and time.monotonic() - last > SECONDS_BETWEEN_LINES:
                    last = time.monotonic()
                    rate = tally.models / (last - started)
                    print(f"{tally.models} models, {rate:.0f} a second, {len(tally.failures)} kinds", flush=True)
        except KeyboardInterrupt:
            print("stopped")
        finally:
            for worker in workers:
                worker.stop()
    return tally


def reproduce(seed: int, use_onnxruntime: bool) -> None:
    """Show the model of a seed and what each backend makes of it."""
    case = make_case(seed)
    print(f"seed {seed}: {case.text}")
    try:
        model = ModelProto.FromString(case.data)
        print(printer.to_text(model))
    except Exception as error:
        print(f"no text: {error}")
    case, trial, findings, notes = Tester(use_onnxruntime).try_model(seed)
    for feeds, row in zip(trial.feeds, trial.outcomes, strict=True):
        for name, value in feeds.items():
            shape = list(value.shape) if isinstance(value, np.ndarray) else ""
            print(f"feed {name}: {getattr(value, 'dtype', '')}{shape} {value!r:.400}")
        for backend, outcome in row.items():
            print(f"  {backend}: {outcome}")
    for finding in findings:
        print(f"{finding.signature}: {finding.what}")
    print(*notes)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Mutated models on every backend.")
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first model; the next one has the next seed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--no-onnxruntime", action="store_true", help="compare our own backends only")
    parser.add_argument("--reproduce", type=int, metavar="SEED", help="show one model and all verdicts")
    options = parser.parse_args(argv)
    if options.reproduce is not None:
        reproduce(options.reproduce, not options.no_onnxruntime)
        return 0
    tally = campaign(options.models, options.seed, options.jobs, not options.no_onnxruntime, quiet=False)
    print(tally.table())
    print(tally.summary())
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
