"""Checking that a graph is well formed: `check(graph)` raises and says what is wrong and where.

It holds that every value is defined once and before it is used, that sub-graphs use nothing from outside, that the
operands of a Scan, an If or an Expression fit their bodies, and that fused ops have the operands they need. Passes keep
these properties; tests check them after every pass.
"""

from __future__ import annotations

from webrnn.errors import ModelError

from .activations import ACTIVATIONS
from .fused import CELL_FORMS, PEEPHOLES, is_backward_cell, is_cell, is_expression, is_linear, is_small
from .graph import Graph, Node, Value
from .scan import ScanSpec, is_scan


def check(graph: Graph) -> None:
    """Raise ModelError unless the graph and all graphs inside it are well formed.

    >>> x, y = Value("x"), Value("y")
    >>> check(Graph("g", [x], [y], []))
    Traceback (most recent call last):
        ...
    webrnn.errors.ModelError: graph 'g': output 'y' is not defined
    """
    seen: set[int] = set()
    for inner in graph.walk():
        if id(inner) in seen:
            raise ModelError(f"graph {inner.name!r} is used by two nodes")
        seen.add(id(inner))
        _check_one(inner)


def _check_one(graph: Graph) -> None:
    where = f"graph {graph.name!r}"
    defined: set[Value] = set()

    def define(value: Value, what: str) -> None:
        if value in defined:
            raise ModelError(f"{where}: {what} {value.name!r} is defined twice")
        defined.add(value)

    for value in graph.inputs:
        define(value, "input")
    for value, array in graph.constants.items():
        define(value, "constant")
        if value.dtype is not None and array.dtype != value.dtype.array_type:
            raise ModelError(f"{where}: constant {value.name!r} is {array.dtype}, its value says {value.dtype.text}")
        if value.shape is not None and value.shape != array.shape:
            raise ModelError(f"{where}: constant {value.name!r} is {array.shape}, its value says {value.shape}")
    for node in graph.nodes:
        for used in node.inputs:
            if used is not None and used not in defined:
                message = f"input {used.name!r} is not defined before it in {where}"
                raise ModelError(message, node=node.label, op=node.op)
        for made in node.outputs:
            if made is not None:
                define(made, "value")
        _check_operands(node)
    for value in graph.outputs:
        if value not in defined:
            raise ModelError(f"{where}: output {value.name!r} is not defined")


def _check_operands(node: Node) -> None:
    if is_scan(node):
        _check_scan(node)
    elif node.op == "If" and not node.domain:
        for name in ("then_branch", "else_branch"):
            branch = node.attrs[name]
            _same(node, f"inputs of {name}", len(branch.inputs), len(node.inputs) - 1)
            _same(node, f"outputs of {name}", len(branch.outputs), len(node.outputs))
    elif is_expression(node):
        _same(node, "inputs of the body", len(node.attrs["body"].inputs), len(node.inputs))
        _same(node, "outputs of the body", len(node.attrs["body"].outputs), len(node.outputs))
        _all_given(node, len(node.inputs))
    elif is_linear(node):
        _between(node, "inputs", len(node.inputs), 2, 3)
        _all_given(node, 2)
    elif is_small(node):
        _between(node, "inputs", len(node.inputs), 3, 4)
        _all_given(node, 3)
    elif is_cell(node) or is_backward_cell(node):
        _check_cell(node)


def _check_cell(node: Node) -> None:
    form = CELL_FORMS[node.op]
    _between(node, "inputs", len(node.inputs), form.required, len(form.widths))
    _same(node, "outputs", len(node.outputs), form.outputs)
    needed = [value for value, width in zip(node.inputs, form.widths, strict=False) if width != PEEPHOLES]
    if None in needed:
        raise ModelError("an operand is missing", node=node.label, op=node.op)
    if node.op == "LstmCellBackward" and node.inputs[3] is None and node.outputs[2] is not None:
        raise ModelError("it gives a gradient of peepholes, and has none", node=node.label, op=node.op)
    names, params = node.attrs["activations"], node.attrs["params"]
    _same(node, "activations", len(names), form.activations)
    _same(node, "params", len(params), 1 + 2 * form.activations)
    unknown = [name for name in names if name not in ACTIVATIONS]
    if unknown:
        raise ModelError(f"there is no activation {unknown[0]!r}", node=node.label, op=node.op)


def _check_scan(node: Node) -> None:
    spec, body = node.attrs.get("spec"), node.attrs.get("body")
    if not isinstance(spec, ScanSpec) or not isinstance(body, Graph):
        raise ModelError("a Scan has a spec and a body", node=node.label, op=node.op)
    n_states, n_sequences, n_traces = len(spec.states), len(spec.sequences), len(spec.traces)
    n_taps = sum(len(state.taps) for state in spec.states)
    _same(node, "inputs", len(node.inputs), 2 + n_states + n_sequences + spec.invariants)
    _same(node, "outputs", len(node.outputs), n_states + n_traces)
    _same(node, "inputs of the body", len(body.inputs), spec.counts + n_taps + n_sequences + spec.invariants)
    _same(node, "outputs of the body", len(body.outputs), spec.has_condition + n_states + n_traces)
    _all_given(node, len(node.inputs), first=2)
    for state in spec.states:
        if not state.taps or max(state.taps) >= 0:
            raise ModelError(f"taps are negative, these are {state.taps}", node=node.label, op=node.op)
    for trace in spec.traces:
        if trace.keep is not None and trace.length is not None:
            raise ModelError("a trace that is trimmed has no length", node=node.label, op=node.op)
        if min(trace.keep or 0, trace.length or 0) < 0:
            raise ModelError("a trace has fewer than no elements", node=node.label, op=node.op)
    if not spec.sequences and not spec.has_condition and node.inputs[0] is None:
        raise ModelError("nothing ends the loop", node=node.label, op=node.op)


def _same(node: Node, what: str, have: int, need: int) -> None:
    if have != need:
        raise ModelError(f"{have} {what}, there need to be {need}", node=node.label, op=node.op)


def _between(node: Node, what: str, have: int, least: int, most: int) -> None:
    if not least <= have <= most:
        raise ModelError(f"{have} {what}, there need to be {least} to {most}", node=node.label, op=node.op)


def _all_given(node: Node, count: int, first: int = 0) -> None:
    if any(value is None for value in node.inputs[first:count]):
        raise ModelError("an operand is missing", node=node.label, op=node.op)
