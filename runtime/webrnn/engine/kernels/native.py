"""Kernels in this process, through ctypes: the native shared library."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.errors import BackendError

from .loading import ALIGNMENT, FOLDER, Binding, Buffer, Kernels, _manifest, bindings, module_file
from .team import Team

SCALARS: dict[str, Any] = {"i32": ctypes.c_int32, "f32": ctypes.c_float}


@cache
def _library(folder: Path) -> ctypes.CDLL:
    file = module_file(folder, _manifest(folder)["native"])
    try:
        return ctypes.CDLL(str(file))
    except OSError as error:
        raise BackendError(f"the native kernels do not load on this system: {error}") from error


def available(folder: Path = FOLDER) -> list[str]:
    """The instruction sets of this processor that the library holds, best first."""
    if sys.platform == "emscripten":
        return []
    return [f"native:{isa}" for isa in _isas(folder)]


def unfused(folder: Path = FOLDER) -> list[str]:
    """The same without fused multiply-adds, of those that have them."""
    return [f"native:{other}" for isa, other in _isas(folder).items() if other != isa]


def _isas(folder: Path) -> dict[str, str]:
    """What this processor can run, best first, and the name of its unfused build; that of an unfused one is its own."""
    isas = list(_manifest(folder)["native_isas"].items())
    return dict(reversed(isas[: _library(folder).wr_isa_level() + 1]))


def typed(library: ctypes.CDLL, binding: Binding, suffix: str = "") -> Any:
    """A function of a library, with the types of its arguments."""
    function = library[binding.symbol + suffix]
    function.argtypes = [SCALARS.get(kind, ctypes.c_void_p) for kind, _ in binding.parameters]
    function.restype = SCALARS[binding.returns] if binding.returns else None
    return function


class AddressSpaceKernels(Kernels):
    """Kernels that share the address space of Python: a library whose functions take plain pointers."""

    shares_memory = True

    def _bind(self, library: ctypes.CDLL, suffix: str, folder: Path) -> None:
        self._functions: dict[str, Any] = {}
        for binding in bindings(folder):
            function = self._functions[binding.name] = typed(library, binding, suffix)
            setattr(self, binding.name, self._caller(binding, function))

    def _caller(self, binding: Binding, function: Any) -> Any:
        converters = [{"i32": int, "f32": float}.get(kind, self.pointer) for kind, _ in binding.parameters]

        def call(*arguments: Any) -> Any:
            return function(*[convert(a) for convert, a in zip(converters, arguments, strict=True)])

        call.__name__ = binding.name
        return call

    @property
    def pointer_bytes(self) -> int:
        return ctypes.sizeof(ctypes.c_void_p)

    def function(self, name: str) -> Any:
        """A function without conversions: pointers are addresses."""
        return self._functions[name]

    def allocate(self, nbytes: int) -> tuple[int, Any]:
        try:
            memory = np.zeros(nbytes + ALIGNMENT, np.uint8)
        except MemoryError as error:
            raise BackendError(f"{nbytes} more bytes do not fit into memory") from error
        address = memory.ctypes.data
        start = -address % ALIGNMENT
        return address + start, memory[start : start + nbytes]

    def view(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        whole: np.ndarray[Any, Any] = buffer.block
        part = whole[buffer.offset : buffer.offset + buffer.nbytes]
        return part.view(buffer.dtype).reshape(buffer.shape)


class NativeKernels(AddressSpaceKernels):
    def __init__(self, isa: str | None = None, folder: Path = FOLDER, threads: int = 1):
        if sys.platform == "emscripten":
            raise BackendError("native kernels do not run inside Pyodide: use pyodide")
        isas = _isas(folder)
        builds = isas | {other: other for other in isas.values()}
        if isa is None:
            isa = next(iter(builds))
        if isa not in builds:
            raise BackendError(f"this processor cannot run native:{isa}; it can run {', '.join(builds)}")
        self.spec, self.unfused_spec, self.folder = f"native:{isa}", f"native:{builds[isa]}", folder
        self._bind(_library(folder), f"_{isa}", folder)
        self.threads = threads
        if threads > 1:
            for binding in bindings(folder, "threads"):
                self._functions[binding.name] = typed(_library(folder), binding, f"_{isa}")
            self.team = _team(folder)
            self.team.grow(threads)

    def unfused(self) -> Kernels:
        if not self.fused:
            return self
        other = NativeKernels(self.unfused_spec.partition(":")[2], self.folder, self.threads)
        other.least_work = self.least_work
        return other


@cache
def _team(folder: Path) -> Team:
    """One for all sessions: who finds it at work works alone."""
    library = _library(folder)
    return Team({binding.name: typed(library, binding) for binding in bindings(folder, "team")})
