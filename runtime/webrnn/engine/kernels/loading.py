"""Loads a build of the C kernels and calls them by name.

A spec is "native" or "native:sse2|avx2|avx512|neon|scalar" ("native:avx2_unfused" and so on have no fused
multiply-adds), "wasm" or "wasm:relaxed|simd|scalar" (wasmtime; "wasm:relaxed-core", "wasm:relaxed-training" and so on
are the smaller modules, for tests of what pages load), or "pyodide" or "pyodide:relaxed|simd|scalar" (inside Pyodide).
Without a variant the best one that runs here is taken.
"""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from webrnn import packed
from webrnn.errors import BackendError

from .team import LEAST_WORK

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from .team import Team

#: Where an installed or built webrnn keeps its compiled modules.
FOLDER = Path(__file__).resolve().parents[2] / "_kernels"

#: Alignment of allocations: a cache line, and the widest vector.
ALIGNMENT = 64


@dataclass(frozen=True)
class Binding:
    """A kernel as a loader sees it: ("const f32 *", "x") pairs and the result type."""

    name: str
    symbol: str
    parameters: tuple[tuple[str, str], ...]
    returns: str | None


@cache
def _manifest(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / "kernels.json").read_text())
    except OSError as error:
        raise BackendError(
            f"no compiled kernels in {folder.name}/: reinstall webrnn, "
            "or run `python -m wasm_kernels.build` in a checkout"
        ) from error


@cache
def bindings(folder: Path = FOLDER, part: str = "kernels") -> tuple[Binding, ...]:
    rows = _manifest(folder)[part]
    return tuple(Binding(r["name"], r["symbol"], tuple(map(tuple, r["parameters"])), r["returns"]) for r in rows)


def module_file(folder: Path, name: str) -> Path:
    """A library, or a module that is a file: see `module_bytes`."""
    file = folder / name
    if not file.exists():
        raise _not_built(name)
    return file


def module_bytes(folder: Path, name: str) -> bytes:
    """A module for WebAssembly: a file in a checkout, in an installation one of an archive."""
    if (folder / name).exists():
        return (folder / name).read_bytes()
    try:
        return _packed_modules(folder)[name]
    except KeyError:
        raise _not_built(name) from None


def has_module(folder: Path, name: str) -> bool:
    return (folder / name).exists() or name in _packed_modules(folder)


def _packed_modules(folder: Path) -> dict[str, bytes]:
    """Those of a folder and of those below it are in one archive."""
    for home in (folder, folder.parent):
        if (archive := home / packed.MODULES).exists():
            below = "" if home == folder else f"{folder.name}/"
            return {name.removeprefix(below): data for name, data in packed.unpack(archive).items()
                    if name.startswith(below)}  # fmt: skip
    return {}


def _not_built(name: str) -> BackendError:
    return BackendError(
        f"{name} was not built: run `python -m wasm_kernels.build --target all` in a checkout of webrnn"
    )


class Buffer:
    """An array in the memory that a build of the kernels works on; `address` is what C code sees.

    `array` is a numpy view of it, made anew on each access: wasm memory may move when it grows, so keep the Buffer,
    not the view, across calls that allocate.
    """

    __slots__ = ("address", "block", "dtype", "offset", "owner", "shape")

    def __init__(self, owner: Kernels, address: int, shape: tuple[int, ...], dtype: np.dtype[Any]):
        self.owner, self.address, self.shape, self.dtype = owner, address, shape, dtype
        self.block: Any = None
        """What keeps the memory alive."""
        self.offset = 0
        """Where the buffer starts in its block."""

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    @property
    def array(self) -> np.ndarray[Any, Any]:
        return self.owner.view(self)

    def part(self, offset: int, shape: int | tuple[int, ...], dtype: DTypeLike = np.float32) -> Buffer:
        """A buffer over the bytes from `offset` on."""
        part = Buffer(self.owner, self.address + offset, _shape(shape), np.dtype(dtype))
        part.block, part.offset = self.block, self.offset + offset
        if offset < 0 or offset + part.nbytes > self.nbytes:
            raise ValueError(f"part of {part.nbytes} bytes at {offset} is outside a buffer of {self.nbytes} bytes")
        return part


def _shape(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


class Kernels(ABC):
    """One loaded build. Kernels are attributes: k.gemv(packed, x, None, y, n, k); pointers are Buffers or None."""

    spec: str
    #: whether the kernels can be given the address of any array
    shares_memory: bool = False
    #: of the same kind of build without fused multiply-adds; its own unless it is fused
    unfused_spec: str
    folder: Path
    #: that work on a run
    threads: int = 1
    #: those besides the one that calls
    team: Team | None = None
    #: of a part that another thread does, see Crew; for tests
    least_work: int = LEAST_WORK

    @property
    def fused(self) -> bool:
        """Whether vfma rounds once; then results equal those of every other fused build bit for bit, otherwise those of
        every other one that is not."""
        return self.spec != self.unfused_spec

    def unfused(self) -> Kernels:
        """The build for plans that a fused one refuses, newly loaded, or this one if it is not fused."""
        return load(self.unfused_spec, self.folder) if self.fused else self

    @abstractmethod
    def allocate(self, nbytes: int) -> tuple[int, Any]:
        """The address of `nbytes` new, aligned bytes, and what keeps them alive (None: they live as long as this)."""

    @abstractmethod
    def view(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """A numpy view of the buffer as memory is now."""

    @abstractmethod
    def function(self, name: str) -> Callable[..., Any]:
        """A kernel without conversions: pointers are addresses."""

    @property
    @abstractmethod
    def pointer_bytes(self) -> int: ...

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike = np.float32) -> Buffer:
        buffer = Buffer(self, 0, _shape(shape), np.dtype(dtype))
        buffer.address, buffer.block = self.allocate(buffer.nbytes)
        return buffer

    def buffer(self, values: ArrayLike, dtype: DTypeLike = np.float32) -> Buffer:
        """A new buffer that holds a copy of `values`."""
        array = np.asarray(values, dtype=dtype)
        buffer = self.empty(array.shape, array.dtype)
        buffer.array[...] = array
        return buffer

    def pointer(self, value: Buffer | None) -> int:
        if value is None:
            return 0
        if value.owner is not self:
            raise ValueError(f"this buffer belongs to {value.owner.spec}, not to {self.spec}")
        return value.address

    if TYPE_CHECKING:  # the kernels are set from the manifest when a build is loaded

        def __getattr__(self, name: str) -> Any: ...


def available(folder: Path = FOLDER) -> list[str]:
    """The specs that run on this machine, best first of each kind."""
    if sys.platform == "emscripten":
        from . import side_module

        return side_module.available(folder)
    from . import native, wasm

    return [*native.available(folder), *native.unfused(folder), *wasm.available(folder)]


def load(spec: str = "native", folder: Path = FOLDER, threads: int = 1) -> Kernels:
    """Loads the build named by `spec`; raises BackendError with the reason when it cannot run here. Only native kernels
    take more than one thread."""
    platform, _, variant = spec.partition(":")
    if platform == "native":
        from . import native

        return native.NativeKernels(variant or None, folder, threads)
    if platform == "wasm":
        from . import wasm

        return wasm.WasmKernels(variant or None, folder)
    if platform == "pyodide":
        from . import side_module

        return side_module.SideModuleKernels(variant or None, folder)
    raise BackendError(
        f"unknown kernels {spec!r}: expected native, wasm or pyodide, optionally with a variant as in wasm:simd"
    )
