"""The verifier: whether a plan keeps to its memory, found out without running it.

It asks what plan_check and plan_bind of the VM ask (wasm_kernels/plan.c), in code of its own: both refuse the same.

>>> verify(b"nonsense")
Traceback (most recent call last):
    ...
webrnn.errors.PlanError: the file is shorter than the header of a plan
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from webrnn.errors import PlanError

from .bound import INT_MAX, BoundTensor
from .decode import Decoded, Move, Tables, decode
from .file import SYMBOL, PlanFile, evaluated, late_rows
from .independence import Memory, are_independent
from .opcodes import CHANNELS_FIRST_VERSION, DTYPES, ITEM_BYTES, LATE_BYTES
from .operand_rules import CHANNELS_FIRST_RULES, OPERAND_RULES

UNSET = -(2**31)
"""What a late size is before it runs."""
ITEM = dict(zip(DTYPES, ITEM_BYTES, strict=True))


def verify(data: bytes, symbols: Mapping[str, int] | None = None) -> None:
    """Raise PlanError, naming the instruction, if a plan is damaged or, for given sizes, reaches out of bounds."""
    file = PlanFile(data)
    tables = decode(file.data)
    if symbols is not None:
        missing = [name for name in file.symbols if name not in symbols]
        if missing:
            raise PlanError(f"no number for the size {', '.join(missing)}")
        verify_tables(tables, [symbols[name] for name in file.symbols], file)


def verify_tables(tables: Tables, symbols: Sequence[int], file: PlanFile | None = None) -> None:
    """The part of `verify` that depends on sizes."""
    _Verifier(tables, symbols, file).run()


@dataclass(slots=True)
class _Loop:
    """A loop around the instruction that is looked at, with what it moves."""

    reaches: dict[int, list[int]] = field(default_factory=dict)
    """By tensor: how far each of its moves takes it, in elements."""
    follows: dict[int, int] = field(default_factory=dict)
    loose: set[int] = field(default_factory=set)
    """Tensors that it moves by what is known only while running."""


class _Verifier:
    def __init__(self, tables: Tables, symbols: Sequence[int], file: PlanFile | None):
        self.tables, self.file = tables, file
        is_old = tables.header["version"] == CHANNELS_FIRST_VERSION
        self.rules = CHANNELS_FIRST_RULES if is_old else OPERAND_RULES
        self.sizes = bound_sizes(tables, symbols)
        self.is_late = late_rows(tables.sizes)
        self.buffer_bytes = [self._buffer_bytes(index) for index in range(len(tables.buffers))]
        self.arena_bytes = arena_bytes(tables, self.sizes)
        if self.arena_bytes > INT_MAX:
            raise PlanError("the arena is too large")
        self.impossible: set[int] = set()
        """Tensors with a negative size or too many elements: they are refused where they are used."""
        self.tensors = [self._bound(index) for index in range(len(tables.tensors))]
        self.loops: list[_Loop] = []
        """Around the instruction that is looked at."""

    def run(self) -> None:
        self._block(self.tables.code)

    def _buffer_bytes(self, index: int) -> int:
        buffer = self.tables.buffers[index]
        if self.is_late[buffer.size] and not buffer.writable:
            raise PlanError(f"buffer {index}, which the program does not write, is of a late size")
        size = self.sizes[buffer.size]
        n_bytes = size * ITEM[buffer.dtype] if size >= 0 else -1
        if n_bytes > INT_MAX:
            raise PlanError(f"buffer {index} of {size} elements is too large")
        if buffer.kind == "constant" and buffer.place + n_bytes > self.tables.header["data_bytes"]:
            raise PlanError(f"buffer {index} reaches beyond the weights")
        return n_bytes

    def _bound(self, index: int) -> BoundTensor:
        tensor = self.tables.tensors[index]
        shape = tuple(self.sizes[size] for size in tensor.shape)
        count = 1
        for size in shape:
            count *= size
            if size < 0 or count > INT_MAX:
                self.impossible.add(index)
                break
        strides = tuple(self.sizes[stride] for stride in tensor.strides)
        return BoundTensor(tensor.dtype, shape, strides, tensor.buffer, self.sizes[tensor.offset])

    # --- instructions ------------------------------------------------------------------------------------------------

    def _block(self, block: list[Decoded]) -> None:
        for instruction in block:
            if instruction.name == "loop":
                self._loop(instruction)
                continue
            if instruction.name == "beside":
                self._beside(instruction)
                continue
            if not instruction.is_checked:
                self._check(instruction)
            for inner in instruction.blocks:
                self._branch(inner)

    def _check(self, instruction: Decoded) -> None:
        for form, word in zip(instruction.row.operands, instruction.operands, strict=True):
            if form.is_size and word >= 0 and self.is_late[word] and instruction.name != "let":
                raise self._error(instruction, "its size is late, and it is not marked")
        for tensor, written in instruction.tensors():
            self._access(instruction, tensor, written)
        if instruction.expression is not None:
            self._expression(instruction)
        elif not self.rules[instruction.name](*self._operands(instruction)):
            raise self._error(instruction, "its operands do not fit each other")

    def _beside(self, instruction: Decoded) -> None:
        for block in instruction.blocks:
            self._block(block)
        rows = zip(self.tensors, self.tables.tensors, strict=True)
        tensors = [replace(tensor, offset=0) if self.is_late[row.offset] else tensor for tensor, row in rows]
        places = [(buffer.kind, buffer.place) for buffer in self.tables.buffers]
        if not are_independent(Memory(tensors, places, self.impossible, self.sizes), instruction.blocks):
            raise self._error(instruction, "its blocks get in each other's way")

    def _branch(self, block: list[Decoded]) -> None:
        """A branch that does not hold for these sizes is refused when it is taken, not before."""
        loops = list(self.loops)
        try:
            self._block(block)
        except PlanError:
            self.loops = loops

    def _operands(self, instruction: Decoded) -> list[BoundTensor | int | None]:
        found: list[BoundTensor | int | None] = []
        for form, word in zip(instruction.row.operands, instruction.operands, strict=True):
            if form.is_tensor:
                found.append(None if word < 0 else self.tensors[word])
            else:
                found.append(self.sizes[word] if form.is_size else word)
        return [*found, *(self.sizes[size] for size in instruction.rest)]

    def _expression(self, instruction: Decoded) -> None:
        shapes = {self.tensors[tensor].shape for tensor, _ in instruction.tensors()}
        if len(shapes) != 1:
            raise self._error(instruction, "its operands have different sizes")

    def _loop(self, instruction: Decoded) -> None:
        loop = instruction.named()
        body, epilogue = instruction.blocks
        steps = 0
        if not instruction.is_checked:
            if self.is_late[loop["most"]] or (loop["steps"] >= 0 and self.is_late[loop["steps"]]):
                raise self._error(instruction, "its steps are late, and it is not marked")
            most = self.sizes[loop["most"]]
            steps = most if loop["steps"] < 0 else self.sizes[loop["steps"]]
            if not 0 <= steps <= most:
                raise self._error(instruction, f"{steps} of at most {most} steps")
            for name in ("steps_tensor", "condition", "taken"):
                self._scalar(instruction, loop[name], written=name == "taken")
            if not steps:
                self._block(epilogue)
                return
        self.loops.append(self._moves(instruction, steps))
        for name in () if instruction.is_checked else ("body_condition", "iteration", "taken"):
            self._scalar(instruction, loop[name], written=name != "body_condition")
        self._block(body)
        self._block(epilogue)
        self.loops.pop()

    def _scalar(self, instruction: Decoded, tensor: int, written: bool) -> None:
        if tensor < 0:
            return
        if self.tensors[tensor].count != 1:
            raise self._error(instruction, f"tensor {tensor} is not one number")
        self._access(instruction, tensor, written)

    def _moves(self, instruction: Decoded, steps: int) -> _Loop:
        loop = _Loop()
        for move in instruction.moves:
            is_late = move.follows < 0 and (self.is_late[move.stride] or self.is_late[move.after])
            if move.follows < 0 and (is_late or instruction.is_checked):
                loop.reaches.setdefault(move.tensor, [])
                loop.loose.add(move.tensor)
            elif move.follows < 0:
                times = max(steps - 1 - max(self.sizes[move.after], 0), 0)
                loop.reaches.setdefault(move.tensor, []).append(times * self.sizes[move.stride])
        for move in instruction.moves:
            if move.follows >= 0:
                self._follow(instruction, loop, move)
        if any(self._followed((*self.loops, loop), tensor) is not None for tensor in loop.follows.values()):
            raise self._error(instruction, "a tensor follows one that follows another")
        return loop

    def _follow(self, instruction: Decoded, loop: _Loop, move: Move) -> None:
        tensor, followed = self.tensors[move.tensor], self.tensors[move.follows]
        loose = instruction.is_checked or any(map(self._is_loose, (move.tensor, move.follows), (loop, loop)))
        if move.tensor in loop.reaches or self._followed((*self.loops, loop), move.tensor) is not None:
            raise self._error(instruction, f"tensor {move.tensor} follows and moves, or follows twice")
        same_strides = all(
            size <= 1 or stride == other
            for size, stride, other in zip(tensor.shape, tensor.strides, followed.strides, strict=False)
        )
        if not loose and (tensor.shape != followed.shape or not same_strides):
            raise self._error(instruction, f"tensor {move.tensor} follows tensor {move.follows}, which is not like it")
        loop.follows[move.tensor] = move.follows
        if loose:
            loop.loose.add(move.tensor)

    def _is_loose(self, tensor: int, *inner: _Loop) -> bool:
        """Whether where it is depends on what is known only while running."""
        row = self.tables.tensors[tensor]
        sizes = (self.tables.buffers[row.buffer].size, row.offset, *row.shape, *row.strides)
        return any(self.is_late[size] for size in sizes) or any(tensor in loop.loose for loop in (*self.loops, *inner))

    @staticmethod
    def _followed(loops: Sequence[_Loop], tensor: int) -> tuple[int, int] | None:
        """The loop, by its depth, in which a tensor follows another, and that one."""
        return next(((depth, loop.follows[tensor]) for depth, loop in enumerate(loops) if tensor in loop.follows), None)

    # --- memory ------------------------------------------------------------------------------------------------------

    def _access(self, instruction: Decoded, index: int, written: bool) -> None:
        """What holds for a tensor wherever the loops around an instruction have moved it."""
        if self._is_loose(index):
            raise self._error(instruction, f"tensor {index} depends on late sizes, and it is not marked")
        tensor = self.tensors[index]
        places = [(tensor, self._reach(index, self.loops))]
        found = self._followed(self.loops, index)
        if not self.impossible.isdisjoint({index} if found is None else {index, found[1]}):
            raise self._error(instruction, f"tensor {index} has the sizes {list(tensor.shape)}")
        if found is not None:
            depth, followed = found
            there, further = self._reach(followed, self.loops), self._reach(index, self.loops[depth + 1 :])
            places.append((self.tensors[followed], (there[0] + further[0], there[1] + further[1])))
        for place, (low, high) in places:
            if written and not self.tables.buffers[place.buffer].writable:
                raise self._error(instruction, f"tensor {index} must not be written")
            if tensor.count:
                self._check_extent(instruction, index, place, low, high)

    def _reach(self, tensor: int, loops: Sequence[_Loop]) -> tuple[int, int]:
        reaches = [reach for loop in loops for reach in loop.reaches.get(tensor, ())]
        return sum(min(reach, 0) for reach in reaches), sum(max(reach, 0) for reach in reaches)

    def _check_extent(self, instruction: Decoded, index: int, place: BoundTensor, low: int, high: int) -> None:
        tensor = self.tensors[index]
        spans = [(size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True)]
        first = place.offset + low + sum(min(span, 0) for span in spans)
        last = place.offset + high + sum(max(span, 0) for span in spans)
        if first < 0 or (last + 1) * ITEM[tensor.dtype] > self.buffer_bytes[place.buffer]:
            elements = self.buffer_bytes[place.buffer] // ITEM[tensor.dtype]
            what = f"tensor {index} reaches from element {first} to {last} of a buffer of {elements}"
            raise self._error(instruction, what)

    def _error(self, instruction: Decoded, what: str) -> PlanError:
        node = self.file.node_at(instruction.at) if self.file is not None else ""
        return PlanError(f"instruction at word {instruction.at}, {instruction.name}: {what}", node=node or None)


def bound_sizes(tables: Tables, symbols: Sequence[int]) -> list[int]:
    """All sizes as numbers, UNSET for those that are set while running."""
    found: list[int] = []
    for (kind, _, _), size in zip(tables.sizes, evaluated(tables.sizes, symbols), strict=True):
        if size is None:
            size = UNSET
        elif abs(size) > INT_MAX or (kind == SYMBOL and size < 0):
            raise PlanError(f"size {len(found)} is {size}")
        found.append(size)
    return found


def arena_bytes(tables: Tables, sizes: Sequence[int]) -> int:
    """Bytes of the arena: each slot as large as the largest buffer in it, in units of 64 bytes. Those of late sizes may
    grow while running."""
    slots = [0] * tables.header["slots"]
    for buffer in tables.buffers:
        if buffer.kind == "arena":
            n_bytes = LATE_BYTES if sizes[buffer.size] == UNSET else sizes[buffer.size] * ITEM[buffer.dtype]
            slots[buffer.place] = max(slots[buffer.place], n_bytes)
    return sum(-(-n_bytes // 64) * 64 for n_bytes in slots)
