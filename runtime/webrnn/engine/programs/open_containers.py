"""Sequences and optionals of a model's inputs and outputs, as the tensors that they hold: plans have no others.

How many tensors a sequence holds is known when it is fed. The graph for such inputs takes the tensors and makes the
sequence of them itself; passes then find it. Of an output that is known to be made of tensors, or of slices of one,
the graph gives these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from webrnn.ir import DType, Graph, Node, Value, is_plain
from webrnn.ir.containers import SEQUENCE, mark_containers
from webrnn.passes.sequence_forms import Forms, Item, Slices, is_known
from webrnn.shapes.infer import infer

from ..limits import Budget

Structure: TypeAlias = Any
"""Of a tensor its shape, of a sequence a list of those of its elements, of an optional without value None."""

Result: TypeAlias = Callable[[Sequence[Any]], Any]
"""Makes an output of the model of the results of a graph."""


def structure_of(argument: Any) -> Structure:
    """
    >>> structure_of([np.zeros(2), np.zeros((3, 1))]), structure_of(None)
    (('list', (2,), (3, 1)), None)
    """
    if isinstance(argument, list):
        return ("list", *(structure_of(item) for item in argument))
    return getattr(argument, "shape", None)


def flat(arguments: Sequence[Any]) -> list[Any]:
    """The tensors in arguments, in order."""
    found: list[Any] = []
    for argument in arguments:
        if isinstance(argument, list):
            found += flat(argument)
        elif argument is not None:
            found.append(argument)
    return found


def with_open_inputs(graph: Graph, arguments: Sequence[Any]) -> Graph:
    """A copy of a graph that takes the tensors in these arguments, of their types and shapes only."""
    copied = graph.copy()
    inputs: list[Value] = []
    nodes: list[Node] = []
    for value, argument in zip(copied.inputs, arguments, strict=True):
        if not value.container:
            value.shape = argument.shape
            inputs.append(value)
            continue
        held = value
        if value.container[0] == "optional":
            held = Value(f"{value.name}_held", value.dtype, None, value.container[1:])
            nodes.append(Node("Optional", [] if argument is None else [held], [value]))
        if argument is None:
            continue
        given = argument if isinstance(argument, list) else [argument]
        items = [Value(f"{value.name}_{index}", DType.of(item), item.shape) for index, item in enumerate(given)]
        inputs += items
        if isinstance(argument, list):
            attrs = {} if items else {"dtype": int(value.dtype or DType.FLOAT)}
            nodes.insert(0, Node("SequenceConstruct" if items else "SequenceEmpty", list(items), [held], attrs))
        else:
            nodes.insert(0, Node("Identity", list(items), [held]))
    copied.inputs, copied.nodes = inputs, [*_in_order(nodes), *copied.nodes]
    mark_containers(copied)
    return copied


def _in_order(nodes: list[Node]) -> list[Node]:
    """What wraps a value stands behind what makes it."""
    return sorted(nodes, key=lambda node: node.op == "Optional")


def open_outputs(graph: Graph) -> list[Result]:
    """Let a graph give tensors instead of sequences and optionals where it is known what they hold; for each output,
    what makes it of the graph's results."""
    producers, facts = graph.producers(), infer(graph)
    forms = Forms(graph, facts)
    outputs: list[Value] = []
    results: list[Result] = []

    def give(value: Value) -> int:
        copy = Value(f"{value.name}_{len(outputs)}_out")
        graph.nodes.append(Node("Identity", [value], [copy]))
        outputs.append(copy)
        return len(outputs) - 1

    for value in graph.outputs:
        results.append(_opened(value, producers, forms, give) or _taken(outputs, value))
    graph.outputs = outputs
    return results


def _taken(outputs: list[Value], value: Value) -> Result:
    """An output as it is."""
    outputs.append(value)
    place = len(outputs) - 1
    return lambda given: given[place]


def _opened(value: Value, producers: dict[Value, Node], forms: Forms, give: Callable[[Value], int]) -> Result | None:
    while value in producers and is_plain(producers[value], "Identity", "Optional") and value.container:
        node = producers[value]
        if not node.inputs or node.inputs[0] is None:
            return lambda given: None
        value = node.inputs[0]
        if not value.container:
            place = give(value)
            return lambda given: given[place]
    form = forms.of(value) if value.container == SEQUENCE else None
    if form is None or not is_known(form):
        return None
    parts = [(segment, give(segment.value if isinstance(segment, Item) else segment.whole)) for segment in form
             if isinstance(segment, Item | Slices)]  # fmt: skip

    def listed(given: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        for segment, place in parts:
            if isinstance(segment, Item):
                found.append(given[place])
                continue
            rows = np.moveaxis(given[place], segment.axis, 0)
            found += [np.expand_dims(row, segment.axis) if segment.keeps_axis else np.array(row) for row in rows]
        return found

    return listed


class OpenProgram:
    """A program of tensors that stands for one of sequences and optionals."""

    def __init__(self, program: Any, results: Sequence[Result]):
        self.program, self._results = program, results

    def run(self, arguments: Sequence[Any], budget: Budget | None = None) -> list[Any]:
        given = self.program.run(flat(arguments), budget=budget)
        return [result(given) for result in self._results]
