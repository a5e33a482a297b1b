"""Tensors of a plan while it is made: views of storage with symbolic sizes, strides and offsets, all in elements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import Literal

import numpy as np

from webrnn.ir import Dim

Sizes = tuple[Dim, ...]


@dataclass(eq=False, slots=True)
class Storage:
    """Memory that a plan names: weights inside it, a part of the arena, or a buffer of the host."""

    kind: Literal["constant", "arena", "external"]
    dtype: str
    size: Dim
    array: np.ndarray | None = None
    """The elements of a constant."""
    external: int = -1
    writable: bool = True
    label: str = ""


@dataclass(frozen=True, slots=True)
class Motion:
    """How a loop moves a view after each step: by `stride` elements, once `after` steps were taken."""

    loop: int
    stride: Dim
    after: Dim = 0


@dataclass(frozen=True, slots=True)
class View:
    """A tensor: `shape` elements of `storage`, from `offset` on, `strides` apart.

    `motions` are the loops that move it. `follows` is, for the state of a loop, where the next step finds it: the place
    of this step's result.
    """

    storage: Storage
    shape: Sizes
    strides: Sizes
    offset: Dim = 0
    motions: tuple[Motion, ...] = ()
    follows: View | None = field(default=None)
    follows_in: int = -1
    """The loop after each step of which it goes there."""

    @property
    def dtype(self) -> str:
        return self.storage.dtype

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def count(self) -> Dim:
        return count_of(self.shape)

    @property
    def rows(self) -> Dim:
        """How many vectors along the last axis it has."""
        return count_of(self.shape[:-1])

    @property
    def is_contiguous(self) -> bool:
        return all(
            size == 1 or stride == dense
            for size, stride, dense in zip(self.shape, self.strides, dense_strides(self.shape), strict=True)
        )

    def is_at(self, other: View) -> bool:
        """Whether they are the same elements: along an axis of one element no stride counts."""
        if self.shape != other.shape:
            return False
        pairs = zip(self.shape, self.strides, other.strides, strict=True)
        return replace(self, strides=tuple(its if size == 1 else own for size, own, its in pairs)) == other

    @property
    def storage_order(self) -> list[int]:
        """Its axes, the one whose elements lie next to each other last."""

        def key(axis: int) -> tuple[bool, int]:
            stride = self.strides[axis]
            return (True, -abs(stride)) if isinstance(stride, int) else (False, 0)

        return sorted(range(self.rank), key=key)

    def relaid(self, shape: Iterable[Dim], strides: Iterable[Dim], skip: Dim = 0) -> View:
        """The same storage, seen in another way."""
        shape, strides = tuple(shape), tuple(strides)
        follows = None if self.follows is None else self.follows.relaid(shape, strides, skip)
        return replace(self, shape=shape, strides=strides, offset=self.offset + skip, follows=follows)

    def transposed(self, perm: Sequence[int]) -> View:
        return self.relaid((self.shape[a] for a in perm), (self.strides[a] for a in perm))

    def with_axis(self, axis: int) -> View:
        """With a new axis of size 1."""
        return self.relaid((*self.shape[:axis], 1, *self.shape[axis:]), (*self.strides[:axis], 0, *self.strides[axis:]))

    def without_axis(self, axis: int, index: Dim = 0) -> View:
        """One element along an axis."""
        skip = self.strides[axis] * index
        return self.relaid(
            (*self.shape[:axis], *self.shape[axis + 1 :]), (*self.strides[:axis], *self.strides[axis + 1 :]), skip
        )

    def sliced(self, axis: int, start: Dim, count: Dim, step: int = 1) -> View:
        shape, strides = list(self.shape), list(self.strides)
        skip = strides[axis] * start
        shape[axis], strides[axis] = count, strides[axis] * step
        return self.relaid(shape, strides, skip)

    def reshaped(self, shape: Sequence[Dim]) -> View | None:
        """The same elements in order under another shape, or None where that needs a copy."""
        shape = tuple(shape)
        if self.is_contiguous:
            return self.relaid(shape, dense_strides(shape))
        parts = _parts([size for size in self.shape if size != 1], [size for size in shape if size != 1])
        old = [(size, stride) for size, stride in zip(self.shape, self.strides, strict=True) if size != 1]
        strides: list[Dim] = []
        for n_old, new in parts or ():
            group, old = old[:n_old], old[n_old:]
            if any(outer != size * inner for (_, outer), (size, inner) in pairwise(group)):
                return None
            strides += [stride * group[-1][1] for stride in dense_strides(new)]
        if parts is None:
            return None
        rest = iter(strides)
        return self.relaid(shape, (0 if size == 1 else next(rest) for size in shape))

    def broadcast(self, shape: Sequence[Dim]) -> View | None:
        """Repeated to a shape, or None where it is not known to fit."""
        missing = len(shape) - self.rank
        if missing < 0:
            return None
        strides: list[Dim] = [0] * missing
        for have, need, stride in zip(self.shape, shape[missing:], self.strides, strict=True):
            if have != need and have != 1:
                return None
            strides.append(stride if have == need and need != 1 else 0)
        return self.relaid(shape, strides)

    def moving(self, loop: int, stride: Dim, after: Dim = 0) -> View:
        return replace(self, motions=(*self.motions, Motion(loop, stride, after)))

    def following(self, target: View, loop: int) -> View:
        return replace(self, follows=target, follows_in=loop)


def _parts(old: Sequence[Dim], new: Sequence[Dim]) -> list[tuple[int, list[Dim]]] | None:
    """How axes become others: so many of the old ones hold the elements of these new ones, in order; None if that is
    not known. Sizes are not 1."""
    found: list[tuple[int, list[Dim]]] = []
    at = to = 0
    while at < len(old) and to < len(new):
        first, start, ours, theirs = at, to, old[at], new[to]
        at, to = at + 1, to + 1
        while ours != theirs:
            if not isinstance(ours, int) or not isinstance(theirs, int):
                return None
            if ours < theirs and at < len(old):
                ours, at = ours * old[at], at + 1
            elif ours > theirs and to < len(new):
                theirs, to = theirs * new[to], to + 1
            else:
                return None
        found.append((at - first, list(new[start:to])))
    return found if at == len(old) and to == len(new) else None


def count_of(shape: Iterable[Dim]) -> Dim:
    """The number of elements."""
    return prod(shape)


def dense_strides(shape: Sequence[Dim]) -> Sizes:
    strides: list[Dim] = []
    dense: Dim = 1
    for size in reversed(shape):
        strides.append(dense)
        dense = dense * size
    return tuple(reversed(strides))


def dense_like(storage: Storage, shape: Sequence[Dim], order: Sequence[int]) -> View:
    """Without gaps, its axes stored in an order."""
    strides = dict(zip(order, dense_strides([shape[axis] for axis in order]), strict=True))
    return View(storage, tuple(shape), tuple(strides[axis] for axis in range(len(shape))))


def dense_view(storage: Storage, shape: Sequence[Dim]) -> View:
    return View(storage, tuple(shape), dense_strides(shape))


def collapsed(views: Sequence[View]) -> list[View]:
    """Views of one shape with as few axes as possible, in the order in which the last view is stored: axes of size 1
    go, axes that lie behind each other join."""
    order = views[-1].storage_order
    views = [view.transposed(order) for view in views]
    shape = views[0].shape
    axes = [axis for axis, size in enumerate(shape) if size != 1]
    groups: list[list[int]] = []
    for axis in axes:
        joins = groups and all(view.strides[groups[-1][-1]] == view.strides[axis] * shape[axis] for view in views)
        if joins:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return [
        view.relaid((prod(shape[a] for a in group) for group in groups), (view.strides[group[-1]] for group in groups))
        for view in views
    ]
