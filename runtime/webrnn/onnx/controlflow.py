"""If, Loop, Scan and SequenceMap: sub-graphs as closed functions, all loops as the Scan of the IR."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from webrnn.errors import ModelError
from webrnn.ir import DType, GraphBuilder, Invariant, Node, Scan, Value

from .attributes import graph_attribute
from .proto import GraphProto
from .scope import Scope
from .tensors import ValueType

if TYPE_CHECKING:
    from .reader import ModelReader


def read_if(reader: ModelReader, scope: Scope, node: Node, version: int) -> None:
    branches = [_Branch(reader, scope, graph_attribute(node.attrs, name)) for name in ("then_branch", "else_branch")]
    captures = list(dict.fromkeys(outer for branch in branches for outer, _ in branch.builder.captured_inputs()))
    for branch in branches:
        if len(branch.builder.graph.outputs) != len(node.outputs):
            count = len(branch.builder.graph.outputs)
            raise ModelError(
                f"branch {branch.builder.graph.name!r} gives {count} outputs, the node has {len(node.outputs)}"
            )
        branch.builder.graph.inputs = [branch.standing_for(outer) for outer in captures]
    if len(node.inputs) != 1 or node.inputs[0] is None:
        raise ModelError("it takes one input, the condition")
    then_branch, else_branch = (branch.builder.graph for branch in branches)
    attrs = {"then_branch": then_branch, "else_branch": else_branch}
    scope.builder.add(Node("If", [node.inputs[0], *captures], node.outputs, attrs, node.name))


class _Branch:
    def __init__(self, reader: ModelReader, scope: Scope, proto: GraphProto):
        if proto.inputs:
            raise ModelError(f"branch {proto.name!r} has inputs, it may have none")
        self.builder = GraphBuilder(proto.name or "branch", scope.builder)
        inner = Scope(self.builder, scope)
        reader.read_body(proto, inner)
        self.builder.graph.outputs = [inner.lookup(info.name) for info in proto.outputs]

    def standing_for(self, outer: Value) -> Value:
        inner = self.builder.captures.get(outer)
        return inner if inner is not None else outer.like(self.builder.unique_name(outer.name))


def read_loop(reader: ModelReader, scope: Scope, node: Node, version: int) -> None:
    """A false condition of the body ends the loop also if the node itself gives no condition, as in onnxruntime."""
    body = _Body(reader, scope, graph_attribute(node.attrs, "body"))
    if len(node.inputs) < 2:
        raise ModelError(f"it takes a trip count and a condition, {len(node.inputs)} inputs given")
    inits = [_present(value) for value in node.inputs[2:]]
    if len(body.inputs) != len(inits) + 2:
        raise ModelError(f"the body takes {len(body.inputs)} inputs, the node hands over {len(inits) + 2}")
    scan = Scan(body.builder.graph, n_steps=node.inputs[0], cond=node.inputs[1], name=node.name)
    scan.iteration = body.define_number(0)
    body.define_constant(1, _true(body.inputs[1][1], node.inputs[1]))
    states = [body.define(2 + index) for index in range(len(inits))]
    outputs = body.read()
    n_traces = len(outputs) - 1 - len(inits)
    if n_traces < 0 or len(node.outputs) > len(inits) + n_traces:
        raise ModelError(
            f"the body gives {len(outputs)} outputs, the node has {len(inits)} states and {len(node.outputs)} outputs"
        )
    results = [*node.outputs, *[None] * (len(inits) + n_traces - len(node.outputs))]
    scan.body_cond = outputs[0]
    for init, state, new, final in zip(inits, states, outputs[1:], results, strict=False):
        scan.add_state(init, state, new, final)
    for element, trace in zip(outputs[1 + len(inits) :], results[len(inits) :], strict=True):
        scan.add_trace(element, trace)
    scope.builder.add(body.finish(scan))


def read_scan(reader: ModelReader, scope: Scope, node: Node, version: int) -> None:
    body = _Body(reader, scope, graph_attribute(node.attrs, "body"))
    if version < 9:
        _read_scan_8(scope.builder, body, node)
        return
    scan = _scan_over(body, node.inputs, node.outputs, node, n_steps=None)
    scope.builder.add(scan)


def _scan_over(
    body: _Body, inputs: list[Value | None], outputs: list[Value | None], node: Node, n_steps: Value | None
) -> Node:
    """The Scan of opset 9: states, then sequences; finals, then traces."""
    n_sequences = _integer(node.attrs, "num_scan_inputs")
    n_states = len(inputs) - n_sequences
    if not 0 < n_sequences <= len(inputs) or len(body.inputs) != len(inputs):
        raise ModelError(
            f"the body takes {len(body.inputs)} inputs, "
            f"the node hands over {len(inputs)}, {n_sequences} of them sequences"
        )
    inner = [body.define(index) for index in range(len(inputs))]
    results = body.read()
    n_traces = len(results) - n_states
    if n_traces < 0 or len(outputs) > len(results):
        raise ModelError(
            f"the body gives {len(results)} outputs, the node has {n_states} states and {len(outputs)} outputs"
        )
    outputs = [*outputs, *[None] * (len(results) - len(outputs))]
    scan = Scan(body.builder.graph, n_steps=n_steps, name=node.name)
    for index in range(n_states):
        scan.add_state(_present(inputs[index]), inner[index], results[index], outputs[index])
    input_axes = _list(node.attrs, "scan_input_axes", n_sequences)
    input_directions = _directions(node.attrs, "scan_input_directions", n_sequences)
    for index in range(n_sequences):
        whole, element = _present(inputs[n_states + index]), inner[n_states + index]
        scan.add_sequence(whole, element, input_axes[index], bool(input_directions[index]))
    output_axes = _list(node.attrs, "scan_output_axes", n_traces)
    output_directions = _directions(node.attrs, "scan_output_directions", n_traces)
    for index in range(n_traces):
        element, trace = results[n_states + index], outputs[n_states + index]
        scan.add_trace(element, trace, output_axes[index], bool(output_directions[index]))
    return body.finish(scan)


def _read_scan_8(builder: GraphBuilder, body: _Body, node: Node) -> None:
    """Scan of opset 8 works on a batch: a Scan over the batch around the Scan over the steps.

    Sequences that end early leave zeros in the traces.
    """
    lengths, inputs = node.inputs[0], [_present(value) for value in node.inputs[1:]]
    n_sequences = _integer(node.attrs, "num_scan_inputs")
    n_states = len(inputs) - n_sequences
    if not 0 < n_sequences <= len(inputs):
        raise ModelError(f"{n_sequences} of {len(inputs)} inputs are sequences", attribute="num_scan_inputs")
    node.attrs["scan_input_directions"] = node.attrs.pop("directions", [0] * n_sequences)
    of_item = GraphBuilder(f"{node.name or 'scan'}_item", builder)
    body.builder.parent = of_item
    scan = Scan(of_item.graph, name=node.name)
    items: list[Value | None] = []
    for value in inputs:
        item = of_item.value(value.name, value.dtype, None if value.shape is None else value.shape[1:])
        scan.add_sequence(value, item)
        items.append(item)
    length = None
    if lengths is not None:
        length = of_item.value("length", DType.INT64)
        scan.add_sequence(lengths, length)
    body.capture_through(of_item)
    results: list[Value | None] = [of_item.value(f"result{index}") for index in range(len(node.outputs))]
    of_item.add(_scan_over(body, items, results, node, length))
    for index, (result, output) in enumerate(zip(results, node.outputs, strict=True)):
        whole = _present(result)
        if length is not None and index >= n_states:
            whole = _padded(of_item, whole, _present(items[n_states]))
        scan.add_trace(whole, output)
    scan.add_captures(of_item)
    builder.add(scan.to_node())


def _padded(b: GraphBuilder, trace: Value, sequence: Value) -> Value:
    """`trace` with zeros up to the length of `sequence`."""
    missing = b.op("Sub", b.op("Shape", sequence, start=0, end=1), b.op("Shape", trace, start=0, end=1))
    amounts = b.op("Concat", b.ints(0), missing, axis=0)
    return b.op("Pad", trace, amounts, None, b.ints(0))


def read_sequence_map(reader: ModelReader, scope: Scope, node: Node, version: int) -> None:
    """A Scan that counts: it takes item i of every sequence, and appends to the sequences that it carries."""
    body = _Body(reader, scope, graph_attribute(node.attrs, "body"))
    inputs = [_present(value) for value in node.inputs]
    if not inputs or len(body.inputs) != len(inputs):
        raise ModelError(f"the body takes {len(body.inputs)} inputs, the node hands over {len(inputs)}")
    n_steps = scope.builder.op("SequenceLength", inputs[0])
    scan = Scan(body.builder.graph, n_steps=n_steps, name=node.name)
    scan.iteration = body.builder.value("i", DType.INT64, ())
    for index, value in enumerate(inputs):
        if index > 0 and "seq" not in value.container:
            scan.invariants.append(Invariant(value, body.define(index)))
            continue
        whole = value.like(body.builder.unique_name(value.name))
        scan.invariants.append(Invariant(value, whole))
        item = body.builder.op("SequenceAt", whole, scan.iteration)
        body.scope.define(body.inputs[index][0], item)
    results = body.read()
    if len(results) != len(node.outputs):
        raise ModelError(f"the body gives {len(results)} outputs, the node has {len(node.outputs)}")
    for index, (item, output) in enumerate(zip(results, node.outputs, strict=True)):
        carried = body.builder.value(f"so_far{index}", item.dtype, None, ("seq",))
        grown = body.builder.op("SequenceInsert", carried, item)
        empty = scope.builder.op("SequenceEmpty", dtype=int(item.dtype or DType.FLOAT))
        scan.add_state(empty, carried, grown, output)
    scope.builder.add(body.finish(scan))


READERS: dict[str, Callable[[ModelReader, Scope, Node, int], None]] = {
    "If": read_if,
    "Loop": read_loop,
    "Scan": read_scan,
    "SequenceMap": read_sequence_map,
}


class _Body:
    """The body of a loop: its inputs are defined one by one, as the loop needs them, then the rest is read."""

    def __init__(self, reader: ModelReader, scope: Scope, proto: GraphProto):
        self.reader, self.proto = reader, proto
        self.builder = GraphBuilder(proto.name or "body", scope.builder)
        self.scope = Scope(self.builder, scope)
        self.inputs: list[tuple[str, ValueType]] = [(info.name, reader.declared_type(info)) for info in proto.inputs]

    def define(self, index: int) -> Value:
        name, declared = self.inputs[index]
        value = self.builder.value(name, *declared)
        self.scope.define(name, value)
        return value

    def define_number(self, index: int) -> Value:
        """The number of the iteration: a scalar of the loop, that the body may declare with axes of one element."""
        name, declared = self.inputs[index]
        number = self.builder.value(name, DType.INT64, ())
        rank = len(declared.shape or ())
        self.scope.define(name, self.builder.op("Reshape", number, self.builder.ints(*[1] * rank)) if rank else number)
        return number

    def define_constant(self, index: int, array: np.ndarray) -> None:
        name, _ = self.inputs[index]
        self.scope.define(name, self.builder.constant(array, name))

    def capture_through(self, middle: GraphBuilder) -> None:
        """Take outer values by way of another builder that stands between the body and the graph around it."""
        assert self.scope.parent is not None
        outside = self.scope.parent
        self.scope.parent = Scope(middle, outside)

    def read(self) -> list[Value]:
        self.reader.read_body(self.proto, self.scope)
        return [self.scope.lookup(info.name) for info in self.proto.outputs]

    def finish(self, scan: Scan) -> Node:
        scan.add_captures(self.builder)
        return scan.to_node()


def _present(value: Value | None) -> Value:
    if value is None:
        raise ModelError("an input is missing")
    return value


def _true(declared: ValueType, given: Value | None) -> np.ndarray:
    """The condition that a body gets: whenever it runs, that was true. Its rank is that which the body declares, else
    that of the condition that the loop is given.
    """
    shape = declared.shape
    if shape is None and given is not None:
        shape = given.shape
    return np.ones((1,) * len(shape or ()), bool)


def _integer(attrs: dict[str, Any], name: str) -> int:
    value = attrs.get(name)
    if not isinstance(value, int):
        raise ModelError("an integer is required", attribute=name)
    return value


def _list(attrs: dict[str, Any], name: str, length: int) -> list[int]:
    values = attrs.get(name) or [0] * length
    if not isinstance(values, list) or len(values) != length or not all(isinstance(value, int) for value in values):
        raise ModelError(f"it needs to be a list of {length} integers", attribute=name)
    return values


def _directions(attrs: dict[str, Any], name: str, length: int) -> list[int]:
    values = _list(attrs, name, length)
    if not set(values) <= {0, 1}:
        raise ModelError(f"{values}: 0 is forwards, 1 is backwards", attribute=name)
    return values
