"""Comparing graphs by structure: what they compute, node by node, whatever the order and the names of things.

`structure(graph)` is equal for two graphs exactly if the same nodes feed each other in the same way. Inputs and outputs
of the outermost graph are known by name, constants by their bits, the operands of a loop by their role.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from webrnn.ir import Graph, Node, Scan, Value, is_scan
from webrnn.ir.fused import is_expression

Key = bytes


def structure(graph: Graph) -> tuple[list[tuple[str, Key]], Counter[Key]]:
    """The name and the key of each output, and the keys of all nodes of the outermost graph."""
    keys = {value: _hash("input", value.name) for value in graph.inputs}
    nodes = _add_keys(graph, keys)
    return [(value.name, keys[value]) for value in graph.outputs], Counter(nodes)


def _hash(*items: Any) -> Key:
    return hashlib.blake2b(repr(items).encode(), digest_size=12).digest()


def _bag(items: Iterable[Any]) -> list[Any]:
    return sorted(items, key=repr)


def _array_key(array: np.ndarray) -> Key:
    content = array.tolist() if array.dtype == object else np.ascontiguousarray(array).tobytes()
    return _hash(str(array.dtype), array.shape, content)


def _attributes(node: Node) -> list[tuple[str, Any]]:
    plain = ((name, item) for name, item in sorted(node.attrs.items()) if not isinstance(item, Graph))
    return [(name, _array_key(item) if isinstance(item, np.ndarray) else item) for name, item in plain]


def _add_keys(graph: Graph, keys: dict[Value, Key]) -> list[Key]:
    """Add the keys of all values of a graph whose inputs have theirs; the keys of its nodes."""
    keys.update((value, _array_key(array)) for value, array in graph.constants.items())
    return [_node_key(node, keys) for node in graph.nodes]


def _node_key(node: Node, keys: dict[Value, Key]) -> Key:
    if is_scan(node):
        return _scan_key(Scan.of(node), keys)
    operands = [None if value is None else keys[value] for value in node.inputs]
    if node.op == "If" and not node.domain:
        return _if_key(node, operands, keys)
    if is_expression(node):
        return _expression_key(node, operands, keys)
    key = _hash(node.domain, node.op, _attributes(node), operands, len(node.outputs))
    for index, value in enumerate(node.outputs):
        if value is not None:
            keys[value] = _hash(key, index)
    return key


def _inside(graph: Graph, inputs: Mapping[Value, Key]) -> tuple[dict[Value, Key], list[Key]]:
    keys = dict(inputs)
    return keys, _add_keys(graph, keys)


def _if_key(node: Node, operands: list[Any], keys: dict[Value, Key]) -> Key:
    results, nodes = [], []
    for name in ("then_branch", "else_branch"):
        branch = node.attrs[name]
        inner, inner_nodes = _inside(branch, dict(zip(branch.inputs, operands[1:], strict=True)))
        results.append([inner[value] for value in branch.outputs])
        nodes.append(_bag(inner_nodes))
    pairs = list(zip(*results, strict=True))
    for value, pair in zip(node.outputs, pairs, strict=True):
        if value is not None:
            keys[value] = _hash("if", operands[0], pair)
    return _hash("if", operands[0], _bag(pairs), nodes)


def _expression_key(node: Node, operands: list[Any], keys: dict[Value, Key]) -> Key:
    body = node.attrs["body"]
    inner, nodes = _inside(body, dict(zip(body.inputs, operands, strict=True)))
    results = [inner[value] for value in body.outputs]
    for value, result in zip(node.outputs, results, strict=True):
        if value is not None:
            keys[value] = _hash("expression", result)
    return _hash("expression", _bag(results), _bag(nodes))


def _scan_key(scan: Scan, keys: dict[Value, Key]) -> Key:
    fixed = {item.element: _hash("element", item.spec, keys[item.whole]) for item in scan.sequences}
    fixed.update((item.inner, keys[item.outer]) for item in scan.invariants)
    if scan.iteration is not None:
        fixed[scan.iteration] = _hash("iteration")
    # A state is known by what it starts from and by what becomes of it, which other states are part of: each round
    # looks one step further, and after as many as there are states no two can be told apart that were not before.
    states = [_hash("state", state.spec, keys[state.init]) for state in scan.states]
    for _ in range(len(states) + 1):
        taken = {
            value: _hash(key, tap)
            for key, state in zip(states, scan.states, strict=True)
            for tap, value in zip(state.spec.taps, state.body_in, strict=True)
        }
        inner, nodes = _inside(scan.body, {**fixed, **taken})
        states = [_hash(key, inner[state.body_out]) for key, state in zip(states, scan.states, strict=True)]
    ends = [None if value is None else keys[value] for value in (scan.n_steps, scan.cond)]
    ends.append(None if scan.body_cond is None else inner[scan.body_cond])
    lengths = _bag({_hash(keys[item.whole], item.spec.axis) for item in scan.sequences})
    key = _hash("scan", ends, lengths)
    for state, state_key in zip(scan.states, states, strict=True):
        if state.final is not None:
            keys[state.final] = _hash(key, "final", state_key)
    traces = [_hash("trace", trace.spec, inner[trace.element]) for trace in scan.traces]
    for trace, trace_key in zip(scan.traces, traces, strict=True):
        if trace.whole is not None:
            keys[trace.whole] = _hash(key, trace_key)
    read = [state.final is not None for state in scan.states]
    return _hash(key, _bag(zip(states, read, strict=True)), _bag(traces), _bag(nodes))


def shuffled(graph: Graph, rng: random.Random) -> Graph:
    """A copy with the nodes and constants of all its graphs in another order."""
    copy = graph.copy()
    for inner in copy.walk():
        constants = list(inner.constants.items())
        rng.shuffle(constants)
        inner.constants = dict(constants)
        _shuffle_nodes(inner, rng)
    return copy


def _shuffle_nodes(graph: Graph, rng: random.Random) -> None:
    made = {value for node in graph.nodes for value in node.outputs if value is not None}
    pending = list(graph.nodes)
    defined: set[Value] = set()
    graph.nodes = []
    while pending:
        ready = [n for n in pending if all(v is None or v not in made or v in defined for v in n.inputs)]
        node = rng.choice(ready)
        pending.remove(node)
        graph.nodes.append(node)
        defined.update(value for value in node.outputs if value is not None)
