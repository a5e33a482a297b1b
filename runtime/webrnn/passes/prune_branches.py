"""If one branch of an If always ends in an error, the other branch is taken.

Requires: facts from infer_shapes.
Ensures: where a branch gives a result that a webrnn.ExpectShape of the same graph is certain to refuse, the condition
is the constant that chooses the other branch (inline_if does the rest). Exporters write such pairs for tensors of one
or another rank, of which the recurrent op behind them takes one. Inputs that led to that error, which the model itself
refuses, lead to whatever the other branch makes of them: what that checks it still checks, and where it checks nothing
there is then a result instead of an error. Keeping the error would mean to compute and to test every such condition in
every run; a caller who needs it disables this pass.
Declines: "neither branch is certain to fail", "both branches are certain to fail".
"""

from __future__ import annotations

import numpy as np

from webrnn.ir import WEBRNN, DType, Graph, Node, is_plain
from webrnn.shapes.facts import Fact, Facts
from webrnn.shapes.infer import infer_node

from .base import Context, Pass, PassResult
from .rewriting import Names, new_constant


class PruneBranches(Pass):
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        checks = [position for position, node in enumerate(graph.nodes) if _is_check(node)]
        for position, node in enumerate(graph.nodes):
            if not is_plain(node, "If") or context.facts.of(node.inputs[0]).ints is not None:
                continue
            if not checks or checks[-1] < position:
                continue
            later = graph.nodes[position : checks[-1] + 1]
            fails = [_fails(later, condition, context.facts) for condition in (True, False)]
            if fails[0] == fails[1]:
                count = "both branches are" if fails[0] else "neither branch is"
                result.declines_at(node, f"{count} certain to fail")
            elif result.fires(node.label):
                name = Names(graph).fresh("only_branch")
                node.inputs[0] = new_constant(graph, np.array(fails[1]), name, context)


def _fails(nodes: list[Node], condition: bool, known: Facts) -> bool:
    """Whether a check among these nodes is certain to fail if the first of them, an If, goes one way."""
    facts = known.copy()
    decision = nodes[0].inputs[0]
    assert decision is not None
    shape = facts.shape(decision)
    facts.set(decision, Fact(DType.BOOL, shape if shape == (1,) else (), (int(condition),)))
    for node in nodes:
        if _is_check(node) and _contradicts(facts.shape(node.inputs[0]), node.attrs["sizes"]):
            return True
        infer_node(node, facts)
    return False


def _is_check(node: Node) -> bool:
    return node.domain == WEBRNN and node.op == "ExpectShape"


def _contradicts(known: tuple | None, sizes: tuple) -> bool:
    if known is None:
        return False
    if len(known) != len(sizes):
        return True
    return any(
        isinstance(have, int) and need is not None and have != need for have, need in zip(known, sizes, strict=True)
    )
