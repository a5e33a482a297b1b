"""Plans that no lowering would make, written word by word: nested loops that move tensors about and let them follow
each other, with copies, expressions and branches between them. Every third or so keeps to its memory. In half of them
some sizes are set while they run."""

from __future__ import annotations

import random
import struct

from tests.plan.corpus import Sample
from webrnn.plan import opcodes
from webrnn.plan.instructions import CODES
from webrnn.plan.operations import OPERATION_CODES

NUMBERS = range(-6, 41)
LATE = range(len(NUMBERS), len(NUMBERS) + 3)
"""Rows of the table of sizes that are set while running; the two rows behind them depend on them."""
LATE_SUM, LATE_PRODUCT = LATE.stop, LATE.stop + 1
WRITABLE_BUFFERS = (0, 1, 2, 4)
COPY_F = OPERATION_CODES["copy_f"]


def hostile(rng: random.Random) -> Sample:
    return _Writer(rng).sample()


class _Writer:
    def __init__(self, rng: random.Random):
        self.rng = rng
        self.is_late = rng.random() < 0.5
        self.is_beside = False
        """Whether a block of a `beside` is written: most have nothing that must not be there."""
        self.n_moves = 0
        self.buffers: list[list[int]] = []
        self.tensors: list[list[int]] = []
        self.alike: dict[tuple[int, ...], list[int]] = {}
        self.scalars: dict[int, list[int]] = {1: [], 2: []}
        self.moved: list[int] = []
        """Tensors that the loops around move: instructions take them more often."""

    def size(self, number: int) -> int:
        return NUMBERS.index(number)

    def maybe_late(self, row: int, share: float) -> int:
        """A row of the table of sizes, or one that is set while running."""
        return self.rng.choice([*LATE, LATE_SUM, LATE_PRODUCT]) if self.is_late and self.rng.random() < share else row

    def sample(self) -> Sample:
        rng = self.rng
        for slot in range(3):
            self.buffers.append([1, 0, self.maybe_late(self.size(rng.choice([8, 12, 24])), 0.3), slot])
        self.buffers.append([2, 0, self.size(16), 0])
        self.buffers.append([2, 0, self.maybe_late(self.size(12), 0.3), 1 | opcodes.WRITABLE])
        self.buffers.append([0, 0, self.size(16), 0])
        self.buffers.append([1, 1, self.size(6), 3])
        self.buffers.append([1, 2, self.size(6), 4])
        for _ in range(rng.randint(6, 14)):
            self._tensor(rng.choice([0, 0, 1, 1, 2, 2, 3, 4, 4, 5]), 0)
        for dtype, buffer in ((1, 6), (2, 7)):
            for _ in range(3):
                self._scalar(buffer, dtype)
        k, m = rng.randint(1, 4), rng.randint(1, 3)
        integers = (((1, k, 1), (k, 1, 1)), ((m,), (1,)), ((1, m, 1), (m, 1, 1)))
        self.gather = [self._row(6, 1, rng.randint(0, 3), shape, strides) for shape, strides in integers]
        code = [*(self._let(row) for row in LATE if self.is_late), self._block(0)]
        code = [word for words in code for word in words]
        tables = [word for number in NUMBERS for word in (0, number, 0)]
        tables += [*(word for row in LATE for word in (5, row, 0)), 2, LATE[0], LATE[1], 3, LATE[1], LATE[2]]
        tables += [word for table in (self.buffers, self.tensors) for row in table for word in row]
        n_words = len(opcodes.HEADER) + len(tables) + len(code)
        data_offset = -(-4 * n_words // 64) * 64
        meta = b'{"symbols":[],"inputs":[],"outputs":[],"nodes":[]}'
        header = {
            "magic": opcodes.MAGIC, "version": opcodes.VERSION, "words": n_words, "symbols": 0,
            "sizes": LATE_PRODUCT + 1, "buffers": len(self.buffers), "slots": 5, "tensors": len(self.tensors),
            "externals": 2, "moves": self.n_moves, "code_words": len(code), "data_offset": data_offset,
            "data_bytes": 64, "meta_offset": data_offset + 64, "meta_bytes": len(meta),
        }  # fmt: skip
        words = [*(header[name] for name in opcodes.HEADER), *tables, *code]
        data = struct.pack(f"<{n_words}I", *(word & 0xFFFFFFFF for word in words))
        return Sample("hostile", data.ljust(data_offset + 64, b"\0") + meta, ())

    def _row(self, buffer: int, dtype: int, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
        padding = [0] * (opcodes.MAX_RANK - len(shape))
        shares = [self.maybe_late(self.size(number), 0.15 if dtype == 0 else 0) for number in (*shape, *strides)]
        sizes = [*shares[: len(shape)], *padding, *shares[len(shape) :], *padding]
        self.tensors.append([buffer, dtype, len(shape), self.maybe_late(self.size(offset), 0.1), *sizes])
        return len(self.tensors) - 1

    def _tensor(self, buffer: int, dtype: int) -> None:
        rng = self.rng
        if self.alike and rng.random() < 0.5:
            key = rng.choice(list(self.alike))
            shape, strides = key[: len(key) // 2], key[len(key) // 2 :]
        else:
            shape = tuple(rng.choice([1, 2, 2, 3, 0]) for _ in range(rng.choice([0, 1, 1, 2, 3])))
            strides = tuple(rng.choice([0, 1, 1, 2, 3, -1]) for _ in shape)
        index = self._row(buffer, dtype, rng.randint(0, 9), shape, strides)
        self.alike.setdefault((*shape, *strides), []).append(index)

    def _scalar(self, buffer: int, dtype: int) -> None:
        self.scalars[dtype].append(self._row(buffer, dtype, self.rng.randint(0, 5), (), ()))

    def _pair(self) -> tuple[int, int]:
        """Two tensors of the same shape, most of them."""
        floats = [index for group in self.alike.values() for index in group]
        moved = [index for index in self.moved if index in floats]
        one = self.rng.choice(moved if moved and self.rng.random() < 0.7 else floats)
        end = 4 + opcodes.MAX_RANK
        shape = self.tensors[one][2], self.tensors[one][4:end]
        same = [i for i in range(len(self.tensors)) if (self.tensors[i][2], self.tensors[i][4:end]) == shape]
        same = [i for i in same if self.tensors[i][1] == 0]
        writable = [i for i in same if self.tensors[i][0] in WRITABLE_BUFFERS and self.rng.random() < 0.98]
        other = self.rng.choice(writable or same)
        return (other, one) if one in writable and self.rng.random() < 0.3 else (one, other)

    def _block(self, depth: int) -> list[int]:
        words: list[int] = []
        for _ in range(self.rng.choice([1, 1, 2] if depth else [2, 3])):
            words += self._instruction(depth)
        return words

    def _let(self, row: int) -> list[int]:
        """Set a late size to a small number."""
        scalar, number = self.rng.choice(self.scalars[1]), self.size(self.rng.choice([0, 1, 2, 2, 3, 5, 40, -1]))
        return [CODES["sizes"], 2, scalar, number, CODES["let"], 3, row, scalar, self.rng.choice([0, 0, -3])]

    def _instruction(self, depth: int) -> list[int]:
        words = self._unmarked(depth)
        never = (CODES["sizes"], CODES["let"], CODES["beside"])
        if self.is_late and words[0] not in never and self.rng.random() < (0.02 if self.is_beside else 0.85):
            words[0] |= opcodes.CHECKED
        return words

    def _unmarked(self, depth: int) -> list[int]:
        kind = self.rng.random()
        if self.is_late and not self.is_beside and self.rng.random() < 0.1:
            return self._let(self.rng.choice(LATE))
        if kind < 0.45 and depth < 4:
            return self._loop(depth)
        if kind < 0.5 and depth < 4 and (not self.is_beside or self.rng.random() < 0.02):
            then, other = self._block(depth + 1), self._block(depth + 1)
            return [CODES["branch"], 3, self.rng.choice(self.scalars[2]), len(then), len(other), *then, *other]
        if kind < 0.56 and not depth:
            self.is_beside = True
            first, second = self._block(1), self._block(1)
            self.is_beside = False
            return [CODES["beside"], 2, len(first), len(second), *first, *second]
        one, other = self._pair()
        if kind < 0.75:
            return [CODES["copy"], 2, one, other]
        if kind < 0.78:
            return [CODES["gather"], 3, *self.gather]
        if kind < 0.82:
            zero = [CODES["sizes"], 2, self.rng.choice(self.scalars[1]), self.size(self.rng.randint(0, 3))]
            return zero
        operation = [COPY_F, 1, 0, 0, 0, 0, 0]
        return [CODES["expression"], 4 + 1 + 2 + 7, 1, 1, 0, 1, one, other, 1, *operation]

    def _loop(self, depth: int) -> list[int]:
        rng = self.rng
        first = self.n_moves
        moves = [self._move() for _ in range(rng.choice([0, 1, 1, 2, 3]))]
        self.n_moves += len(moves)
        self.moved += [move[0] for move in moves]
        body, epilogue = self._block(depth + 1), self._block(depth + 1) if rng.random() < 0.5 else []
        del self.moved[len(self.moved) - len(moves) :]
        most = rng.choice([0, 1, 2, 3, 3, 5])
        most_row = self.maybe_late(self.size(most), 0.1)

        def maybe(dtype: int) -> int:
            return rng.choice(self.scalars[dtype]) if rng.random() < 0.3 else -1

        steps = -1 if rng.random() < 0.3 else self.size(rng.randint(0, most))
        operands = [steps, maybe(1), most_row, maybe(2), maybe(2), maybe(1), maybe(1), first, len(moves)]
        operands += [len(body), len(epilogue), rng.randrange(3), *(word for move in moves for word in move)]
        return [CODES["loop"], len(operands), *operands, *body, *epilogue]

    def _move(self) -> tuple[int, int, int]:
        rng = self.rng
        if rng.random() < 0.5:
            group = rng.choice([group for group in self.alike.values() if len(group) > 1] or list(self.alike.values()))
            return rng.choice(group), -1, rng.choice(group)
        tensor = rng.choice(self.moved) if self.moved and rng.random() < 0.4 else rng.randrange(len(self.tensors))
        stride = self.maybe_late(self.size(rng.choice([1, 1, 2, 3, -1, -2, 0])), 0.1)
        return tensor, stride, self.size(rng.choice([0, 0, 1, 2, -1]))
