"""Ops that are not ONNX's own but of the domains of onnxruntime and of classical machine learning, as nodes of ONNX's.

onnxruntime's tools write them into files when they fuse or quantize a model. `MODULES` names the module that has the
function of an op; a function takes a `Call` and returns the results in the order of the node's outputs, None
for those that it cannot make. An op that is not in a table is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from webrnn.errors import ModelError, UnsupportedOp
from webrnn.ir import DType, GraphBuilder, Node, Shape, Value
from webrnn.shapes.facts import Fact
from webrnn.shapes.infer import infer

MODULES: dict[tuple[str, str], str] = {
    **{
        ("com.microsoft", op): "microsoft_quantized"
        for op in [
            "DequantizeLinear",
            "DynamicQuantizeLSTM",
            "DynamicQuantizeMatMul",
            "MatMulIntegerToFloat",
            "MatMulNBits",
            "QGemm",
            "QLinearAdd",
            "QLinearAveragePool",
            "QLinearConcat",
            "QLinearConv",
            "QLinearGlobalAveragePool",
            "QLinearLeakyRelu",
            "QLinearMul",
            "QLinearReduceMean",
            "QLinearSigmoid",
            "QLinearSoftmax",
            "QLinearWhere",
            "QuantizeLinear",
        ]
    },
    **{
        ("com.microsoft", op): "microsoft_attention"
        for op in [
            "Attention",
            "EmbedLayerNormalization",
            "GroupQueryAttention",
            "MultiHeadAttention",
            "QAttention",
            "QEmbedLayerNormalization",
            "RotaryEmbedding",
        ]
    },
    **{
        ("com.microsoft", op): "microsoft_fused"
        for op in [
            "BiasGelu",
            "ExpandDims",
            "FastGelu",
            "FusedConv",
            "FusedGemm",
            "FusedMatMul",
            "FusedMatMulActivation",
            "GatherND",
            "Gelu",
            "Pad",
            "QuickGelu",
            "Range",
            "SimplifiedLayerNormalization",
            "SkipLayerNormalization",
            "SkipSimplifiedLayerNormalization",
            "TransposeMatMul",
            "Trilu",
            "Unique",
        ]
    },
    ("", "SimplifiedLayerNormalization"): "microsoft_fused",
    ("ai.onnx.ml", "ArrayFeatureExtractor"): "microsoft_fused",
    ("ai.onnx.ml", "Binarizer"): "microsoft_fused",
}
"""By domain and op, the module that has its function. onnxruntime puts SimplifiedLayerNormalization into ONNX's own
domain."""


class Call:
    """A node, the graph that it is to become part of, and what is known of its operands."""

    def __init__(self, builder: GraphBuilder, node: Node):
        self.b, self.node = builder, node
        self._attributes: dict[str, Any] = dict(node.attrs)

    def given(self, index: int) -> Value | None:
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def required(self, index: int) -> Value:
        value = self.given(index)
        if value is None:
            raise ModelError(f"input {index} is required")
        return value

    def asks_for(self, index: int) -> bool:
        return index < len(self.node.outputs) and self.node.outputs[index] is not None

    def attribute(self, name: str, default: Any) -> Any:
        """An attribute of the kind of its default; those that no function takes are not supported."""
        value = self._attributes.pop(name, default)
        kind = (int, float) if isinstance(default, float) else type(default)
        if default is not None and not isinstance(value, kind):
            raise ModelError(f"{value!r} is of another type", attribute=name)
        return value

    def require_attribute(self, name: str) -> int:
        value = self.attribute(name, 0)
        if value < 1:
            raise ModelError("a positive integer is required", attribute=name)
        return int(value)

    def only(self, name: str, *allowed: Any) -> None:
        """Take an attribute that may only have values with which it changes nothing."""
        value = self._attributes.pop(name, allowed[0])
        if value not in allowed:
            raise UnsupportedOp(f"{value!r} is not supported", attribute=name)

    def rest(self, *names: str) -> dict[str, Any]:
        """Attributes of these names, to be handed on."""
        return {name: self._attributes.pop(name) for name in names if name in self._attributes}

    def require_no_more_attributes(self) -> None:
        for name in self._attributes:
            raise UnsupportedOp("this attribute is not supported", attribute=name)

    def op(self, op: str, *inputs: Value | None, **attrs: Any) -> Value:
        made = self.b.op(op, *inputs, **attrs)
        self.b.graph.nodes[-1].name = self.node.name
        return made

    def ops(self, op: str, n_outputs: int, *inputs: Value | None, **attrs: Any) -> list[Value]:
        made = [self.b.value(op.lower()) for _ in range(n_outputs)]
        self.b.add(Node(op, list(inputs), [*made], attrs, self.node.name))
        return made

    def number(self, number: float, like: Value) -> Value:
        """A scalar of the type of a value."""
        scalar = self.b.constant(np.float32(number), "number")
        return scalar if like.dtype is DType.FLOAT else self.op("CastLike", scalar, like)

    def fact(self, value: Value) -> Fact:
        """What is known of a value: of inner ones only what follows from the graph so far, as it is read."""
        if value in self.b.graph.constants or (value.dtype is not None and value.shape is not None):
            return Fact(value.dtype, value.shape)
        return infer(self.b.graph).of(value)

    def shape(self, value: Value, what: str) -> Shape:
        shape = self.fact(value).shape
        if shape is None:
            raise UnsupportedOp(f"the rank of {what} has to be known")
        return shape

    def size(self, value: Value, axis: int, what: str) -> int:
        size = self.shape(value, what)[axis]
        if not isinstance(size, int):
            raise UnsupportedOp(f"axis {axis} of {what} has to be of a known size")
        return size

    def array(self, index: int, what: str) -> np.ndarray:
        found = self.b.array_of(self.required(index))
        if found is None:
            raise UnsupportedOp(f"{what} has to be a constant")
        return found


Function: TypeAlias = Callable[[Call], Sequence[Value | None]]


def expand(builder: GraphBuilder, node: Node) -> bool:
    """Add what stands for a node; False if it is of no table."""
    module = MODULES.get((node.domain, node.op))
    if module is None:
        return False
    functions: Mapping[str, Function] = import_module(f".{module}", __package__).FUNCTIONS
    call = Call(builder, node)
    results = functions[node.op](call)
    call.require_no_more_attributes()
    for index, output in enumerate(node.outputs):
        if output is not None:
            result = results[index] if index < len(results) else None
            if result is None:
                raise UnsupportedOp(f"output {index} is not supported")
            builder.op("Identity", result, output=output)
    return True
