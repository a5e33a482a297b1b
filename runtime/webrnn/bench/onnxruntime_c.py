"""onnxruntime through its C API, called by ctypes on buffers that are bound before: what is timed is the run, as for
plans. Its Python API would add some microseconds to each."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.errors import BackendError

from .case import Case
from .runners import CallRunner

API_VERSION = 16
# Positions in the table of functions, to which later versions only add.
ERROR_MESSAGE, CREATE_ENV, CREATE_SESSION, CREATE_SESSION_FROM_ARRAY, RUN, CREATE_OPTIONS = 2, 3, 7, 8, 9, 10
SET_OPTIMIZATION, SET_INTRA_THREADS, SET_INTER_THREADS, CREATE_TENSOR, TENSOR_DATA = 23, 24, 25, 49, 51
ELEMENT_TYPE, RANK, SHAPE, SHAPE_OF, CREATE_CPU_MEMORY = 60, 61, 62, 65, 69
RELEASE_SESSION, RELEASE_VALUE, RELEASE_SHAPE = 95, 96, 99
ALL_OPTIMIZATIONS, WARNINGS_OFF = 99, 3
ELEMENT_TYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
    "float64": 11, "uint32": 12, "uint64": 13,
}  # fmt: skip
ARRAY_TYPES = {number: np.dtype(name) for name, number in ELEMENT_TYPES.items()}
OWN_OUTPUTS = "its outputs are made anew in each run: it refuses memory of their true shapes"

Pointer = ctypes.c_void_p


class _Api:
    def __init__(self) -> None:
        spec = find_spec("onnxruntime")
        folder = Path(spec.origin).parent / "capi" if spec is not None and spec.origin else None
        files = sorted(folder.glob("libonnxruntime.*")) if folder is not None else []
        if not files:
            raise BackendError("onnxruntime has no C library here")
        self._library = ctypes.CDLL(str(files[0]))
        self._library.OrtGetApiBase.restype = ctypes.POINTER(Pointer)
        get = ctypes.CFUNCTYPE(ctypes.POINTER(Pointer), ctypes.c_uint32)(self._library.OrtGetApiBase()[0] or 0)
        self._table = get(API_VERSION)
        self.environment = Pointer()
        create = self.function(CREATE_ENV, ctypes.c_int, ctypes.c_char_p, Pointer)
        self.check(create(WARNINGS_OFF, b"bench", ctypes.byref(self.environment)))
        self.memory = Pointer()
        self.check(
            self.function(CREATE_CPU_MEMORY, ctypes.c_int, ctypes.c_int, Pointer)(0, 0, ctypes.byref(self.memory))
        )

    def function(self, index: int, *arguments: Any) -> Any:
        return ctypes.CFUNCTYPE(Pointer, *arguments)(self._table[index] or 0)

    def check(self, status: int | None) -> None:
        if status:
            message = ctypes.CFUNCTYPE(ctypes.c_char_p, Pointer)(self._table[ERROR_MESSAGE] or 0)(status)
            raise BackendError(f"onnxruntime: {message.decode()}")

    def session(self, model: str | bytes) -> Pointer:
        options, session = Pointer(), Pointer()
        self.check(self.function(CREATE_OPTIONS, Pointer)(ctypes.byref(options)))
        for index, number in ((SET_OPTIMIZATION, ALL_OPTIMIZATIONS), (SET_INTRA_THREADS, 1), (SET_INTER_THREADS, 1)):
            self.check(self.function(index, Pointer, ctypes.c_int)(options, number))
        made = ctypes.byref(session)
        if isinstance(model, bytes):
            create = self.function(
                CREATE_SESSION_FROM_ARRAY, Pointer, ctypes.c_char_p, ctypes.c_size_t, Pointer, Pointer
            )
            self.check(create(self.environment, model, len(model), options, made))
        else:
            create = self.function(CREATE_SESSION, Pointer, ctypes.c_char_p, Pointer, Pointer)
            self.check(create(self.environment, model.encode(), options, made))
        return session

    def tensors(self, arrays: Sequence[np.ndarray]) -> Any:
        """Values that are these arrays."""
        create = self.function(
            CREATE_TENSOR, Pointer, Pointer, ctypes.c_size_t, Pointer, ctypes.c_size_t, ctypes.c_int, Pointer
        )
        values = (Pointer * len(arrays))()
        for index, array in enumerate(arrays):
            shape, made = (ctypes.c_int64 * array.ndim)(*array.shape), Pointer()
            kind = ELEMENT_TYPES.get(array.dtype.name)
            if kind is None:
                raise BackendError(f"onnxruntime: tensors of {array.dtype} are not passed to its C API")
            data = array.ctypes.data
            self.check(create(self.memory, data, array.nbytes, shape, array.ndim, kind, ctypes.byref(made)))
            values[index] = made.value
        return values

    def array(self, value: int | None) -> np.ndarray:
        """A copy of a tensor that onnxruntime made."""
        about, kind, rank, data = Pointer(), ctypes.c_int(), ctypes.c_size_t(), Pointer()
        self.check(self.function(SHAPE_OF, Pointer, Pointer)(value, ctypes.byref(about)))
        self.check(self.function(ELEMENT_TYPE, Pointer, Pointer)(about, ctypes.byref(kind)))
        self.check(self.function(RANK, Pointer, Pointer)(about, ctypes.byref(rank)))
        shape = (ctypes.c_int64 * rank.value)()
        self.check(self.function(SHAPE, Pointer, Pointer, ctypes.c_size_t)(about, shape, rank))
        self.release(RELEASE_SHAPE, about)
        self.check(self.function(TENSOR_DATA, Pointer, Pointer)(value, ctypes.byref(data)))
        if kind.value not in ARRAY_TYPES:
            raise BackendError(f"onnxruntime: an output is of type {kind.value}, for which numpy has none")
        found = np.empty(tuple(shape), ARRAY_TYPES[kind.value])
        if found.size:
            ctypes.memmove(found.ctypes.data, data, found.nbytes)
        return found

    def release(self, index: int, what: Any) -> None:
        ctypes.CFUNCTYPE(None, Pointer)(self._table[index] or 0)(what)


_api = cache(_Api)


class OnnxruntimeRunner(CallRunner):
    """Outputs lie where they are expected. Where the file declares another shape than comes out, onnxruntime refuses
    that, and makes its outputs itself."""

    def __init__(self, case: Case):
        self._api = _api()
        self._session = self._api.session(case.model)
        self._inputs = [np.ascontiguousarray(feed) for feed in case.feeds.values()]
        self._inputs += [np.asarray(value) for value in case.fixed.values()]
        self._outputs = [np.empty_like(array, order="C") for array in case.expected]
        names = [*case.feeds, *case.fixed]
        run = self._api.function(
            RUN, Pointer, Pointer, Pointer, Pointer, ctypes.c_size_t, Pointer, ctypes.c_size_t, Pointer
        )
        arguments = (
            self._session, None, _names(names), self._api.tensors(self._inputs), len(names),
            _names(case.outputs), len(case.outputs),
        )  # fmt: skip
        self._makes_outputs = False
        super().__init__("onnxruntime", partial(run, *arguments, self._api.tensors(self._outputs)))
        try:
            self._api.check(self._call())
        except BackendError:
            self._makes_outputs, self.note = True, OWN_OUTPUTS
            self._values = (Pointer * len(case.outputs))()
            self._run = partial(run, *arguments, self._values)
            self._release = ctypes.CFUNCTYPE(None, Pointer)(self._api._table[RELEASE_VALUE] or 0)
            self._call = self._run_anew
            self._api.check(self._call())

    def _run_anew(self) -> int | None:
        for index, value in enumerate(self._values):
            if value:
                self._release(value)
                self._values[index] = None
        return self._run()

    def results(self) -> list[np.ndarray]:
        self._api.check(self._call())
        if self._makes_outputs:
            return [self._api.array(value) for value in self._values]
        return [array.copy() for array in self._outputs]

    def close(self) -> None:
        if self._session:
            self._api.release(RELEASE_SESSION, self._session)
            self._session = Pointer()


def _names(names: Sequence[str]) -> Any:
    return (ctypes.c_char_p * len(names))(*(name.encode() for name in names))
