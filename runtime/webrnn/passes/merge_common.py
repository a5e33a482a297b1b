"""Equal computations are done once.

Requires: nothing.
Ensures: of two nodes with the same op, attributes and operands the later one is gone, and of two constants with the
same type, shape and bits one is (0.0 and -0.0 are different, equal NaNs are equal).
Declines: "two outputs of the model need a name each". Nodes with sub-graphs and ops that draw random numbers are not
looked at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from typing import Any

import numpy as np

from webrnn.ir import Graph, Node, Value
from webrnn.ops.sets import RANDOM

from .base import Context, Pass, PassResult
from .rewriting import Replacements, drop_nodes


class MergeCommon(Pass):
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        self._merge_constants(graph, context, result)
        replacements = Replacements(graph, context)
        first_of: dict[Hashable, Node] = {}
        done = []
        for node in graph.nodes:
            replacements.update(node)
            key = _key(node)
            if key is None:
                continue
            first = first_of.setdefault(key, node)
            if first is node:
                continue
            pairs = list(zip(node.outputs, first.outputs, strict=True))
            if any(new and old and not replacements.allows(new, old) for new, old in pairs):
                result.declines_at(node, "two outputs of the model need a name each")
                continue
            if not result.fires(f"{node.op} {node.label}"):
                continue
            for index, (mine, kept) in enumerate(pairs):
                if mine is not None and kept is not None:
                    replacements.add(mine, kept)
                elif mine is not None:
                    first.outputs[index] = mine
            done.append(node)
        replacements.apply()
        drop_nodes(graph, done)

    def _merge_constants(self, graph: Graph, context: Context, result: PassResult) -> None:
        alike: dict[Hashable, list[Value]] = {}
        for value, array in graph.constants.items():
            if array.dtype != object:
                alike.setdefault((array.dtype, array.shape), []).append(value)
        replacements = Replacements(graph, context)
        merged = []
        for values in alike.values():
            first_of: dict[Hashable, Value] = {}
            for value in values if len(values) > 1 else ():
                first = first_of.setdefault(_kept_digest(graph.constants[value], context), value)
                allowed = first is not value and replacements.allows(value, first)
                if allowed and result.fires(f"constant {value.name}"):
                    replacements.add(value, first)
                    merged.append(value)
        replacements.apply()
        for value in merged:
            del graph.constants[value]


def _key(node: Node) -> Hashable | None:
    if node.op in RANDOM or any(True for _ in node.subgraphs):
        return None
    attributes = tuple((name, _hashable(value)) for name, value in sorted(node.attrs.items()))
    return node.domain, node.op, tuple(node.inputs), attributes, len(node.outputs)


def _hashable(value: Any) -> Hashable:
    if isinstance(value, np.ndarray):
        items = tuple(value.reshape(-1).tolist()) if value.dtype == object else _digest(value)
        return str(value.dtype), value.shape, items
    if isinstance(value, list | tuple):
        return tuple(map(_hashable, value))
    # repr tells 0.0 from -0.0 and 1 from 1.0, which compare equal.
    return type(value), repr(value) if isinstance(value, float) else value


def _kept_digest(array: np.ndarray, context: Context) -> bytes:
    if array.nbytes <= 64:
        return array.tobytes()
    known = context.digests.get(id(array))
    if known is None:
        known = context.digests[id(array)] = (array, _digest(array))
    return known[1]


def _digest(array: np.ndarray) -> bytes:
    if array.nbytes <= 64:
        return array.tobytes()
    return hashlib.blake2b(np.ascontiguousarray(array).view(np.uint8).data, digest_size=16).digest()
