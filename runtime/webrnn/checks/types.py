"""Which element types the operands of an op may have, which of them have to have the same, and how many outputs it has:
as the specification says of the newest version of each op. What only moves elements takes all types.
"""

from __future__ import annotations

from functools import cache

from webrnn.errors import ModelError
from webrnn.ir import DType

from .check import FLOATS, INTEGERS, Check

_EIGHTHS = {DType.FLOAT8E4M3FN, DType.FLOAT8E4M3FNUZ, DType.FLOAT8E5M2, DType.FLOAT8E5M2FNUZ}
_BYTES = {DType.INT8, DType.UINT8}
_INDICES = {DType.INT32, DType.INT64}

SETS: dict[str, frozenset[DType]] = {
    "any": frozenset(DType),
    "bits": frozenset(DType) - FLOATS - INTEGERS - {DType.BOOL, DType.STRING, DType.COMPLEX64, DType.COMPLEX128}
    - {DType.FLOAT8E8M0} | _BYTES | {DType.INT16, DType.UINT16},
    "bool": frozenset({DType.BOOL}),
    "byte": frozenset(_BYTES),
    "complex": frozenset({DType.COMPLEX64, DType.COMPLEX128}),
    "f32": frozenset({DType.FLOAT}),
    "float": FLOATS,
    "float_or_8": FLOATS | _EIGHTHS,
    "i32": frozenset({DType.INT32}),
    "i64": frozenset({DType.INT64}),
    "index": frozenset(_INDICES),
    "integer": INTEGERS,
    "number": FLOATS | INTEGERS,
    "quantized": frozenset(_BYTES | _EIGHTHS),
    "scale": FLOATS - {DType.DOUBLE} | {DType.FLOAT8E8M0},
    "signed": FLOATS | {DType.INT8, DType.INT16, DType.INT32, DType.INT64},
    "string": frozenset({DType.STRING}),
    "wide": FLOATS | _INDICES | {DType.UINT32, DType.UINT64},
}  # fmt: skip

OPERANDS = {
    "T1:any-complex": "Cast",
    "T1:any-string": "BitCast",
    "T1:f32": "DynamicQuantizeLinear",
    "T1:float_or_8": "IsInf IsNaN",
    "T1:i64": "ConstantOfShape",
    "T1:index": "BlackmanWindow HammingWindow HannWindow",
    "T1:number+bool": "EyeLike",
    "T1:string": "StringSplit",
    "T:any": "DepthToSpace Flatten NonZero Shape Size SpaceToDepth Transpose Unique",
    "T:any*": "Concat SequenceConstruct",
    "T:bool": "Not",
    "T:float": (
        "Acos Acosh Asin Asinh Atan Atanh AveragePool Ceil Celu Cos Cosh Det Elu Erf Exp Floor Gelu "
        "GlobalAveragePool GlobalLpPool GlobalMaxPool HardSigmoid HardSwish Hardmax LRN LeakyRelu Log "
        "LogSoftmax LpNormalization LpPool MeanVarianceNormalization Mish Reciprocal Round Selu Sigmoid Sin "
        "Sinh Softmax Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu"
    ),
    "T:float*": "Mean Sum",
    "T:float+byte": "MaxPool",
    "T:integer": "BitwiseNot",
    "T:number": "Abs ArgMax ArgMin Shrink Sign",
    "T:number*": "Einsum Max Min",
    "T:signed": "Neg Relu",
    "T1:any T2:float": "GridSample",
    "T1:any-complex T2:any-complex": "CastLike",
    "T1:float T2:i64": "AffineGrid",
    "T:any :i64": "Expand GatherND Reshape ReverseSequence Split Squeeze Trilu Unsqueeze",
    "T:any I:index": "SplitToSequence",
    "T:any T1:bool": "Compress",
    "T:any T1:i64": "Tile",
    "T:any Tind:index": "CenterCropPad Gather GatherElements",
    "T:bool T": "And Or Xor",
    "T:float :i64": "ReduceLogSum ReduceLogSumExp",
    "T:float T": "SwiGLU",
    "T:float V:float": "RMSNormalization",
    "T:float+index T1:number": "Pow",
    "T:integer T": "BitShift BitwiseAnd BitwiseOr BitwiseXor",
    "T:number :i64": "TopK",
    "T:number T": "Add Div Greater GreaterOrEqual Less LessOrEqual Mod Mul Sub",
    "T:number+bool+string T": "Equal",
    "T:string T": "StringConcat",
    "T:wide :i64": "ReduceL1 ReduceL2 ReduceMean ReduceProd ReduceSum ReduceSumSquare",
    "T:wide T": "MatMul PRelu",
    "T:wide T2:index": "CumProd CumSum",
    "T:wide+bool+byte :i64": "ReduceMax ReduceMin",
    "_ I:index": "SequenceAt SequenceErase",
    "B:bool T:any T": "Where",
    "T1:bits+int32 T2:scale T1": "DequantizeLinear",
    "T1:float T1 T2:i64": "RoiAlign",
    "T1:float T2:i64 T2": "MaxUnpool",
    "T1:float T2:index :i64": "DFT",
    "T1:float-double+i32 T2:scale+i32 T3:bits": "QuantizeLinear",
    "T1:number T2:number T3:any": "OneHot",
    "T:any :i64 :i64": "Col2Im",
    "T:any :i64 T": "ScatterND",
    "T:any T :i64": "TensorScatter",
    "T:any Tind:index T": "ScatterElements",
    "T:float T T": "Conv ConvTranspose GroupNormalization InstanceNormalization LayerNormalization",
    "T:float Tind:index T": "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    "T:float_or_8 T1:float_or_8 T2:bool": "Dropout",
    "T:number T T": "Clip",
    "T:signed-int8 T T": "Range",
    "T:wide T T": "Gemm",
    "_ T:any I:index": "SequenceInsert",
    "T1:any T2:float-bfloat16 :f32 :i64": "Resize",
    "T1:byte T2:byte T1 T2": "ConvInteger MatMulInteger",
    "T1:float T2:index T1 T2": "STFT",
    "T:any :i64 T Tind:index": "Pad",
    "T:float-double T T M:i64": "RotaryEmbedding",
    "T:float-double T T T": "CausalConvWithState",
    ":f32 :f32 :i64 :f32 :f32": "NonMaxSuppression",
    "T1:index T1 T1 T2:float T2": "MelWeightMatrix",
    "T:any Tind:index Tind Tind Tind": "Slice",
    "T:float T T T T": "DeformConv",
    "T:float T1:float T1 T2:float T2": "BatchNormalization",
    "T:float-double T T S:float-double T T": "LinearAttention",
    "T1:float T1 T2:float U:number+bool T1 T2 :i64": "Attention",
    "T1:quantized TS:float-double T1 T2:quantized TS T2 TS T3:quantized": "QLinearMatMul",
    "T1:byte :f32 T1 T2:byte :f32 T2 :f32 T3:byte T4:i32": "QLinearConv",
}
"""For each list of operands the ops that take it. An operand is `group:types`; those of one group have one type. A
group alone has the types that were given before, `*` is any number of operands, `_` is no tensor. Types are a set, `+`
and `-` others."""


OUTPUTS = {
    "Attention": 4, "BatchNormalization": 3, "CausalConvWithState": 2, "Dropout": 2, "DynamicQuantizeLinear": 3,
    "LayerNormalization": 3, "LinearAttention": 2, "MaxPool": 2, "SoftmaxCrossEntropyLoss": 2, "Split": 2**31,
    "StringSplit": 2, "TopK": 2, "Unique": 4,
}  # fmt: skip
"""How many outputs an op has at most; others have one."""


def _types(spelled: str) -> frozenset[DType]:
    """
    >>> sorted(dtype.text for dtype in _types("index+bool"))
    ['bool', 'int32', 'int64']
    """
    first, *others = spelled.replace("-", " -").replace("+", " +").split()
    found = SETS[first]
    for each in others:
        types = SETS.get(each[1:]) or {DType[each[1:].upper()]}
        found = found | types if each[0] == "+" else found - types
    return found


_OPERANDS_OF = {op: operands for operands, ops in OPERANDS.items() for op in ops.split()}


@cache
def _signature(op: str) -> list[tuple[str, frozenset[DType] | None, bool]]:
    """The group, the types and whether it may come several times, of each operand of an op."""
    found: list[tuple[str, frozenset[DType] | None, bool]] = []
    known: dict[str, frozenset[DType] | None] = {}
    for position, operand in enumerate(_OPERANDS_OF.get(op, "").split()):
        group, _, spelled = operand.rstrip("*").partition(":")
        group = group or f"operand {position}"
        types = known[group] = _types(spelled) if spelled else known.get(group)
        found.append((group, types, operand.endswith("*")))
    return found


def check_types(c: Check) -> None:
    most = OUTPUTS.get(c.op, 1)
    c.that(c.n_outputs <= most, f"the node has {c.n_outputs} outputs, this op at most {most}", kind=ModelError)
    signature = _signature(c.op)
    if not signature:
        return
    of_group: dict[str, DType] = {}
    for index, operand in enumerate(c.operands):
        group, types, repeats = signature[min(index, len(signature) - 1)]
        if operand is None or operand.dtype is None or types is None or (index >= len(signature) and not repeats):
            continue
        dtype = operand.dtype
        if dtype not in types:
            allowed = "floating point" if types == FLOATS else ", ".join(sorted(each.text for each in types))
            c.fail(f"input {index} is a tensor of {dtype.text}, it must be of {allowed}", kind=ModelError)
        if of_group.setdefault(group, dtype) != dtype:
            c.fail(f"the inputs have different types, {of_group[group].text} and {dtype.text}", kind=ModelError)
