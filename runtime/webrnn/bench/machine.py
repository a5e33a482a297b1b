"""On what was measured."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.engine.kernels.loading import available

PACKAGES = ("webrnn", "numpy", "wasmtime", "onnxruntime", "tract", "ai-edge-litert")
CPU_FEATURES = ("sse2", "avx", "avx2", "fma", "avx512f", "asimd", "sve")


def processor() -> str:
    return next(iter(_cpu_lines("model name")), platform.processor() or platform.machine())


def features() -> list[str]:
    """Those of the processor that matter to vector arithmetic."""
    found = set(" ".join(_cpu_lines("flags") + _cpu_lines("Features")).split())
    return [name for name in CPU_FEATURES if name in found]


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def load() -> float | None:
    """Processes that wanted to run, on average over the last minute."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def describe() -> dict[str, Any]:
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "features": features(),
        "system": f"{platform.system()} {platform.machine()}",
        "builds": available(),
        "versions": versions(),
        "load_before": load(),
    }


def _cpu_lines(key: str) -> list[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []
    return [text.partition(":")[2].strip() for text in lines if text.partition(":")[0].strip() == key][:1]


@contextmanager
def one_numpy_thread() -> Iterator[None]:
    """Meanwhile numpy's products run on this thread only, as everything else that is timed does.

    The number of threads is otherwise read from the environment when numpy is imported, which it is already.
    """
    library = _openblas()
    before = library.scipy_openblas_get_num_threads64_() if library is not None else 0
    if library is not None:
        library.scipy_openblas_set_num_threads64_(1)
    try:
        yield
    finally:
        if library is not None:
            library.scipy_openblas_set_num_threads64_(before)


def _openblas() -> ctypes.CDLL | None:
    for file in (Path(np.__file__).parents[1] / "numpy.libs").glob("*openblas*"):
        library = ctypes.CDLL(str(file))
        if hasattr(library, "scipy_openblas_set_num_threads64_"):
            return library
    return None
