"""Which module holds which ops, so that a model loads only the modules of its own ops: in a browser, compiling all of
them takes longer than opening the model."""

from __future__ import annotations

FAMILIES = {
    "activation": (
        "Relu LeakyRelu PRelu ThresholdedRelu Elu Celu Selu Sigmoid HardSigmoid HardSwish Swish SwiGLU Tanh "
        "Softplus Softsign Mish Erf Gelu Shrink Softmax LogSoftmax Hardmax"
    ),
    "arithmetic": "Add Sub Mul Div Mod Pow Neg Abs Sign Reciprocal Exp Log Sqrt Floor Ceil Round Max Min Sum Mean Clip",
    "attention": "Attention RotaryEmbedding",
    "cast": "Cast CastLike BitCast",
    "constant": "Constant ConstantOfShape Shape Size Range EyeLike OneHot",
    "conv": "Conv ConvTranspose ConvInteger",
    "detection": "NonMaxSuppression RoiAlign",
    "gather_scatter": "Gather GatherElements GatherND ScatterElements ScatterND TensorScatter Compress NonZero",
    "image": "GridSample AffineGrid DeformConv Col2Im",
    "linear": "MatMul Gemm Einsum MatMulInteger Det",
    "logic": (
        "Equal Less LessOrEqual Greater GreaterOrEqual And Or Xor Not BitwiseAnd BitwiseOr BitwiseXor "
        "BitwiseNot BitShift IsNaN IsInf Where"
    ),
    "loss": "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    "normalize": (
        "BatchNormalization InstanceNormalization GroupNormalization LayerNormalization RMSNormalization "
        "MeanVarianceNormalization LpNormalization LRN Dropout"
    ),
    "pool": "MaxPool AveragePool LpPool GlobalAveragePool GlobalMaxPool GlobalLpPool MaxUnpool",
    "quantize": "QuantizeLinear DequantizeLinear DynamicQuantizeLinear QLinearMatMul QLinearConv",
    "quantized_lstm": "com.microsoft:DynamicQuantizeLSTM",
    "recurrent": "LinearAttention CausalConvWithState",
    "reduce": (
        "ReduceSum ReduceProd ReduceMean ReduceMax ReduceMin ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum "
        "ReduceLogSumExp ArgMax ArgMin CumSum CumProd"
    ),
    "resize": "Resize",
    "sequence": (
        "SequenceConstruct SequenceEmpty SequenceAt SequenceInsert SequenceErase SequenceLength "
        "ConcatFromSequence SplitToSequence Optional OptionalHasElement OptionalGetElement"
    ),
    "shape": (
        "Identity Reshape Flatten Squeeze Unsqueeze Transpose Expand Tile Concat Split Slice Pad "
        "CenterCropPad DepthToSpace SpaceToDepth Trilu ReverseSequence"
    ),
    "signal": "DFT STFT HannWindow HammingWindow BlackmanWindow MelWeightMatrix",
    "sort": "TopK Unique",
    "text": "StringConcat StringSplit",
    "trigonometry": "Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh",
}
"""By module: the names of its ops, with the domain in front where that is not ONNX's own."""


def _key(name: str) -> tuple[str, str]:
    domain, _, op_type = name.rpartition(":")
    return domain, op_type


MODULE_OF = {_key(name): module for module, names in FAMILIES.items() for name in names.split()}
"""By domain and op."""
