"""Ops that draw random numbers: they become a function of how many were drawn before, so that graphs stay functions.

The counter starts at 0, goes from node to node in their order, and through loops as a state and through branches. In a
run it is a constant; a stream carries it (`expose_counter`), as any other state.

    RandomUniform(low, high)   Random(counter, shape) * (high - low) + low
    Bernoulli(x)               Random(counter, shape of x) < x
    Dropout(x, ratio, train)   x / (1 - ratio) where Random(counter, shape of x) >= ratio, 0 elsewhere
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from webrnn.errors import ModelError
from webrnn.ir import WEBRNN, DType, Graph, Node, Scan, Value, is_scan

_INTEGERS = ("dtype", "sample_size", "shape")
"""Attributes of these; all others are numbers."""

COUNTER, NEXT = "random_counter", "random_counter.next"

DEFAULT_SEED = 0.0
"""Of a node without one: the same numbers each time."""


def draws(node: Node, graph: Graph) -> bool:
    """Whether a node of a graph draws random numbers."""
    if node.domain or node.op not in _OPS:
        return False
    if node.op != "Dropout":
        return True
    trains = node.inputs[2] if len(node.inputs) > 2 else None
    return trains is not None and (trains not in graph.constants or bool(graph.constants[trains].any()))


def count_draws(graph: Graph) -> None:
    """Let the nodes of a graph that draw random numbers take them from a counter, in place."""
    start = Value(COUNTER, DType.INT64, ())
    end = _count(graph, start)
    if end is not start:
        graph.constants[start] = np.array(0, np.int64)
        end.name = NEXT


def expose_counter(graph: Graph) -> dict[str, str]:
    """Make the counter of a graph an input and an output; {input: output}, empty if it draws nothing."""
    before = next((value for value in graph.constants if value.name == COUNTER), None)
    after = next((value for node in graph.nodes for value in node.outputs if value and value.name == NEXT), None)
    if before is None or after is None:
        return {}
    del graph.constants[before]
    after.dtype, after.shape = DType.INT64, ()
    graph.inputs.append(before)
    graph.outputs.append(after)
    return {COUNTER: NEXT}


def _count(graph: Graph, counter: Value) -> Value:
    """The counter after all nodes of a graph."""
    nodes: list[Node] = []
    for node in graph.nodes:
        if draws(node, graph):
            made = _Drawing(graph, node, counter)
            _OPS[node.op](made)
            nodes += made.nodes
            counter = made.counter
        elif _draws_inside(node):
            after = Value(COUNTER, DType.INT64, ())
            nodes.append(_through_loop(node, counter, after) if is_scan(node) else _through_if(node, counter, after))
            counter = after
        else:
            nodes.append(node)
    graph.nodes = nodes
    return counter


def _draws_inside(node: Node) -> bool:
    return any(draws(each, graph) for _, inner in node.subgraphs for graph in inner.walk() for each in graph.nodes)


def _through_loop(node: Node, counter: Value, after: Value) -> Node:
    scan, before = Scan.of(node), Value(COUNTER, DType.INT64, ())
    scan.add_state(counter, before, _count(scan.body, before), after)
    return scan.to_node()


def _through_if(node: Node, counter: Value, after: Value) -> Node:
    for _, branch in node.subgraphs:
        before, end = Value(COUNTER, DType.INT64, ()), Value(COUNTER, DType.INT64, ())
        counted = _count(branch, before)
        branch.inputs.append(before)
        branch.nodes.append(Node("Identity", [counted], [end]))
        branch.outputs.append(end)
    node.inputs.append(counter)
    node.outputs.append(after)
    return node


class _Drawing:
    """The nodes that stand for one that draws."""

    def __init__(self, graph: Graph, node: Node, counter: Value):
        self.graph, self.node, self.counter = graph, node, counter
        self.nodes: list[Node] = []

    def operand(self, index: int) -> Value | None:
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def first(self) -> Value:
        value = self.operand(0)
        if value is None:
            raise ModelError("its first input is missing", node=self.node.label, op=self.node.op)
        return value

    def attribute(self, name: str, default: Any = None) -> Any:
        value = self.node.attrs.get(name)
        if value is None:
            return default
        items = value if name == "shape" and isinstance(value, list) else [value]
        if not all(isinstance(item, int if name in _INTEGERS else (int, float)) for item in items):
            message = f"{value!r} is of another type"
            raise ModelError(message, node=self.node.label, op=self.node.op, attribute=name)
        return value

    def output(self, index: int = 0) -> Value | None:
        return self.node.outputs[index] if index < len(self.node.outputs) else None

    def op(self, op: str, *inputs: Value | None, domain: str = "", output: Value | None = None, **attrs: Any) -> Value:
        made = Value(f"{self.node.label}.{op}") if output is None else output
        self.nodes.append(Node(op, list(inputs), [made], attrs, self.node.name, domain))
        return made

    def constant(self, array: Any) -> Value:
        array = np.asarray(array)
        value = Value(f"{self.node.label}.constant", DType.of(array), array.shape)
        self.graph.constants[value] = array
        return value

    def number(self, number: float | np.floating[Any]) -> Value:
        return self.constant(np.float32(number))

    def random(self, shape: Value, normal: bool = False) -> Value:
        """Numbers of the shape; the counter goes on."""
        seed = int(np.float32(self.attribute("seed", DEFAULT_SEED)).view(np.uint32))
        made = self.op("Random", self.counter, shape, domain=WEBRNN, seed=seed, normal=int(normal))
        self.counter = self.op("Add", self.counter, self.op("Size", made))
        return made

    def typed(self, value: Value, default: int | None = None) -> None:
        """The output, of the type that the node asks for, or of the default, or of the first input."""
        dtype = self.attribute("dtype", default)
        if dtype is None:
            self.op("CastLike", value, self.first(), output=self.output())
        else:
            self.op("Cast", value, output=self.output(), to=int(dtype))


def _uniform_or_normal(d: _Drawing, shape: Value, default: int | None) -> None:
    normal = d.node.op.startswith("RandomNormal")
    if normal:
        factor, base = np.float32(d.attribute("scale", 1.0)), np.float32(d.attribute("mean", 0.0))
    else:
        base = np.float32(d.attribute("low", 0.0))
        factor = np.float32(d.attribute("high", 1.0)) - base
    scaled = d.op("Mul", d.random(shape, normal), d.number(factor))
    d.typed(d.op("Add", scaled, d.number(base)), default)


def _of_shape(d: _Drawing) -> None:
    shape = d.attribute("shape")
    if shape is None:
        raise ModelError("the attribute is required", node=d.node.label, op=d.node.op, attribute="shape")
    _uniform_or_normal(d, d.constant(np.array(shape, np.int64)), int(DType.FLOAT))


def _like(d: _Drawing) -> None:
    _uniform_or_normal(d, d.op("Shape", d.first()), None)


def _bernoulli(d: _Drawing) -> None:
    numbers = d.random(d.op("Shape", d.first()))
    d.typed(d.op("Less", numbers, d.op("Cast", d.first(), to=int(DType.FLOAT))))


def _multinomial(d: _Drawing) -> None:
    batch = d.op("Shape", d.first(), start=0, end=1)
    shape = d.op("Concat", batch, d.constant(np.array([d.attribute("sample_size", 1)], np.int64)), axis=0)
    scores = d.op("Cast", d.first(), to=int(DType.FLOAT))
    d.typed(d.op("Choose", scores, d.random(shape), domain=WEBRNN), int(DType.INT32))


def _dropout(d: _Drawing) -> None:
    x, ratio, trains = d.first(), d.operand(1), d.operand(2)
    one, zero = d.number(1), d.number(0)
    dropped = d.number(0.5) if ratio is None else d.op("Cast", ratio, to=int(DType.FLOAT))
    dropped = d.op("Where", trains, dropped, zero)
    kept = d.op("GreaterOrEqual", d.random(d.op("Shape", x)), dropped, output=d.output(1))
    scale = d.op("CastLike", d.op("Div", one, d.op("Sub", one, dropped)), x)
    d.op("Where", kept, d.op("Mul", x, scale), d.op("CastLike", zero, x), output=d.output())


_OPS: dict[str, Callable[[_Drawing], None]] = {
    "Bernoulli": _bernoulli,
    "Dropout": _dropout,
    "Multinomial": _multinomial,
    "RandomNormal": _of_shape,
    "RandomNormalLike": _like,
    "RandomUniform": _of_shape,
    "RandomUniformLike": _like,
}
RANDOM_OPS: Sequence[str] = tuple(_OPS)
