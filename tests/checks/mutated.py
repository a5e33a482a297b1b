"""Operands and attributes that differ in one thing from good ones; whether they are still good is not known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .harness import Case, Const

OTHER_TYPES = {"f": (np.int64, np.bool_, np.float64), "i": (np.float32, np.int32), "u": (np.float32,), "b": (np.int64,)}


def mutations(case: Case) -> Iterator[Case]:
    for index, operand in enumerate(case.operands):
        if operand is None:
            continue
        yield _with(case, index, None)
        array = operand.array if isinstance(operand, Const) else operand
        for changed in _changed(np.asarray(array)):
            yield _with(case, index, Const(changed) if isinstance(operand, Const) else changed)
    yield replace(case, operands=case.operands[:-1])
    yield replace(case, operands=[*case.operands, case.operands[0]])
    yield replace(case, outputs=case.outputs + 1)
    for name, value in case.attrs.items():
        yield replace(case, attrs={other: item for other, item in case.attrs.items() if other != name})
        for changed in _changed_attribute(value):
            yield replace(case, attrs={**case.attrs, name: changed})


def _with(case: Case, index: int, operand: Any) -> Case:
    return replace(case, operands=[*case.operands[:index], operand, *case.operands[index + 1 :]])


def _changed(array: np.ndarray) -> Iterator[np.ndarray]:
    for dtype in OTHER_TYPES.get(array.dtype.kind, ()):
        yield array.astype(dtype)
    yield array[None]
    for axis in range(array.ndim):
        yield np.concatenate([array, array.take(range(1), axis)], axis) if array.shape[axis] else array
        yield array.take(range(array.shape[axis] - 1), axis) if array.shape[axis] else array
        if array.shape[axis]:
            yield array.take(0, axis)
    if array.dtype.kind == "i" and array.size:
        for number in (-7, -1, 0, 1, 7):
            other = array.copy()
            other.reshape(-1)[0] = number
            yield other


def _changed_attribute(value: Any) -> Iterator[Any]:
    if isinstance(value, int):
        yield from (-5, -2, -1, 0, 1, 2, 5, "none", 0.5)
    elif isinstance(value, str):
        yield from ("", "none", value.lower(), 1)
    elif isinstance(value, list):
        yield from ([], [*value, 1], value[:-1] or [2, 2, 2], [0] * len(value), [-1] * len(value), [3] * len(value), 1)
