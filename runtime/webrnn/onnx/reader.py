"""ONNX files to graphs: `read_model`.

The reader resolves names to values, inlines local functions, brings every node to the newest opset, and hands the ops
that contain graphs to `controlflow` and the recurrences to the modules of `_RECURRENCES`.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from webrnn.errors import ModelError, OptionError, ShapeError
from webrnn.ir import DType, Graph, GraphBuilder, Node, Value
from webrnn.ir.blame import blame
from webrnn.names import unknown_name
from webrnn.ops.sets import RANDOM

from . import controlflow, opsets
from .attributes import constant_value, python_value
from .fixed import fixed_array
from .not_models import not_read, require_model
from .order import sort_nodes
from .proto import (
    Attribute,
    FunctionProto,
    GraphProto,
    Model,
    NodeProto,
    OperatorSet,
    TypeProto,
    ValueInfo,
    decode_model,
)
from .scope import Scope
from .tensors import UNKNOWN, TensorReader, ValueType, value_type

Expansion: TypeAlias = Callable[[GraphBuilder, Node], bool]
"""Adds what stands for a node to the graph; False says that it has added nothing and the node is to stay."""

_RECURRENCES = {
    "CausalConvWithState": "causal_conv.expand_causal_conv",
    "GRU": "recurrent.expand_gru",
    "LSTM": "recurrent.expand_lstm",
    "LinearAttention": "linear_attention.expand_linear_attention",
    "RNN": "recurrent.expand_rnn",
}
"""What makes Scans of the ops that are recurrences."""

_CONTRIBUTED = frozenset({"com.microsoft", "ai.onnx.ml"})
"""Domains with ops that are made of ONNX's own."""

MAX_FUNCTION_DEPTH = 32

MAX_NODES = 1_000_000
"""Functions that call functions can make a small file an enormous graph; this is where it ends."""


class Opened:
    """Which constants of a model are to be inputs of its graph, and, once it is read, what they were."""

    def __init__(self, names: Collection[str] | None = None):
        """`names` of initializers or Constants; None is all initializers of floating-point numbers with an axis."""
        self._names = names
        self.arrays: dict[str, np.ndarray] = {}

    def takes(self, name: str, array: np.ndarray, dtype: DType, is_initializer: bool) -> bool:
        if self._names is None:
            return is_initializer and array.ndim > 0 and dtype in (DType.FLOAT, DType.DOUBLE, DType.FLOAT16)
        return name in self._names


def read_model(
    source: str | os.PathLike[str] | bytes, fixed: Mapping[str, Any] | None = None, opened: Opened | None = None
) -> Graph:
    """Read a model from a path or from its bytes. `fixed` turns inputs into constants, `opened` constants into inputs.

    >>> from onnx.parser import parse_model
    >>> model = parse_model('''<ir_version: 8, opset_import: ["": 17]>
    ... sum (float[n] x, float[n] y) => (float[n] z) { z = Add(x, y) }''')
    >>> graph = read_model(model.SerializeToString(), fixed={"y": np.float32([1])})
    >>> graph.inputs, graph.nodes
    ([<Value x>], [<Node Add -> z>])
    """
    return read_described(source, fixed, opened).graph


@dataclass(frozen=True, eq=False)
class Described:
    """A graph, and what its file says beside it."""

    graph: Graph
    metadata: dict[str, Any]
    """By the names that onnxruntime has for them."""
    defaults: list[Value]
    """Inputs that have a default, which are constants here unless they are fixed to something else."""


def read_described(
    source: str | os.PathLike[str] | bytes, fixed: Mapping[str, Any] | None = None, opened: Opened | None = None
) -> Described:
    """The same with what the file says beside the graph."""
    if isinstance(source, bytes | bytearray | memoryview):
        data, folder = bytes(source), None
    else:
        path = Path(source)
        try:
            data, folder = path.read_bytes(), path.parent
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise not_read(path, error) from None
    with collector_paused():
        return _read_bytes(data, folder, fixed, opened)


def _read_bytes(data: bytes, folder: Path | None, fixed: Mapping[str, Any] | None, opened: Opened | None) -> Described:
    require_model(data)
    model = decode_model(data)
    try:
        return _read(model, TensorReader(data, folder), fixed, opened)
    except ModelError:
        if not sort_nodes(model):
            raise
    return _read(model, TensorReader(data, folder), fixed, opened)


def _read(model: Model, tensors: TensorReader, fixed: Mapping[str, Any] | None, opened: Opened | None) -> Described:
    assert model.graph is not None
    reader = ModelReader(_opset_versions(model.opsets), model.functions, tensors)
    reader.opened = opened
    if opened is not None:
        opened.arrays.clear()
    graph = reader.read_main_graph(model.graph, dict(fixed or {}))
    with_initializer = {tensor.name for tensor in model.graph.initializers}
    defaults = [
        Value(info.name, *reader.declared_type(info))
        for info in model.graph.inputs
        if info.name in with_initializer and info.name not in (fixed or {})
    ]
    return Described(graph, _metadata(model, model.graph), defaults)


def _metadata(model: Model, graph: GraphProto) -> dict[str, Any]:
    def text(raw: bytes) -> str:
        return raw.decode("utf-8", "replace")

    return {
        "producer_name": model.producer,
        "graph_name": graph.name,
        "domain": text(model.domain),
        "description": text(model.description),
        "graph_description": text(graph.description),
        "version": model.version,
        "custom_metadata_map": {text(entry.key): text(entry.value) for entry in model.metadata},
    }


@contextmanager
def collector_paused() -> Iterator[None]:
    """No search for reference cycles while a model's many objects are made; none of them is garbage yet."""
    was_running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_running:
            gc.enable()


class ModelReader:
    """What is common to all graphs of a model."""

    def __init__(self, opset_versions: dict[str, int], functions: Iterable[FunctionProto], tensors: TensorReader):
        self.opset_versions = opset_versions
        self.tensors = tensors
        self.opened: Opened | None = None
        self._functions = {(_domain(item.domain), item.name, item.overload): item for item in functions}
        self._function_depth = 0
        self._types: dict[TypeProto, ValueType] = {}
        self._constants: dict[Attribute, tuple[np.ndarray, DType]] = {}
        self._nodes_read = 0
        self._has_containers = False
        self._draws = False
        """Whether a node may draw random numbers."""

    def read_main_graph(self, proto: GraphProto, fixed: dict[str, Any]) -> Graph:
        builder = GraphBuilder(proto.name or "main")
        scope = Scope(builder)
        with_initializer = {tensor.name for tensor in proto.initializers}
        for info in proto.inputs:
            declared = self.declared_type(info)
            if info.name in fixed:
                scope.define(
                    info.name, builder.constant(fixed_array(fixed.pop(info.name), info.name, declared), info.name)
                )
            elif info.name not in with_initializer:
                scope.define(info.name, builder.input(info.name, *declared))
        if fixed:
            names = [info.name for info in proto.inputs]
            raise ShapeError(f"fixed: {unknown_name('input', sorted(fixed)[0], names)}")
        self.read_body(proto, scope)
        builder.graph.outputs = [self._main_output(scope, info.name) for info in proto.outputs]
        if not builder.graph.outputs:
            raise ModelError("the graph has no outputs")
        if self._draws:
            from .random import count_draws

            count_draws(builder.graph)
        builder.graph.drop_unused_constants()
        _require_makers(builder.graph)
        if self._has_containers:
            from webrnn.ir.containers import mark_containers  # a page waits for what is imported

            mark_containers(builder.graph)
        return builder.graph

    def read_body(self, proto: GraphProto, scope: Scope) -> None:
        """Read constants and nodes of a graph whose inputs are already defined in `scope`."""
        for tensor in proto.initializers:
            if tensor.name in scope.names and scope.parent is not None:
                continue
            array, dtype = self.tensors.read(tensor)
            self.define_constant(scope, tensor.name, array, dtype, is_initializer=True)
        for sparse in proto.sparse_initializers:
            array, dtype = self.tensors.read_sparse(sparse)
            self.define_constant(scope, sparse.values.name if sparse.values else "", array, dtype)
        for info in (*proto.value_infos, *proto.outputs):
            if info.type is not None:
                scope.types[info.name] = self.declared_type(info)
        self._read_nodes(proto.nodes, scope)

    def declared_type(self, info: ValueInfo) -> ValueType:
        if info.type is None:
            return UNKNOWN
        found = self._types.get(info.type)
        if found is None:
            found = self._types[info.type] = value_type(info.type, info.name)
        return found

    def define_constant(
        self, scope: Scope, name: str, array: np.ndarray, dtype: DType, is_initializer: bool = False
    ) -> None:
        opened = None if scope.in_function else self.opened
        if opened is None or not opened.takes(name, array, dtype, is_initializer):
            scope.define(name, scope.builder.constant(array, name, dtype))
            return
        if name in opened.arrays:
            raise OptionError(f"there are two constants {name!r}, in different graphs: which one is meant is not clear")
        opened.arrays[name] = array
        scope.define(name, scope.as_input(Value(name, dtype, array.shape)))

    def _read_nodes(self, nodes: Sequence[NodeProto], scope: Scope) -> None:
        self._nodes_read += len(nodes)
        if self._nodes_read > MAX_NODES:
            raise ModelError(f"the model has more than {MAX_NODES} nodes")
        for node in nodes:
            try:
                self._read_node(node, scope)
            except Exception as error:
                label = node.name or (f"-> {node.outputs[0]}" if node.outputs else node.op)
                raise blame(error, label, node.op) from (error.__cause__ or error)

    def _read_node(self, proto: NodeProto, scope: Scope) -> None:
        domain = proto.domain and _domain(proto.domain)
        attributes = scope.bind(proto.attributes) if scope.in_function else proto.attributes
        if proto.op == "Constant" and not domain:
            self._read_constant(proto, attributes, scope)
            return
        function = self._functions.get((domain, proto.op, proto.overload)) if self._functions else None
        if function is not None:
            self._inline(function, proto, attributes, scope)
            return
        attrs = {item.name: python_value(item, self.tensors) for item in attributes} if attributes else {}
        if len(attrs) != len(attributes):
            raise ModelError("an attribute is given twice")
        if attrs.get("auto_pad") == "":  # how some exporters write the default
            del attrs["auto_pad"]
        inputs = [scope.lookup(name) if name else None for name in proto.inputs]
        outputs = [scope.produce(name) if name else None for name in proto.outputs]
        node = Node(proto.op, inputs, outputs, attrs, proto.name, domain)
        self._has_containers = self._has_containers or "Sequence" in proto.op or "Optional" in proto.op
        if proto.op in controlflow.READERS:  # graphs inside a node do not see what it makes
            made = {name: scope.names.pop(name) for name in proto.outputs if name}
            self._place(node, scope)
            scope.names.update(made)
        else:
            self._place(node, scope)

    def _read_constant(self, proto: NodeProto, attributes: Sequence[Attribute], scope: Scope) -> None:
        if len(attributes) != 1 or len(proto.outputs) != 1:
            raise ModelError(
                f"a Constant has one value and one output, this one has {len(attributes)} and {len(proto.outputs)}"
            )
        found = self._constants.get(attributes[0])
        if found is None:
            found = self._constants[attributes[0]] = constant_value(attributes[0], self.tensors)
        self.define_constant(scope, proto.outputs[0], *found)

    def _place(self, node: Node, scope: Scope) -> None:
        """Put a node into the graph in the form that the IR has for it."""
        builder = scope.builder
        if (node.domain in _CONTRIBUTED or node.op == "SimplifiedLayerNormalization") and _contributed(builder, node):
            return
        if (node.domain, node.op) == ("ai.onnx.preview", "FlexAttention"):
            from .flex_attention import read_flex_attention  # a page waits for what is imported

            read_flex_attention(self, scope, node)
            return
        if not node.domain:
            self._draws |= node.op in RANDOM
            version = self.opset_versions.get("", 0)
            if version not in opsets.SUPPORTED:
                raise opsets.unsupported(version)
            if node.op in opsets.ADAPTERS:
                upgraded = opsets.upgrade(builder, node, version)
                if upgraded is None:
                    return
                node = upgraded
            if node.op in controlflow.READERS:
                controlflow.READERS[node.op](self, scope, node, version)
                return
            expand = _expansion_of(node.op)
            if expand is not None and expand(builder, node):
                return
        builder.add(node)

    def _main_output(self, scope: Scope, name: str) -> Value:
        """The value of an output, under the output's own name."""
        value = scope.lookup(name)
        builder = scope.builder
        if value.name == name and value not in builder.graph.constants and value not in builder.graph.inputs:
            return value
        output = value.like(name)
        builder.op("Identity", value, output=output)
        return output

    def _inline(self, function: FunctionProto, call: NodeProto, attributes: Sequence[Attribute], scope: Scope) -> None:
        if self._function_depth >= MAX_FUNCTION_DEPTH:
            raise ModelError(
                f"function {function.name!r} is called more than {MAX_FUNCTION_DEPTH} deep; does it call itself?"
            )
        if len(call.inputs) > len(function.inputs) or len(call.outputs) > len(function.outputs):
            raise ModelError(
                f"function {function.name!r} has {len(function.inputs)} inputs and {len(function.outputs)} outputs, "
                f"the call has {len(call.inputs)} and {len(call.outputs)}"
            )
        given = {item.name: item for item in (*function.attribute_defaults, *attributes)}
        inner = Scope(scope.builder, arguments=given, prefix=f"{call.name or function.name}/")
        for index, name in enumerate(function.inputs):
            argument = call.inputs[index] if index < len(call.inputs) else ""
            inner.define(name, scope.lookup(argument) if argument else None)
        outer_versions, self.opset_versions = (
            self.opset_versions,
            _opset_versions(function.opsets) or self.opset_versions,
        )
        self._function_depth += 1
        try:
            self._read_nodes(function.nodes, inner)
        finally:
            self._function_depth -= 1
            self.opset_versions = outer_versions
        for outer_name, inner_name in zip(call.outputs, function.outputs, strict=False):
            if outer_name:
                scope.define(outer_name, inner.lookup(inner_name))


def _require_makers(graph: Graph) -> None:
    """An older op that is brought to the newest opset loses results that it does not have."""
    for inner in graph.walk():
        made: set[Value | None] = {None, *inner.inputs, *inner.constants}
        for node in inner.nodes:
            made.update(node.outputs)
        read = {value for node in inner.nodes for value in node.inputs}.union(inner.outputs)
        for value in read - made:
            raise ModelError(f"no op makes {value.name!r}" if value else "a value is missing")


def _opset_versions(imports: Iterable[OperatorSet]) -> dict[str, int]:
    return {_domain(item.domain): item.version for item in imports}


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _contributed(builder: GraphBuilder, node: Node) -> bool:
    from .contributed import expand  # a page waits for what is imported

    return expand(builder, node)


def _expansion_of(op: str) -> Expansion | None:
    if op not in _RECURRENCES:
        return None
    module, _, name = _RECURRENCES[op].partition(".")
    found: Expansion = getattr(import_module(f".{module}", __package__), name)
    return found
