"""If: both branches write the same results, whose sizes may be those of the branch that is taken."""

from __future__ import annotations

from functools import partial

from webrnn.ir import Dim, Graph, Node, SymbolicDim, Value
from webrnn.ir.dims import is_late
from webrnn.shapes.facts import Fact

from ..draft import Instruction
from ..lowering import Lowering, present, rule
from ..views import Sizes, View, dense_view


@rule("If")
def _if(l: Lowering, node: Node) -> None:
    condition, *operands = node.inputs
    branches: list[Graph] = [node.attrs["then_branch"], node.attrs["else_branch"]]
    places = _places(l, node, branches)
    n_late = l.n_late
    blocks = []
    for branch in branches:
        _hand_in(l, branch, operands)
        blocks.append(l.in_block(partial(_lower_branch, l, branch, places)))
    set_inside = l.late_names(n_late)
    written: list[tuple[list[View], View, list[int] | None]] = []
    for index, output in enumerate(node.outputs):
        if output is None:
            continue
        sources = [l.view(branch.outputs[index]) for branch in branches]
        if index in places:
            written.append((sources, places[index], None))
            continue
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


def _places(l: Lowering, node: Node, branches: list[Graph]) -> dict[int, View]:
    """Where results are put whose sizes are known before they are made, by index: branches write them there at once."""
    found: dict[int, View] = {}
    for index, output in enumerate(node.outputs):
        if output is None or output in l.overwriting or (l.is_open(output) and output in l.destinations):
            continue
        facts = [l.facts.of(branch.outputs[index]) for branch in branches]
        first, second = (_known_sizes(fact) for fact in facts)
        if first is None or second is None or len(first) != len(second) or facts[0].dtype is not facts[1].dtype:
            continue
        if l.is_open(output):
            sizes = (a if a == b else l.new_late() for a, b in zip(first, second, strict=True))
            l.facts.set(output, Fact(facts[0].dtype, tuple(sizes)))
        elif not first == second == l.shape(output):
            continue
        found[index] = l.output(output)
    return found


def _known_sizes(fact: Fact) -> Sizes | None:
    sizes = [size for size in fact.shape or () if size is not None]
    return None if fact.shape is None or len(sizes) < len(fact.shape) else tuple(sizes)


def _lower_branch(l: Lowering, branch: Graph, places: dict[int, View]) -> None:
    made = {output for node in branch.nodes for output in node.outputs}
    set_here: dict[Dim, Dim] = {}
    for index, place in places.items():
        value = branch.outputs[index]
        sizes = l.shape(value)
        set_here |= {late: size for late, size in zip(place.shape, sizes, strict=True) if late != size}
        if value in made and value not in l.destinations:
            l.destinations[value] = place if place.shape == sizes else dense_view(place.storage, sizes)
    l.set_sizes([*set_here], [*set_here.values()])
    l.lower_graph(branch)


def _common_sizes(l: Lowering, sources: list[View], set_inside: frozenset[str]) -> list[Dim | None]:
    """The sizes that a result has whichever branch is taken, None for those that the branch says."""
    first, second = sources
    if first.rank != second.rank or first.dtype != second.dtype:
        raise l.refuse("its branches give results of different ranks or types")

    def is_common(a: Dim, b: Dim) -> bool:
        return a == b and not (isinstance(a, SymbolicDim) and a.names & set_inside)

    return [a if is_common(a, b) else None for a, b in zip(first.shape, second.shape, strict=True)]


def _write(l: Lowering, results: list[tuple[View, View, list[int] | None]]) -> None:
    """Set the sizes that are open to those that they have here, all of them before memory is asked for, and copy the
    results of a branch that are not in their place: (from, to, axes whose sizes are open, None if they are set)."""
    l.set_sizes(
        [target.shape[axis] for _, target, late in results for axis in late or ()],
        [source.shape[axis] for source, _, late in results for axis in late or ()],
    )
    for source, target, late in results:
        for axis, (have, need) in enumerate(zip(source.shape, target.shape, strict=True)):
            if axis not in late if late is not None else not is_late(need):
                l.require_equal(have, need)
        place = target if source.shape == target.shape else dense_view(target.storage, source.shape)
        if not source.is_at(place):
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
