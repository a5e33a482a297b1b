"""Running a plan on a build of the kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from webrnn.errors import ModelError, PlanError, ShapeError
from webrnn.plan.file import PlanFile, PlanPort
from webrnn.plan.opcodes import ERRORS

from .kernels import Buffer, Kernels

ARRAY_TYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.bool_),
}
_INDEX_RANGE, _LOOP_LIMIT, _TOO_MANY_STEPS = 10, 11, 12


class PlanProgram:
    """A plan, checked, in the memory of the kernels.

    Sizes are bound when the shapes of the inputs change. Inputs and outputs have places of their own in the kernels'
    memory; a run copies arguments there and results out.
    """

    def __init__(self, data: bytes, kernels: Kernels):
        self.file = PlanFile(data)
        self._kernels = kernels
        self._plan = kernels.buffer(np.frombuffer(data, np.uint8), np.uint8)
        check = kernels.function("plan_check")
        self._raise_for(check(self._plan.address, len(data)))
        n_bytes = kernels.function("plan_table_bytes")(self._plan.address)
        self._tables = kernels.empty(max(n_bytes, 1), np.uint8)
        n_externals = max(self.file.header["externals"], 1)
        pointer = np.uint64 if kernels.pointer_bytes == 8 else np.uint32
        self._externals = kernels.empty(n_externals, pointer)
        self._symbols = kernels.empty(max(len(self.file.symbols), 1), np.int32)
        self._arena = kernels.empty(0, np.uint8)
        self._places: dict[int, Buffer] = {}
        self._shapes: tuple[tuple[int, ...], ...] | None = None
        self._bound_symbols: list[int] | None = None
        self._run = kernels.function("plan_run")
        self._inputs: list[np.ndarray] = []
        self._outputs: list[np.ndarray] = []
        self._arguments = (0, 0, 0)

    @property
    def arena_bytes(self) -> int:
        return self._arena.nbytes

    def run(self, arguments: Sequence[np.ndarray], sizes: Mapping[str, int] | None = None) -> list[np.ndarray]:
        """The outputs for these inputs, as new arrays."""
        shapes = tuple([argument.shape for argument in arguments])
        if shapes != self._shapes or sizes is not None:
            self._bind(shapes, sizes)
        for place, argument in zip(self._inputs, arguments, strict=True):
            place[...] = argument
        error = self._run(*self._arguments)
        if error:
            self._raise_for(error)
        return [output.copy() for output in self._outputs]

    def _bind(self, shapes: tuple[tuple[int, ...], ...], known: Mapping[str, int] | None) -> None:
        symbols = self.file.symbols_of(shapes, known)
        if shapes == self._shapes and symbols == self._bound_symbols:
            return
        self._shapes = None
        kernels, sizes = self._kernels, self.file.sizes(symbols)
        for port, shape in zip(self.file.inputs, shapes, strict=True):
            if tuple(sizes[index] for index in port.sizes) != shape:
                raise ShapeError(f"input {port.name!r} has shape {list(shape)}, the plan takes {list(port.shape)}")
        self._symbols.array[: len(symbols)] = symbols
        bind = kernels.function("plan_bind")
        self._raise_for(bind(self._plan.address, self._symbols.address, self._tables.address))
        needed = kernels.function("plan_arena_bytes")(self._tables.address)
        if needed > self._arena.nbytes:
            self._arena = kernels.empty(needed + (needed // 2 if self._arena.nbytes else 0), np.uint8)
        ports = [*self.file.inputs, *self.file.outputs]
        for port in ports:
            self._place(port, kernels.function("plan_external_bytes")(self._tables.address, port.external), sizes)
        for port in ports:
            self._externals.array[port.external] = self._places[port.external].address
        self._inputs = [self._array(port, sizes) for port in self.file.inputs]
        self._outputs = [self._array(port, sizes) for port in self.file.outputs]
        self._arguments = (self._tables.address, self._arena.address, self._externals.address)
        self._shapes, self._bound_symbols = shapes, symbols

    def _place(self, port: PlanPort, n_bytes: int, sizes: list[int]) -> None:
        """Make room for an input or output."""
        count = int(np.prod([sizes[index] for index in port.sizes], dtype=np.int64))
        needed = max(n_bytes, count * ARRAY_TYPES[port.dtype].itemsize)
        if port.external not in self._places or self._places[port.external].nbytes < needed:
            self._places[port.external] = self._kernels.empty(needed, np.uint8)

    def _array(self, port: PlanPort, sizes: list[int]) -> np.ndarray:
        shape = tuple(sizes[index] for index in port.sizes)
        return self._places[port.external].part(0, shape, ARRAY_TYPES[port.dtype]).array

    def _raise_for(self, error: int) -> None:
        if not error:
            return
        text = ERRORS[error] if 0 < error < len(ERRORS) else f"error {error}"
        where = None
        if hasattr(self, "_tables"):
            word = self._kernels.function("plan_where")(self._tables.address)
            where = self.file.node_at(word) or None
        if error in (_INDEX_RANGE, _TOO_MANY_STEPS):
            raise ShapeError(text, node=where)
        raise (ModelError if error == _LOOP_LIMIT else PlanError)(text, node=where)
