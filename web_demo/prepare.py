"""`python -m web_demo.prepare`: writes build/demo/, a folder of static files that any web server can serve.

Next to the page and the wasm kernels it holds a GRU with random weights (model.json, weights.bin), the states that
each native build of the kernels computes for it (expected.bin) and how long they take on this machine (native.json).
"""

from __future__ import annotations

import json
import platform
import shutil
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wasm_kernels.table import ACTIVATIONS, packed_size
from webrnn.engine import kernels, native
from webrnn.engine.wasm import VARIANTS

SOURCE = Path(__file__).resolve().parent
OUTPUT = SOURCE.parent / "build" / "demo"
PAGE_FILES = ("*.html", "*.css", "*.js")

SIGMOID_TANH = ACTIVATIONS.index("sigmoid") | ACTIVATIONS.index("tanh") << 8
NO_CLIP = (np.inf, 0, 0, 0, 0)  # clip threshold, then alpha and beta of both activations
STEPS, INPUTS, HIDDEN = 100, 256, 256
ROUNDS = 61


@dataclass(frozen=True)
class Model:
    """A GRU as ONNX has it (linear_before_reset = 1), gates in the order z, r, n, and a sequence to run it on."""

    x: np.ndarray[Any, Any]  # [steps, inputs]
    w: np.ndarray[Any, Any]  # [3 hidden, inputs]
    r: np.ndarray[Any, Any]  # [3 hidden, hidden]
    wb: np.ndarray[Any, Any]  # [3 hidden]
    rb: np.ndarray[Any, Any]  # [3 hidden]

    @staticmethod
    def random(steps: int = STEPS, inputs: int = INPUTS, hidden: int = HIDDEN, seed: int = 1) -> Model:
        rng = np.random.default_rng(seed)

        def weights(*shape: int) -> np.ndarray[Any, Any]:
            return (rng.uniform(-1, 1, shape) * hidden**-0.5).astype(np.float32)

        x = rng.standard_normal((steps, inputs), dtype=np.float32)
        return Model(
            x, weights(3 * hidden, inputs), weights(3 * hidden, hidden), weights(3 * hidden), weights(3 * hidden)
        )

    def tensors(self) -> dict[str, np.ndarray[Any, Any]]:
        return {"x": self.x, "w": self.w, "r": self.r, "wb": self.wb, "rb": self.rb}

    def packed(self) -> dict[str, int]:
        """Floats that each packed matrix takes."""
        return {name: packed_size(*self.tensors()[name].shape) for name in ("w", "r")}


class Gru:
    """The model on one build of the kernels, call for call what gru.js does."""

    def __init__(self, build: kernels.Kernels, model: Model):
        self.build, self.spec = build, build.spec
        self.buffers = {name: build.buffer(values) for name, values in model.tensors().items()}
        for name, size in model.packed().items():
            rows, columns = self.buffers[name].shape
            packed = build.empty(size)
            build.pack_panels(self.buffers[name], packed, rows, columns, columns, 1)
            self.buffers[name] = packed
        self.n_steps, self.inputs = model.x.shape
        self.gates, self.hidden = model.r.shape
        self.params = build.buffer(NO_CLIP)
        self.xw, self.hw = build.empty((self.n_steps, self.gates)), build.empty(self.gates)
        self.states = build.empty((self.n_steps, self.hidden))
        self.steps = []
        h = build.buffer(np.zeros(self.hidden))
        for t in range(self.n_steps):
            following = self.states.part(t * self.hidden * 4, self.hidden)
            self.steps.append((self.xw.part(t * self.gates * 4, self.gates), h, following))
            h = following

    def run(self, rows: int = 1) -> None:
        """One run over all steps. With rows = 0 the same calls are made, but the kernels have nothing to do."""
        build, b = self.build, self.buffers
        gates, hidden, inputs = self.gates, self.hidden, self.inputs
        build.gemm(b["x"], b["w"], b["wb"], self.xw, rows * self.n_steps, gates, inputs, inputs, gates, 0, 0.0, 0.0)
        for xw, h, following in self.steps:
            build.gemv(b["r"], h, b["rb"], self.hw, rows * gates, hidden)
            build.gru_cell(xw, self.hw, h, following, rows, hidden, SIGMOID_TANH, self.params)


def _milliseconds(gru: Gru, rows: int) -> float:
    start = time.perf_counter()
    gru.run(rows)
    return (time.perf_counter() - start) * 1e3


def measure(grus: list[Gru]) -> list[dict[str, Any]]:
    """Milliseconds a run, builds in turns, and the part of them that Python takes to make the calls."""
    times = [[(_milliseconds(gru, 1), _milliseconds(gru, 0)) for gru in grus] for _ in range(ROUNDS)]
    medians = [[statistics.median(parts) for parts in zip(*rounds, strict=True)] for rounds in zip(*times, strict=True)]
    return [
        {"spec": gru.spec, "fused": gru.build.fused, "ms": total, "call_ms": calls}
        for gru, (total, calls) in zip(grus, medians, strict=True)
    ]


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def write(folder: Path = OUTPUT) -> list[dict[str, Any]]:
    """Writes the demo; returns the native timings."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for pattern in PAGE_FILES:
        for file in SOURCE.glob(pattern):
            shutil.copy(file, folder)
    for name in ("kernels.json", *(f"wasm_{variant}.wasm" for variant in VARIANTS)):
        shutil.copyfile(kernels.module_file(kernels.FOLDER, name), folder / name)

    model = Model.random()
    tensors = model.tensors()
    ends = np.cumsum([t.size for t in tensors.values()]).tolist()
    description = {
        "steps": model.x.shape[0],
        "inputs": model.x.shape[1],
        "hidden": model.r.shape[1],
        "activations": SIGMOID_TANH,
        "tensors": {
            name: {"start": end - t.size, "length": t.size}
            for (name, t), end in zip(tensors.items(), ends, strict=True)
        },
        "packed": model.packed(),
    }
    (folder / "model.json").write_text(json.dumps(description, indent=1))
    (folder / "weights.bin").write_bytes(b"".join(t.astype("<f4").tobytes() for t in tensors.values()))

    grus = [Gru(kernels.load(spec), model) for spec in native.available()]
    timings = measure(grus)
    (folder / "expected.bin").write_bytes(b"".join(gru.states.array.astype("<f4").tobytes() for gru in grus))
    (folder / "native.json").write_text(json.dumps({"processor": processor(), "builds": timings}, indent=1))
    return timings


def main() -> None:
    timings = write()
    print(f"GRU, {HIDDEN} wide, {STEPS} steps, on {processor()}")
    print(f"{'':<14}{'ms per run':>12}{'us per step':>13}{'of it calls':>13}")
    for t in timings:
        print(f"{t['spec']:<14}{t['ms']:>12.2f}{t['ms'] * 1e3 / STEPS:>13.1f}{t['call_ms'] * 1e3 / STEPS:>13.1f}")


if __name__ == "__main__":
    main()
