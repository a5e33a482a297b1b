"""Half floats in plan files. A plan has floats of 32 bits; if all elements of a constant are exact in 16 bits, a file
may hold them so, and whoever reads the file widens them once. Nobody else knows of it.

Such a file is the bytes of the plan in stretches, after a header (STORED_HEADER) of words and a table of two words for
each stretch: so many bytes as they are, then so many half floats, each of which is four bytes of the plan. Lengths, not
places: stretches cannot overlap or leave gaps, and a plan is never more than twice as long as its file.

>>> plan = bytes(64) + np.float32([0.5, -2]).tobytes() + b"the end"
>>> file = stored(plan, [(64, 2)])
>>> len(plan), len(file), widened(file) == plan
(79, 107, True)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from webrnn.errors import PlanError

from . import opcodes

FEWEST = 256
"""Elements of a constant that is worth a stretch."""
LEAST_GAIN = 0.1
"""A file that would not become smaller by this part stays as it is, so that older hosts read it too."""
_WORD, _ROW = np.dtype("<i4"), 8
_HEAD = _WORD.itemsize * len(opcodes.STORED_HEADER)


def stored_plan(plan: bytes) -> bytes:
    """What is written of a plan: with half floats where that makes the file smaller, otherwise the plan."""
    file = stored(plan, exact_constants(plan))
    return file if len(file) <= (1 - LEAST_GAIN) * len(plan) else plan


def exact_constants(plan: bytes, fewest: int = FEWEST) -> Iterator[tuple[int, int]]:
    """Where constants of f32 are that half floats hold exactly, first to last: (byte of the plan, elements)."""
    words = np.frombuffer(plan[: len(plan) // 4 * 4], _WORD)
    header = dict(zip(opcodes.HEADER, words.tolist(), strict=False))
    sizes, rest = np.split(words[len(opcodes.HEADER) :], [opcodes.SIZE_WORDS * header["sizes"]])
    buffers = rest[: opcodes.BUFFER_WORDS * header["buffers"]].reshape(-1, opcodes.BUFFER_WORDS)
    constant, f32 = opcodes.BUFFER_KINDS.index("constant"), opcodes.DTYPES.index("f32")
    floats = buffers[(buffers[:, 0] == constant) & (buffers[:, 1] == f32)]
    end = 0
    for place, size in sorted((place, size) for _, _, size, place in floats.tolist()):
        start, count = header["data_offset"] + place, int(sizes[opcodes.SIZE_WORDS * size + 1])
        if count >= fewest and start >= end and _is_exact(np.frombuffer(plan, "<f4", count, start)):
            yield start, count
            end = start + 4 * count


def _is_exact(array: np.ndarray) -> bool:
    with np.errstate(all="ignore"):
        return (
            np.array_equal(array.astype("<f2").astype("<f4").view("<u4"), array.view("<u4"))
            and not np.isnan(array).any()
        )


def stored(plan: bytes, constants: Iterable[tuple[int, int]]) -> bytes:
    """A plan with half floats in these places."""
    rows: list[tuple[int, int]] = []
    parts: list[bytes] = []
    at = 0
    for start, count in constants:
        rows.append((start - at, count))
        parts += [plan[at:start], np.frombuffer(plan, "<f4", count, start).astype("<f2").tobytes()]
        at = start + 4 * count
    rows.append((len(plan) - at, 0))
    header = {"magic": opcodes.MAGIC, "version": opcodes.STORED_VERSION, "bytes": len(plan), "stretches": len(rows)}
    words = [*(header[name] for name in opcodes.STORED_HEADER), *(word for row in rows for word in row)]
    return b"".join([np.array(words, _WORD).tobytes(), *parts, plan[at:]])


def widened(file: bytes) -> bytes:
    """The plan that a file holds: the file itself, unless it has half floats or is of the first versions. PlanError if
    it is damaged."""
    if len(file) < _HEAD:
        return file
    magic, version, n_bytes, n_rows = np.frombuffer(file, _WORD, len(opcodes.STORED_HEADER)).tolist()
    if magic == opcodes.MAGIC and version in opcodes.FIRST_VERSIONS:
        from .first_versions import brought_up

        return brought_up(file)
    if magic != opcodes.MAGIC or version not in opcodes.STORED_VERSIONS:
        return file
    at = _HEAD + _ROW * n_rows
    if not 0 <= n_rows <= (len(file) - _HEAD) // _ROW:
        raise PlanError("the table of stretches does not fit into the file")
    rows = np.frombuffer(file, _WORD, 2 * n_rows, _HEAD).reshape(n_rows, 2)
    plain, halves = rows.sum(axis=0, dtype=np.int64).tolist()
    if (rows < 0).any() or plain + 2 * halves != len(file) - at or plain + 4 * halves != n_bytes:
        raise PlanError("the stretches of the file are damaged")
    parts: list[bytes] = []
    for count, half_count in rows.tolist():
        parts.append(file[at : at + count])
        parts.append(np.frombuffer(file, "<f2", half_count, at + count).astype("<f4").tobytes())
        at += count + 2 * half_count
    return b"".join(parts)
