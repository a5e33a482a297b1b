"""Values that count frames: what they are in a frame is a multiple of its number and a fixed rest.

They are followed through arithmetic by constants and through changes of shape, so that it is known which frames a
Gather takes by them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from webrnn.ir import DType, Node, Shape, Value

from .kinds import Along

_INTEGERS = frozenset({DType.INT32, DType.INT64})


@dataclass(frozen=True)
class Numbers:
    """What a value is in the frames 0 and 1: its axis of time has one place in both."""

    first: np.ndarray
    second: np.ndarray

    @property
    def step(self) -> int | None:
        """By how much it grows with each frame; None if that is not the same everywhere."""
        steps = np.unique(self.second - self.first)
        return int(steps[0]) if len(steps) == 1 else None

    def both(self, function: Callable[[np.ndarray], np.ndarray]) -> Numbers:
        return Numbers(function(self.first), function(self.second))


def numbers_of(
    node: Node,
    known: Mapping[Value, Numbers],
    constants: Mapping[Value, np.ndarray],
    shape: Shape | None,
    along: Along,
) -> Numbers | None:
    """What a node makes of values that count frames, if that can be said. `shape` and `along` are those of its
    result."""
    if node.domain or shape is None or not along.is_pure or along.fault is not None:
        return None
    if not any(value in known for value in node.inputs if value is not None):
        return None
    sizes = [1 if axis == along.axis else size for axis, size in enumerate(shape)]
    ints = [size for size in sizes if isinstance(size, int)]
    if len(ints) != len(sizes):
        return None
    made = _arithmetic(node, known, constants) if node.op in _ARITHMETIC else _rearranged(node, known, ints)
    fits = made is not None and made.first.shape == made.second.shape == tuple(ints)
    return made if fits else None


_ARITHMETIC: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
}


def _arithmetic(node: Node, known: Mapping[Value, Numbers], constants: Mapping[Value, np.ndarray]) -> Numbers | None:
    pairs = []
    for value in node.inputs:
        fixed = None if value is None else constants.get(value)
        found = Numbers(fixed, fixed) if fixed is not None and fixed.dtype.kind in "iu" else None
        pairs.append(known.get(value, found) if value is not None else None)
    left, right = pairs if len(pairs) == 2 else (None, None)
    if left is None or right is None:
        return None
    if node.op == "Mul" and all(value in known for value in node.inputs):
        return None
    function = _ARITHMETIC[node.op]
    return Numbers(function(left.first, right.first), function(left.second, right.second))


def _rearranged(node: Node, known: Mapping[Value, Numbers], shape: list[int]) -> Numbers | None:
    source = node.inputs[0]
    found = None if source is None else known.get(source)
    if found is None:
        return None
    if node.op == "Identity" or (node.op == "Cast" and DType(node.attrs["to"]) in _INTEGERS):
        return found
    if node.op in ("Reshape", "Unsqueeze", "Squeeze", "Flatten"):
        return found.both(lambda array: array.reshape(shape)) if found.first.size == np.prod(shape) else None
    if node.op == "Transpose":
        return found.both(lambda array: array.transpose(node.attrs.get("perm")))
    if node.op == "Expand":
        return found.both(lambda array: np.broadcast_to(array, shape))
    return None
