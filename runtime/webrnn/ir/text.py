"""A graph as text: one line a node, in order, with sub-graphs indented below their node.

The text depends on the graph alone and a change of one node changes its line alone, so that two of them can be compared
with a line-by-line diff.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .graph import Graph, Node, Value
from .scan import Scan, SequenceSpec, StateSpec, TraceSpec, is_scan

_SHOWN_ELEMENTS = 4


def to_text(graph: Graph) -> str:
    """
    >>> from webrnn.ir import DType, GraphBuilder
    >>> b = GraphBuilder("double")
    >>> x = b.input("x", DType.FLOAT, (3,))
    >>> b.graph.outputs.append(b.op("Add", x, x, name="sum"))
    >>> print(to_text(b.graph))
    graph double(x: float[3]) -> sum
      sum = Add(x, x)
    """
    return "\n".join(_graph_lines(graph, ""))


def _graph_lines(graph: Graph, indent: str, label: str = "graph") -> Iterator[str]:
    inputs = ", ".join(typed(value) for value in graph.inputs)
    outputs = ", ".join(value.name for value in graph.outputs)
    yield f"{indent}{label} {graph.name}({inputs}) -> {outputs}"
    for value, array in graph.constants.items():
        yield f"{indent}  const {typed(value)}{_elements(array)}"
    for node in graph.nodes:
        yield from _node_lines(node, indent + "  ")


def _node_lines(node: Node, indent: str) -> Iterator[str]:
    if is_scan(node):
        yield from _scan_lines(node, indent)
        return
    arguments = [_name(value) for value in node.inputs]
    attributes = [
        f"{name}={_attribute(value)}" for name, value in sorted(node.attrs.items()) if not isinstance(value, Graph)
    ]
    op = f"{node.domain}.{node.op}" if node.domain else node.op
    outputs = ", ".join("_" if value is None else typed(value) for value in node.outputs)
    yield f"{indent}{outputs} = {op}({', '.join(arguments + attributes)})"
    for name, inner in node.subgraphs:
        yield from _graph_lines(inner, indent + "  ", name)


def _scan_lines(node: Node, indent: str) -> Iterator[str]:
    scan = Scan.of(node)
    outputs = ", ".join("_" if value is None else value.name for value in node.outputs)
    ends = [f"n_steps={scan.n_steps.name}"] if scan.n_steps else []
    ends += [f"cond={_name(scan.cond)}, while {scan.body_cond.name}"] if scan.body_cond else []
    ends += [f"iteration {scan.iteration.name}"] if scan.iteration else []
    ends += ["frugal"] if scan.frugal else []
    yield f"{indent}{outputs} = scan({', '.join(ends)})"
    for state in scan.states:
        taps = ", ".join(value.name for value in state.body_in)
        note = _state_note(state.spec)
        yield f"{indent}  state {taps}: {state.init.name} -> {state.body_out.name} -> {_name(state.final)}{note}"
    for sequence in scan.sequences:
        note = _axis_note(sequence.spec)
        yield f"{indent}  sequence {sequence.element.name}: {sequence.whole.name}{note}"
    for invariant in scan.invariants:
        yield f"{indent}  invariant {invariant.inner.name}: {invariant.outer.name}"
    for trace in scan.traces:
        yield f"{indent}  trace {trace.element.name} -> {_name(trace.whole)}{_axis_note(trace.spec)}"
    yield from _graph_lines(scan.body, indent + "  ", "body")


def _state_note(spec: StateSpec) -> str:
    return "" if spec.is_plain else f" taps {spec.taps}"


def _axis_note(spec: SequenceSpec | TraceSpec) -> str:
    note = f" axis {spec.axis}" if spec.axis else ""
    note += " reversed" if spec.reverse else ""
    if isinstance(spec, TraceSpec) and spec.keep is not None:
        note += f" last {spec.keep}"
    if isinstance(spec, TraceSpec) and spec.length is not None:
        note += f" padded to {spec.length}"
    return note


def _name(value: Value | None) -> str:
    return "_" if value is None else value.name


def typed(value: Value) -> str:
    """Its name, and its type as far as that is known."""
    if value.dtype is None and value.shape is None and not value.container:
        return value.name
    element = value.dtype.text if value.dtype is not None else "?"
    shape = (
        "" if value.shape is None else "[" + ", ".join("?" if dim is None else str(dim) for dim in value.shape) + "]"
    )
    text = f"{element}{shape}"
    for kind in reversed(value.container):
        text = f"{kind}({text})"
    return f"{value.name}: {text}"


def _elements(array: np.ndarray) -> str:
    if array.size > _SHOWN_ELEMENTS:
        return ""
    return f" = {array.tolist()}"


def _attribute(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}{_elements(value)}"
    return repr(value)
