"""If: both branches write the same results, whose sizes may be those of the branch that is taken."""

from __future__ import annotations

from functools import partial

from webrnn.ir import Dim, Graph, Node, SymbolicDim, Value
from webrnn.shapes.facts import Fact

from ..draft import Instruction
from ..lowering import Lowering, present, rule
from ..views import View


@rule("If")
def _if(l: Lowering, node: Node) -> None:
    condition, *operands = node.inputs
    branches: list[Graph] = [node.attrs["then_branch"], node.attrs["else_branch"]]
    n_late = l.n_late
    blocks = []
    for branch in branches:
        _hand_in(l, branch, operands)
        blocks.append(l.in_block(partial(l.lower_graph, branch)))
    set_inside = l.late_names(n_late)
    written: list[tuple[list[View], View, list[int]]] = []
    for index, output in enumerate(node.outputs):
        if output is None:
            continue
        sources = [l.view(branch.outputs[index]) for branch in branches]
        sizes = _common_sizes(l, sources, set_inside)
        if l.is_open(output):
            dtype = l.facts.dtype(output) or l.facts.dtype(branches[0].outputs[index])
            l.facts.set(output, Fact(dtype, tuple(l.new_late() if size is None else size for size in sizes)))
        else:
            sizes = list(l.shape(output))
        written.append((sources, l.output(output), [axis for axis, size in enumerate(sizes) if size is None]))
    for at, block in enumerate(blocks):
        block += l.in_block(partial(_write, l, [(sources[at], target, late) for sources, target, late in written]))
    l.add(Instruction("branch", [l.dense(l.view(present(condition))).reshaped(())], blocks=blocks))


def _common_sizes(l: Lowering, sources: list[View], set_inside: frozenset[str]) -> list[Dim | None]:
    """The sizes that a result has whichever branch is taken, None for those that the branch says."""
    first, second = sources
    if first.rank != second.rank or first.dtype != second.dtype:
        raise l.refuse("its branches give results of different ranks or types")

    def is_common(a: Dim, b: Dim) -> bool:
        return a == b and not (isinstance(a, SymbolicDim) and a.names & set_inside)

    return [a if is_common(a, b) else None for a, b in zip(first.shape, second.shape, strict=True)]


def _write(l: Lowering, results: list[tuple[View, View, list[int]]]) -> None:
    """Set the sizes that are open to those that they have here, all of them before memory is asked for, and copy the
    results of a branch: (from, to, axes whose sizes are open)."""
    l.set_sizes(
        [target.shape[axis] for _, target, late in results for axis in late],
        [source.shape[axis] for source, _, late in results for axis in late],
    )
    for source, target, late in results:
        for axis, (have, need) in enumerate(zip(source.shape, target.shape, strict=True)):
            if axis not in late:
                l.require_equal(have, need)
        l.copy(source.relaid(target.shape, source.strides), target)


def _hand_in(l: Lowering, graph: Graph, operands: list[Value | None]) -> None:
    for inner, outer in zip(graph.inputs, operands, strict=True):
        if outer is None:
            raise l.refuse("an operand of a branch is missing")
        array = l.array(outer)
        if array is not None:
            l.arrays[inner] = array
        elif outer in l.views:
            l.views[inner] = l.views[outer]
