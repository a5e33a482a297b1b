"""Reading plan files: the header, the metadata and sizes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from webrnn.errors import PlanError, ShapeError

from . import opcodes
from .stored import PlanState, read_states


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
    taken: int = -1


class PlanFile:
    """The tables of a plan. What the C side needs is checked there; this checks what hosts read."""

    def __init__(self, data: bytes):
        n_header = len(opcodes.HEADER)
        if len(data) < 4 * n_header:
            raise PlanError("the file is shorter than the header of a plan")
        words = np.frombuffer(data[: len(data) // 4 * 4], np.int32)
        header = dict(zip(opcodes.HEADER, (int(word) for word in words[:n_header]), strict=True))
        if header["magic"] != opcodes.MAGIC:
            raise PlanError("this is not a plan file")
        if header["version"] != opcodes.VERSION:
            raise PlanError(f"the plan is of version {header['version']}, this webrnn reads version {opcodes.VERSION}")
        self.data, self.header = data, header
        rows = header["sizes"]
        if not 0 <= rows <= (len(words) - n_header) // opcodes.SIZE_WORDS:
            raise PlanError("the table of sizes does not fit into the file")
        end = n_header + opcodes.SIZE_WORDS * rows
        self.size_rows: list[list[int]] = words[n_header:end].reshape(rows, opcodes.SIZE_WORDS).tolist()
        self.meta = meta = self._read_meta()
        self.symbols: list[str] = [str(name) for name in meta["symbols"]]
        self.inputs = [_port(row, rows, header["externals"]) for row in meta["inputs"]]
        self.outputs = [_port(row, rows, header["externals"]) for row in meta["outputs"]]
        try:
            self.nodes: list[tuple[int, str]] = [(int(at), str(label)) for at, label in meta["nodes"]]
        except (TypeError, ValueError, OverflowError) as error:
            raise PlanError("the metadata are damaged") from error
        if len(self.symbols) != header["symbols"]:
            raise PlanError("the plan does not name its symbols")
        self.states: list[PlanState] = read_states(meta.get("states", []), self)
        """Which input takes which output in the next step, as chosen at export."""
        self.about: dict[str, Any] = meta.get("about", {})
        """What the exporter said about the model, for its own use."""
        if not isinstance(self.about, dict):
            raise PlanError("the metadata are damaged")

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

    def sizes(self, symbols: Sequence[int]) -> list[int]:
        """All sizes for given symbols."""
        found: list[int] = []
        try:
            for kind, a, b in self.size_rows:
                name = opcodes.SIZE_KINDS[kind]
                if name == "number":
                    found.append(a)
                elif name == "symbol":
                    found.append(symbols[a])
                elif name == "sum":
                    found.append(found[a] + found[b])
                elif name == "product":
                    found.append(found[a] * found[b])
                else:
                    found.append(found[a] // b)
                if abs(found[-1]) >= 2**31:
                    raise PlanError(f"a size of {found[-1]}")
        except (IndexError, ZeroDivisionError) as error:
            raise PlanError("the table of sizes is damaged") from error
        return found

    def node_at(self, word: int) -> str:
        """The label of the node that an instruction is for."""
        return next((label for at, label in reversed(self.nodes) if at <= word), "")


def _port(row: Any, n_sizes: int, n_externals: int) -> PlanPort:
    try:
        port = PlanPort(
            str(row["name"]),
            row["dtype"],
            tuple(row["shape"]),
            tuple(row["sizes"]),
            int(row["external"]),
            int(row.get("taken", -1)),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise PlanError("the metadata are damaged") from error
    numbers = [*port.sizes, *(size for size in port.shape if not isinstance(size, str))]
    fits = (
        isinstance(port.dtype, str)
        and port.dtype in opcodes.DTYPES
        and len(port.sizes) == len(port.shape)
        and all(type(number) is int for number in numbers)
        and all(0 <= size < n_sizes for size in port.sizes)
        and 0 <= port.external < n_externals
        and -1 <= port.taken < n_externals
    )
    if not fits:
        raise PlanError(f"the metadata of {port.name!r} are damaged")
    return port
