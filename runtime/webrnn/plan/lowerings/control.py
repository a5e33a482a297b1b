"""If: both branches write the same results."""

from __future__ import annotations

from webrnn.ir import Graph, Node, Value
from webrnn.ir.dims import is_late

from ..draft import Instruction
from ..lowering import Lowering, rule


@rule("If")
def _if(l: Lowering, node: Node) -> None:
    condition, *operands = node.inputs
    assert condition is not None
    for output in node.outputs:
        if output is not None and l.is_open(output):
            shape = l.facts.shape(output)
            if shape is None:
                raise l.refuse("its branches give results of different ranks")
            l.set_shape(output, [l.new_late() if size is None else size for size in shape])
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
                late = [axis for axis, size in enumerate(target.shape) if is_late(size)]
                sizes = [source.shape[axis] for axis in late]
                l.set_sizes([target.shape[axis] for axis in late], sizes)
                for have, need in zip(source.shape, target.shape, strict=True):
                    if have != need and not is_late(need):
                        l.require_equal(have, need)
                l.copy(source.relaid(target.shape, source.strides), target)

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
