"""The words of a plan file as tables and instructions: what the verifier and the printer read.

Nothing is trusted: what does not hold together raises PlanError, and what is left to sizes is left to verify.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from webrnn.errors import PlanError

from . import opcodes
from .halves import widened
from .instructions import CODES, HAS_SIZES, INSTRUCTIONS, NOT_BESIDE, RUN_ALONG, InstructionRow, OperandRow
from .operations import OPERATION_WORDS, OPERATIONS, RETIRED, OperationRow

MOST = 1 << 24
"""Rows of a table, and words of code."""


@dataclass(slots=True)
class Buffer:
    kind: str
    dtype: str
    size: int
    """An index into the table of sizes, as all sizes below."""
    place: int
    writable: bool


@dataclass(slots=True)
class Tensor:
    buffer: int
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(slots=True)
class Move:
    """What a loop does with a tensor between steps: it moves it by `stride` once `after` steps were taken, or puts it
    where the tensor `follows` stands."""

    tensor: int
    stride: int = -1
    after: int = -1
    follows: int = -1


@dataclass(slots=True)
class Operation:
    """One of an expression; operands are registers."""

    row: OperationRow
    operands: tuple[int, ...]
    alpha: float
    beta: float


@dataclass(slots=True)
class Expression:
    inputs: list[int]
    outputs: list[tuple[int, int]]
    """(tensor, register)"""
    constants: list[tuple[str, float | int]]
    operations: list[Operation]


@dataclass(slots=True)
class Decoded:
    """An instruction. `operands` are in the order of its row, -1 for one that is left out."""

    at: int
    """The word of the code that it starts at."""
    row: InstructionRow
    operands: list[int]
    rest: list[int] = field(default_factory=list)
    """The sizes of those that have a list of them."""
    expression: Expression | None = None
    moves: list[Move] = field(default_factory=list)
    is_checked: bool = False
    """Each time before it runs, not when sizes are bound."""
    blocks: list[list[Decoded]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.row.name

    def named(self) -> dict[str, int]:
        """Its operands by name."""
        return {form.name: word for form, word in zip(self.row.operands, self.operands, strict=True)}

    def tensors(self) -> Iterator[tuple[int, bool]]:
        """The tensors that it reads or writes itself, and whether it writes them."""
        for form, operand in zip(self.row.operands, self.operands, strict=True):
            if form.is_tensor and operand >= 0:
                yield operand, form.is_written
        if self.expression is not None:
            yield from ((tensor, False) for tensor in self.expression.inputs)
            yield from ((tensor, True) for tensor, _ in self.expression.outputs)


@dataclass(slots=True)
class Tables:
    header: dict[str, int]
    sizes: list[tuple[int, int, int]]
    """kind, a, b: see opcodes.SIZE_KINDS."""
    buffers: list[Buffer]
    tensors: list[Tensor]
    code: list[Decoded]


def decode(data: bytes) -> Tables:
    """All tables of a plan; every index in them is one of a row that is there."""
    return _Decoder(widened(data)).decode()


class _Decoder:
    def __init__(self, data: bytes):
        n_header = len(opcodes.HEADER)
        _require(len(data) >= 4 * n_header, "the file is shorter than the header of a plan")
        words = np.frombuffer(data[: len(data) // 4 * 4], np.dtype("<i4"))
        self.header = dict(zip(opcodes.HEADER, words[:n_header].tolist(), strict=True))
        self._check_header(len(data))
        self.words: list[int] = words[: self.header["words"]].tolist()
        self.n_moves = 0

    def _check_header(self, n_bytes: int) -> None:
        header = self.header
        _require(header["magic"] == opcodes.MAGIC, "this is not a plan file")
        _require(header["version"] in opcodes.VERSIONS, opcodes.version_text(header["version"]))
        for name in ("symbols", "sizes", "buffers", "slots", "tensors", "externals", "moves", "code_words"):
            _require(0 <= header[name] <= MOST, f"the header's {name} is out of range")
        n_words = (
            len(opcodes.HEADER) + sum(header[name] * width for name, width in _ROWS.items()) + header["code_words"]
        )
        _require(header["words"] == n_words and 4 * n_words <= n_bytes, "the tables do not fit into the file")
        _require(header["slots"] <= header["buffers"], "there are more slots than buffers")
        _require(header["symbols"] <= header["sizes"], "there are more symbols than sizes")
        start, length = header["data_offset"], header["data_bytes"]
        fits = start % 64 == 0 and start >= 4 * n_words and length >= 0 and start + length <= n_bytes
        _require(fits, "the weights do not fit into the file")

    def decode(self) -> Tables:
        start = len(opcodes.HEADER)
        rows: dict[str, list[list[int]]] = {}
        for name, width in _ROWS.items():
            end = start + width * self.header[name]
            rows[name] = [self.words[at : at + width] for at in range(start, end, width)]
            start = end
        self.code_start = start
        self.sizes = sizes = [self._size(row, index) for index, row in enumerate(rows["sizes"])]
        self.buffers = [self._buffer(row) for row in rows["buffers"]]
        self.tensors = [self._tensor(row) for row in rows["tensors"]]
        code = self._block(0, self.header["code_words"], 0)
        _require(self.n_moves == self.header["moves"], "the header's moves are not those of the loops")
        return Tables(self.header, sizes, self.buffers, self.tensors, code)

    def _size(self, row: list[int], index: int) -> tuple[int, int, int]:
        kind, a, b = row
        _require(0 <= kind < len(opcodes.SIZE_KINDS), f"size {index} is of no kind")
        name = opcodes.SIZE_KINDS[kind]
        fits = {
            "number": True,
            "symbol": 0 <= a < self.header["symbols"],
            "sum": 0 <= a < index and 0 <= b < index,
            "product": 0 <= a < index and 0 <= b < index,
            "quotient": 0 <= a < index and b > 0,
            "late": True,
        }[name]
        _require(fits, f"size {index}, a {name}, is damaged")
        return kind, a, b

    def _is_size(self, index: int) -> bool:
        return 0 <= index < self.header["sizes"]

    def _is_tensor(self, index: int) -> bool:
        return 0 <= index < self.header["tensors"]

    def _buffer(self, row: list[int]) -> Buffer:
        kind, dtype, size, place = row
        known = 0 <= kind < len(opcodes.BUFFER_KINDS) and 0 <= dtype < len(opcodes.DTYPES) and self._is_size(size)
        _require(known, "a buffer is damaged")
        name = opcodes.BUFFER_KINDS[kind]
        writable = name == "arena" or (name == "external" and bool(place & opcodes.WRITABLE))
        if name == "external":
            place &= ~opcodes.WRITABLE
        fits = {
            "constant": place >= 0 and place % 64 == 0,
            "arena": 0 <= place < self.header["slots"],
            "external": 0 <= place < self.header["externals"],
        }[name]
        _require(fits, f"the place of a buffer, {name}, is damaged")
        return Buffer(name, opcodes.DTYPES[dtype], size, place, writable)

    def _tensor(self, row: list[int]) -> Tensor:
        buffer, dtype, rank, offset, *rest = row
        fits = 0 <= buffer < len(self.buffers) and 0 <= rank <= opcodes.MAX_RANK and self._is_size(offset)
        _require(fits, "a tensor is damaged")
        shape, strides = rest[:rank], rest[opcodes.MAX_RANK : opcodes.MAX_RANK + rank]
        _require(all(self._is_size(index) for index in (*shape, *strides)), "a size of a tensor is damaged")
        same = 0 <= dtype < len(opcodes.DTYPES) and opcodes.DTYPES[dtype] == self.buffers[buffer].dtype
        _require(same, "a tensor is of another type than its buffer")
        return Tensor(buffer, opcodes.DTYPES[dtype], offset, tuple(shape), tuple(strides))

    def _block(self, at: int, end: int, depth: int) -> list[Decoded]:
        _require(depth <= opcodes.MAX_DEPTH, "loops and branches are nested too deep")
        found = []
        while at < end:
            instruction, at = self._instruction(at, end, depth)
            found.append(instruction)
        return found

    def _instruction(self, at: int, end: int, depth: int) -> tuple[Decoded, int]:
        where = f"instruction at word {at}"
        _require(end - at >= 2, f"{where}: it is cut off")
        code, length = self.words[self.code_start + at : self.code_start + at + 2]
        is_checked, code = bool(code & opcodes.CHECKED), code & ~opcodes.CHECKED
        _require(0 <= code < len(INSTRUCTIONS), f"{where}: there is no such instruction")
        row = INSTRUCTIONS[code]
        where = f"{where}, {row.name}"
        _require(0 <= length <= end - at - 2, f"{where}: it is cut off")
        words = self.words[self.code_start + at + 2 : self.code_start + at + 2 + length]
        n_operands = len(row.operands)
        _require(length >= n_operands and (row.has_list or length == n_operands), f"{where}: its length")
        for form, word in zip(row.operands, words, strict=False):
            self._check_operand(form, word, where)
        found = Decoded(at, row, words[:n_operands], is_checked=is_checked)
        at += 2 + length
        if row.name in HAS_SIZES:
            found.rest = words[n_operands:]
            _require(all(map(self._is_size, found.rest)), f"{where}: a size is out of range")
        elif row.name in RUN_ALONG:
            behind = self.words[self.code_start + at] & ~opcodes.CHECKED if end - at >= 2 else None
            fits = words[-1] == 0 or (words[-1] == 1 and behind == CODES["expression"])
            _require(fits, f"{where}: no expression is behind it")
        elif row.name == "let":
            _require(opcodes.SIZE_KINDS[self.sizes[words[0]][0]] == "late", f"{where}: its size is not late")
        elif row.name == "expression":
            found.expression = self._expression(found.operands, words[n_operands:], where)
        elif row.name == "loop":
            found.moves = self._moves(found.named(), words[n_operands:], where)
        if row.blocks:
            lengths = [words[index] for index in row.blocks]
            fits = min(lengths) >= 0 and sum(lengths) <= end - at
            _require(fits, f"{where}: its blocks reach beyond the one around them")
            for count in lengths:
                found.blocks.append(self._block(at, at + count, depth + 1))
                at += count
            if row.name == "beside":
                is_small = not depth and not is_checked and sum(lengths) <= opcodes.MOST_BESIDE_WORDS
                _require(is_small, f"{where}: it is too long, marked, or inside of another instruction")
                _require(not any(map(_is_not_beside, found.blocks)), f"{where}: what is in a block must not be there")
        return found, at

    def _check_operand(self, form: OperandRow, word: int, where: str) -> None:
        if word == -1 and form.is_optional:
            return
        if form.is_tensor:
            _require(self._is_tensor(word), f"{where}: an operand is out of range")
            fits = form.type in ("any", self.tensors[word].dtype)
            _require(fits, f"{where}: an operand is not of {form.type}")
        elif form.is_size:
            _require(self._is_size(word), f"{where}: an operand is out of range")
        elif form.type == "zero":
            _require(word == 0, f"{where}: {form.name} is not 0")

    def _moves(self, loop: dict[str, int], words: list[int], where: str) -> list[Move]:
        count = loop["moves"]
        fits = count >= 0 and loop["first_move"] == self.n_moves and len(words) == 3 * count
        _require(fits, f"{where}: its moves are not where they should be")
        self.n_moves += count
        moves = []
        for start in range(0, len(words), 3):
            tensor, stride, last = words[start : start + 3]
            follows = stride < 0
            known = self._is_tensor(tensor) and (
                self._is_tensor(last) and self.tensors[last].dtype == self.tensors[tensor].dtype
                if follows
                else self._is_size(stride) and self._is_size(last)
            )
            _require(known, f"{where}: a move is damaged")
            moves.append(Move(tensor, follows=last) if follows else Move(tensor, stride, last))
        return moves

    def _expression(self, counts: list[int], words: list[int], where: str) -> Expression:
        n_inputs, n_outputs, n_constants, n_ops = counts
        fits = all(0 <= count <= opcodes.MAX_REGISTERS for count in counts) and n_outputs > 0
        n_registers = n_inputs + n_constants + n_ops
        _require(fits and n_registers <= opcodes.MAX_REGISTERS, f"{where}: it has too many registers, or no result")
        length = n_inputs + 2 * n_outputs + 3 * n_constants + OPERATION_WORDS * n_ops
        _require(len(words) == length, f"{where}: its length")
        rest = iter(words)
        inputs = [next(rest) for _ in range(n_inputs)]
        outputs = [(next(rest), next(rest)) for _ in range(n_outputs)]
        _require(all(map(self._is_tensor, (*inputs, *(t for t, _ in outputs)))), f"{where}: a tensor is out of range")
        types = [self.tensors[tensor].dtype for tensor in inputs]
        constants = []
        for _ in range(n_constants):
            dtype, low, high = next(rest), next(rest), next(rest)
            _require(0 <= dtype < len(opcodes.DTYPES), f"{where}: a constant is of no type")
            types.append(opcodes.DTYPES[dtype])
            constants.append((types[-1], _constant(types[-1], low, high)))
        operations = [self._operation([next(rest) for _ in range(OPERATION_WORDS)], types, where) for _ in range(n_ops)]
        for tensor, register in outputs:
            fits = 0 <= register < len(types) and types[register] == self.tensors[tensor].dtype
            _require(fits, f"{where}: a result is not of the type of its place")
        return Expression(inputs, outputs, constants, operations)

    def _operation(self, words: list[int], types: list[str], where: str) -> Operation:
        code, result, *operands, alpha, beta = words
        known = 0 <= code < len(OPERATIONS) and OPERATIONS[code] is not RETIRED
        _require(known, f"{where}: there is no such operation")
        row = OPERATIONS[code]
        _require(result == len(types), f"{where}: results are not in order")
        for dtype, register in zip(row.takes, operands, strict=False):
            fits = 0 <= register < len(types) and dtype in ("any", types[register])
            _require(fits, f"{where}: {row.name} of a register that is not {dtype}")
            same = not row.name.startswith("bits_") or _item(types[register]) == _item(row.gives)
            _require(same, f"{where}: {row.name} of bits of another width")
        types.append(row.gives)
        return Operation(row, tuple(operands[: len(row.takes)]), float_of(alpha), float_of(beta))


_ROWS = {
    "sizes": opcodes.SIZE_WORDS,
    "buffers": opcodes.BUFFER_WORDS,
    "tensors": opcodes.TENSOR_HEAD + 2 * opcodes.MAX_RANK,
}


def _is_not_beside(block: list[Decoded]) -> bool:
    """Whether something is in a block, or in one inside it, that may not run beside others."""
    return any(each.is_checked or each.name in NOT_BESIDE or any(map(_is_not_beside, each.blocks)) for each in block)


def _item(dtype: str) -> int:
    return opcodes.ITEM_BYTES[opcodes.DTYPES.index(dtype)]


def float_of(bits: int) -> float:
    return float(np.array(bits, np.int32).view(np.float32))


def _constant(dtype: str, low: int, high: int) -> float | int:
    if dtype == "f32":
        return float_of(low)
    if dtype == "f64":
        return float(np.array([low, high], np.int32).view(np.float64)[0])
    if dtype == "i32":
        return low
    return (low & 0xFFFFFFFF) | (high << 32) if dtype == "i64" else low & 0xFF


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise PlanError(what)
