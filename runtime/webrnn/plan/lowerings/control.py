"""If: both branches write the same results."""

from __future__ import annotations

from webrnn.ir import Graph, Node, Value

from ..draft import Instruction
from ..lowering import Lowering, rule


@rule("If")
def _if(l: Lowering, node: Node) -> None:
    condition, *operands = node.inputs
    assert condition is not None
    targets = [l.output(output) for output in node.outputs if output is not None]
    wanted = [index for index, output in enumerate(node.outputs) if output is not None]
    blocks = []
    for name in ("then_branch", "else_branch"):
        branch: Graph = node.attrs[name]
        _hand_in(l, branch, operands)

        def emit(branch: Graph = branch) -> None:
            l.lower_graph(branch)
            for index, target in zip(wanted, targets, strict=True):
                source = l.view(branch.outputs[index])
                if source.shape != target.shape:
                    raise l.refuse("its branches give different shapes")
                l.copy(source, target)

        blocks.append(l.in_block(emit))
    l.add(Instruction("branch", [l.dense(l.view(condition)).reshaped(())], blocks=blocks))


def _hand_in(l: Lowering, graph: Graph, operands: list[Value | None]) -> None:
    for inner, outer in zip(graph.inputs, operands, strict=True):
        if outer is None:
            raise l.refuse("an operand of a branch is missing")
        array = l.array(outer)
        if array is not None:
            l.arrays[inner] = array
        elif outer in l.views:
            l.views[inner] = l.views[outer]
