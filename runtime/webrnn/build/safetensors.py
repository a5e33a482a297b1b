"""Files of safetensors: a length of 8 bytes, a header of JSON, and the bytes of the tensors.

The header says of each tensor its type, its shape and where its bytes begin and end. As the format wants it, tensors
lie one behind the other, without gaps, from the first byte behind the header to the last one of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from webrnn.errors import ModelError, UnsupportedOp

from .elements import TYPES_OF_SAFETENSORS, count_of, shaped, widened
from .texts import read_json

LONGEST_HEADER = 100_000_000
"""What safetensors' own reader takes at most."""


def looks_like_safetensors(data: bytes) -> bool:
    return len(data) > 8 and data[8:9] == b"{" and int.from_bytes(data[:8], "little") <= len(data) - 8


def read_safetensors(data: bytes) -> dict[str, np.ndarray]:
    """The tensors of a file by name; bfloat16 is widened to float32.

    >>> header = b'{"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    >>> read_safetensors(len(header).to_bytes(8, "little") + header + np.float32([1, 2]).tobytes())
    {'b': array([1., 2.], dtype=float32)}
    """
    if len(data) < 8:
        raise ModelError(f"not a safetensors file: it has {len(data)} bytes")
    length = int.from_bytes(data[:8], "little")
    if length > min(LONGEST_HEADER, len(data) - 8):
        raise ModelError(f"a header of {length} bytes, in a safetensors file of {len(data)}")
    header = _header(data[8 : 8 + length])
    start = 8 + length
    entries = sorted(
        (_Entry(name, entry) for name, entry in header.items() if name != "__metadata__"),
        key=lambda entry: (entry.begin, entry.end),
    )
    at = 0
    for entry in entries:
        if entry.begin != at:
            raise ModelError(f"tensor {entry.name!r} begins at byte {entry.begin}, the one before it ends at {at}")
        at = entry.end
    if start + at != len(data):
        raise ModelError(f"the tensors end at byte {at}, the bytes of the safetensors file at {len(data) - start}")
    found = {entry.name: entry.array(data, start) for entry in entries}
    return {name: found[name] for name in header if name != "__metadata__"}


def _header(text: bytes) -> dict[str, Any]:
    header = read_json(text, "the header of the safetensors file")
    if not isinstance(header, dict):
        raise ModelError("the header of the safetensors file is not a JSON object")
    return header


class _Entry:
    """What the header says of one tensor."""

    def __init__(self, name: str, entry: Any):
        self.name = name
        if not isinstance(entry, Mapping) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
            raise ModelError(f"tensor {name!r} has no dtype, shape and data_offsets in the header")
        spelled, self.shape, offsets = entry["dtype"], _sizes(entry["shape"]), _sizes(entry["data_offsets"])
        if self.shape is None or offsets is None or len(offsets) != 2:
            raise ModelError(f"shape and data_offsets of tensor {name!r} are {entry['shape']}, {entry['data_offsets']}")
        element = TYPES_OF_SAFETENSORS.get(spelled) if isinstance(spelled, str) else None
        if element is None:
            raise UnsupportedOp(f"tensor {name!r} is of type {spelled!r}; known are {', '.join(TYPES_OF_SAFETENSORS)}")
        self.element = element
        self.begin, self.end = offsets
        needed = count_of(self.shape) * element.stored.itemsize
        if self.end - self.begin != needed:
            raise ModelError(
                f"tensor {name!r} of type {spelled} and shape {list(self.shape)} needs {needed} bytes, it has "
                f"{self.end - self.begin}"
            )

    def array(self, data: bytes, start: int) -> np.ndarray:
        assert self.shape is not None
        raw = np.frombuffer(data, self.element.stored, count_of(self.shape), start + self.begin)
        return widened(shaped(raw, self.shape, self.name), self.element)


def _sizes(given: Any) -> tuple[int, ...] | None:
    """A list of sizes as JSON has it; True is no size."""
    if not isinstance(given, list) or not all(type(size) is int and 0 <= size < 2**62 for size in given):
        return None
    return tuple(given)
