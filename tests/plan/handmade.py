"""Plans written by hand, metadata included: what no lowering makes, and what a host has to stand."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from webrnn.plan import opcodes
from webrnn.plan.instructions import CODES

F32, I64, U8, I32 = range(4)


@dataclass
class Handmade:
    """A plan in the making; sizes are numbers, or rows of the table of sizes as `Row`s."""

    size_rows: list[tuple[int, int, int]] = field(default_factory=list)
    buffers: list[tuple[int, int, int, int]] = field(default_factory=list)
    tensors: list[list[int]] = field(default_factory=list)
    code: list[int] = field(default_factory=list)
    inputs: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    n_externals: int = 0

    def number(self, number: int) -> int:
        """The row of a number."""
        return self._row((0, number, 0))

    def symbol(self, name: str) -> int:
        if name not in self.symbols:
            self.symbols.append(name)
        return self._row((1, self.symbols.index(name), 0))

    def _row(self, row: tuple[int, int, int]) -> int:
        if row not in self.size_rows:
            self.size_rows.append(row)
        return self.size_rows.index(row)

    def size(self, size: int | str) -> int:
        return self.symbol(size) if isinstance(size, str) else self.number(size)

    def external(
        self, shape: Sequence[int], dtype: int = F32, written: bool = False, external: int | None = None
    ) -> int:
        """A tensor, without gaps, on an external of its own or on the one that is given."""
        if external is None:
            external = self.n_externals
        self.n_externals = max(self.n_externals, external + 1)
        return self._tensor(2, dtype, external | (opcodes.WRITABLE if written else 0), shape)

    def arena(self, shape: Sequence[int], dtype: int = F32) -> int:
        return self._tensor(1, dtype, sum(kind == 1 for kind, *_ in self.buffers), shape)

    def _tensor(self, kind: int, dtype: int, place: int, shape: Sequence[int]) -> int:
        count, strides = 1, []
        for size in reversed(shape):
            strides.insert(0, min(count, 2**31 - 1))
            count *= size
        self.buffers.append((kind, dtype, self.number(min(count, 2**31 - 1)), place))
        padding = [0] * (opcodes.MAX_RANK - len(shape))
        rows = [*map(self.number, shape), *padding, *map(self.number, strides), *padding]
        self.tensors.append([len(self.buffers) - 1, dtype, len(shape), self.number(0), *rows])
        return len(self.tensors) - 1

    def late(self) -> int:
        """A new row of the table of sizes that is set while running."""
        self.size_rows.append((opcodes.SIZE_KINDS.index("late"), len(self.size_rows), 0))
        return len(self.size_rows) - 1

    def late_tensor(self, size: int, kind: int, place: int) -> int:
        """An f32 tensor of one axis, of the size in a row of the table, in a slot (kind 1) or an external (2)."""
        self.n_externals = max(self.n_externals, place + 1 if kind == 2 else 0)
        self.buffers.append((kind, F32, size, place | (opcodes.WRITABLE if kind == 2 else 0)))
        padding = [0] * (opcodes.MAX_RANK - 1)
        self.tensors.append([len(self.buffers) - 1, F32, 1, self.number(0), size, *padding, self.number(1), *padding])
        return len(self.tensors) - 1

    def emit(self, name: str, *operands: int, checked: bool = False) -> None:
        self.code += [CODES[name] | (opcodes.CHECKED if checked else 0), len(operands), *operands]

    def fill(self, tensor: int, value: float, checked: bool = False) -> None:
        self.emit("fill", tensor, struct.unpack("<i", struct.pack("<f", value))[0], checked=checked)

    def port(self, name: str, shape: Sequence[int | str], external: int, dtype: str = "f32", **more: Any) -> dict:
        sizes = [self.size(size) for size in shape]
        return {"name": name, "dtype": dtype, "shape": list(shape), "sizes": sizes, "external": external, **more}

    def input(self, name: str, shape: Sequence[int | str], external: int, dtype: str = "f32") -> None:
        self.inputs.append(self.port(name, shape, external, dtype))

    def output(self, name: str, shape: Sequence[int | str], external: int, dtype: str = "f32", **more: Any) -> None:
        self.n_externals = max(self.n_externals, external + 1)
        self.outputs.append(self.port(name, shape, external, dtype, **more))

    def data(self, **changes: Any) -> bytes:
        """The file; `changes` are words of the header, or parts of the metadata, that are not as they should be."""
        tables = [word for table in (self.size_rows, self.buffers, self.tensors) for row in table for word in row]
        n_words = len(opcodes.HEADER) + len(tables) + len(self.code)
        data_offset = -(-4 * n_words // 64) * 64
        meta = {"symbols": self.symbols, "inputs": self.inputs, "outputs": self.outputs, "nodes": []}
        meta |= {name: part for name, part in changes.items() if name not in opcodes.HEADER or name == "symbols"}
        text = json.dumps(meta).encode()
        header = {
            "magic": opcodes.MAGIC, "version": opcodes.VERSION, "words": n_words, "symbols": len(self.symbols),
            "sizes": len(self.size_rows), "buffers": len(self.buffers), "tensors": len(self.tensors),
            "slots": sum(kind == 1 for kind, *_ in self.buffers), "externals": self.n_externals, "moves": 0,
            "code_words": len(self.code), "data_offset": data_offset, "data_bytes": 0, "meta_offset": data_offset,
            "meta_bytes": len(text),
        }  # fmt: skip
        header |= {name: word for name, word in changes.items() if name in header and name != "symbols"}
        words = [*(header[name] for name in opcodes.HEADER), *tables, *self.code]
        return struct.pack(f"<{n_words}I", *(word & 0xFFFFFFFF for word in words)).ljust(data_offset, b"\0") + text
