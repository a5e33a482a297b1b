"""Kernels in WebAssembly under wasmtime: what the browser runs, testable and timeable from pytest."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import importlib.util
import sys
from functools import cache
from pathlib import Path
from threading import RLock
from time import monotonic
from typing import Any

import numpy as np

from webrnn.errors import BackendError

from ..forking import Abandoned, new_lock
from .loading import ALIGNMENT, FOLDER, Binding, Buffer, Kernels, bindings, has_module, module_bytes
from .native import _library

VARIANTS = ("relaxed", "simd", "scalar")
CORE = "-core"
"""Behind a variant: its core module, which runs plans only, and only those without anything rare. Pages load it."""
TRAINING = "-training"
"""The same for its module for learning, which has less than the core module, and gradients."""
PAGE = 65536
MAX_PAGES = 65536


def file_name(variant: str) -> str:
    return f"wasm_{variant.replace('-', '_')}.wasm"


FILES = tuple(file_name(variant + kind) for variant in VARIANTS for kind in (CORE, TRAINING, ""))
"""What a page may ask for."""


@cache
def _engine() -> Any:
    try:
        import wasmtime
    except ImportError as error:
        raise BackendError("the wasm backend needs wasmtime: pip install 'webrnn[wasm]'") from error
    config = wasmtime.Config()
    config.wasm_relaxed_simd = True
    config.cranelift_opt_level = "speed"
    with contextlib.suppress(wasmtime.WasmtimeError):  # no writable home: every start compiles
        config.cache = True  # wasmtime's own on-disk cache, keyed by module, version and processor
    return wasmtime.Engine(config)


@cache
def _module(folder: Path, name: str) -> Any:
    import wasmtime

    try:
        return wasmtime.Module(_engine(), module_bytes(folder, name))
    except wasmtime.WasmtimeError as error:
        raise BackendError(f"{name} is not a module that this wasmtime can run: {error}") from error


@atexit.register
def _leave_to_the_system() -> None:
    """What is alive when the interpreter ends goes with the process: wasmtime's destructors would call functions that
    the interpreter has already taken apart, and say so."""
    if wasmtime := sys.modules.get("wasmtime"):
        wasmtime.Managed.__del__ = lambda self: None


def available(folder: Path = FOLDER) -> list[str]:
    if sys.platform == "emscripten" or importlib.util.find_spec("wasmtime") is None:
        return []
    return [f"wasm:{variant}" for variant in VARIANTS if has_module(folder, file_name(variant))]


def _clock(store: Any, kind: Any) -> Any:
    """Ticks of 1/64 ms, 30 bits of them, for limits of time. Where the native library is there it is a function of
    that: a reading takes 20 ns, one by Python takes 20 us."""
    import wasmtime

    try:
        function = _library(FOLDER).wr_host_now
    except (BackendError, AttributeError, KeyError):
        return wasmtime.Func(store, kind, lambda: int(monotonic() * 64e3) & 0x3FFFFFFF)
    return host_function(store, kind, function)


def _profile_clock(store: Any, kind: Any, folder: Path) -> Any:
    """The clock of a profiling build. It is C of the native library: a reading takes 20 ns, where a function in Python
    would take 20 us."""
    from .native import _library

    return host_function(store, kind, _library(folder).wr_profile_host_clock)


def host_function(store: Any, kind: Any, function: Any) -> Any:
    """A C function of the native library as one that a module imports, called without the interpreter."""
    from wasmtime import Func, _bindings

    pointer = ctypes.cast(function, _bindings.wasmtime_func_unchecked_callback_t)
    no_finalizer = ctypes.CFUNCTYPE(None, ctypes.c_void_p)()
    made = _bindings.wasmtime_func_t()
    _bindings.wasmtime_func_new_unchecked(store._context(), kind.ptr(), pointer, None, no_finalizer, ctypes.byref(made))
    return Func._from_raw(made)


class _Block:
    """Keeps a part of wasm memory: when nobody has this object any more, the part is free for one of the same size."""

    __slots__ = ("address", "free")

    def __init__(self, address: int, free: list[int]):
        self.address, self.free = address, free

    def __del__(self) -> None:
        self.free.append(self.address)


class _Guard:
    """The lock of an instance, apart from it: its functions have this, and not the instance."""

    def __init__(self) -> None:
        self._lock = new_lock(self, RLock)

    def _after_fork(self, was_held: bool) -> None:
        if was_held:
            self._lock = Abandoned(BackendError("the process was forked while this ran: make a new session"))


class WasmKernels(Kernels):
    """One instance with its own linear memory, which grows and is released together with the object.

    A store of wasmtime's is for one thread at a time, so calls from several wait for each other.
    """

    def __init__(self, variant: str | None = None, folder: Path = FOLDER):
        variant = variant or VARIANTS[0]
        if variant.removesuffix(CORE).removesuffix(TRAINING) not in VARIANTS:
            raise BackendError(f"unknown variant wasm:{variant}: expected one of {', '.join(VARIANTS)}")
        engine, rows = _engine(), bindings(folder)
        import wasmtime

        module = _module(folder, file_name(variant))
        self.spec, self.folder = f"wasm:{variant}", folder
        self.unfused_spec = self.spec.replace("relaxed", "simd")
        self._store = wasmtime.Store(engine)
        self._guard = _Guard()
        self._free: dict[int, list[int]] = {}
        """Addresses of parts that are free again, by their size."""
        minimum = next(i.type.limits.min for i in module.imports if isinstance(i.type, wasmtime.MemoryType))
        self._memory = wasmtime.Memory(self._store, wasmtime.MemoryType(wasmtime.Limits(minimum, MAX_PAGES)))
        instance = wasmtime.Instance(self._store, module, [self._import(i, folder) for i in module.imports])
        exports: Any = instance.exports(self._store)
        self._top = exports["__heap_base"].value(self._store)
        exported = {export.name for export in module.exports}
        self._bindings = {binding.name: binding for binding in rows if binding.symbol in exported}
        self._functions = {name: exports[binding.symbol] for name, binding in self._bindings.items()}
        self._functions["set_row_panels"](self._store, 1)  # browsers are quicker with two, Cranelift is slower

    def __getattr__(self, name: str) -> Any:
        """A kernel. It is not kept here, because it has this object, whose memory should go when nobody has it."""
        bindings = self.__dict__.get("_bindings", {})
        if name not in bindings:
            raise AttributeError(f"there is no kernel {name!r}")
        return self._caller(bindings[name], self._functions[name])

    def _import(self, wanted: Any, folder: Path) -> Any:
        import wasmtime

        if isinstance(wanted.type, wasmtime.MemoryType):
            return self._memory
        if wanted.name == "now":
            return _clock(self._store, wanted.type)
        if wanted.name == "emscripten_notify_memory_growth":  # modules built by emcc tell their host
            return wasmtime.Func(self._store, wanted.type, lambda index: None)
        if wanted.name == "profile_clock":
            return _profile_clock(self._store, wanted.type, folder)
        raise BackendError(
            f"the module imports {wanted.module}.{wanted.name}, which kernels do not need: was it built by build.py?"
        )

    def _caller(self, binding: Binding, function: Any) -> Any:
        converters = [{"i32": int, "f32": float}.get(kind, self.pointer) for kind, _ in binding.parameters]
        store = self._store

        def call(*arguments: Any) -> Any:
            with self._guard._lock:
                return function(store, *[convert(a) for convert, a in zip(converters, arguments, strict=True)])

        call.__name__ = binding.name
        return call

    @property
    def pointer_bytes(self) -> int:
        return 4

    def function(self, name: str) -> Any:
        function, store, guard = self._functions[name], self._store, self._guard

        def call(*arguments: Any) -> Any:
            with guard._lock:
                return function(store, *arguments)

        return call

    def allocate(self, nbytes: int) -> tuple[int, Any]:
        with self._guard._lock:
            free = self._free.setdefault(nbytes, [])
            if free:
                block = _Block(free.pop(), free)
                ctypes.memset(self._base() + block.address, 0, nbytes)
                return block.address, block
            address = -(-self._top // ALIGNMENT) * ALIGNMENT
            missing = -(-(address + nbytes) // PAGE) - self._memory.size(self._store)
            if missing > 0:
                if self._memory.size(self._store) + missing > MAX_PAGES:
                    raise BackendError(f"{nbytes} more bytes do not fit into the 4 GiB of wasm memory")
                self._grow(missing)
            self._top = address + nbytes
            return address, _Block(address, free)

    def _grow(self, pages: int) -> None:
        import wasmtime

        try:
            self._memory.grow(self._store, pages)
        except wasmtime.WasmtimeError as error:
            raise BackendError(f"{pages * PAGE} more bytes do not fit into memory") from error

    def view(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        with self._guard._lock:
            base = self._base()
            if buffer.address + buffer.nbytes > self._memory.data_len(self._store):
                raise ValueError(f"a buffer of {buffer.nbytes} bytes at {buffer.address} is outside wasm memory")
        memory: Any = (ctypes.c_uint8 * buffer.nbytes).from_address(base + buffer.address)
        memory.kept = self, buffer.block
        return np.frombuffer(memory, buffer.dtype).reshape(buffer.shape)

    def _base(self) -> int:
        return ctypes.addressof(self._memory.data_ptr(self._store).contents)
