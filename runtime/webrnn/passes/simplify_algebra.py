"""Arithmetic that changes nothing is skipped: x*1, x/1, x-0, x+(-0), -(-x), not not x, ...

Requires: facts from infer_shapes.
Ensures: only rewrites that keep every bit, with the type and the shape of the result: a constant that would broadcast x
to another shape stays.
Declines: "x + 0.0 turns -0.0 into 0.0" and "x - -0.0 turns -0.0 into 0.0" for floats, "it may broadcast its operand to
another shape", "the model's output needs a name of its own". Pow is left to simplify_powers, because numpy's Pow and a
product may differ in the last bit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from webrnn.ir import Graph, Node, Value
from webrnn.ops.rows import with_trait

from .base import Context, Pass, PassResult
from .rewriting import Replacements, constant_of, drop_nodes

_NEUTRAL: dict[str, tuple[float, bool]] = {"Mul": (1, True), "Div": (1, False), "Add": (0, True), "Sub": (0, False)}
"""The operand that changes nothing, and whether it may also stand first."""

_NEUTRAL_BOOL = {"And": True, "Or": False, "Xor": False}

_INVOLUTIONS = with_trait("involution")
"""Done twice they are undone."""

_IDEMPOTENT = with_trait("idempotent")
"""Done twice they are as done once."""


_BLOCK = 1 << 12


class SimplifyAlgebra(Pass):
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        replacements = Replacements(graph, context)
        producers = graph.producers()
        done = []
        for node in graph.nodes:
            replacements.update(node)
            if node.domain or len(node.outputs) != 1 or node.outputs[0] is None:
                continue
            kept = self._kept_operand(graph, node, producers, context, result)
            if kept is None:
                continue
            if not replacements.allows(node.outputs[0], kept):
                result.declines_at(node, "the model's output needs a name of its own")
            elif result.fires(f"{node.op} {node.label}"):
                replacements.add(node.outputs[0], kept)
                done.append(node)
        replacements.apply()
        drop_nodes(graph, done)

    def _kept_operand(
        self, graph: Graph, node: Node, producers: dict[Value, Node], context: Context, result: PassResult
    ) -> Value | None:
        """The operand that the result is equal to."""
        if node.op in _INVOLUTIONS or node.op in _IDEMPOTENT:
            (operand,) = node.inputs
            first = producers.get(operand) if operand is not None else None
            if first is None or first.domain or first.op != node.op:
                return None
            return first.inputs[0] if node.op in _INVOLUTIONS else operand
        if node.op not in _NEUTRAL and node.op not in _NEUTRAL_BOOL:
            return None
        commutes = node.op in _NEUTRAL_BOOL or _NEUTRAL[node.op][1]
        for position in (1, 0) if commutes else (1,):
            constant, other = constant_of(graph, node.inputs[position]), node.inputs[1 - position]
            if constant is None or other is None or not self._is_neutral(node, constant, result):
                continue
            if self._keeps_shape(constant, other, context):
                return other
            result.declines_at(node, "it may broadcast its operand to another shape")
        return None

    def _is_neutral(self, node: Node, constant: np.ndarray, result: PassResult) -> bool:
        if node.op in _NEUTRAL_BOOL:
            return constant.dtype == bool and bool(np.all(constant == _NEUTRAL_BOOL[node.op]))
        neutral = _NEUTRAL[node.op][0]
        if constant.dtype.kind not in "fiu" or not _holds(constant, lambda block: block == neutral):
            return False
        if node.op in ("Add", "Sub") and constant.dtype.kind == "f":
            needs_negative = node.op == "Add"
            if not _holds(constant, lambda block: np.signbit(block) == needs_negative):
                result.declines_at(node, f"x {'+ 0.0' if needs_negative else '- -0.0'} turns -0.0 into 0.0")
                return False
        return True

    def _keeps_shape(self, constant: np.ndarray, other: Value, context: Context) -> bool:
        shape = context.facts.shape(other)
        if shape is None or constant.ndim > len(shape):
            return False
        sizes = shape[len(shape) - constant.ndim :]
        return all(size in (1, have) for size, have in zip(constant.shape, sizes, strict=True))


def _holds(array: np.ndarray, test: Callable[[np.ndarray], np.ndarray]) -> bool:
    """Whether a test holds for all elements. It ends at the first block of which it does not: weights are not read."""
    flat = array.reshape(-1)
    return all(bool(np.all(test(flat[start : start + _BLOCK]))) for start in range(0, flat.size, _BLOCK))
