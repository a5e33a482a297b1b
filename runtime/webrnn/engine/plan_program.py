"""Running a plan on a build of the kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np

from webrnn.errors import ModelError, PlanError, ShapeError
from webrnn.ir import Dim, DType, Symbol, Value
from webrnn.plan.file import PlanFile, PlanPort
from webrnn.plan.opcodes import ERRORS
from webrnn.plan.stored import ARRAY_TYPES

from .kernels import Buffer, Kernels

_INDEX_RANGE, _LOOP_LIMIT, _TOO_MANY_STEPS = 10, 11, 12


DIRECT_BYTES = 2**16
"""Inputs and outputs of this size are passed by address where the kernels share Python's memory; a copy of less than
this takes no longer than asking an array for its address."""


class PlanProgram:
    """A plan, checked, in the memory of the kernels.

    Sizes are bound when the shapes of the inputs change. Inputs and outputs have places of their own in the kernels'
    memory; a run copies arguments there and results out.
    """

    def __init__(self, data: bytes, kernels: Kernels):
        plan = kernels.buffer(np.frombuffer(data, np.uint8), np.uint8)
        self._set_up(PlanFile(data), plan, kernels)

    def _set_up(self, file: PlanFile, plan: Buffer, kernels: Kernels) -> None:
        self.file, self._plan, self._kernels = file, plan, kernels
        check = kernels.function("plan_check")
        self._raise_for(check(self._plan.address, len(file.data)))
        n_bytes = kernels.function("plan_table_bytes")(self._plan.address)
        if not n_bytes:
            raise PlanError("the tables of the plan do not fit into memory")
        self._tables = kernels.empty(n_bytes, np.uint8)
        self._externals = self._new_externals()
        self._symbols = kernels.empty(max(len(self.file.symbols), 1), np.int32)
        self._arena = kernels.empty(0, np.uint8)
        self._places: dict[int, Buffer] = {}
        self._shapes: tuple[tuple[int, ...], ...] | None = None
        self._bound_symbols: list[int] | None = None
        self._run = kernels.function("plan_run")
        self.inputs: list[np.ndarray] = []
        """Where the inputs are, for the shapes that are bound."""
        self.outputs: list[np.ndarray] = []
        self._lengths: dict[int, np.ndarray] = {}
        self._direct_inputs: list[int] = []
        self._direct_outputs: list[int] = []
        self._is_direct = False
        self._named_inputs: list[tuple[str, np.ndarray, tuple[int, ...], np.dtype[Any]]] = []
        self._arguments = (0, 0, 0)
        self._lock = Lock()
        """One run at a time: the kernels run without Python's lock, on memory that belongs to this program."""

    def another(self) -> PlanProgram:
        """The same plan with inputs, outputs and an arena of its own; the weights are shared."""
        program = object.__new__(PlanProgram)
        program._set_up(self.file, self._plan, self._kernels)
        return program

    def _new_externals(self) -> Buffer:
        pointer = np.uint64 if self._kernels.pointer_bytes == 8 else np.uint32
        return self._kernels.empty(max(self.file.header["externals"], 1), pointer)

    def signature(self) -> tuple[list[Value], list[Value]]:
        """The inputs and outputs as a session shows them."""
        return [_value(port) for port in self.file.inputs], [_value(port) for port in self.file.outputs]

    @property
    def recent(self) -> PlanProgram:
        return self

    @property
    def arena_bytes(self) -> int:
        return self._arena.nbytes

    def run(self, arguments: Sequence[np.ndarray], sizes: Mapping[str, int] | None = None) -> list[np.ndarray]:
        """The outputs for these inputs, as new arrays."""
        shapes = tuple([argument.shape for argument in arguments])
        with self._lock:
            if shapes != self._shapes or sizes is not None:
                self.bind(shapes, sizes)
            for index, (place, argument) in enumerate(zip(self.inputs, arguments, strict=True)):
                if index not in self._direct_inputs:
                    place[...] = argument
            return self._run_at(arguments) if self._is_direct else self._results()

    def run_same(self, feeds: Mapping[str, Any]) -> list[np.ndarray] | None:
        """The outputs, if the feeds are arrays of the types and shapes of the last run; otherwise nothing is run."""
        with self._lock:
            if len(feeds) != len(self._named_inputs) or self._is_direct:
                return None
            for name, place, shape, dtype in self._named_inputs:
                array = feeds.get(name)
                if type(array) is not np.ndarray or array.shape != shape or array.dtype != dtype:
                    return None
                place[...] = array
            return self._results()

    def _run_at(self, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run with large inputs and outputs where they are: nothing of them is copied."""
        table = self._externals.array
        held = []
        for index in self._direct_inputs:
            held.append(np.ascontiguousarray(arguments[index]))
            table[self.file.inputs[index].external] = held[-1].ctypes.data
        results = {index: np.empty_like(self.outputs[index]) for index in self._direct_outputs}
        for index, result in results.items():
            table[self.file.outputs[index].external] = result.ctypes.data
        try:
            self.execute()
        finally:
            for index in self._direct_inputs:
                external = self.file.inputs[index].external
                table[external] = self._places[external].address
            for index in self._direct_outputs:
                external = self.file.outputs[index].external
                table[external] = self._places[external].address
        return [results[i] if i in results else self._cut(output, i) for i, output in enumerate(self.outputs)]

    def swapped(self, pairs: Sequence[tuple[int, int]]) -> Buffer:
        """A table of addresses in which each of these inputs has changed places with an output of the same shape."""
        table = self._new_externals()
        table.array[...] = self._externals.array
        for before, after in pairs:
            first, second = self.file.inputs[before].external, self.file.outputs[after].external
            n_bytes = max(self._places[first].nbytes, self._places[second].nbytes)
            if min(self._places[first].nbytes, self._places[second].nbytes) < n_bytes:
                raise PlanError("a state and its next value are of different sizes")
            table.array[first], table.array[second] = self._externals.array[second], self._externals.array[first]
        return table

    def execute(self, externals: Buffer | None = None) -> None:
        """Run on what the places of the inputs hold."""
        tables, arena, own = self._arguments
        error = self._run(tables, arena, own if externals is None else externals.address)
        if error:
            self._raise_for(error)

    def repeat(self, times: int) -> None:
        """`execute` again and again in one call: what is timed then is the runs, not the call."""
        error = self._kernels.function("plan_repeat")(*self._arguments, times)
        if error:
            self._raise_for(error)

    def _results(self) -> list[np.ndarray]:
        error = self._run(*self._arguments)
        if error:
            self._raise_for(error)
        return self.results()

    def results(self) -> list[np.ndarray]:
        """Copies of what the last run left in the places of the outputs."""
        if self._lengths:
            return [self._cut(output, index) for index, output in enumerate(self.outputs)]
        return [output.copy() for output in self.outputs]

    def _cut(self, output: np.ndarray, index: int) -> np.ndarray:
        """An output that is as long as a loop took steps, without what no step has written."""
        length = self._lengths.get(index)
        return output.copy() if length is None else output[: int(length[()])].copy()

    def bind(self, shapes: tuple[tuple[int, ...], ...], known: Mapping[str, int] | None = None) -> None:
        """Prepare for inputs of these shapes."""
        symbols = self.file.symbols_of(shapes, known)
        if shapes == self._shapes and symbols == self._bound_symbols:
            return
        self._shapes, self._named_inputs = None, []
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
        external_bytes = kernels.function("plan_external_bytes")
        for external in range(self.file.header["externals"]):
            self._make_room(external, external_bytes(self._tables.address, external))
        for port in (*self.file.inputs, *self.file.outputs):
            self._make_room(port.external, self._n_bytes(port, sizes))
            if port.taken >= 0:
                self._make_room(port.taken, 8)
        for external, place in self._places.items():
            self._externals.array[external] = place.address
        self.inputs = [self._array(port, sizes) for port in self.file.inputs]
        self.outputs = [self._array(port, sizes) for port in self.file.outputs]
        self._named_inputs = [
            (port.name, place, place.shape, place.dtype)
            for port, place in zip(self.file.inputs, self.inputs, strict=True)
        ]
        self._lengths = {
            index: self._places[port.taken].part(0, (), np.int64).array
            for index, port in enumerate(self.file.outputs)
            if port.taken >= 0
        }
        if self._kernels.shares_memory:
            self._direct_inputs = [i for i, place in enumerate(self.inputs) if place.nbytes >= DIRECT_BYTES]
            self._direct_outputs = [
                i for i, place in enumerate(self.outputs) if place.nbytes >= DIRECT_BYTES and i not in self._lengths
            ]
            self._is_direct = bool(self._direct_inputs or self._direct_outputs)
        self._arguments = (self._tables.address, self._arena.address, self._externals.address)
        self._shapes, self._bound_symbols = shapes, symbols

    def _make_room(self, external: int, n_bytes: int) -> None:
        if external not in self._places or self._places[external].nbytes < n_bytes:
            self._places[external] = self._kernels.empty(n_bytes, np.uint8)

    def _n_bytes(self, port: PlanPort, sizes: list[int]) -> int:
        n_bytes = ARRAY_TYPES[port.dtype].itemsize
        for index in port.sizes:
            n_bytes *= sizes[index]
            if sizes[index] < 0 or n_bytes >= 2**31:
                raise PlanError(f"{port.name!r} would be of shape {[sizes[index] for index in port.sizes]}")
        return n_bytes

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


def _value(port: PlanPort) -> Value:
    shape: list[Dim | None] = [Symbol(size) if isinstance(size, str) else size for size in port.shape]
    if port.taken >= 0:
        shape[0] = None
    return Value(port.name, DType.of(np.empty(0, ARRAY_TYPES[port.dtype])), tuple(shape))
