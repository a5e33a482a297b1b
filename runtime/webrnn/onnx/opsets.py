"""Older opsets: each node in the form that it has in the newest one.  (to be filled)"""
from __future__ import annotations

from webrnn.ir import GraphBuilder, Node


def upgrade(b: GraphBuilder, node: Node, version: int) -> Node | None:
    return node
