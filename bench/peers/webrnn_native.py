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
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "runtime"))

import webrnn  # noqa: E402
from webrnn.plan.opcodes import ERRORS  # noqa: E402


def loop_library() -> ctypes.CDLL:
    source, library = Path(__file__).with_name("plan_loop.c"), ROOT / "build" / "peers" / "plan_loop.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        library.parent.mkdir(parents=True, exist_ok=True)
        compiler = ["cc"] if shutil.which("cc") else [sys.executable, "-m", "ziglang", "cc"]
        subprocess.run([*compiler, "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    return ctypes.CDLL(str(library))


class PlanInC:
    """A plan that is bound once, and run by a loop in C."""

    def __init__(self, case: Any):
        session = webrnn.InferenceSession(case.path, backend="native")
        session.run(None, case.feeds)
        program: Any = session._program
        self.program = program.recent
        for port, place in zip(self.program.file.inputs, self.program.inputs, strict=True):
            place[...] = case.feeds[port.name]
        names = [port.name for port in self.program.file.outputs]
        self.order = [names.index(entry["name"]) for entry in case.entry["outputs"]]
        run: Any = self.program.kernels.function("plan_run")
        addresses = (ctypes.cast(run, ctypes.c_void_p).value, *self.program.run_arguments)
        self.arguments = [ctypes.c_void_p(address) for address in addresses]
        self.plan_loop = loop_library().plan_loop

    def loop(self, n: int) -> np.ndarray:
        ns = np.empty(n, np.int64)
        if error := self.plan_loop(*self.arguments, n, ctypes.c_void_p(ns.ctypes.data)):
            raise RuntimeError(ERRORS[error])
        return ns

    def outputs(self) -> list[np.ndarray]:
        results = self.program.results()
        return [results[index] for index in self.order]


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
