"""Sequences go into loops and branches, and come out of branches, as the tensors that they are made of.

Requires: facts from infer_shapes.
Ensures: an operand of an If, or an invariant of a Scan, that is a sequence of known tensors or slices is replaced by
these, and the graph inside makes the sequence of them again, where unpack_sequences finds it. If both branches of an If
give sequences that are made alike, the If gives the parts, and the sequence is made behind it.
Declines: "its branches make a sequence in different ways".
"""

from __future__ import annotations

from webrnn.ir import Graph, Invariant, Node, Scan, Value, is_plain, is_scan
from webrnn.ir.containers import SEQUENCE

from .base import Context, Pass, PassResult
from .rewriting import Names
from .sequence_forms import Elements, Form, Forms, Item, Rearranging, Segment, Slices, is_known, parts_of, standing_on


class UnboxSequences(Pass):
    def rewrite(self, graph: Graph, context: Context, result: PassResult) -> None:
        forms = Forms(graph, context.facts)
        for node in list(graph.nodes):
            if is_plain(node, "If"):
                _unbox_operands(node, forms, context, result)
                _unbox_results(graph, node, context, result)
            elif is_scan(node):
                _unbox_invariants(graph, node, forms, context, result)


def _can_go_in(value: Value | None, form: Form) -> bool:
    return value is not None and value.container == SEQUENCE and form != (Elements(value),)


def _box_inside(graph: Graph, inner: Value, form: Form, context: Context) -> list[Value]:
    """Make a sequence at the beginning of a graph, of new inputs for its parts."""
    names = Names(graph)
    given = []
    for part in parts_of(form):
        value = part.like(names.fresh(part.name))
        context.facts.set(value, context.facts.of(part))
        given.append(value)
    take = Rearranging(graph, context)
    take.boxed(standing_on(form, given), inner)
    graph.nodes[:0] = take.nodes
    return given


def _unbox_operands(node: Node, forms: Forms, context: Context, result: PassResult) -> None:
    for index in reversed(range(1, len(node.inputs))):
        outer = node.inputs[index]
        form = forms.of(outer) if outer is not None and outer.container == SEQUENCE else ()
        if not _can_go_in(outer, form) or outer is None or not result.fires(f"{outer.name} of {node.label}"):
            continue
        for name in ("then_branch", "else_branch"):
            branch: Graph = node.attrs[name]
            inner = branch.inputs[index - 1]
            branch.inputs[index - 1 : index] = _box_inside(branch, inner, form, context)
        node.inputs[index : index + 1] = parts_of(form)


def _unbox_invariants(graph: Graph, node: Node, forms: Forms, context: Context, result: PassResult) -> None:
    scan, changed = Scan.of(node), False
    for item in list(scan.invariants):
        form = forms.of(item.outer) if item.outer.container == SEQUENCE else ()
        if not _can_go_in(item.outer, form) or not result.fires(f"{item.outer.name} of {node.label}"):
            continue
        scan.invariants.remove(item)
        inside = _box_inside(scan.body, item.inner, form, context)
        scan.invariants += [Invariant(*pair) for pair in zip(parts_of(form), inside, strict=True)]
        changed = True
    if changed:
        graph.nodes[graph.nodes.index(node)] = scan.to_node()


def _unbox_results(graph: Graph, node: Node, context: Context, result: PassResult) -> None:
    branches: list[Graph] = [node.attrs["then_branch"], node.attrs["else_branch"]]
    for index in reversed(range(len(node.outputs))):
        made = node.outputs[index]
        if made is None or made.container != SEQUENCE:
            continue
        found = [Forms(branch, context.facts).of(branch.outputs[index]) for branch in branches]
        takes = [Rearranging(branch, context) for branch in branches]
        alike = _made_alike(node, branches, found, takes)
        if alike is None:
            result.declines_at(node, "its branches make a sequence in different ways")
            continue
        if not result.fires(f"{made.name} of {node.label}"):
            continue
        position = graph.nodes.index(node) + 1
        behind = Rearranging(graph, context)
        outer = [_outer_segment(node, branches[0], segment, behind) for segment in alike[0]]
        fresh = [kept for kept, segment in enumerate(alike[0]) if not isinstance(segment, Elements)]
        for branch, take, form in zip(branches, takes, alike, strict=True):
            branch.nodes += take.nodes
            branch.outputs[index : index + 1] = [parts_of(form)[kept] for kept in fresh]
        node.outputs[index : index + 1] = [parts_of(tuple(outer))[kept] for kept in fresh]
        behind.boxed(tuple(outer), made)
        graph.nodes[position:position] = behind.nodes


def _outer_segment(node: Node, branch: Graph, segment: Segment, take: Rearranging) -> Segment:
    """What stands outside for a part of a branch's result: an operand, or a new output of the If."""
    (part,) = parts_of((segment,))
    if isinstance(segment, Elements):
        operand = node.inputs[1 + branch.inputs.index(part)]
        assert operand is not None
        return Elements(operand)
    (outer,) = standing_on((segment,), [take.new.value(part.name)])
    return outer


def _made_alike(node: Node, branches: list[Graph], forms: list[Form], takes: list[Rearranging]) -> list[Form] | None:
    """The two forms, in a way that differs in nothing but the values that they stand on."""
    if all(map(is_known, forms)) and len(forms[0]) != len(forms[1]):
        if not all(form and take.are_alike(form) for form, take in zip(forms, takes, strict=True)):
            return None
        forms = [(Slices(take.stacked(form, 0), 0),) for form, take in zip(forms, takes, strict=True)]
    if len(forms[0]) != len(forms[1]):
        return None
    kinds = [[_kind(node, branch, segment) for segment in form] for branch, form in zip(branches, forms, strict=True)]
    return forms if kinds[0] == kinds[1] and None not in kinds[0] else None


def _kind(node: Node, branch: Graph, segment: Segment) -> object:
    """What has to be the same in both branches; None is what cannot be the same."""
    if isinstance(segment, Item):
        return "item"
    if isinstance(segment, Slices):
        return segment.axis, segment.keeps_axis
    return node.inputs[1 + branch.inputs.index(segment.sequence)] if segment.sequence in branch.inputs else None
