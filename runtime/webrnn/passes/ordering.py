"""Bringing nodes into an order in which they can run."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import Node, Value
from webrnn.ir.order import stable_order


def in_order(nodes: Sequence[Node]) -> list[Node] | None:
    """The same nodes, each behind those it reads from and otherwise as they were; None where they read in a circle."""
    producer: dict[Value, int] = {}
    for index, node in enumerate(nodes):
        producer.update((value, index) for value in node.outputs if value is not None)
    needs = [{producer[value] for value in node.inputs if value in producer} for node in nodes]
    order = stable_order(needs)
    return [nodes[index] for index in order] if len(order) == len(nodes) else None
