"""Which results of a loop's body are better made step by step, though they depend on sequences alone.

An outer product or a decay of a matrix is many times larger than what it is made of. For all steps at once it would be
written to memory and read again; in its step it is a part of the expression that needs it.
"""

from __future__ import annotations

from webrnn.ir import Node, Scan, Value
from webrnn.ops.sets import ELEMENTWISE, TOTAL
from webrnn.shapes.facts import Facts

_LEAST = 256
"""Elements of such a result. In a step of fewer an instruction costs more than memory does."""


def grown_for_one_step(scan: Scan, facts: Facts) -> set[int]:
    """The ids of element-wise nodes that make more elements than they read of sequences, and of those that go on with
    such a result, if only what depends on states reads what comes of it."""
    wanted = _read_with_states(scan)
    elements = {item.element for item in scan.sequences}
    grown: set[Value | None] = set()
    stays: set[int] = set()
    for node in scan.body.nodes:
        if id(node) in wanted and (grown.intersection(node.inputs) or _grows(node, elements, facts)):
            stays.add(id(node))
            grown.update(node.outputs)
        elif elements.intersection(node.inputs):
            elements.update(output for output in node.outputs if output is not None)
    return stays


def _read_with_states(scan: Scan) -> set[int]:
    """The ids of element-wise nodes that depend on no state, while all that reads their results, or what comes of them,
    does."""
    depend: set[Value | None] = {before for state in scan.states for before in state.body_in}
    free: list[Node] = []
    for node in scan.body.nodes:
        if depend.intersection(node.inputs):
            depend.update(node.outputs)
        else:
            free.append(node)
    read_otherwise: set[Value | None] = {trace.element for trace in scan.traces}
    read_otherwise.update(state.body_out for state in scan.states)
    found: set[int] = set()
    for node in reversed(free):
        is_elementwise = not node.domain and node.op in ELEMENTWISE & TOTAL
        if is_elementwise and not read_otherwise.intersection(node.outputs):
            found.add(id(node))
        else:
            read_otherwise.update(node.inputs)
    return found


def _grows(node: Node, elements: set[Value], facts: Facts) -> bool:
    whole = _count(node.outputs[0], facts)
    parts = [_count(value, facts) for value in node.inputs if value in elements]
    if whole is None or not parts or whole[0] < _LEAST:
        return False
    known = [part for part in parts if part is not None and part[1] == whole[1]]
    return len(known) == len(parts) and sum(part[0] for part in known) < whole[0]


def _count(value: Value | None, facts: Facts) -> tuple[int, list[str]] | None:
    """How many elements it has, apart from sizes that are not known as numbers, and these."""
    shape = facts.shape(value)
    if shape is None or None in shape:
        return None
    count = 1
    for size in shape:
        count *= size if isinstance(size, int) else 1
    return count, sorted(str(size) for size in shape if not isinstance(size, int))
