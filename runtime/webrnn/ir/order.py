"""An order in which things that need each other can be done."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import heapify, heappop, heappush


def stable_order(needs: Sequence[Collection[int]]) -> list[int]:
    """The numbers 0 ... n - 1, each behind those it needs and otherwise as they are; none in or behind a circle.

    >>> stable_order([{2}, set(), {1}]), stable_order([{1}, {0}, set()])
    ([1, 2, 0], [2])
    """
    readers: list[list[int]] = [[] for _ in needs]
    for index, needed in enumerate(needs):
        for other in needed:
            readers[other].append(index)
    missing = [len(needed) for needed in needs]
    ready = [index for index, count in enumerate(missing) if not count]
    heapify(ready)
    order = []
    while ready:
        index = heappop(ready)
        order.append(index)
        for reader in readers[index]:
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, reader)
    return order
