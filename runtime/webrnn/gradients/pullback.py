"""Reverse mode: from the last node to the first, the cotangents of results become those of operands."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from webrnn.errors import Error, UnsupportedOp
from webrnn.ir import WEBRNN, Node, Scan, Value, is_scan
from webrnn.shapes.facts import Facts

from .emitter import FLOATS, Emitter
from .registry import Options, Pull, Rule, rule


def is_float(value: Value, facts: Facts) -> bool:
    dtype = facts.dtype(value) or value.dtype
    return not value.container and (dtype is None or dtype in FLOATS)


def spread(nodes: Iterable[Node], sources: Iterable[Value], facts: Facts, ends: Collection[Value] = ()) -> set[Value]:
    """The values that depend on the sources by floating-point numbers, not by way of `ends`, and the sources."""
    active = {value for value in sources if is_float(value, facts)}
    for node in nodes:
        if any(value in ends for value in node.outputs):
            continue
        if is_scan(node):
            active |= _spread_scan(Scan.of(node), active, facts)
        elif node.op == "If" and not node.domain:
            active |= _spread_if(node, active, facts)
        elif not active.isdisjoint(value for value in node.inputs if value is not None):
            made = [value for value in node.outputs if value is not None]
            # The integers of a QuantizeLinear stand for numbers that are not rounded.
            active.update(value for value in made if node.op == "QuantizeLinear" or is_float(value, facts))
    return active


def _spread_if(node: Node, active: Collection[Value], facts: Facts) -> set[Value]:
    found: set[Value] = set()
    for name in ("then_branch", "else_branch"):
        branch = node.attrs[name]
        inputs = [inner for outer, inner in zip(node.inputs[1:], branch.inputs, strict=True) if outer in active]
        inside = spread(branch.nodes, inputs, facts)
        found.update(
            outer
            for outer, inner in zip(node.outputs, branch.outputs, strict=True)
            if outer is not None and inner in inside
        )
    return found


def active_in_body(scan: Scan, active: Collection[Value], facts: Facts) -> set[Value]:
    """The values of a body that depend on active operands of the loop, by way of earlier steps too."""
    sources = [item.element for item in scan.sequences if item.whole in active]
    sources += [item.inner for item in scan.invariants if item.outer in active]
    sources += [value for state in scan.states if state.init in active for value in state.body_in]
    while True:
        inside = spread(scan.body.nodes, sources, facts)
        more = [
            value
            for state in scan.states
            if state.body_out in inside
            for value in state.body_in
            if value not in inside and is_float(value, facts)
        ]
        if not more:
            return inside
        sources += more


def _spread_scan(scan: Scan, active: Collection[Value], facts: Facts) -> set[Value]:
    operands = [state.init for state in scan.states] + [item.whole for item in scan.sequences]
    operands += [item.outer for item in scan.invariants]
    if not any(value in active for value in operands):
        return set()
    inside = active_in_body(scan, active, facts)
    found = {
        state.final
        for state in scan.states
        if state.final is not None and (state.body_out in inside or state.init in active)
    }
    return found | {trace.whole for trace in scan.traces if trace.whole is not None and trace.element in inside}


def reached(nodes: Sequence[Node], ends: Iterable[Value], active: Collection[Value]) -> set[Value]:
    """The active values on which one of the ends depends."""
    found = {value for value in ends if value in active}
    for node in reversed(nodes):
        if any(value in found for value in node.outputs):
            found.update(value for value in node.inputs if value is not None and value in active)
    return found


def pull_nodes(
    b: Emitter, nodes: Sequence[Node], cotangents: dict[Value, Value], active: Collection[Value], options: Options
) -> dict[Value, Value]:
    """Add the pullback of these nodes to the graph. `cotangents` are those of their results; those of all that is
    active are returned."""

    def take_back(inner: Sequence[Node], seeds: dict[Value, Value], operands: Sequence[Value]) -> dict[Value, Value]:
        return pull_nodes(b, inner, seeds, spread(inner, operands, b.facts), options)

    found = dict(cotangents)
    for node in reversed(list(nodes)):
        given = [None if value is None else found.get(value) for value in node.outputs]
        wanted = [value for value in node.inputs if value is not None and value in active]
        if not wanted or all(item is None for item in given):
            continue
        try:
            taken = _pull(Pull(b, node, given, active, options, take_back))
        except Error as error:
            if error.node is None:
                raise type(error)(error.message, node=node.label, op=node.op) from error
            raise
        for value, cotangent in zip(node.inputs, taken, strict=False):
            if value is not None and cotangent is not None and value in active:
                total = b.plus(found.get(value), cotangent)
                assert total is not None
                found[value] = total
    return found


def require_rules(nodes: Sequence[Node], end: Value, active: Collection[Value]) -> None:
    """Refuse a node on the way from `end` back that has no rule."""
    passed = reached(nodes, [end], active)
    for node in reversed(nodes):
        if any(value in passed for value in node.outputs):
            _rule_of(node)


def _rule_of(node: Node) -> Rule:
    found = rule.get(node.domain, node.op)
    if found is None:
        name = node.op if node.domain in ("", WEBRNN) else f"{node.domain}:{node.op}"
        raise UnsupportedOp(f"{name} has no rule for gradients, and one passes through it", node=node.label, op=node.op)
    return found


def _pull(pull: Pull) -> Sequence[Value | None]:
    return _rule_of(pull.node)(pull)
