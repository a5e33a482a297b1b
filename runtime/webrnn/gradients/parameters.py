"""A model whose weights are inputs, so that there can be gradients of them."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from webrnn.errors import OptionError
from webrnn.formats.reader import read
from webrnn.ir import DType, Graph, Invariant, Scan, Value, is_scan
from webrnn.onnx.reader import Opened

from .emitter import FLOATS


@dataclass
class OpenModel:
    graph: Graph
    weights: dict[str, np.ndarray]
    """The constants that are inputs of the graph now, by name."""


def open_model(
    model: str | os.PathLike[str] | bytes | Graph, names: Collection[str] | None, fixed: Mapping[str, Any] | None
) -> OpenModel:
    """A model with these constants as inputs; None is all weights: the floating-point constants that have an axis."""
    if isinstance(model, Graph):
        if fixed:
            raise OptionError("inputs are fixed when a model is read, not in a graph that there is already")
        return _opened(model.copy(), names)
    opened = Opened(names)
    graph = read(model, fixed, opened).graph
    is_open = names is not None and {*names} <= {value.name for value in graph.inputs}
    return OpenModel(graph, opened.arrays) if opened.arrays or is_open else _opened(graph, names)


def _opened(graph: Graph, names: Collection[str] | None) -> OpenModel:
    weights: dict[str, np.ndarray] = {}
    taken = {value.name for value in graph.inputs} | {value.name for value in graph.producers()}
    starts = {
        state.init for inner in graph.walk() for node in inner.nodes if is_scan(node) for state in Scan.of(node).states
    }
    for value, array in _constants(graph).items():
        dtype = value.dtype or DType.of(array)
        is_weight = array.ndim > 0 and dtype in FLOATS and value not in starts
        if not (is_weight if names is None else value.name in names and dtype in FLOATS):
            continue
        name, number = value.name, 1
        while name in taken:
            name, number = f"{value.name}_{number}", number + 1
        taken.add(name)
        whole = Value(name, dtype, array.shape)
        if value in graph.constants:
            graph.replace_uses({value: whole})
            del graph.constants[value]
        graph.inputs.append(whole)
        weights[name] = array
        _hand_in(graph, whole, array)
    return OpenModel(graph, weights)


def _constants(graph: Graph) -> dict[Value, np.ndarray]:
    """The constants of a graph and of those inside, each once: copies of one share its array."""
    found: dict[int, Value] = {}
    arrays: dict[Value, np.ndarray] = {}
    for inner in graph.walk():
        for value, array in inner.constants.items():
            if id(array) not in found:
                found[id(array)] = value
                arrays[value] = array
    return arrays


def _hand_in(graph: Graph, value: Value, array: np.ndarray) -> None:
    """Let graphs inside take a value that they have a copy of as a constant. A copy shares the array."""
    for node in graph.nodes:
        if not any(_has(inner, array) for _, inner in node.subgraphs):
            continue
        if is_scan(node):
            scan = Scan.of(node)
            scan.invariants.append(Invariant(value, _inside(scan.body, value, array)))
            made = scan.to_node()
            node.inputs, node.outputs, node.attrs = made.inputs, made.outputs, made.attrs
        elif node.op == "If" and not node.domain:
            for _, branch in node.subgraphs:
                branch.inputs.append(_inside(branch, value, array))
            node.inputs = [*node.inputs, value]


def _inside(graph: Graph, outer: Value, array: np.ndarray) -> Value:
    """What stands for a constant in a graph that is given it."""
    copies = [value for value, held in graph.constants.items() if held is array]
    inner = copies[0] if copies else outer.like(outer.name)
    for value in copies:
        del graph.constants[value]
    graph.replace_uses(dict.fromkeys(copies, inner))
    _hand_in(graph, inner, array)
    return inner


def _has(graph: Graph, array: np.ndarray) -> bool:
    return any(held is array for inner in graph.walk() for held in inner.constants.values())


def bind(graph: Graph, weights: Mapping[str, np.ndarray]) -> None:
    """Make inputs constants again."""
    for value in list(graph.inputs):
        if value.name in weights:
            graph.inputs.remove(value)
            graph.constants[value] = weights[value.name]
