"""Running a plan on a build of the kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import addressof, c_char
from dataclasses import dataclass
from math import prod
from time import monotonic
from typing import Any

import numpy as np

from webrnn.errors import ModelError, PlanError, ShapeError
from webrnn.ir import Dim, DType, Symbol, Value
from webrnn.plan.file import ARRAY_TYPES, PlanFile, PlanPort
from webrnn.plan.opcodes import ERROR_ROWS, ErrorRow
from webrnn.reference.sizes import max_bytes

from ..forking import new_lock
from ..kernels.loading import Buffer, Kernels
from ..kernels.team import Crew
from ..limits import Budget, Limits, limit_error

Shapes = tuple[tuple[int, ...], ...]

_ERRORS = {"PlanError": PlanError, "ShapeError": ShapeError, "ModelError": ModelError}
_MOST = 2**63 - 1
_GROW, _NEEDS_UNFUSED = (
    next(number for number, row in enumerate(ERROR_ROWS) if row.name == name) for name in ("grow", "needs_unfused")
)
MOST_RERUNS = 1000
"""How often a plan is run again because it needs more memory. Each time some buffer is twice as large as before."""


DIRECT_BYTES = 2**17
"""Inputs and outputs of this size are passed by address where the kernels share Python's memory; to copy less than this
takes no longer than to hand over addresses, some 2 us a run."""


def _address_of(array: np.ndarray) -> int:
    """Of an array without gaps that has elements. `array.ctypes` takes four times as long."""
    try:
        return addressof(c_char.from_buffer(array.data))
    except TypeError:  # it must not be written
        return array.ctypes.data


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A plan with its sizes bound and room for all that it uses.

    It is made when binding has come to its end, and nothing is run without one: tables that are half bound cannot be.
    """

    shapes: Shapes
    symbols: list[int]
    sizes: list[Any]
    """All rows of the plan's table; None for those that are known only when it has run."""
    inputs: list[np.ndarray]
    """Where the inputs are."""
    outputs: list[np.ndarray]
    """Where the outputs are; empty for those of late sizes."""
    named_inputs: list[tuple[str, np.ndarray, tuple[int, ...], np.dtype[Any]]]
    needed: list[int]
    """Bytes of each external."""
    direct_inputs: list[int]
    direct_outputs: list[int]
    is_direct: bool


@dataclass(frozen=True, slots=True, eq=False)
class Swap:
    """Addresses for `PlanProgram.execute` in which states and their next values have changed places."""

    bound: Bound
    externals: Buffer


class PlanProgram:
    """A plan, checked, in the memory of the kernels.

    Sizes are bound when the shapes of the inputs change. Inputs and outputs have places of their own in the kernels'
    memory, at least as large as the plan and the caller's arrays ask for; a run copies arguments there and results out,
    except for large arrays that may be passed where they are: see `_passed_by_address`.
    """

    is_exchanged = False
    """Whether it runs on the unfused build of the kernels that were given, see `Kernels.unfused`."""

    def __init__(self, data: bytes, kernels: Kernels, fills_outputs: bool = False, limits: Limits | None = None):
        """`fills_outputs`: the plan is known to write all of its outputs, so results need not be cleared first. A plan
        that `kernels` refuse because their multiply-adds are fused runs on the build without."""
        file = PlanFile(data)
        plan, error = _placed(file.data, kernels)
        if error == _NEEDS_UNFUSED:
            kernels, self.is_exchanged = kernels.unfused(), True
            plan, error = _placed(file.data, kernels)
        self._raise_for(error)
        self._set_up(file, plan, kernels, fills_outputs, limits or Limits())

    def _set_up(self, file: PlanFile, plan: Buffer, kernels: Kernels, fills_outputs: bool, limits: Limits) -> None:
        self.file, self._plan, self.kernels, self.limits = file, plan, kernels, limits
        n_bytes = kernels.function("plan_table_bytes")(self._plan.address)
        if not n_bytes:
            raise PlanError("the tables of the plan do not fit into memory")
        self._tables = kernels.buffer(np.zeros(n_bytes, np.uint8), np.uint8)
        self._externals = self._new_externals()
        self._direct_externals = self._new_externals()
        """The same with the addresses of the caller's arrays, valid for the run that they were written for."""
        self._symbols = kernels.empty(max(len(self.file.symbols), 1), np.int32)
        self._numbers = kernels.empty(3, np.int64)
        """Where the limits of a run are handed over."""
        self._arena = kernels.empty(0, np.uint8)
        self._places: dict[int, Buffer] = {}
        self._bound: Bound | None = None
        self._plan_run = kernels.function("plan_run")
        self._crew = Crew(kernels) if kernels.team is not None else None
        self._late_outputs = {index: port for index, port in enumerate(file.outputs) if port.is_late}
        self.fills_outputs = fills_outputs
        self._lock = new_lock(self)
        """One run at a time: the kernels run without Python's lock, on memory that belongs to this program."""

    def another(self, shares_arena: bool = False) -> PlanProgram:
        """The same plan with inputs, outputs and an arena of its own; the weights are shared.

        `shares_arena`: whoever has both never runs them at the same time, so they may work in the same memory.
        """
        program = object.__new__(PlanProgram)
        program._set_up(self.file, self._plan, self.kernels, self.fills_outputs, self.limits)
        if shares_arena:
            program._arena = self._arena
        return program

    def _after_fork(self, was_held: bool) -> None:
        if was_held:  # the tables are those of a run that stopped in the middle
            self._bound = None

    def _new_externals(self) -> Buffer:
        pointer = np.uint64 if self.kernels.pointer_bytes == 8 else np.uint32
        return self.kernels.empty(max(self.file.header["externals"], 1), pointer)

    def signature(self) -> tuple[list[Value], list[Value]]:
        """The inputs and outputs as a session shows them."""
        return [_value(port) for port in self.file.inputs], [_value(port) for port in self.file.outputs]

    @property
    def recent(self) -> PlanProgram:
        return self

    @property
    def arena_bytes(self) -> int:
        return self._arena.nbytes

    @property
    def bound(self) -> Bound:
        """What `bind` has made; PlanError if it has not come to its end."""
        if self._bound is None:
            raise PlanError("the sizes of the plan are not bound")
        return self._bound

    def is_bound(self, bound: Bound | None) -> bool:
        """Whether this is what is bound now."""
        return bound is not None and bound is self._bound

    @property
    def inputs(self) -> list[np.ndarray]:
        """Where the inputs are, for the shapes that are bound."""
        return self.bound.inputs

    @property
    def outputs(self) -> list[np.ndarray]:
        return self.bound.outputs

    @property
    def steps_taken(self) -> int:
        """The steps that the loops of the last run were charged for."""
        self.kernels.function("plan_steps")(self._tables.address, self._numbers.address)
        return int(self._numbers.array[0])

    def run(
        self,
        arguments: Sequence[np.ndarray],
        sizes: Mapping[str, int] | None = None,
        budget: Budget | None = None,
    ) -> list[np.ndarray]:
        """The outputs for these inputs, as new arrays. `budget` is that of a run that this is a part of."""
        shapes = tuple([argument.shape for argument in arguments])
        with self._lock:
            bound = self._bound
            if bound is None or shapes != bound.shapes or sizes is not None:
                bound = self._bind(shapes, sizes)
            for index, (place, argument) in enumerate(zip(bound.inputs, arguments, strict=True)):
                if index not in bound.direct_inputs:
                    place[...] = argument
            if budget is None:
                return self._run_at(bound, arguments) if bound.is_direct else self._results(bound)
            with self._within(budget):
                return self._run_at(bound, arguments) if bound.is_direct else self._results(bound)

    def run_same(self, feeds: Mapping[str, Any]) -> list[np.ndarray] | None:
        """The outputs, if the feeds are arrays of the types and shapes of the last run; otherwise nothing is run."""
        with self._lock:
            bound = self._bound
            if bound is None or len(feeds) != len(bound.named_inputs):
                return None
            arguments = []
            for index, (name, place, shape, dtype) in enumerate(bound.named_inputs):
                array = feeds.get(name)
                if type(array) is not np.ndarray or array.shape != shape or array.dtype != dtype:
                    return None
                arguments.append(array)
                if index not in bound.direct_inputs:
                    place[...] = array
            return self._run_at(bound, arguments) if bound.is_direct else self._results(bound)

    def _run_at(self, bound: Bound, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run with large inputs and outputs where they are: nothing of them is copied."""
        externals = self._direct_externals.array
        externals[...] = self._externals.array
        for index in bound.direct_inputs:
            argument = arguments[index]
            if argument.flags.c_contiguous and argument.flags.aligned:
                externals[self.file.inputs[index].external] = _address_of(argument)
            else:
                bound.inputs[index][...] = argument
        make = np.empty if self.fills_outputs else np.zeros
        results = {}
        for index in bound.direct_outputs:
            results[index] = make(bound.outputs[index].shape, bound.outputs[index].dtype)
            externals[self.file.outputs[index].external] = _address_of(results[index])
        self._run(self._direct_externals)
        return [results[i] if i in results else self._result(bound, i) for i in range(len(bound.outputs))]

    @contextmanager
    def _within(self, budget: Budget) -> Iterator[None]:
        """A run with what is left of a budget."""
        budget.check_time()
        seconds = None if budget.deadline is None else budget.deadline - monotonic()
        try:
            self._limit(budget.steps_left, seconds)
            yield
            budget.steps_left -= self.steps_taken
        finally:
            self._limit(self.limits.run_steps, self.limits.seconds)

    def _limit(self, run_steps: int, seconds: float | None) -> None:
        microseconds = -1 if seconds is None else min(max(int(seconds * 1e6), 0), _MOST)
        self._numbers.array[...] = min(self.limits.loop_steps, _MOST), min(run_steps, _MOST), microseconds
        self.kernels.function("plan_limit")(self._tables.address, self._numbers.address)

    def in_place(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Let each of these outputs have the memory of its input, if the plan allows it for the sizes that are bound,
        and nothing else has either: those that have it now."""
        bound, found = self.bound, []
        for before, after in pairs:
            first, second = self.file.inputs[before].external, self.file.outputs[after].external
            n_bytes = max(bound.needed[first], bound.needed[second])
            if not self.may_overwrite(before, after) or self._places[first].nbytes < n_bytes:
                continue
            self._places.pop(second, None)
            self._externals.array[second] = self._places[first].address
            bound.outputs[after] = bound.inputs[before]
            found.append((before, after))
        return found

    def may_overwrite(self, before: int, after: int) -> bool:
        """Whether the plan allows this output to have the memory of this input, for the sizes that are bound."""
        first, over = self.file.inputs[before].external, self.file.outputs[after].over
        second = self.file.outputs[after].external
        if over is None or over[0] != first or not {first, second} <= self.file.unshared:
            return False
        if self._crew is not None and self.file.has_sides:  # these threads know nothing of outputs that are inputs
            return False
        room = self.bound.sizes[over[1]]
        return room is not None and room >= 0

    def bytes_of(self, external: int) -> int | None:
        """How much memory at another address may take the place of an external, for the sizes that are bound; None if
        the plan has to have its own."""
        if external in self.file.late_externals or external not in self.file.unshared:
            return None
        return self.bound.needed[external]

    def addresses(self) -> Swap:
        """The addresses of the program's own places, to be changed and handed to `execute`. Whoever changes one sees to
        it that as many bytes are there as `bytes_of` says."""
        table = self._new_externals()
        table.array[...] = self._externals.array
        return Swap(self.bound, table)

    def swapped(self, pairs: Sequence[tuple[int, int]]) -> Swap:
        """Addresses with which each of these inputs has changed places with an output of the same shape.

        PlanError if one of them is not the only one in its place, if a place is too small for both, or if a place may
        become another one while the plan runs.
        """
        if self.file.late_externals:
            raise PlanError("memory that grows while running has another address then")
        bound, table = self.bound, self._new_externals()
        own = self._externals.array
        table.array[...] = own
        for before, after in pairs:
            first, second = self.file.inputs[before].external, self.file.outputs[after].external
            if not {first, second} <= self.file.unshared:
                raise PlanError("a state and another output have the same memory")
            n_bytes = max(bound.needed[first], bound.needed[second])
            if min(self._places[first].nbytes, self._places[second].nbytes) < n_bytes:
                raise PlanError("a state and its next value are of different sizes")
            table.array[first], table.array[second] = own[second], own[first]
        return Swap(bound, table)

    def execute(self, swap: Swap | None = None) -> None:
        """Run on what the places of the inputs hold."""
        with self._lock:
            if self._bound is None or (swap is not None and swap.bound is not self._bound):
                raise PlanError("the sizes of the plan are not bound")
            self._run(self._externals if swap is None else swap.externals)

    def repeat(self, times: int) -> None:
        """`execute` again and again in one call: what is timed then is the runs, not the call."""
        with self._lock:
            if any(self.file.is_late):
                self._run(self._externals)  # makes the room of which only a run knows how large it is
            if self._crew is not None and self._crew.is_needed:
                self._crew.team.call()
            self._raise_for(self.kernels.function("plan_repeat")(*self.run_arguments, times))

    @property
    def run_arguments(self) -> tuple[int, int, int]:
        """Of plan_run: tables, arena, and the addresses of the program's own places, as they are now. PlanError if
        nothing is bound."""
        if self._bound is None:
            raise PlanError("the sizes of the plan are not bound")
        return self._tables.address, self._arena.address, self._externals.address

    def _run(self, externals: Buffer) -> None:
        """Run the plan; where it needs more memory than there is, again with that."""
        run, tables = self._plan_run, self._tables.address
        crew = self._crew
        if crew is not None and crew.is_needed:
            crew.team.call()
        error = run(tables, self._arena.address, externals.address)
        if crew is not None and crew.is_watching:
            crew.watch(tables)
        if error == _GROW:
            try:
                for _ in range(MOST_RERUNS):
                    self._grow(externals)
                    error = run(tables, self._arena.address, externals.address)
                    if error != _GROW:
                        break
                else:
                    self._raise_for(error)
            except BaseException:
                self._forget_growth()
                raise
        if error:
            self._raise_for(error)

    def _grow(self, externals: Buffer) -> None:
        """Make the room that the tables ask for by now."""
        n_bytes = self.kernels.function("plan_external_bytes")
        self._make_arena()
        for external in self.file.late_externals:
            self._make_room(external, n_bytes(self._tables.address, external))
            self._externals.array[external] = externals.array[external] = self._places[external].address
        bound = self.bound
        for index, port in enumerate(self.file.outputs):
            if not port.is_late and port.external in self.file.late_externals:
                bound.outputs[index] = self._array(port, bound.sizes)

    def _forget_growth(self) -> None:
        """Bind the same sizes in new tables: the old ones ask for more memory than there is. What new ones ask for was
        there before anything grew."""
        self._tables.array[...] = 0
        bind = self.kernels.function("plan_bind")
        self._raise_for(bind(self._plan.address, self._symbols.address, self._tables.address))
        self._limit(self.limits.run_steps, self.limits.seconds)
        if self._crew is not None:
            self._crew.hire(self._tables.address)

    def _results(self, bound: Bound) -> list[np.ndarray]:
        self._run(self._externals)
        return self._results_of(bound)

    def results(self) -> list[np.ndarray]:
        """Copies of what the last run left in the places of the outputs."""
        return self._results_of(self.bound)

    def _results_of(self, bound: Bound) -> list[np.ndarray]:
        if self._late_outputs:
            return [self._result(bound, index) for index in range(len(bound.outputs))]
        return [output.copy() for output in bound.outputs]

    def _result(self, bound: Bound, index: int) -> np.ndarray:
        """An output; one of late sizes is as large as the last run has made it."""
        port = self._late_outputs.get(index)
        if port is None:
            return bound.outputs[index].copy()
        size_of, sizes = self.kernels.function("plan_size"), list(bound.sizes)
        for row in port.sizes:
            if self.file.is_late[row]:
                sizes[row] = size_of(self._tables.address, row)
        if _n_bytes(port, sizes) > self._places[port.external].nbytes:
            raise PlanError(f"{port.name!r} is larger than its place")
        return self._array(port, sizes).copy()

    def takes(self, sizes: Mapping[str, int]) -> bool | None:
        """Whether it can be bound to these named sizes, and None if they are not all; afterwards nothing is bound."""
        symbols = [sizes.get(name) for name in self.file.symbols]
        if None in symbols:
            return None
        if any(not 0 <= size < 2**31 for size in symbols if size is not None):
            return False
        with self._lock:
            self._bound = None
            self._symbols.array[: len(symbols)] = symbols
            bind = self.kernels.function("plan_bind")
            return not bind(self._plan.address, self._symbols.address, self._tables.address)

    def bind(self, shapes: Shapes, known: Mapping[str, int] | None = None) -> None:
        """Prepare for inputs of these shapes. If it raises, nothing is bound."""
        with self._lock:
            self._bind(shapes, known)

    def _bind(self, shapes: Shapes, known: Mapping[str, int] | None = None) -> Bound:
        symbols = self.file.symbols_of(shapes, known)
        if self._bound is not None and shapes == self._bound.shapes and symbols == self._bound.symbols:
            return self._bound
        self._bound = None
        kernels, sizes = self.kernels, self.file.sizes(symbols)
        for port, shape in zip(self.file.inputs, shapes, strict=True):
            if tuple(sizes[index] for index in port.sizes) != shape:
                raise ShapeError(f"input {port.name!r} has shape {list(shape)}, the plan takes {list(port.shape)}")
        self._symbols.array[: len(symbols)] = symbols
        bind = kernels.function("plan_bind")
        self._raise_for(bind(self._plan.address, self._symbols.address, self._tables.address))
        self._limit(self.limits.run_steps, self.limits.seconds)
        if self._crew is not None:
            self._crew.hire(self._tables.address)
        self._make_arena()
        promised = self.file.external_bytes(sizes)
        for external in self.file.late_externals:
            promised[external] = kernels.function("plan_external_bytes")(self._tables.address, external)
        needed = list(promised)
        for port in (*self.file.inputs, *self.file.outputs):
            needed[port.external] = max(needed[port.external], 0 if port.is_late else _n_bytes(port, sizes))
        for external, n_bytes in enumerate(needed):
            self._make_room(external, n_bytes)
        self._externals.array[: len(needed)] = [self._places[external].address for external in range(len(needed))]
        inputs = [self._array(port, sizes) for port in self.file.inputs]
        outputs = [self._array(port, sizes) for port in self.file.outputs]
        direct_inputs, direct_outputs = (
            [i for i, port in enumerate(ports) if self._passed_by_address(port, sizes, promised)]
            for ports in (self.file.inputs, self.file.outputs)
        )
        self._bound = Bound(
            shapes,
            symbols,
            sizes,
            inputs,
            outputs,
            [(port.name, at, at.shape, at.dtype) for port, at in zip(self.file.inputs, inputs, strict=True)],
            needed,
            direct_inputs,
            direct_outputs,
            bool(direct_inputs or direct_outputs),
        )
        return self._bound

    def _passed_by_address(self, port: PlanPort, sizes: list[int], promised: Sequence[int]) -> bool:
        """Whether the plan may work on the caller's array of this input or output itself.

        The array has as many bytes as the metadata say, and the plan keeps to as many as it was promised for the
        external, so the latter must not be more. Nothing else may have the external, whose address is one for all. An
        input is not written: PlanFile refuses a plan that may do so. An output of a late size is copied when that is
        known.
        """
        if port.is_late or port.external in self.file.late_externals:
            return False
        n_bytes = _n_bytes(port, sizes)
        is_alone = port.external in self.file.unshared
        is_large = self.kernels.shares_memory and n_bytes >= DIRECT_BYTES
        return is_large and is_alone and promised[port.external] <= n_bytes

    def _make_arena(self) -> None:
        n_bytes = self.kernels.function("plan_arena_bytes")(self._tables.address)
        if n_bytes > max_bytes():
            raise PlanError(f"the plan would need {n_bytes} bytes; the limit is {max_bytes()}")
        if n_bytes > self._arena.nbytes:
            self._arena = self.kernels.empty(n_bytes + (n_bytes // 2 if self._arena.nbytes else 0), np.uint8)

    def _make_room(self, external: int, n_bytes: int) -> None:
        if n_bytes > max_bytes():
            raise PlanError(f"an input or output would need {n_bytes} bytes; the limit is {max_bytes()}")
        if external not in self._places or self._places[external].nbytes < n_bytes:
            self._places[external] = self.kernels.empty(n_bytes, np.uint8)

    def _array(self, port: PlanPort, sizes: list[Any]) -> np.ndarray:
        shape = tuple(sizes[index] for index in port.sizes)
        if None in shape:
            return np.empty(0, ARRAY_TYPES[port.dtype])
        return self._places[port.external].part(0, shape, ARRAY_TYPES[port.dtype]).array

    def _raise_for(self, error: int) -> None:
        if not error:
            return
        row = ERROR_ROWS[error] if 0 < error < len(ERROR_ROWS) else ErrorRow("", f"error {error}")
        where = None
        if hasattr(self, "_tables"):
            word = self.kernels.function("plan_where")(self._tables.address)
            where = self.file.node_at(word) or None
        if row.limit:
            raise limit_error(self.limits, row.limit, where)
        raise _ERRORS[row.raises](row.text, node=where)


def _placed(data: bytes, kernels: Kernels) -> tuple[Buffer, int]:
    """A plan in the memory of the kernels, and what plan_check says of it."""
    plan = kernels.buffer(np.frombuffer(data, np.uint8), np.uint8)
    return plan, kernels.function("plan_check")(plan.address, len(data))


def _n_bytes(port: PlanPort, sizes: Sequence[int]) -> int:
    """Bytes of the array of an input or output; PlanError if there can be no such array."""
    shape = [sizes[index] for index in port.sizes]
    n_bytes = ARRAY_TYPES[port.dtype].itemsize * prod(shape)
    # numpy refuses sizes whose product without zeros is not one of an array
    if min(shape, default=0) < 0 or n_bytes >= 2**31 or prod(max(size, 1) for size in shape) >= 2**56:
        raise PlanError(f"{port.name!r} would be of shape {shape}")
    return n_bytes


def _value(port: PlanPort) -> Value:
    shape: list[Dim | None] = [
        None if late else Symbol(size) if isinstance(size, str) else size
        for size, late in zip(port.shape, port.late, strict=True)
    ]
    return Value(port.name, DType.of(np.empty(0, ARRAY_TYPES[port.dtype])), tuple(shape))
