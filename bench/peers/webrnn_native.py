"""A plugin of the native peer benchmark: peers `webrnn_c` and `webrnn_py`. See README.md.

`webrnn_c` times plan_run in a C loop, on buffers that were bound before, as `ort_c` and `tract_c` are timed;
`webrnn_py` times `InferenceSession.run` as `ort_py` is timed. It is loaded by the benchmark's own Python, which needs
numpy, and takes webrnn from the checkout that this file is in.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "runtime"))

import webrnn  # noqa: E402
from webrnn.engine import kernels  # noqa: E402
from webrnn.plan.file import PlanFile, PlanPort  # noqa: E402
from webrnn.plan.opcodes import ERRORS  # noqa: E402


def exported(path: str) -> bytes:
    """The plan of a model."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.rnn"
        webrnn.InferenceSession(path, backend="native").export(file)
        return file.read_bytes()


def loop_library() -> ctypes.CDLL:
    source, library = Path(__file__).with_name("plan_loop.c"), ROOT / "build" / "peers" / "plan_loop.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        library.parent.mkdir(parents=True, exist_ok=True)
        compiler = ["cc"] if shutil.which("cc") else [sys.executable, "-m", "ziglang", "cc"]
        subprocess.run([*compiler, "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    return ctypes.CDLL(str(library))


class PlanInC:
    """A host of the plan like one that a C program has: check, bind to the caller's buffers, run."""

    def __init__(self, case: Any):
        data = exported(case.path)
        file = PlanFile(data)
        self.kernels = kernels.load("native")
        call = self.kernels.function
        self.plan = self.kernels.buffer(np.frombuffer(data, np.uint8), np.uint8)
        _succeed(call("plan_check")(self.plan.address, len(data)))
        self.tables = self.kernels.empty(call("plan_table_bytes")(self.plan.address), np.uint8)
        symbols = file.symbols_of([case.feeds[port.name].shape for port in file.inputs])
        numbers = self.kernels.buffer(symbols, np.int32)
        _succeed(call("plan_bind")(self.plan.address, numbers.address, self.tables.address))
        self.arena = self.kernels.empty(call("plan_arena_bytes")(self.tables.address), np.uint8)
        self.externals = self.kernels.empty(file.header["externals"], np.uint64)
        sizes = file.sizes(symbols)
        self.inputs = [self.kernels.buffer(case.feeds[port.name]) for port in file.inputs]
        self.results = [self.kernels.empty(tuple(sizes[index] for index in port.sizes)) for port in file.outputs]
        for port, buffer in zip((*file.inputs, *file.outputs), (*self.inputs, *self.results), strict=True):
            self._bind(port, buffer)
        names = [port.name for port in file.outputs]
        self.order = [names.index(entry["name"]) for entry in case.entry["outputs"]]
        self.plan_loop = loop_library().plan_loop
        plan_run: Any = call("plan_run")
        run = ctypes.cast(plan_run, ctypes.c_void_p).value
        blocks = (self.tables, self.arena, self.externals)
        self.arguments = [ctypes.c_void_p(address) for address in (run, *(block.address for block in blocks))]

    def _bind(self, port: PlanPort, buffer: kernels.Buffer) -> None:
        if port.dtype != "f32" or port.taken >= 0:
            raise NotImplementedError(f"{port.name}: the benchmark's models have float tensors of known sizes only")
        assert buffer.nbytes >= self.kernels.function("plan_external_bytes")(self.tables.address, port.external)
        self.externals.array[port.external] = buffer.address

    def loop(self, n: int) -> np.ndarray:
        ns = np.empty(n, np.int64)
        _succeed(self.plan_loop(*self.arguments, n, ctypes.c_void_p(ns.ctypes.data)))
        return ns

    def outputs(self) -> list[np.ndarray]:
        return [self.results[index].array for index in self.order]


def _succeed(error: int) -> None:
    if error:
        raise RuntimeError(ERRORS[error])


class SessionInPython:
    def __init__(self, case: Any):
        self.session = webrnn.InferenceSession(case.path, backend="native")
        self.feeds = case.feeds
        self.results: list[np.ndarray] = []

    def loop(self, n: int) -> np.ndarray:
        ns, run, feeds = np.empty(n, np.int64), self.session.run, self.feeds
        for i in range(n):
            start = time.perf_counter_ns()
            self.results = run(None, feeds)
            ns[i] = time.perf_counter_ns() - start
        return ns

    def outputs(self) -> list[np.ndarray]:
        return self.results


PEERS = {"webrnn_c": PlanInC, "webrnn_py": SessionInPython}
