"""Benchmark models for the page: plans, inputs, what native builds compute, and how long they take on this machine."""

from __future__ import annotations

import hashlib
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.bench import machine
from webrnn.bench.case import Case, built_in
from webrnn.engine import kernels, native
from webrnn.engine.plan_program import PlanProgram
from webrnn.engine.session import InferenceSession

TITLES = {
    "rnn_128": "RNN 128, 50 steps",
    "gru_128": "GRU 128, 50 steps",
    "lstm_128": "LSTM 128, 50 steps",
    "rnn_256": "RNN 256, 100 steps",
    "gru_256": "GRU 256, 100 steps",
    "lstm_256": "LSTM 256, 100 steps",
    "gru_128_t1": "GRU 128, one step",
    "dtln_t1": "2 × LSTM 128, one step",
    "scan_wlstm_128": "Custom cell in a Scan",
    "loop_accum": "Loop",
}
ROUNDS = 15
SLICE_SECONDS = 0.01


@dataclass
class Recording:
    """One model on one native build."""

    spec: str
    program: PlanProgram
    digest: str

    def per_run(self, seconds: float = SLICE_SECONDS) -> float:
        """Milliseconds of a run, from as many as fit into a slice."""
        runs, start = 0, time.perf_counter()
        while True:
            self.program.execute()
            runs += 1
            spent = time.perf_counter() - start
            if spent >= seconds:
                return spent * 1e3 / runs


def write(folder: Path, say: Callable[[str], None] = print, rounds: int = ROUNDS) -> None:
    """Files for each model below `models/`, and timings.json."""
    (folder / "models").mkdir(parents=True)
    specs = native.available()
    rows = []
    for name, title in TITLES.items():
        say(f"timing {title} natively")
        rows.append({"title": title, **_write_model(folder / "models", built_in(name), specs, rounds)})
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
    recordings = [_recording(plan.read_bytes(), spec, case.feeds) for spec in specs]
    outputs = [output.copy() for output in recordings[0].program.outputs]
    (folder / f"{case.name}.inputs.bin").write_bytes(_joined(list(case.feeds.values())))
    (folder / f"{case.name}.outputs.bin").write_bytes(_joined(outputs))
    for recording in recordings:
        recording.per_run()
    samples = [[recording.per_run() for recording in recordings] for _ in range(rounds)]
    medians = [statistics.median(times) for times in zip(*samples, strict=True)]
    names = [port.name for port in recordings[0].program.file.outputs]
    return {
        "name": case.name,
        "inputs": [{"name": name, "shape": list(array.shape)} for name, array in case.feeds.items()],
        "outputs": [
            {"name": name, "shape": list(array.shape)} for name, array in zip(names, outputs, strict=True)
        ],
        "native": {recording.spec: ms for recording, ms in zip(recordings, medians, strict=True)},
        "digests": {recording.spec: recording.digest for recording in recordings},
    }  # fmt: skip


def _recording(plan: bytes, spec: str, feeds: dict[str, np.ndarray]) -> Recording:
    program = PlanProgram(plan, kernels.load(spec))
    program.bind(tuple(feeds[port.name].shape for port in program.file.inputs))
    for port, place in zip(program.file.inputs, program.inputs, strict=True):
        place[...] = feeds[port.name]
    program.execute()
    return Recording(spec, program, hashlib.sha256(_joined(program.outputs)).hexdigest())


def _joined(arrays: list[np.ndarray]) -> bytes:
    return b"".join(array.astype("<f4").tobytes() for array in arrays)


def processor() -> str:
    """The name of this machine's processor, without trademarks and the like."""
    name = machine.processor().replace("(R)", "").replace("(TM)", "").replace(" Processor", "")
    return " ".join(name.partition("@")[0].split())
