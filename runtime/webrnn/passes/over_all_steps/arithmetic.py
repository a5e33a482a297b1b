"""Ops that compute."""

from __future__ import annotations

from webrnn.ir import WEBRNN, Node, Value
from webrnn.ops.sets import ELEMENTWISE, FLOATS, REDUCTIONS, TOTAL

from ..rewriting import is_total
from .rewrite import Declined, Rewrite, rule


@rule(*(ELEMENTWISE & TOTAL) - {"Clip"})
def elementwise(r: Rewrite) -> None:
    if not r.all_are_taken and not is_total(r.node, r.facts):
        raise Declined("it could fail on elements that no step takes")
    broadcast(r)


@rule("Pow")
def power(r: Rewrite) -> None:
    if r.first.inside.dtype not in FLOATS:
        raise Declined("a power of integers can fail")
    broadcast(r)


def broadcast(r: Rewrite) -> None:
    """Axes of operands are matched from the last one, so that those with steps need as many as the one with most."""
    rank = max(operand.rank for operand in r.given())
    inputs: list[Value | None] = []
    for operand in r.operands:
        if operand is None:
            inputs.append(None)
        elif operand.has_steps and operand.rank < rank:
            axes = r.axes(range(1, 1 + rank - operand.rank))
            inputs.append(r.between("Unsqueeze", [operand.value, axes]))
        else:
            inputs.append(operand.value)
    r.result(r.node.op, inputs)


@rule("Clip", "LogSoftmax", "Softmax", "Hardmax", "LpNormalization")
def like_first(r: Rewrite) -> None:
    r.only_first_has_steps()
    if r.node.op == "Clip":
        r.result("Clip", r.values())
    else:
        r.result(r.node.op, r.values(), axis=r.moved(r.node.attrs.get("axis", -1)))


@rule("LayerNormalization", "RMSNormalization")
def normalization(r: Rewrite) -> None:
    r.only_first_has_steps()
    if any(operand.rank > r.first.rank for operand in r.given()[1:]):
        raise Declined("its scale has more axes than its operand")
    r.result(r.node.op, r.values(), axis=r.moved(r.node.attrs.get("axis", -1)))


@rule(*REDUCTIONS)
def reduction(r: Rewrite) -> None:
    r.only_first_has_steps()
    axes = r.ints(1) if r.operand(1) is not None else []
    if not axes and r.node.attrs.get("noop_with_empty_axes", 0):
        r.result(r.node.op, r.values())
        return
    chosen = [r.moved(axis) for axis in axes] or list(range(1, r.first.rank + 1))
    if not chosen:
        raise Declined("its operand has no axes")
    r.result(r.node.op, [r.first.value, r.axes(chosen)])


@rule("ArgMax", "ArgMin")
def position(r: Rewrite) -> None:
    if not r.all_are_taken:
        r.sizes(r.node.inputs[0])
    r.result(r.node.op, [r.first.value], axis=r.moved(r.node.attrs.get("axis", 0)))


@rule("MatMul")
def matmul(r: Rewrite) -> None:
    first, second = r.given()
    if first.has_steps and second.has_steps:
        fits = first.rank == second.rank >= 2
    elif first.has_steps:
        fits = second.rank <= max(first.rank, 2)
    else:
        fits = second.rank >= 2 and first.rank <= second.rank
    if not fits:
        raise Declined("the axes of its operands do not allow a product for all steps")
    r.result("MatMul", [first.value, second.value])


@rule("Linear")
def linear(r: Rewrite) -> None:
    r.only_first_has_steps()
    r.nodes.append(Node("Linear", r.values(), list(r.outputs), {}, r.node.name, WEBRNN))


@rule("Gemm")
def gemm(r: Rewrite) -> None:
    r.only_first_has_steps()
    attrs = r.node.attrs
    if attrs.get("alpha", 1.0) != 1.0 or attrs.get("beta", 1.0) != 1.0 or attrs.get("transA", 0):
        raise Declined("alpha, beta or transA of a Gemm")
    operands = r.given()
    weights = operands[1].value
    if attrs.get("transB", 0):
        weights = r.between("Transpose", [weights], perm=[1, 0])
    if len(operands) == 2:
        r.result("MatMul", [operands[0].value, weights])
    else:
        r.result("Add", [r.between("MatMul", [operands[0].value, weights]), operands[2].value])
