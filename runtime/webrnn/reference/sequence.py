"""Sequences (Python lists) and optionals (the value itself, or None)."""

from __future__ import annotations

from typing import Any

import numpy as np

from webrnn.errors import ModelError, ShapeError

from .arrays import Array, int_list, normalize_axis, require_same_type, single
from .registry import op
from .shape import concat, split_axis

Sequence = list[Array]


def _require_sequence(value: Any) -> None:
    if not isinstance(value, list):
        raise ModelError("the input is not a sequence")


def _position(position: Array | None, default: int, length: int) -> int:
    index = default if position is None else single(position, "position")
    if not -length <= index < length:
        raise ShapeError(f"position {index} is outside a sequence of {length}")
    return index + length if index < 0 else index


@op("SequenceConstruct", any_type=True)
def sequence_construct(*tensors: Array) -> Sequence:
    if not tensors:
        raise ModelError("at least one input is required")
    require_same_type(*tensors)
    return list(tensors)


@op("SequenceEmpty")
def sequence_empty(*, dtype: int = 1) -> Sequence:
    return []


@op("SequenceAt", any_type=True)
def sequence_at(sequence: Sequence, position: Array) -> Array:
    _require_sequence(sequence)
    return sequence[_position(position, 0, len(sequence))]


@op("SequenceInsert", any_type=True)
def sequence_insert(sequence: Sequence, tensor: Array, position: Array | None = None) -> Sequence:
    _require_sequence(sequence)
    if sequence:
        require_same_type(sequence[0], tensor)
    length = len(sequence)
    index = length if position is None else single(position, "position")
    if not -length <= index <= length:
        raise ShapeError(f"position {index} is outside a sequence of {length}")
    index = index + length if index < 0 else index
    return [*sequence[:index], tensor, *sequence[index:]]


@op("SequenceErase", any_type=True)
def sequence_erase(sequence: Sequence, position: Array | None = None) -> Sequence:
    _require_sequence(sequence)
    index = _position(position, -1, len(sequence))
    return [*sequence[:index], *sequence[index + 1 :]]


@op("SequenceLength")
def sequence_length(sequence: Sequence) -> Array:
    _require_sequence(sequence)
    return np.array(len(sequence), np.int64)


@op("ConcatFromSequence", any_type=True)
def concat_from_sequence(sequence: Sequence, *, axis: int, new_axis: int = 0) -> Array:
    _require_sequence(sequence)
    if not sequence:
        raise ShapeError("an empty sequence has nothing to join")
    if new_axis:
        position = normalize_axis(axis, sequence[0].ndim + 1)
        sequence = [np.expand_dims(x, position) for x in sequence]
        axis = position
    return concat(*sequence, axis=axis)


@op("SplitToSequence", any_type=True)
def split_to_sequence(x: Array, split: Array | None = None, *, axis: int = 0, keepdims: int = 1) -> Sequence:
    """A scalar `split` is the length of all parts (the last may be shorter); without it every slice is a part.

    ONNX ignores keepdims where `split` is given; but with a scalar of 1 onnxruntime takes the axis away as well, and
    PyTorch exports `unbind` so.
    """
    axis = normalize_axis(axis, x.ndim)
    length = x.shape[axis]
    if split is None or (split.ndim == 0 and single(split, "split") == 1):
        parts = split_axis(x, [1] * length, axis)
        return parts if keepdims else [part.squeeze(axis) for part in parts]
    lengths = int_list(split, "split")
    if split.ndim == 0:
        size = lengths[0]
        if size < 1:
            raise ShapeError(f"split is {size}")
        lengths = [min(size, length - start) for start in range(0, length, size)]
    if sum(lengths) != length or min(lengths, default=0) < 0:
        raise ShapeError(f"split {lengths} does not add up to axis {axis} of an input of shape {list(x.shape)}")
    return split_axis(x, lengths, axis)


@op("Optional", any_type=True)
def optional(value: Array | Sequence | None = None, *, type: Any = None) -> Array | Sequence | None:
    return value


@op("OptionalHasElement", any_type=True)
def optional_has_element(value: Array | Sequence | None = None) -> Array:
    return np.array(value is not None)


@op("OptionalGetElement", any_type=True)
def optional_get_element(value: Array | Sequence) -> Array | Sequence:
    return value
