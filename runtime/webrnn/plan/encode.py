"""A program as the bytes of a plan file. The format is described in opcodes.py."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

from webrnn import net
from webrnn.errors import Error, PlanError
from webrnn.ir import Dim, SymbolicDim
from webrnn.ir.dims import floor_division

from . import opcodes
from .arena import assign_slots
from .program import ExpressionInstruction, Instruction, LoopInstruction, Program
from .views import Storage, View

_CODES = {name: (code, form) for code, (name, form) in enumerate(opcodes.INSTRUCTIONS)}
_EXPRESSION_CODES = {name: code for code, (name, _) in enumerate(opcodes.EXPRESSION_OPS)}
_ALIGNMENT = 64


def encode(program: Program) -> bytes:
    """The plan file of a program; PlanError for one that does not fit, because its sizes are too large."""
    try:
        return _Encoder(program).encode()
    except Error:
        raise
    except Exception as error:
        raise PlanError(f"the program does not fit into a plan: {net.catch(error)}") from error


class _Encoder:
    def __init__(self, program: Program):
        self.program = program
        self.symbols: dict[str, int] = {}
        self.sizes: dict[tuple[int, int, int], int] = {}
        self.tensors: dict[View, int] = {}
        self.buffers: dict[Storage, int] = {}
        self.slots = assign_slots(program)
        self.data = bytearray()
        self.n_moves = 0
        self.nodes: list[tuple[int, str]] = []

    def encode(self) -> bytes:
        self._intern_views()
        code = self._block(self.program.code, 0)
        buffers = [word for storage in self.buffers for word in self._buffer(storage)]
        tensors = [word for view in self.tensors for word in self._tensor(view)]
        meta = self._meta()
        sizes = [word for row in self.sizes for word in row]
        n_words = len(opcodes.HEADER) + len(sizes) + len(buffers) + len(tensors) + len(code)
        data_offset = _aligned(4 * n_words)
        meta_offset = data_offset + len(self.data)
        header = {
            "magic": opcodes.MAGIC, "version": opcodes.VERSION, "words": n_words, "symbols": len(self.symbols),
            "sizes": len(self.sizes), "buffers": len(self.buffers), "slots": len(set(self.slots.values())),
            "tensors": len(self.tensors), "externals": self._n_externals(),
            "moves": self.n_moves, "code_words": len(code), "data_offset": data_offset, "data_bytes": len(self.data),
            "meta_offset": meta_offset, "meta_bytes": len(meta),
        }  # fmt: skip
        words = [*(header[name] for name in opcodes.HEADER), *sizes, *buffers, *tensors, *code]
        head = np.array(words, np.int64).astype(np.uint32).tobytes()
        return head + bytes(data_offset - len(head)) + bytes(self.data) + meta

    def _n_externals(self) -> int:
        ports = (*self.program.inputs, *self.program.outputs)
        return 1 + max((max(port.external, port.taken) for port in ports), default=-1)

    def _intern_views(self) -> None:
        for port in (*self.program.inputs, *self.program.outputs):
            for size in port.shape:
                self._size(size)
        for instruction in self.program.walk():
            for view in instruction.views():
                self._tensor_id(view)

    def _tensor_id(self, view: View) -> int:
        if view.follows is not None:
            self._tensor_id(view.follows)
        if view not in self.tensors:
            self.tensors[view] = len(self.tensors)
            self.buffers.setdefault(view.storage, len(self.buffers))
        return self.tensors[view]

    def _size(self, dim: Dim) -> int:
        if isinstance(dim, int):
            if not -(2**31) < dim < 2**31:
                raise PlanError(f"a size of {dim} does not fit into a plan")
            return self._size_row("number", dim, 0)
        total = -1
        for monomial, factor in dim.terms:
            product = self._size(factor)
            for name in monomial:
                product = self._size_row("product", product, self._symbol(name))
            total = product if total < 0 else self._size_row("sum", total, product)
        return total

    def _symbol(self, name: str) -> int:
        definition = floor_division(name)
        if definition is not None:
            return self._size_row("quotient", self._size(definition[0]), definition[1])
        return self._size_row("symbol", self.symbols.setdefault(name, len(self.symbols)), 0)

    def _size_row(self, kind: str, a: int, b: int) -> int:
        return self.sizes.setdefault((opcodes.SIZE_KINDS.index(kind), a, b), len(self.sizes))

    def _buffer(self, storage: Storage) -> list[int]:
        if storage.kind == "constant":
            place = self._constant(storage)
        elif storage.kind == "arena":
            place = self.slots[storage]
        else:
            place = storage.external | (opcodes.WRITABLE if storage.writable else 0)
        kind = opcodes.BUFFER_KINDS.index(storage.kind)
        return [kind, opcodes.DTYPES.index(storage.dtype), self._size(storage.size), place]

    def _constant(self, storage: Storage) -> int:
        self.data.extend(bytes(_aligned(len(self.data)) - len(self.data)))
        place = len(self.data)
        assert storage.array is not None
        self.data.extend(np.ascontiguousarray(storage.array).tobytes())
        return place

    def _tensor(self, view: View) -> list[int]:
        padding = [0] * (opcodes.MAX_RANK - view.rank)
        return [
            self.buffers[view.storage],
            opcodes.DTYPES.index(view.dtype),
            view.rank,
            self._size(view.offset),
            *(self._size(size) for size in view.shape),
            *padding,
            *(self._size(stride) for stride in view.strides),
            *padding,
        ]

    def _block(self, block: list[Instruction], start: int) -> list[int]:
        words: list[int] = []
        for instruction in block:
            self.nodes.append((start + len(words), instruction.node))
            words += self._instruction(instruction, start + len(words))
        return words

    def _instruction(self, instruction: Instruction, at: int) -> list[int]:
        code, form = _CODES[instruction.name]
        inner: list[int] = []
        if isinstance(instruction, ExpressionInstruction):
            operands = self._expression(instruction)
        elif isinstance(instruction, LoopInstruction):
            operands, inner = self._loop(instruction, at)
        elif instruction.name == "branch":
            operands = [self._operand("r", instruction.operands[0])]
            for block in instruction.blocks:
                words = self._block(block, at + 2 + len(form) + len(inner))
                operands.append(len(words))
                inner += words
        else:
            letters = form.rstrip("*")
            operands = [
                self._operand(letter, operand) for letter, operand in zip(letters, instruction.operands, strict=True)
            ]
            operands += [self._size(dim) for dim in instruction.rest]
        return [code, len(operands), *operands, *inner]

    def _operand(self, letter: str, operand: Any) -> int:
        if operand is None:
            return -1
        if isinstance(operand, View):
            return self._tensor_id(operand)
        if letter in "dD":
            return self._size(operand)
        return _float_bits(operand) if letter == "f" else int(operand)

    def _expression(self, e: ExpressionInstruction) -> list[int]:
        words = [len(e.inputs), len(e.outputs), len(e.constants), len(e.ops)]
        words += [self._tensor_id(view) for view in e.inputs]
        for view, register in e.outputs:
            words += [self._tensor_id(view), register]
        for dtype, number in e.constants:
            words += [opcodes.DTYPES.index(dtype), *_constant_words(dtype, number)]
        for index, op in enumerate(e.ops):
            operands = [*op.operands, 0, 0, 0][:3]
            result = len(e.inputs) + len(e.constants) + index
            words += [_EXPRESSION_CODES[op.code], result, *operands, _float_bits(op.alpha), _float_bits(op.beta)]
        return words

    def _loop(self, loop: LoopInstruction, at: int) -> tuple[list[int], list[int]]:
        moves = self._moves(loop)
        first_move = self.n_moves
        self.n_moves += len(moves) // 3
        start = at + 2 + 12 + len(moves)
        body = self._block(loop.blocks[0], start)
        epilogue = self._block(loop.blocks[1], start + len(body))
        optional = [loop.condition, loop.body_condition, loop.iteration, loop.taken]
        words = [
            -1 if loop.n_steps is None else self._size(loop.n_steps),
            self._operand("R", loop.n_steps_view),
            self._size(loop.most_steps),
            *(self._operand("R", view) for view in optional),
            first_move, len(moves) // 3, len(body), len(epilogue), loop.strictness,
        ]  # fmt: skip
        return [*words, *moves], body + epilogue

    def _moves(self, loop: LoopInstruction) -> list[int]:
        words: list[int] = []
        for view, index in self.tensors.items():
            if view.follows is not None and view.follows_in == loop.id:
                words += [index, -1, self.tensors[view.follows]]
            for motion in view.motions:
                if motion.loop == loop.id:
                    words += [index, self._size(motion.stride), self._size(motion.after)]
        return words

    def _meta(self) -> bytes:
        """What hosts need and the VM does not: names, shapes and where the symbols come from, as JSON."""
        meta = {
            "symbols": list(self.symbols),
            "inputs": [self._port(port) for port in self.program.inputs],
            "outputs": [self._port(port) for port in self.program.outputs],
            "nodes": self.nodes,
        }
        return json.dumps(meta, separators=(",", ":")).encode()

    def _port(self, port: Any) -> dict[str, Any]:
        row = {
            "name": port.name,
            "dtype": port.dtype,
            "shape": [str(size) if isinstance(size, SymbolicDim) else size for size in port.shape],
            "sizes": [self._size(size) for size in port.shape],
            "external": port.external,
        }
        return row if port.taken < 0 else {**row, "taken": port.taken}


def _aligned(n_bytes: int) -> int:
    return -(-n_bytes // _ALIGNMENT) * _ALIGNMENT


def _float_bits(number: float) -> int:
    return struct.unpack("<i", struct.pack("<f", number))[0]


def _constant_words(dtype: str, number: float | int) -> list[int]:
    if dtype == "f32":
        return [_float_bits(number), 0]
    low, high = struct.unpack("<ii", struct.pack("<q", int(number)))
    return [low, high]
