"""Benchmark models for the page: plans, inputs, what native builds compute, and how long they take on this machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.bench import machine
from webrnn.bench.case import Case, built_in
from webrnn.bench.models import TITLES
from webrnn.bench.rounds import race
from webrnn.bench.runners import PlanRunner
from webrnn.engine.kernels import loading as kernels
from webrnn.engine.kernels import native
from webrnn.engine.programs.plan_program import PlanProgram
from webrnn.engine.session import InferenceSession

MODELS = (
    "rnn_128", "gru_128", "lstm_128", "rnn_256", "gru_256", "lstm_256", "gru_128_t1", "dtln_t1", "scan_wlstm_128",
    "loop_accum",
)  # fmt: skip
ROUNDS = 15


def write(folder: Path, say: Callable[[str], None] = print, rounds: int = ROUNDS) -> None:
    """Files for each model below `models/`, and timings.json."""
    (folder / "models").mkdir(parents=True)
    specs = native.available()
    rows = []
    for name in MODELS:
        say(f"timing {TITLES[name]} natively")
        rows.append({"title": TITLES[name], **_write_model(folder / "models", built_in(name), specs, rounds)})
    description = {
        "processor": processor(),
        "load": machine.load(),
        "native": specs[0],
        "rounds": rounds,
        "models": rows,
    }
    (folder / "timings.json").write_text(json.dumps(description, indent=1))


def _write_model(folder: Path, case: Case, specs: list[str], rounds: int) -> dict[str, Any]:
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
        "native": {result.runner: result.median * 1e3 for result in race(runners, rounds)},
        "digests": {spec: hashlib.sha256(_joined(arrays)).hexdigest() for spec, arrays in results.items()},
    }  # fmt: skip


def _joined(arrays: list[np.ndarray]) -> bytes:
    return b"".join(array.astype("<f4").tobytes() for array in arrays)


def processor() -> str:
    """The name of this machine's processor, without trademarks and the like."""
    name = machine.processor().replace("(R)", "").replace("(TM)", "").replace(" Processor", "")
    return " ".join(name.partition("@")[0].split())
