"""A graph as the bytes of a plan file. The format is described in opcodes.py and instructions.py."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from webrnn import net
from webrnn.errors import Error, PlanError
from webrnn.ir import Dim, Graph, SymbolicDim
from webrnn.ir.dims import LateName, floor_division, is_late
from webrnn.ir.timing import Timing

from . import opcodes
from .arena import assign_slots
from .draft import Draft, ExpressionInstruction, Instruction, LoopInstruction, Operand
from .file import PlanFile, PlanState
from .instructions import CODES, ROWS, OperandRow
from .lower import lower
from .lowering import NotLowered
from .operations import OPERATION_CODES
from .stored_pool import PoolAxes, stored_pool
from .stored_timing import stored_timing
from .views import Storage, View

_ALIGNMENT = 64


def compile_graph(graph: Graph, options: frozenset[str] = frozenset(), **settings: Any) -> bytes:
    """The plan file of a graph, with the settings of `lower`; NotLowered if it has none."""
    draft = lower(graph, options, **settings)
    try:
        return encode(draft)
    except PlanError as error:
        raise NotLowered(None, str(error)) from error


def encode(draft: Draft) -> bytes:
    """The plan file of a draft; PlanError for one that does not fit, because its sizes are too large."""
    try:
        return _file(*_Encoder(draft).parts(), None, None)
    except Error:
        raise
    except Exception as error:
        raise PlanError(f"the graph does not fit into a plan: {net.catch(error)}") from error


def encode_again(
    file: PlanFile,
    states: Sequence[PlanState] | None,
    about: Mapping[str, Any] | None,
    timing: Timing | None = None,
    pool: PoolAxes | None = None,
) -> bytes:
    """The same program with other states or metadata than the file has; None leaves them as they are. Other states
    have their own timing and pool."""
    header = file.header
    tables = file.data[4 * len(opcodes.HEADER) : 4 * header["words"]]
    weights = file.data[header["data_offset"] :][: header["data_bytes"]]
    meta = dict(file.meta)
    if states is not None:
        meta.pop("timing", None)
        meta.pop("pool", None)
    if pool is not None:
        meta["pool"] = stored_pool(pool)
    if timing is not None:
        meta["timing"] = stored_timing(timing)
    return _file(header, tables, bytearray(weights), meta, states, about)


def _file(
    counts: Mapping[str, int],
    tables: bytes,
    weights: bytearray,
    meta: dict[str, Any],
    states: Sequence[PlanState] | None,
    about: Mapping[str, Any] | None,
) -> bytes:
    """What a state starts from stands among the weights."""
    if states is not None:
        meta["states"] = [_state(state, weights) for state in states]
    if about is not None:
        meta["about"] = _checked(about)
    text = json.dumps(meta, separators=(",", ":")).encode()
    n_head = 4 * len(opcodes.HEADER) + len(tables)
    data_offset = _aligned(n_head)
    header = {
        **counts, "magic": opcodes.MAGIC, "version": opcodes.VERSION, "words": n_head // 4,
        "data_offset": data_offset, "data_bytes": len(weights), "meta_offset": data_offset + len(weights),
        "meta_bytes": len(text),
    }  # fmt: skip
    head = _words([header[name] for name in opcodes.HEADER])
    return head + tables + bytes(data_offset - n_head) + bytes(weights) + text


def _state(state: PlanState, weights: bytearray) -> dict[str, Any]:
    row: dict[str, Any] = {"input": state.input, "output": state.output}
    if state.start is not None:
        row["start"] = {"offset": _appended(state.start, weights), "shape": list(state.start.shape)}
    return row


def _checked(about: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object as it will be read; raises for what JSON cannot say."""
    if not isinstance(about, Mapping):
        raise PlanError(f"about is a JSON object, a dict, not a {type(about).__name__}")
    try:
        return json.loads(json.dumps(dict(about), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise PlanError(f"about cannot be written as JSON: {error}") from error


def _appended(array: np.ndarray, weights: bytearray) -> int:
    """The byte of the weights at which the elements stand now."""
    weights.extend(bytes(_aligned(len(weights)) - len(weights)))
    place = len(weights)
    weights.extend(np.ascontiguousarray(array).tobytes())
    return place


class _Encoder:
    def __init__(self, draft: Draft):
        self.draft = draft
        self.symbols: dict[str, int] = {}
        self.multiples = _multiples([size for port in draft.inputs for size in port.shape])
        self.late: dict[str, int] = {}
        self.sizes: dict[tuple[int, int, int], int] = {}
        self.tensors: dict[View, int] = {}
        self.buffers: dict[Storage, int] = {}
        self.slots = assign_slots(draft)
        self.written_over = draft.written_over()
        self.weights = bytearray()
        self.n_moves = 0
        self.nodes: list[tuple[int, str]] = []

    def parts(self) -> tuple[dict[str, int], bytes, bytearray, dict[str, Any]]:
        """How long the tables are, the tables, the weights and the metadata."""
        self._intern_views()
        self._find_checked_loops()
        code = self._block(self.draft.code, 0)
        buffers = [word for storage in self.buffers for word in self._buffer(storage)]
        tensors = [word for view in self.tensors for word in self._tensor(view)]
        meta = self._meta()
        sizes = [word for row in self.sizes for word in row]
        counts = {
            "symbols": len(self.symbols), "sizes": len(self.sizes), "buffers": len(self.buffers),
            "slots": len(set(self.slots.values())), "tensors": len(self.tensors), "externals": self._n_externals(),
            "moves": self.n_moves, "code_words": len(code),
        }  # fmt: skip
        return counts, _words([*sizes, *buffers, *tensors, *code]), self.weights, meta

    def _n_externals(self) -> int:
        ports = (*self.draft.inputs, *self.draft.outputs)
        return 1 + max((port.external for port in ports), default=-1)

    def _intern_views(self) -> None:
        for port in (*self.draft.inputs, *self.draft.outputs):
            for size in port.shape:
                self._size(size)
        for instruction in self.draft.walk():
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
            first, *names = monomial or ("",)
            if factor == 1 and isinstance(first, LateName):
                product = self._symbol(first)  # the row that `let` sets
            else:
                product, names = self._size(factor), list(monomial)
            for name in names:
                product = self._size_row("product", product, self._symbol(name))
            total = product if total < 0 else self._size_row("sum", total, product)
        return total

    def _symbol(self, name: str) -> int:
        if isinstance(name, LateName):
            return self._size_row("late", self.late.setdefault(name, len(self.late)), 0)
        definition = floor_division(name)
        if definition is not None:
            return self._size_row("quotient", self._size(definition[0]), definition[1])
        if name in self.multiples:
            shown, factor = self.multiples[name]
            return self._size_row("quotient", self._named(shown), factor)
        return self._named(name)

    def _named(self, name: str) -> int:
        return self._size_row("symbol", self.symbols.setdefault(name, len(self.symbols)), 0)

    def _size_row(self, kind: str, a: int, b: int) -> int:
        return self.sizes.setdefault((opcodes.SIZE_KINDS.index(kind), a, b), len(self.sizes))

    def _buffer(self, storage: Storage) -> list[int]:
        if storage.kind == "constant":
            assert storage.array is not None
            place = _appended(storage.array, self.weights)
        elif storage.kind == "arena":
            place = self.slots[storage]
        else:
            place = storage.external | (opcodes.WRITABLE if storage.writable else 0)
        kind = opcodes.BUFFER_KINDS.index(storage.kind)
        return [kind, opcodes.DTYPES.index(storage.dtype), self._size(storage.size), place]

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
        row, given = ROWS[instruction.name], list(instruction.operands)
        given += [0] * row.zeros
        if isinstance(instruction, ExpressionInstruction):
            rest = self._expression(instruction)
            given += [
                len(part) for part in (instruction.inputs, instruction.outputs, instruction.constants, instruction.ops)
            ]
        elif isinstance(instruction, LoopInstruction):
            rest = self._moves(instruction)
            given += self._loop(instruction, len(rest) // 3)
        else:
            rest = [self._size(dim) for dim in instruction.rest]
        start = at + 2 + len(row.operands) + len(rest)
        inner: list[int] = []
        for block, index in zip(instruction.blocks, row.blocks, strict=True):
            words = self._block(block, start + len(inner))
            given.insert(index, len(words))
            inner += words
        operands = [self._operand(form, operand) for form, operand in zip(row.operands, given, strict=True)]
        code = CODES[row.name] | (opcodes.CHECKED if self._is_checked(instruction) else 0)
        return [code, len(operands) + len(rest), *operands, *rest, *inner]

    # --- what is checked each time before it runs --------------------------------------------------------------------

    def _find_checked_loops(self) -> None:
        """A loop that takes a late number of steps, or reads numbers whose place is late."""
        self.checked_loops: set[int] = set()
        found = True
        while found:
            loops = [each for each in self.draft.walk() if isinstance(each, LoopInstruction)]
            found = {loop.id for loop in loops if self._is_checked(loop)} > self.checked_loops
            self.checked_loops = {loop.id for loop in loops if self._is_checked(loop)}

    def _is_checked(self, instruction: Instruction) -> bool:
        """Whether what it touches depends on late sizes."""
        if isinstance(instruction, LoopInstruction) and (
            is_late(instruction.n_steps) or is_late(instruction.most_steps)
        ):
            return True
        has_late_size = instruction.name != "let" and any(map(is_late, instruction.operands))  # type: ignore[arg-type]
        return has_late_size or any(map(self._is_loose, instruction.views()))

    def _is_loose(self, view: View) -> bool:
        """Whether where it is depends on late sizes."""
        if any(map(is_late, (view.storage.size, view.offset, *view.shape, *view.strides))):
            return True
        for motion in view.motions:
            if motion.loop in self.checked_loops or is_late(motion.stride) or is_late(motion.after):
                return True
        return view.follows is not None and (view.follows_in in self.checked_loops or self._is_loose(view.follows))

    def _operand(self, form: OperandRow, operand: Any) -> int:
        if operand is None:
            return -1
        if isinstance(operand, View):
            return self._tensor_id(operand)
        if form.is_size:
            return self._size(operand)
        return _float_bits(operand) if form.type == "float" else int(operand)

    def _expression(self, e: ExpressionInstruction) -> list[int]:
        words = [self._tensor_id(view) for view in e.inputs]
        for view, register in e.outputs:
            words += [self._tensor_id(view), register]
        for dtype, number in e.constants:
            words += [opcodes.DTYPES.index(dtype), *_constant_words(dtype, number)]
        for index, op in enumerate(e.ops):
            operands = [*op.operands, 0, 0, 0][:3]
            result = len(e.inputs) + len(e.constants) + index
            words += [OPERATION_CODES[op.code], result, *operands, _float_bits(op.alpha), _float_bits(op.beta)]
        return words

    def _loop(self, loop: LoopInstruction, n_moves: int) -> list[Operand]:
        """Its operands but for the lengths of its blocks."""
        first_move = self.n_moves
        self.n_moves += n_moves
        return [
            loop.n_steps, loop.n_steps_view, loop.most_steps, loop.condition, loop.body_condition, loop.iteration,
            loop.taken, first_move, n_moves, loop.strictness,
        ]  # fmt: skip

    def _moves(self, loop: LoopInstruction) -> list[int]:
        words: list[int] = []
        for view, index in self.tensors.items():
            if view.follows is not None and view.follows_in == loop.id:
                words += [index, -1, self.tensors[view.follows]]
            for motion in view.motions:
                if motion.loop == loop.id:
                    words += [index, self._size(motion.stride), self._size(motion.after)]
        return words

    def _meta(self) -> dict[str, Any]:
        """What hosts need and the VM does not: names, shapes and where the symbols come from, as JSON."""
        return {
            "symbols": list(self.symbols),
            "inputs": [self._port(port) for port in self.draft.inputs],
            "outputs": [self._output(port) for port in self.draft.outputs],
            "nodes": self.nodes,
        }

    def _output(self, port: Any) -> dict[str, Any]:
        over = self.written_over.get(port.external)
        row = self._port(port)
        return row if over is None else {**row, "over": [over[0], self._size(over[1])]}

    def _port(self, port: Any) -> dict[str, Any]:
        row = {
            "name": port.name,
            "dtype": port.dtype,
            "shape": [str(size) if isinstance(size, SymbolicDim) else size for size in port.shape],
            "sizes": [self._size(size) for size in port.shape],
            "external": port.external,
        }
        return row


def _multiples(sizes: Sequence[Dim]) -> dict[str, tuple[str, int]]:
    """Names that inputs say only by a multiple, 2*m: what hosts see is the multiple, and m is a quotient of it."""
    found: dict[str, tuple[str, int]] = {}
    for size in sizes:
        (names, factor), *others = size.terms if isinstance(size, SymbolicDim) else [((), 0)]
        if len(names) == 1 and not others and not is_late(size) and floor_division(names[0]) is None:
            found.setdefault(names[0], (str(size), factor))
    plain = {str(size) for size in sizes if isinstance(size, SymbolicDim) and str(size) in size.names}
    return {name: said for name, said in found.items() if said[1] > 1 and not plain & {name, said[0]}}


def _words(numbers: list[int]) -> bytes:
    return np.array(numbers, np.int64).astype(np.uint32).tobytes()


def _aligned(n_bytes: int) -> int:
    return -(-n_bytes // _ALIGNMENT) * _ALIGNMENT


def _float_bits(number: float) -> int:
    return struct.unpack("<i", struct.pack("<f", number))[0]


def _constant_words(dtype: str, number: float | int) -> list[int]:
    if dtype == "f32":
        return [_float_bits(number), 0]
    low, high = struct.unpack("<ii", struct.pack("<d" if dtype == "f64" else "<q", number))
    return [low, high]
