"""Storing states and free metadata in plan files that have been encoded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from webrnn.errors import PlanError

from . import opcodes
from .file import PlanFile
from .stored import PlanState

_ALIGNMENT = 64


def store(file: PlanFile, states: Sequence[PlanState] | None = None, about: Mapping[str, Any] | None = None) -> bytes:
    """The bytes of a plan file with other states or metadata than it has; None leaves them as they are."""
    header, meta = file.header, dict(file.meta)
    weights = bytearray(file.data[header["data_offset"] :][: header["data_bytes"]])
    if states is not None:
        meta["states"] = [_row(state, weights) for state in states]
    if about is not None:
        meta["about"] = _checked(about)
    text = json.dumps(meta, separators=(",", ":")).encode()
    words = np.frombuffer(file.data[: 4 * len(opcodes.HEADER)], np.int32).copy()
    end = header["data_offset"] + len(weights)
    for name, number in (("data_bytes", len(weights)), ("meta_offset", end), ("meta_bytes", len(text))):
        words[opcodes.HEADER.index(name)] = number
    return words.tobytes() + file.data[words.nbytes : header["data_offset"]] + bytes(weights) + text


def _checked(about: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object as it will be read; raises for what JSON cannot say."""
    if not isinstance(about, Mapping):
        raise PlanError(f"about is a JSON object, a dict, not a {type(about).__name__}")
    try:
        return json.loads(json.dumps(dict(about), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise PlanError(f"about cannot be written as JSON: {error}") from error


def _row(state: PlanState, weights: bytearray) -> dict[str, Any]:
    row: dict[str, Any] = {"input": state.input, "output": state.output}
    if state.start is None:
        return row
    weights.extend(bytes(-len(weights) % _ALIGNMENT))
    row["start"] = {"offset": len(weights), "shape": list(state.start.shape)}
    weights.extend(np.ascontiguousarray(state.start).tobytes())
    return row
