"""Plans of versions 1 and 2 as plans of version 3, in whose words they say the same.

What differs: a tensor had up to six axes, a bool was called u8, and each pair of element types had a cast of its own.
Version 1 has no states in its metadata; nothing else is new in version 2.
"""

from __future__ import annotations

import json
from itertools import permutations

import numpy as np

from webrnn.errors import PlanError

from . import opcodes
from .instructions import CODES
from .operations import LETTERS, OPERATION_CODES, OPERATION_WORDS

AXES = 6
_OLD_ROW, _ROW = opcodes.TENSOR_HEAD + 2 * AXES, opcodes.TENSOR_HEAD + 2 * opcodes.MAX_RANK
FIRST_CAST = 71
CASTS = {
    FIRST_CAST + at: OPERATION_CODES[f"to_{LETTERS[letters[1]]}"] for at, letters in enumerate(permutations("fiju", 2))
}
"""By the number that a cast had, that of the operation which does it now."""
_WORD = np.dtype("<i4")


def brought_up(data: bytes) -> bytes:
    """A plan of version 1 or 2 as one of version 3; others as they are. PlanError if its tables do not fit."""
    n_header = len(opcodes.HEADER)
    words = np.frombuffer(data[: len(data) // 4 * 4], _WORD)
    if len(words) < n_header or words[0] != opcodes.MAGIC or words[1] not in opcodes.FIRST_VERSIONS:
        return data
    header = dict(zip(opcodes.HEADER, words[:n_header].tolist(), strict=True))
    tables = opcodes.SIZE_WORDS * header["sizes"] + opcodes.BUFFER_WORDS * header["buffers"]
    lengths = (tables, _OLD_ROW * header["tensors"], header["code_words"])
    at, end = header["data_offset"], header["data_offset"] + header["data_bytes"]
    start, stop = header["meta_offset"], header["meta_offset"] + header["meta_bytes"]
    if min(lengths) < 0 or n_header + sum(lengths) != header["words"] or header["words"] > len(words):
        raise PlanError("the tables do not fit into the file")
    if not 4 * header["words"] <= at <= end <= len(data) or not 0 <= start <= stop <= len(data):
        raise PlanError("the weights or the metadata do not fit into the file")
    fixed, tensors, code = np.split(words[n_header : header["words"]], np.cumsum(lengths)[:-1])
    parts = [fixed, _tensors(tensors.reshape(-1, _OLD_ROW)), _code(code)]
    n_words = n_header + sum(part.size for part in parts)
    meta = _meta(data[start:stop])
    data_offset = -(-4 * n_words // 64) * 64
    header |= {
        "version": opcodes.CHANNELS_FIRST_VERSION, "words": n_words, "data_offset": data_offset,
        "meta_offset": data_offset + end - at, "meta_bytes": len(meta),
    }  # fmt: skip
    head = b"".join(part.astype(_WORD).tobytes() for part in (np.array(list(header.values())), *parts))
    return head.ljust(data_offset, b"\0") + data[at:end] + meta


def _tensors(rows: np.ndarray) -> np.ndarray:
    made = np.zeros((len(rows), _ROW), _WORD)
    first, strides = opcodes.TENSOR_HEAD, opcodes.TENSOR_HEAD + opcodes.MAX_RANK
    made[:, : first + AXES] = rows[:, : first + AXES]
    made[:, strides : strides + AXES] = rows[:, first + AXES :]
    return made.ravel()


def _code(code: np.ndarray) -> np.ndarray:
    """With the casts of now. Blocks of loops and branches follow their instruction, so all are in one row."""
    made = code.copy()
    at = 0
    while at < len(code) - 1:
        opcode, length = code[at : at + 2].tolist()
        counts = code[at + 2 : at + 6].tolist()  # inputs, outputs, constants, operations
        if opcode == CODES["expression"] and len(counts) == 4 and min(counts) >= 0:
            first = at + 6 + counts[0] + 2 * counts[1] + 3 * counts[2]
            end = min(first + OPERATION_WORDS * counts[3], at + 2 + length, len(code))
            for each in range(first, end, OPERATION_WORDS):
                made[each] = CASTS.get(int(code[each]), code[each])
        at += 2 + max(length, 0)
    return made


def _meta(text: bytes) -> bytes:
    """A bool was called u8."""
    try:
        meta = json.loads(text)
        for port in (*meta["inputs"], *meta["outputs"]):
            port["dtype"] = "bool" if port["dtype"] == "u8" else port["dtype"]
        return json.dumps(meta, separators=(",", ":")).encode()
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError) as error:
        raise PlanError("the metadata are damaged") from error
