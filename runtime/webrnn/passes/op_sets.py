"""Which ops are of which kind; all of them are of ONNX's own domain."""

from __future__ import annotations

from webrnn.ir import DType, Node

from .facts import Facts

FLOATS = frozenset({DType.FLOAT, DType.DOUBLE, DType.FLOAT16})

MAPS = frozenset(
    {
        "Abs",
        "Acos",
        "Acosh",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "Ceil",
        "Celu",
        "Cos",
        "Cosh",
        "Elu",
        "Erf",
        "Exp",
        "Floor",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "LeakyRelu",
        "Log",
        "Mish",
        "Neg",
        "Reciprocal",
        "Relu",
        "Round",
        "Selu",
        "Shrink",
        "Sigmoid",
        "Sign",
        "Sin",
        "Sinh",
        "Softplus",
        "Softsign",
        "Sqrt",
        "Swish",
        "Tan",
        "Tanh",
        "ThresholdedRelu",
    }
)
"""One tensor to one of the same type and shape, element by element."""

BROADCASTING = frozenset({"Add", "Sub", "Mul", "Div", "Mod"})
"""Two tensors of one type to a tensor of that type."""

VARIADIC = frozenset({"Max", "Min", "Sum", "Mean"})

COMPARISONS = frozenset({"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"})

LOGICAL = frozenset({"And", "Or", "Xor", "Not"})

BITWISE = frozenset({"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"})

ELEMENTWISE = (MAPS | BROADCASTING | VARIADIC | COMPARISONS | LOGICAL | BITWISE | {"Where", "Cast", "IsNaN"}) - {"Mod"}
"""Ops of which each element of the result depends on the elements in the same place of the broadcast operands."""

PRODUCTS = frozenset({"MatMul", "Gemm", "Conv"})
"""Ops on a tensor and weights that cost more than reading the tensor."""

RANDOM = frozenset(
    {
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "Multinomial",
        "Bernoulli",
        "Dropout",
    }
)
"""Ops that may give another result each time."""


def is_plain(node: Node, *ops: str) -> bool:
    """Whether it is one of these ops of ONNX's own domain."""
    return not node.domain and node.op in ops


_TOTAL = ELEMENTWISE | frozenset(
    {
        "Transpose",
        "Unsqueeze",
        "Squeeze",
        "Flatten",
        "Shape",
        "Size",
        "Identity",
        "Concat",
        "Split",
        "MatMul",
        "Gemm",
        "Conv",
        "Softmax",
        "LogSoftmax",
        "Clip",
        "ReduceSum",
        "ReduceMax",
        "ReduceMin",
        "ReduceL1",
        "ReduceL2",
        "ReduceSumSquare",
        "LayerNormalization",
        "BatchNormalization",
        "PRelu",
    }
)


def is_total(node: Node, facts: Facts) -> bool:
    """Whether it can only fail on operands whose types or shapes never fit, not on their elements."""
    if node.domain or node.op not in _TOTAL:
        return False
    divides = node.op == "Div" and facts.dtype(node.inputs[0]) not in FLOATS
    return not divides and facts.dtype(node.inputs[0]) is not DType.STRING
