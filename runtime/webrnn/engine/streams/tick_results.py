"""What a tick of a pool gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from webrnn.errors import ModelError, ShapeError


@dataclass(frozen=True, eq=False)
class Group:
    """Streams whose outputs have the same shapes."""

    handles: np.ndarray
    """int64, in the order in which their feeds were submitted."""
    arrays: list[np.ndarray]
    """Each output of all of them, [streams, *shape of one stream's]: the caller's own arrays."""
    tickets: np.ndarray
    """The numbers of their submissions, if there are other groups."""


class TickResults:
    """The outputs of all streams that had feeds. `pool.tick_many()` makes it.

    If all streams had feeds of the same shapes, `handles` says whose row is whose, and `arrays` has one array for each
    output. Otherwise there are several `groups` of such.
    """

    def __init__(self, groups: Sequence[Group] | None = None, outputs: Mapping[int, list[Any]] | None = None):
        """Of streams that ran together, or of each alone."""
        self._groups, self._outputs = groups, outputs

    def __len__(self) -> int:
        """How many streams there are."""
        if self._outputs is not None:
            return len(self._outputs)
        return sum(len(group.handles) for group in self._groups or ())

    @cached_property
    def groups(self) -> list[Group]:
        """Streams by the shapes of their outputs."""
        if self._groups is not None:
            return list(self._groups)
        alike: dict[Any, list[tuple[int, int, list[Any]]]] = {}
        for number, (handle, outputs) in enumerate((self._outputs or {}).items()):
            if not all(isinstance(output, np.ndarray) for output in outputs):
                raise ModelError("an output is not a tensor: tick() returns what each stream gave")
            kind = tuple((output.shape, output.dtype) for output in outputs)
            alike.setdefault(kind, []).append((number, handle, outputs))
        return [
            Group(
                np.array([handle for _, handle, _ in some], np.int64),
                [np.stack(arrays) for arrays in zip(*(outputs for _, _, outputs in some), strict=True)],
                np.array([number for number, _, _ in some], np.int64),
            )
            for some in alike.values()
        ]

    @property
    def handles(self) -> np.ndarray:
        """Whose the rows of `arrays` are, in the order in which feeds were submitted."""
        group = self._only_group()
        return np.zeros(0, np.int64) if group is None else group.handles

    @property
    def arrays(self) -> list[np.ndarray]:
        """Each output of all streams, [streams, *shape of one stream's]. ShapeError if shapes differ between them."""
        group = self._only_group()
        return [] if group is None else group.arrays

    def _only_group(self) -> Group | None:
        if len(self.groups) > 1:
            raise ShapeError(f"outputs of this tick have {len(self.groups)} different shapes: look at its groups")
        return self.groups[0] if self.groups else None

    def by_handle(self) -> dict[int, list[Any]]:
        """The outputs of each stream, in the order in which feeds were submitted: views of `arrays`."""
        if self._outputs is not None:
            return dict(self._outputs)
        if len(self.groups) == 1:
            return dict(_each(self.groups[0]))
        tickets = np.concatenate([group.tickets for group in self.groups]) if self.groups else np.zeros(0, np.int64)
        items = [item for group in self.groups for item in _each(group)]
        return dict(items[number] for number in np.argsort(tickets))


def _each(group: Group) -> list[tuple[int, list[np.ndarray]]]:
    handles = group.handles.tolist()
    if len(group.arrays) == 1:
        return [(handle, [row]) for handle, row in zip(handles, _split(group.arrays[0]), strict=True)]
    if not group.arrays:
        return [(handle, []) for handle in handles]
    rows = zip(*(_split(array) for array in group.arrays), strict=True)
    return [(handle, list(row)) for handle, row in zip(handles, rows, strict=True)]


def _split(array: np.ndarray) -> list[np.ndarray]:
    """The parts along the first axis: views, also of an array of one axis."""
    return list(array) if array.ndim > 1 else [array[i, ...] for i in range(len(array))]
