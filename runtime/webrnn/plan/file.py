"""Reading plan files: the header, the table of sizes, the metadata and the states that they store."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from webrnn.errors import PlanError, ShapeError
from webrnn.ir import DType
from webrnn.ir.dims import floor_divide

from . import opcodes
from .halves import widened
from .stored_pool import PoolAxes, read_pool
from .stored_timing import read_timing

ELEMENT_TYPES = {
    "f32": DType.FLOAT, "i64": DType.INT64, "bool": DType.BOOL, "i32": DType.INT32, "f16": DType.FLOAT16,
    "bf16": DType.BFLOAT16, "f64": DType.DOUBLE, "u8": DType.UINT8, "i8": DType.INT8, "u16": DType.UINT16,
    "i16": DType.INT16, "u32": DType.UINT32, "u64": DType.UINT64, "f8e4m3fn": DType.FLOAT8E4M3FN,
    "f8e4m3fnuz": DType.FLOAT8E4M3FNUZ, "f8e5m2": DType.FLOAT8E5M2, "f8e5m2fnuz": DType.FLOAT8E5M2FNUZ,
    "u4": DType.UINT4, "i4": DType.INT4, "f4e2m1": DType.FLOAT4E2M1, "f8e8m0": DType.FLOAT8E8M0, "u2": DType.UINT2,
    "i2": DType.INT2, "f6e2m3": DType.FLOAT6E2M3, "f6e3m2": DType.FLOAT6E3M2,
}  # fmt: skip
"""By the names that plans have for them."""

ARRAY_TYPES: dict[str, np.dtype[Any]] = {name: dtype.array_type for name, dtype in ELEMENT_TYPES.items()}


@dataclass(frozen=True, slots=True)
class PlanPort:
    """An input or output of a plan file."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    """Named sizes are strings."""
    sizes: tuple[int, ...]
    """Indices into the table of sizes."""
    external: int
    late: tuple[bool, ...] = ()
    """For each axis, whether its size is known only when the plan has run."""
    over: tuple[int, int] | None = None
    """The external of an input whose memory an output may have, if a size, of which this is the row, is not negative:
    what a step has to leave of the input as it was is left."""

    @property
    def is_late(self) -> bool:
        return any(self.late)


@dataclass(frozen=True, slots=True, eq=False)
class PlanState:
    """A state: what the output was is the input of the next step."""

    input: str
    output: str
    start: np.ndarray | None = None
    """What it is before the first step, of the state's rank; axes of one element are repeated. None is zeros."""


class PlanFile:
    """The tables of a plan. What the C side needs is checked there; this checks what hosts read."""

    def __init__(self, data: bytes):
        self.file_bytes = len(data)
        """Of the file; those of the plan in it are `data`."""
        data = widened(data)
        n_header = len(opcodes.HEADER)
        if len(data) < 4 * n_header:
            raise PlanError("the file is shorter than the header of a plan")
        words = np.frombuffer(data[: len(data) // 4 * 4], np.int32)
        header = dict(zip(opcodes.HEADER, (int(word) for word in words[:n_header]), strict=True))
        if header["magic"] != opcodes.MAGIC:
            raise PlanError("this is not a plan file")
        if header["version"] not in opcodes.VERSIONS:
            raise PlanError(opcodes.version_text(header["version"]))
        self.data, self.header = data, header
        rows = header["sizes"]
        if not 0 <= rows <= (len(words) - n_header) // opcodes.SIZE_WORDS:
            raise PlanError("the table of sizes does not fit into the file")
        end = n_header + opcodes.SIZE_WORDS * rows
        self.size_rows: list[list[int]] = words[n_header:end].reshape(rows, opcodes.SIZE_WORDS).tolist()
        self.is_late = late_rows(self.size_rows)
        """Of each size: whether the program sets it."""
        self._external_rows = self._read_external_rows(words[end:])
        self.meta = meta = self._read_meta()
        self.symbols: list[str] = meta["symbols"]
        if not all(isinstance(name, str) for name in self.symbols):
            raise PlanError("the metadata are damaged")
        self.inputs = [self._port(row) for row in meta["inputs"]]
        self.outputs = [self._port(row) for row in meta["outputs"]]
        self._check_externals()
        try:
            self.nodes: list[tuple[int, str]] = [(int(at), str(label)) for at, label in meta["nodes"]]
        except (TypeError, ValueError, OverflowError) as error:
            raise PlanError("the metadata are damaged") from error
        if len(self.symbols) != header["symbols"]:
            raise PlanError("the plan does not name its symbols")
        self.states: list[PlanState] = _read_states(meta.get("states", []), self)
        """Which input takes which output in the next step, as chosen at export."""
        pool = meta.get("pool")
        self.pool: PoolAxes | None = None if pool is None else read_pool(pool, self)
        """Which axis of each input and output counts streams, if the plan runs many of them side by side."""
        timing = meta.get("timing")
        self.timing = None if timing is None else read_timing(timing, self)
        """How the frames of the stream relate to those of the whole run, if the file says it."""
        self.about: dict[str, Any] = meta.get("about", {})
        """What the exporter said about the model, for its own use."""
        if not isinstance(self.about, dict):
            raise PlanError("the metadata are damaged")

    def _port(self, row: Any) -> PlanPort:
        port = _port(row, self.size_rows, self.header["externals"])
        return replace(port, late=tuple(self.is_late[size] for size in port.sizes))

    def _read_external_rows(self, words: np.ndarray) -> list[tuple[int, int, int]]:
        """(place, size, bytes of an element) of each buffer that is an external."""
        rows = self.header["buffers"]
        if not 0 <= rows <= len(words) // opcodes.BUFFER_WORDS:
            raise PlanError("the table of buffers does not fit into the file")
        table = words[: opcodes.BUFFER_WORDS * rows].reshape(rows, opcodes.BUFFER_WORDS)
        found = []
        for _, dtype, size, place in table[table[:, 0] == opcodes.BUFFER_KINDS.index("external")].tolist():
            external = place & ~opcodes.WRITABLE
            known = 0 <= dtype < len(opcodes.DTYPES) and 0 <= size < self.header["sizes"]
            if not known or not 0 <= external < self.header["externals"]:
                raise PlanError("a table is damaged")
            found.append((place, size, opcodes.ITEM_BYTES[dtype]))
        return found

    def _check_externals(self) -> None:
        """Raise unless the memory of an input is the input's alone and not written by the program, and its sizes are
        known. Outputs may share memory: an output that is listed twice does."""
        inputs, outputs = self.inputs, self.outputs
        # An output has one, and perhaps one that it is copied from.
        if self.header["externals"] > len(inputs) + 2 * len(outputs):
            raise PlanError("the header is damaged")
        if len({port.name for port in inputs}) < len(inputs):
            raise PlanError("two inputs have the same name")
        # The same output may be listed twice, in one place or in two.
        if len({port.name for port in outputs}) < len({(port.name, port.dtype, port.sizes) for port in outputs}):
            raise PlanError("two outputs have the same name")
        written = {place & ~opcodes.WRITABLE for place, _, _ in self._external_rows if place & opcodes.WRITABLE}
        taken = {port.external for port in outputs}
        for port in inputs:
            if port.external in written:
                raise PlanError(f"the input {port.name!r} is written")
            if port.is_late:
                raise PlanError(f"the metadata of {port.name!r} are damaged")
            if port.external in taken:
                raise PlanError(f"the memory of the input {port.name!r} is not its own")
            taken.add(port.external)

    @cached_property
    def has_sides(self) -> bool:
        """Whether two parts of it may run at the same time."""
        from .decode import decode  # a page waits for what is imported

        return any(instruction.name == "beside" for instruction in decode(self.data).code)

    @cached_property
    def unshared(self) -> frozenset[int]:
        """The externals that one input or output has, and nothing else."""
        counts = Counter([port.external for port in (*self.inputs, *self.outputs)])
        return frozenset(external for external, count in counts.items() if count == 1)

    def external_bytes(self, sizes: Sequence[int | None]) -> list[int]:
        """How large each external has to be for the program, but for what is late: what plan_external_bytes says, for
        all of them at once."""
        needed = [0] * self.header["externals"]
        for place, size, item in self._external_rows:
            external, number = place & ~opcodes.WRITABLE, sizes[size]
            needed[external] = max(needed[external], 0 if number is None else number * item)
        return needed

    @cached_property
    def late_externals(self) -> list[int]:
        """Those whose size is known only while running."""
        return sorted({place & ~opcodes.WRITABLE for place, size, _ in self._external_rows if self.is_late[size]})

    def _read_meta(self) -> dict[str, Any]:
        start, length = self.header["meta_offset"], self.header["meta_bytes"]
        if start < 0 or length < 0 or start + length > len(self.data):
            raise PlanError("the metadata do not fit into the file")
        try:
            meta = json.loads(self.data[start : start + length])
        except (ValueError, RecursionError) as error:
            raise PlanError("the metadata are damaged") from error
        parts = ("symbols", "inputs", "outputs", "nodes")
        if not isinstance(meta, dict) or not all(isinstance(meta.get(part), list) for part in parts):
            raise PlanError("the metadata are damaged")
        return meta

    def symbols_of(self, shapes: Sequence[tuple[int, ...]], known: Mapping[str, int] | None = None) -> list[int]:
        """The numbers of the symbols when the inputs have these shapes."""
        found = dict(known or {})
        for port, shape in zip(self.inputs, shapes, strict=True):
            if len(port.shape) != len(shape):
                raise ShapeError(f"input {port.name!r} has shape {list(shape)}, the plan takes {list(port.shape)}")
            found.update((name, size) for name, size in zip(port.shape, shape, strict=True) if isinstance(name, str))
        missing = [name for name in self.symbols if name not in found]
        if missing:
            raise PlanError(f"the inputs do not say how large {', '.join(missing)} is")
        return [found[name] for name in self.symbols]

    def sizes(self, symbols: Sequence[int | None]) -> list[Any]:
        """All sizes for given symbols; None for those that are known only while running, or depend on a None."""
        found: list[Any] = []
        try:
            for size in evaluated(self.size_rows, symbols):
                if size is not None and abs(size) >= 2**31:
                    raise PlanError(f"a size of {size}")
                found.append(size)
        except (IndexError, ValueError) as error:
            raise PlanError("the table of sizes is damaged") from error
        return found

    def node_at(self, word: int) -> str:
        """The label of the node that an instruction is for."""
        return next((label for at, label in reversed(self.nodes) if at <= word), "")


def _port(row: Any, size_rows: list[list[int]], n_externals: int) -> PlanPort:
    try:
        port = PlanPort(row["name"], row["dtype"], tuple(row["shape"]), tuple(row["sizes"]), row["external"])
        over = row.get("over")
        if over is not None:
            port = replace(port, over=tuple(over))
    except (KeyError, TypeError, AttributeError) as error:
        raise PlanError("the metadata are damaged") from error
    fits = (
        isinstance(port.name, str)
        and isinstance(port.dtype, str)
        and port.dtype in opcodes.DTYPES
        and len(port.sizes) == len(port.shape) <= opcodes.MOST_AXES
        and all(type(number) is int for number in (*port.sizes, port.external))
        and all(0 <= size < len(size_rows) for size in port.sizes)
        and all(_is_shown(size, size_rows[row]) for size, row in zip(port.shape, port.sizes, strict=True))
        and 0 <= port.external < n_externals
        and (port.over is None or _is_over(port.over, len(size_rows), n_externals))
    )
    if not fits:
        raise PlanError(f"the metadata of {port.name!r} are damaged")
    return port


def _is_over(over: tuple[Any, ...], n_sizes: int, n_externals: int) -> bool:
    return (
        len(over) == 2
        and all(type(number) is int for number in over)
        and 0 <= over[0] < n_externals
        and 0 <= over[1] < n_sizes
    )


def _is_shown(size: Any, row: list[int]) -> bool:
    """Whether the metadata show a row of the table of sizes as it is: a number, or a text where it is open."""
    kind, number, _ = row
    return size == number and type(size) is int if kind == 0 else isinstance(size, str)


NUMBER, SYMBOL, SUM, PRODUCT, QUOTIENT, LATE = (
    opcodes.SIZE_KINDS.index(kind) for kind in ("number", "symbol", "sum", "product", "quotient", "late")
)


def late_rows(rows: Sequence[Sequence[int]]) -> list[bool]:
    """Of each row of the table of sizes: whether it is set while running, or depends on one that is.

    >>> late_rows([(LATE, 0, 0), (NUMBER, 3, 0), (PRODUCT, 0, 1)])
    [True, False, True]
    """
    found: list[bool] = []
    for kind, a, b in rows:
        operands = {SUM: (a, b), PRODUCT: (a, b), QUOTIENT: (a,)}.get(kind, ())
        found.append(kind == LATE or any(0 <= index < len(found) and found[index] for index in operands))
    return found


def evaluated(
    rows: Iterable[Sequence[int]], symbols: Sequence[Any], late: Callable[[int], Any] = lambda index: None
) -> Iterator[Any]:
    """Each size when it is asked for, so that one that is too large ends it. `late` says what a late size is; what
    depends on one that is None is None.

    >>> list(evaluated([(SYMBOL, 0, 0), (NUMBER, 3, 0), (PRODUCT, 0, 1), (QUOTIENT, 2, 2)], [5]))
    [5, 3, 15, 7]
    """
    found: list[Any] = []
    for kind, a, b in rows:
        if kind == NUMBER:
            size: Any = a
        elif kind == SYMBOL:
            size = symbols[a]
        elif kind == LATE:
            size = late(a)
        elif found[a] is None or (kind != QUOTIENT and found[b] is None):
            size = None
        elif kind == SUM:
            size = found[a] + found[b]
        elif kind == PRODUCT:
            size = found[a] * found[b]
        else:
            size = floor_divide(found[a], b)
        found.append(size)
        yield size


def _read_states(rows: Any, file: PlanFile) -> list[PlanState]:
    """The states of a file whose signature has been read."""
    if not isinstance(rows, list):
        raise PlanError("the metadata are damaged")
    inputs, outputs = ({port.name: port for port in ports} for ports in (file.inputs, file.outputs))
    states = [_read_state(row, inputs, outputs, file) for row in rows]
    for names in ([state.input for state in states], [state.output for state in states]):
        if len(set(names)) < len(names):
            raise PlanError("the metadata carry a state twice")
    return states


def _read_state(row: Any, inputs: Mapping[str, PlanPort], outputs: Mapping[str, PlanPort], file: PlanFile) -> PlanState:
    before, after = (row.get("input"), row.get("output")) if isinstance(row, dict) else (None, None)
    if not isinstance(before, str) or not isinstance(after, str) or before not in inputs or after not in outputs:
        raise PlanError(f"the metadata carry {after!r} to {before!r}, which the plan does not have")
    port, source = inputs[before], outputs[after]
    if port.dtype != source.dtype or len(port.shape) != len(source.shape):
        raise PlanError(f"the metadata carry {after!r} to {before!r}, which is of another kind")
    return PlanState(before, after, _read_start(row["start"], port, file) if "start" in row else None)


def _read_start(row: Any, port: PlanPort, file: PlanFile) -> np.ndarray:
    damaged = PlanError(f"the metadata of {port.name!r} are damaged")
    shape, offset = (row.get("shape"), row.get("offset")) if isinstance(row, dict) else (None, None)
    if not isinstance(shape, list) or not isinstance(offset, int) or len(shape) != len(port.shape):
        raise damaged
    n_bytes = ARRAY_TYPES[port.dtype].itemsize
    for size, declared in zip(shape, port.shape, strict=True):
        if type(size) is not int or size < 0 or size not in (1, declared):
            raise damaged
        n_bytes *= size
    first, length = file.header["data_offset"], file.header["data_bytes"]
    if not 0 <= offset <= length - n_bytes or not 0 <= first <= len(file.data) - length:
        raise damaged
    elements = np.frombuffer(file.data[first + offset :][:n_bytes], np.uint8)
    array = elements != 0 if port.dtype == "bool" else elements.view(ARRAY_TYPES[port.dtype])
    return array.reshape(shape)


def plan_bytes(model: str | os.PathLike[str] | bytes) -> bytes | None:
    """The content of a plan file; None for anything else, also for what cannot be read, which the reader then says."""
    magic = opcodes.MAGIC.to_bytes(4, "little")
    if isinstance(model, bytes | bytearray | memoryview):
        return bytes(model) if bytes(model[:4]) == magic else None
    try:
        with open(model, "rb") as file:
            start = file.read(4)
            return start + file.read() if start == magic else None
    except (OSError, TypeError, ValueError):
        return None
