"""Benchmark models for the page: plans, inputs, what native builds compute, and how long they take on this machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.bench import machine
from webrnn.bench.case import Case, built_in
from webrnn.bench.models import TITLES
from webrnn.bench.rounds import Effort, Result, measure
from webrnn.bench.runners import PlanRunner, Timed
from webrnn.engine.kernels import loading as kernels
from webrnn.engine.kernels import native
from webrnn.engine.programs.plan_program import PlanProgram
from webrnn.engine.session import InferenceSession

MODELS = (
    "rnn_128", "gru_128", "lstm_128", "rnn_256", "gru_256", "lstm_256", "gru_128_t1", "dtln_t1", "scan_wlstm_128",
    "loop_accum",
)  # fmt: skip
ROUNDS = 15
SECONDS = 1.5
"""For each model at least, as `webrnn bench` counts them."""
MOST_SITTINGS = 6
"""Twice as many as there are on a calm machine: a model that was disturbed is timed again."""


def write(folder: Path, say: Callable[[str], None] = print, rounds: int = ROUNDS) -> None:
    """Files for each model below `models/`, and timings.json."""
    (folder / "models").mkdir(parents=True)
    spec = native.available()[0]
    rows, runners = [], []
    for name in MODELS:
        row, runner = _write_model(folder / "models", built_in(name), native.available())
        rows.append({"title": TITLES[name], **row})
        runners.append(runner)
    say(f"timing {len(rows)} models natively")
    results = timed(runners, Effort(SECONDS if rounds >= ROUNDS else 0.0, rounds))
    for row, result in zip(rows, results, strict=True):
        row |= {"native": {spec: result.calm * 1e3}, "busy": result.is_busy}
    if any(result.is_busy for result in results):
        say("the machine was busy: the native timings may be too long")
    description = {
        "processor": processor(),
        "load": machine.load(),
        "native": spec,
        "rounds": min(len(result.seconds) for result in results),
        "models": rows,
    }
    (folder / "timings.json").write_text(json.dumps(description, indent=1))


def timed(runners: Sequence[Timed], effort: Effort) -> list[Result]:
    """Each in rounds as those of `webrnn bench`, in several sittings between which the others have theirs. Those that
    were disturbed have more of them."""
    results = [Result("native") for _ in runners]
    for sitting in range(MOST_SITTINGS if effort.seconds else effort.n_sittings):
        for runner, result in zip(runners, results, strict=True):
            if sitting < effort.n_sittings or result.is_busy:
                measure([(runner, result)], effort.part())
    return results


def _write_model(folder: Path, case: Case, specs: list[str]) -> tuple[dict[str, Any], PlanRunner]:
    """Its description, and what runs it on the first of these builds."""
    plan = folder / f"{case.name}.rnn"
    InferenceSession(case.model, backend="native").export(plan)
    (folder / f"{case.name}.onnx").write_bytes(case.data())
    programs = {spec: PlanProgram(plan.read_bytes(), kernels.load(spec)) for spec in specs}
    runners = {spec: PlanRunner(spec, program, case.feeds) for spec, program in programs.items()}
    results = {spec: runner.results() for spec, runner in runners.items()}
    outputs = results[specs[0]]
    (folder / f"{case.name}.inputs.bin").write_bytes(_joined(list(case.feeds.values())))
    (folder / f"{case.name}.outputs.bin").write_bytes(_joined(outputs))
    names = [port.name for port in programs[specs[0]].file.outputs]
    return {
        "name": case.name,
        "inputs": [{"name": name, "shape": list(array.shape)} for name, array in case.feeds.items()],
        "outputs": [
            {"name": name, "shape": list(array.shape)} for name, array in zip(names, outputs, strict=True)
        ],
        "digests": {spec: hashlib.sha256(_joined(arrays)).hexdigest() for spec, arrays in results.items()},
    }, runners[specs[0]]  # fmt: skip


def _joined(arrays: list[np.ndarray]) -> bytes:
    return b"".join(array.astype("<f4").tobytes() for array in arrays)


def processor() -> str:
    """The name of this machine's processor, without trademarks and the like."""
    name = machine.processor().replace("(R)", "").replace("(TM)", "").replace(" Processor", "")
    return " ".join(name.partition("@")[0].split())
