"""Bringing nodes into an order in which they can run."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from webrnn.ir import Node, Value


def in_order(nodes: Sequence[Node]) -> list[Node] | None:
    """The same nodes, each behind those it reads from and otherwise as they were; None where they read in a circle."""
    producer: dict[Value, int] = {}
    for index, node in enumerate(nodes):
        producer.update((value, index) for value in node.outputs if value is not None)
    needs = [{producer[value] for value in node.inputs if value in producer} for node in nodes]
    readers: list[list[int]] = [[] for _ in nodes]
    for index, needed in enumerate(needs):
        for other in needed:
            readers[other].append(index)
    missing = [len(needed) for needed in needs]
    ready = [index for index, count in enumerate(missing) if not count]
    heapify(ready)
    order = []
    while ready:
        index = heappop(ready)
        order.append(nodes[index])
        for reader in readers[index]:
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, reader)
    return order if len(order) == len(nodes) else None
