"""The states that a plan file stores: which input takes which output, and from what they start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from webrnn.errors import PlanError

if TYPE_CHECKING:
    from .file import PlanFile, PlanPort

ARRAY_TYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.bool_),
    "i32": np.dtype(np.int32),
}


@dataclass(frozen=True, slots=True, eq=False)
class PlanState:
    """A state: what the output was is the input of the next step."""

    input: str
    output: str
    start: np.ndarray | None = None
    """What it is before the first step, of the state's rank; axes of one element are repeated. None is zeros."""


def read_states(rows: Any, file: PlanFile) -> list[PlanState]:
    """The states of a file whose signature has been read."""
    if not isinstance(rows, list):
        raise PlanError("the metadata are damaged")
    inputs, outputs = ({port.name: port for port in ports} for ports in (file.inputs, file.outputs))
    states = [_read_state(row, inputs, outputs, file) for row in rows]
    for names in ([state.input for state in states], [state.output for state in states]):
        if len(set(names)) < len(names):
            raise PlanError("the metadata carry a state twice")
    return states


def _read_state(row: Any, inputs: Mapping[str, PlanPort], outputs: Mapping[str, PlanPort], file: PlanFile) -> PlanState:
    before, after = (row.get("input"), row.get("output")) if isinstance(row, dict) else (None, None)
    if not isinstance(before, str) or not isinstance(after, str) or before not in inputs or after not in outputs:
        raise PlanError(f"the metadata carry {after!r} to {before!r}, which the plan does not have")
    port, source = inputs[before], outputs[after]
    if port.dtype != source.dtype or len(port.shape) != len(source.shape) or source.taken >= 0:
        raise PlanError(f"the metadata carry {after!r} to {before!r}, which is of another kind")
    return PlanState(before, after, _read_start(row["start"], port, file) if "start" in row else None)


def _read_start(row: Any, port: PlanPort, file: PlanFile) -> np.ndarray:
    damaged = PlanError(f"the metadata of {port.name!r} are damaged")
    shape, offset = (row.get("shape"), row.get("offset")) if isinstance(row, dict) else (None, None)
    if not isinstance(shape, list) or not isinstance(offset, int) or len(shape) != len(port.shape):
        raise damaged
    n_bytes = ARRAY_TYPES[port.dtype].itemsize
    for size, declared in zip(shape, port.shape, strict=True):
        if type(size) is not int or size < 0 or size not in (1, declared):
            raise damaged
        n_bytes *= size
    first, length = file.header["data_offset"], file.header["data_bytes"]
    if not 0 <= offset <= length - n_bytes or not 0 <= first <= len(file.data) - length:
        raise damaged
    elements = np.frombuffer(file.data[first + offset :][:n_bytes], np.uint8)
    array = elements != 0 if port.dtype == "u8" else elements.view(ARRAY_TYPES[port.dtype])
    return array.reshape(shape)
