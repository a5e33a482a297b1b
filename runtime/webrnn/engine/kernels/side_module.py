"""Kernels inside Pyodide: a side module on Pyodide's own heap, so that arrays go by address, uncopied.

The variant is the best one that the JavaScript engine knows, unless the backend names one ("pyodide:simd") or the
environment variable WEBRNN_VARIANT does ("simd"), which `loadPyodide({env: {...}})` sets from JavaScript.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path

from webrnn.errors import BackendError

from .loading import FOLDER, module_file
from .native import AddressSpaceKernels

VARIANTS = ("relaxed", "simd", "scalar")


def file_name(variant: str) -> str:
    return f"pyodide_{variant}.wasm"


@cache
def _library(folder: Path, variant: str) -> ctypes.CDLL | None:
    """The side module, or None when this JavaScript engine does not know its instructions."""
    file = module_file(folder, file_name(variant))
    try:
        return ctypes.CDLL(str(file))
    except OSError:
        return None


def available(folder: Path = FOLDER) -> list[str]:
    if sys.platform != "emscripten":
        return []
    return [f"pyodide:{variant}" for variant in VARIANTS if _library(folder, variant)]


class SideModuleKernels(AddressSpaceKernels):
    def __init__(self, variant: str | None = None, folder: Path = FOLDER):
        if sys.platform != "emscripten":
            raise BackendError("pyodide kernels run inside Pyodide only; use native or wasm here")
        variant = variant or os.environ.get("WEBRNN_VARIANT") or None
        if variant is not None and variant not in VARIANTS:
            raise BackendError(f"unknown variant pyodide:{variant}: expected one of {', '.join(VARIANTS)}")
        for candidate in (variant,) if variant else VARIANTS:
            library = _library(folder, candidate)
            if library:
                break
        else:
            raise BackendError(f"this JavaScript engine cannot run pyodide:{variant or VARIANTS[-1]}")
        self.spec, self.folder = f"pyodide:{candidate}", folder
        self.unfused_spec = self.spec.replace("relaxed", "simd")
        self._bind(library, f"_{candidate}", folder)
