"""Nodes whose results are known before the graph runs become constants.

Requires: facts from infer_shapes.
Ensures: an op on constants alone is run, with the reference implementation; an integer or bool result that inference
knows (a size that a Shape reads off a static axis, an axis computed from it) is written down; and an input of a
sub-graph whose elements are known is a constant inside it. The nodes that made them are dropped.
Declines: "the size of its result is not known", "its result has ... elements, more than its inputs and ...", "it
raises: ..." (the node stays, and raises when the graph runs), "it has no implementation".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from webrnn import reference
from webrnn.checks.arrays import call
from webrnn.errors import Error
from webrnn.ir import Graph, Node
from webrnn.ops.sets import RANDOM
from webrnn.shapes.facts import size_of

from .base import Context, Pass, PassResult
from .rewriting import Replacements, drop_nodes, new_constant

LARGEST_GROWTH = 1 << 16
"""A constant may have this many elements more than those it is made of."""


class FoldConstants(Pass):
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        replacements = Replacements(graph, context)
        if graph is not context.root:
            self._fold_inputs(graph, context, result)
        done = []
        for node in graph.nodes:
            replacements.update(node)
            if any(True for _ in node.subgraphs):
                continue
            arrays = self._known_results(node, context)
            if arrays is None:
                arrays = self._computed_results(graph, node, context, result)
            if arrays is None or not result.fires(f"{node.op} {node.label}"):
                continue
            done.append(node)
            for value, array in zip(node.outputs, arrays, strict=True):
                if value is not None and array is not None:
                    replacements.add(value, new_constant(graph, array, value.name, context))
        replacements.apply()
        drop_nodes(graph, done)

    def _fold_inputs(self, graph: Graph, context: Context, result: PassResult) -> None:
        used = {value for node in graph.nodes for value in node.inputs} | set(graph.outputs)
        replacements = Replacements(graph, context)
        for value in graph.inputs:
            array = context.facts.of(value).array
            if array is not None and value in used and result.fires(f"input {value.name} of {graph.name}"):
                replacements.add(value, new_constant(graph, array, f"{value.name}_known", context))
        replacements.apply()

    def _known_results(self, node: Node, context: Context) -> list[np.ndarray | None] | None:
        if not any(value is not None for value in node.outputs):
            return None
        arrays = [None if value is None else context.facts.of(value).array for value in node.outputs]
        known = (array is not None or value is None for array, value in zip(arrays, node.outputs, strict=True))
        return arrays if all(known) else None

    def _computed_results(
        self, graph: Graph, node: Node, context: Context, result: PassResult
    ) -> list[np.ndarray | None] | None:
        if node.op in RANDOM or not all(value is None or value in graph.constants for value in node.inputs):
            return None
        if reference.lookup(node.domain, node.op) is None:
            result.declines_at(node, "it has no implementation")
            return None
        arguments = [None if value is None else graph.constants[value] for value in node.inputs]
        allowed = LARGEST_GROWTH + sum(array.size for array in arguments if array is not None)
        for value in node.outputs:
            size = None if value is None else size_of(context.facts.shape(value))
            if value is not None and not isinstance(size, int):
                result.declines_at(node, "the size of its result is not known")
                return None
            if isinstance(size, int) and size > allowed:
                reason = f"its result has {size} elements, more than its inputs and {LARGEST_GROWTH}"
                result.declines_at(node, reason)
                return None
        try:
            results: list[Any] = call(node.op, node.domain, arguments, node.attrs, len(node.outputs))
        except Error as error:
            result.declines_at(node, f"it raises: {error}")
            return None
        return results if all(isinstance(array, np.ndarray) for array in results) else None
