"""If each step rearranges a state and puts it back, the state is rearranged once, outside the loop.

Requires: facts from infer_shapes (the shapes of states).
Ensures: no state with the one tap -1 is read by Transposes of one order alone while its next value is transposed back,
and none by reshaping ops (Reshape, Squeeze, Unsqueeze, Flatten) of one result alone while its next value is reshaped
back: such a state has the axes that the body works on, its init is rearranged before the loop and its final behind it.
Unit axes and transposes of sequences leave with hoist_sequences, those of traces with sink_outputs.
Declines: "it is also read as it is", "it is not always rearranged in the same way", "its next value is not rearranged
back", "its shape is not known", "how it is rearranged is not constant".
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from webrnn.ir import Graph, Node, Scan, State, Value, is_plain
from webrnn.ops.sets import RESHAPES
from webrnn.shapes.facts import Facts

from .base import Context, PassResult, ScanPass
from .rewriting import Additions, drop_nodes, replace_in_body

_KEEP_ORDER = RESHAPES - {"Identity"}


class CleanAxes(ScanPass):
    def rewrite_scan(
        self, graph: Graph, node: Node, scan: Scan, context: Context, result: PassResult
    ) -> Sequence[Node] | None:
        before: list[Node] = []
        after: list[Node] = []
        new = Additions(graph, context)
        for state in scan.states:
            readers = _rearranging_readers(scan, state)
            if not readers:
                continue
            back = scan.body.producers().get(state.body_out)
            reason = _reason_against(scan, state, readers, back, context.facts)
            if reason is not None or back is None:
                result.declines_at(node, f"state {state.body_in[0].name}: {reason}")
            elif result.fires(f"{readers[0].op} of state {state.body_in[0].name} of {node.label}"):
                before.append(_copy(scan, readers[0], state.init, new.value(f"{state.init.name}_rearranged"), new))
                if state.final is not None:
                    final = new.value(f"{state.final.name}_rearranged")
                    after.append(_copy(scan, back, final, state.final, new))
                    state.final = final
                _change_state(scan, state, readers, before[-1], back)
        return [*before, scan.to_node(), *after] if before else None


def _rearranging_readers(scan: Scan, state: State) -> list[Node]:
    if not state.spec.is_plain:
        return []
    readers = [node for node in scan.body.nodes if state.body_in[0] in node.inputs]
    return [node for node in readers if _is_layout(node) and node.inputs[0] is state.body_in[0]]


def _is_layout(node: Node) -> bool:
    return is_plain(node, "Transpose", *_KEEP_ORDER)


def _reason_against(scan: Scan, state: State, readers: list[Node], back: Node | None, facts: Facts) -> str | None:
    inner = state.body_in[0]
    n_reads = sum(node.inputs.count(inner) for node in scan.body.nodes)
    outputs = [scan.body_cond, *(each.body_out for each in scan.states), *(trace.element for trace in scan.traces)]
    if n_reads != len(readers) or inner in outputs:
        return "it is also read as it is"
    ways = {_way(node, facts) for node in readers}
    if None in ways:
        return "its shape is not known"
    if len(ways) > 1:
        return "it is not always rearranged in the same way"
    if back is None or back.inputs[0] is inner or not _is_layout(back):
        return "its next value is not rearranged back"
    if _way(back, facts) is None:
        return "its shape is not known"
    if not _undoes(back, readers[0], facts):
        return "its next value is not rearranged back"
    operands = [value for node in (readers[0], back) for value in node.inputs[1:] if value is not None]
    if any(value not in scan.body.constants for value in operands):
        return "how it is rearranged is not constant"
    return None


def _way(node: Node, facts: Facts) -> Hashable:
    """What a layout op does, None where that is not known; the same for two ops that do the same with one operand."""
    before, after = facts.shape(node.inputs[0]), facts.shape(node.outputs[0])
    if before is None or after is None or None in before or None in after:
        return None
    return _order(node, len(before)) if node.op == "Transpose" else ("reshaped", after)


def _order(node: Node, rank: int) -> tuple[int, ...]:
    return tuple(node.attrs.get("perm") or range(rank)[::-1])


def _undoes(second: Node, first: Node, facts: Facts) -> bool:
    outer, inner = facts.shape(first.inputs[0]), facts.shape(first.outputs[0])
    if (facts.shape(second.inputs[0]), facts.shape(second.outputs[0])) != (inner, outer) or outer is None:
        return False
    if second.op != "Transpose" and first.op != "Transpose":
        return True
    if second.op != first.op:
        return False
    there, back = _order(first, len(outer)), _order(second, len(outer))
    return [there[axis] for axis in back] == list(range(len(outer)))


def _copy(scan: Scan, node: Node, source: Value, made: Value, new: Additions) -> Node:
    """A layout op of the body, outside."""
    constants = [
        None if value is None else new.constant(scan.body.constants[value], value.name) for value in node.inputs[1:]
    ]
    return Node(node.op, [source, *constants], [made], node.attrs, node.name)


def _change_state(scan: Scan, state: State, readers: list[Node], init: Node, back: Node) -> None:
    inner, rearranged, next_value = readers[0].outputs[0], init.outputs[0], back.inputs[0]
    assert inner is not None
    assert rearranged is not None
    assert next_value is not None
    state.init, state.body_in, state.body_out = rearranged, [inner], next_value
    drop_nodes(scan.body, readers)
    others = [value for node in readers[1:] for value in node.outputs if value is not None]
    replace_in_body(scan, dict.fromkeys(others, inner))
