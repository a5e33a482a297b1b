"""Many streams in one run of a plan: a row each, in the memory of the kernels, where the plan reads and writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from webrnn.errors import PlanError

from ..kernels.loading import Buffer, Kernels
from ..programs.plan_program import PlanProgram
from .batching import Batched
from .carriers import Pairs, Shapes

FEWEST_ROWS = 8
"""For so many rows there is room at least."""
MOST_BOUND = 16
"""Numbers of rows for which a plan stays bound."""


def rows_at_once(weight_bytes: int, threads: int = 1) -> int:
    """How many streams are run at a time: what one of them makes and the next reads is still in a near cache then.

    A run costs about 2 us more than its arithmetic, so that of few weights takes more rows. Weights are read once a
    run, so that 64 rows are 2 to 3% quicker than 32. Threads share the rows of a run.
    """
    return threads * (256 if weight_bytes < 2**16 else 64)


class Rows:
    """One input or state of many streams, [room, *shape of one stream's]. Room doubles when it is not enough."""

    def __init__(self, kernels: Kernels | None, shape: Sequence[int], dtype: np.dtype[Any]):
        """Without kernels it is an array like any other."""
        self._kernels, self.shape = kernels, tuple(shape)
        self.row_bytes = prod(self.shape) * dtype.itemsize
        self._buffer: Buffer | None = None
        self.array = np.zeros((0, *self.shape), dtype)
        self.address = 0

    def views(self) -> list[np.ndarray]:
        """Each row: to write one of many is quicker so."""
        return [self.array[row, ...] for row in range(len(self.array))]

    def reserve(self, n: int) -> None:
        """Make room for so many rows; those that there are stay."""
        old = self.array
        if n <= len(old):
            return
        shape = (max(n, 2 * len(old), FEWEST_ROWS), *self.shape)
        if self._kernels is None:
            array = np.zeros(shape, old.dtype)
            array[: len(old)] = old
            self.array = array
            return
        buffer = self._kernels.empty(shape, old.dtype)
        array = buffer.array
        array[: len(old)] = old
        self.array, self.address, self._buffer = array, buffer.address, buffer


@dataclass(frozen=True, slots=True)
class _Port:
    """An input or output of a plan that is bound for some rows."""

    index: int
    external: int
    place: np.ndarray | None
    """Where the plan has it, the stream first; None: the plan reads or writes rows where they are."""


class _BoundRows:
    """A plan, bound for so many rows."""

    def __init__(self, program: PlanProgram, batched: Batched, shapes: Shapes, pairs: Pairs, n: int):
        self.n, self._program = n, program
        program.bind(tuple(_replaced(shape, axis, n) for shape, axis in zip(shapes, batched.inputs, strict=True)))
        for before, after in pairs:
            if program.inputs[before].shape != program.outputs[after].shape:
                raise PlanError(
                    f"{program.file.inputs[before].name!r} of shape {program.inputs[before].shape} becomes "
                    f"{program.outputs[after].shape}"
                )
        self._table = program.addresses()
        self._addresses = self._table.externals.array
        self._direct: list[tuple[int, int, int]] = []
        """What is read and written where it is: externals, where the first row is, and how far the next."""
        self._copied_in: list[tuple[np.ndarray, np.ndarray]] = []
        self._copied_out: list[tuple[np.ndarray, np.ndarray]] = []
        """Places of the program, and arrays of all rows that are copied there, or from there."""
        carried, given = {before for before, _ in pairs}, {after for _, after in pairs}
        inputs = [
            self._port(index, port.external, program.inputs[index], batched.inputs[index])
            for index, port in enumerate(program.file.inputs)
        ]
        outputs = [
            self._port(index, port.external, program.outputs[index], batched.outputs[index])
            for index, port in enumerate(program.file.outputs)
        ]
        self._fed = [port for port in inputs if port.index not in carried]
        self._before = [inputs[before] for before, _ in pairs]
        self._after = [outputs[after] for _, after in pairs]
        self._returned = [port for port in outputs if port.index not in given]
        if not program.kernels.shares_memory:
            self._returned = [self._own_place(port, batched.outputs[port.index]) for port in self._returned]
        self.overwrites = [
            program.may_overwrite(before, after) and one.place is None and other.place is None
            for (before, after), one, other in zip(pairs, self._before, self._after, strict=True)
        ]
        """Which states are written where they are read."""
        self.results = [
            (_replaced(array.shape, batched.outputs[port.index], 1), array.dtype)
            for port, array in [(port, program.outputs[port.index]) for port in self._returned]
        ]
        """The shapes and types of what one stream gets."""

    def _port(self, index: int, external: int, array: np.ndarray, axis: int) -> _Port:
        port = _Port(index, external, None)
        self_contained = prod(array.shape[:axis]) == 1 and self._program.bytes_of(external) == array.nbytes
        return port if self_contained else _Port(index, external, stream_first(array, axis))

    def _own_place(self, port: _Port, axis: int) -> _Port:
        return _Port(port.index, port.external, stream_first(self._program.outputs[port.index], axis))

    def prepare(
        self, feeds: Sequence[Rows], before: Sequence[Rows], after: Sequence[Rows], results: Sequence[np.ndarray]
    ) -> None:
        """What the next runs work on; `results` are arrays of all rows."""
        self._direct, self._copied_in, self._copied_out = [], [], []
        for ports, all_rows, copied in (
            (self._fed, feeds, self._copied_in),
            (self._before, before, self._copied_in),
            (self._after, after, self._copied_out),
        ):
            for port, rows in zip(ports, all_rows, strict=True):
                if port.place is None:
                    self._direct.append((port.external, rows.address, rows.row_bytes))
                else:
                    copied.append((port.place, rows.array))
        for port, array in zip(self._returned, results, strict=True):
            if port.place is None:
                self._direct.append((port.external, array.ctypes.data, array.strides[0]))
            else:
                self._copied_out.append((port.place, array))

    def run(self, first: int) -> None:
        """A step of the rows from `first` on."""
        addresses = self._addresses
        for external, address, row_bytes in self._direct:
            addresses[external] = address + first * row_bytes
        if not self._copied_in and not self._copied_out:
            self._program.execute(self._table)
            return
        last = first + self.n
        for place, array in self._copied_in:
            place[...] = array[first:last]
        self._program.execute(self._table)
        for place, array in self._copied_out:
            array[first:last] = place


class RowPrograms:
    """A plan for streams with feeds of one shape, on any number of rows."""

    def __init__(self, batched: Batched, pairs: Pairs, shapes: Shapes, most: int):
        """`shapes` are those of all inputs, for one stream; `most` rows are run at a time."""
        self._batched, self._pairs, self._shapes = batched, pairs, shapes
        if batched.program.file.late_externals or any(port.is_late for port in batched.program.file.outputs):
            raise PlanError("memory that grows while running has another address then")
        weight_bytes = batched.program.file.header["data_bytes"]
        self._most = min(most, rows_at_once(weight_bytes, batched.program.kernels.threads))
        self._bound: dict[int, _BoundRows] = {}
        self._recent: _BoundRows | None = None
        self._newest = batched.program
        self._overwrites: list[bool] | None = None

    def overwrites(self, n: int) -> list[bool]:
        """Which states are written where they are read, whatever the number of rows."""
        if self._overwrites is None:
            self._overwrites = self._for(min(n, self._most)).overwrites
        return self._overwrites

    def _for(self, n: int) -> _BoundRows:
        bound = self._bound.get(n)
        if bound is not None and bound is self._recent:
            return bound
        self._bound.pop(n, None)
        if bound is None:
            program = self._newest.another(shares_arena=self._newest is not self._batched.program)
            bound = _BoundRows(program, self._batched, self._shapes, self._pairs, n)
            if bound.overwrites != (self._overwrites or bound.overwrites):
                raise PlanError("where a state may be written depends on the number of streams")
            self._newest = program
        self._bound[n] = self._recent = bound
        while len(self._bound) > MOST_BOUND:
            del self._bound[next(iter(self._bound))]
        return bound

    def run(self, n: int, feeds: Sequence[Rows], before: Sequence[Rows], after: Sequence[Rows]) -> list[np.ndarray]:
        """A step of the first n rows: new arrays, a row for each stream. What `before` has stays as it is, but for
        states that are written where they are read."""
        bound = self._for(min(n, self._most))
        make = np.empty if self._batched.program.fills_outputs else np.zeros
        results = [make((n, *shape), dtype) for shape, dtype in bound.results]
        bound.prepare(feeds, before, after, results)
        rest = n % bound.n
        for first in range(0, n - rest, bound.n):
            bound.run(first)
        if rest:
            bound = self._for(rest)
            bound.prepare(feeds, before, after, results)
            bound.run(n - rest)
        return results


def stream_first(array: np.ndarray, axis: int) -> np.ndarray:
    """A view of an array in which `axis` counts streams as [streams, *shape of one]."""
    return np.expand_dims(np.moveaxis(array, axis, 0), axis + 1)


def _replaced(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])
