"""Damage to plans: bit flips, truncation, and words edited where it hurts."""

from __future__ import annotations

import random
import struct

from tests.plan.corpus import Sample
from webrnn.plan import opcodes

INTERESTING = (
    0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 63, 64, 65, 127, 128, -1, -2, -3, -64, 2**24, 2**24 + 1, 2**30, 2**31 - 1, -(2**31),
    -(2**31) + 1, 2**16, 65535, 1000, 100000, 0x7F800000,
)  # fmt: skip


def corrupted(sample: Sample, rng: random.Random) -> bytes:
    """A damaged copy; most keep their header, so that the damage gets further."""
    data = bytearray(sample.data)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        rng.choice(_DAMAGES)(data, rng)
    return bytes(data)


def _words(data: bytearray) -> tuple[int, ...]:
    return struct.unpack_from(f"<{len(data) // 4}i", data)


def _put(data: bytearray, index: int, word: int) -> None:
    if 0 <= index < len(data) // 4:
        struct.pack_into("<I", data, 4 * index, word & 0xFFFFFFFF)


def _n_words(data: bytearray) -> int:
    words = _words(data)
    return max(min(words[opcodes.HEADER.index("words")], len(words)), 1) if len(words) > 2 else 1


def _flip(data: bytearray, rng: random.Random) -> None:
    if data:
        at = rng.randrange(min(4 * _n_words(data), len(data)))
        data[at] ^= 1 << rng.randrange(8)


def _truncate(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data) + 1) :]


def _edit(data: bytearray, rng: random.Random) -> None:
    """Any word of the tables and the code, header excluded."""
    first = len(opcodes.HEADER)
    if _n_words(data) > first:
        _change(data, rng.randrange(first, _n_words(data)), rng)


def _edit_header(data: bytearray, rng: random.Random) -> None:
    _change(data, rng.randrange(len(opcodes.HEADER)), rng)


def _change(data: bytearray, index: int, rng: random.Random) -> None:
    words = _words(data)
    if index >= len(words):
        return
    kind = rng.random()
    if kind < 0.35:
        _put(data, index, rng.choice(INTERESTING))
    elif kind < 0.6:
        _put(data, index, words[index] + rng.choice([-2, -1, 1, 2]))
    elif kind < 0.8:
        _put(data, index, words[rng.randrange(_n_words(data))])
    else:
        _put(data, index, rng.randrange(0, 40))


def _table(data: bytearray, name: str) -> tuple[int, int, int]:
    """First word, rows and words of a row."""
    words = _words(data)
    header = dict(zip(opcodes.HEADER, words, strict=False))
    start = len(opcodes.HEADER)
    for other, width in (("sizes", 3), ("buffers", 4), ("tensors", 4 + 2 * opcodes.MAX_RANK)):
        rows = max(min(header.get(other, 0), 10**6), 0)
        if other == name:
            return start, rows, width
        start += rows * width
    return start, max(header.get("code_words", 0), 0), 1


def _edit_size(data: bytearray, rng: random.Random) -> None:
    start, rows, width = _table(data, "sizes")
    if rows:
        _change(data, start + width * rng.randrange(rows) + rng.choice([0, 1, 1, 1, 2]), rng)


def _edit_buffer(data: bytearray, rng: random.Random) -> None:
    start, rows, width = _table(data, "buffers")
    if rows:
        _change(data, start + width * rng.randrange(rows) + rng.randrange(width), rng)


def _edit_tensor(data: bytearray, rng: random.Random) -> None:
    """A place, a size or a stride: most take another row of the table of sizes, which keeps the plan well formed."""
    start, rows, width = _table(data, "tensors")
    if not rows:
        return
    index = start + width * rng.randrange(rows) + rng.randrange(width)
    n_sizes = _table(data, "sizes")[1]
    if rng.random() < 0.7 and n_sizes:
        _put(data, index, rng.randrange(n_sizes))
    else:
        _change(data, index, rng)


def _edit_code(data: bytearray, rng: random.Random) -> None:
    """A word of an instruction: most take another tensor or size."""
    start, rows, _ = _table(data, "code")
    if not rows:
        return
    n = rng.choice([_table(data, "sizes")[1], _table(data, "tensors")[1]])
    index = start + rng.randrange(rows)
    if rng.random() < 0.6 and n:
        _put(data, index, rng.randrange(n))
    else:
        _change(data, index, rng)


def _swap_tensors(data: bytearray, rng: random.Random) -> None:
    """Let two rows of the table of tensors take each other's place, or one become the other."""
    start, rows, width = _table(data, "tensors")
    if rows < 2:
        return
    one, other = (4 * (start + width * rng.randrange(rows)) for _ in range(2))
    size = 4 * width
    if max(one, other) + size <= len(data):
        data[one : one + size] = data[other : other + size]


_DAMAGES = (_flip, _truncate, _edit, _edit, _edit_header, _edit_size, _edit_size, _edit_size, _edit_buffer,
            _edit_tensor, _edit_tensor, _edit_tensor, _edit_code, _edit_code, _edit_code, _swap_tensors)  # fmt: skip
