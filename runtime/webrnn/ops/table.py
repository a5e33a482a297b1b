"""One row an op: everything that is known of it, whoever asks.

A row is found by domain and name; a name without a domain is of ONNX's own. The heading above it is the module of its
numpy function in `reference/`. The columns, "." where there is nothing:

    shape     the module of its rule in shapes/rules: what is known of its outputs
    check     the module of its rule in checks, if more is asked of its operands than their types
    plan      the module of its lowering in plan/lowerings. What is lowered by `elementwise` is the operation of
              expressions whose row (plan/operations.py) names it, or has a function there
    time      the module of its rule in along_time (compute_rules or layout_rules): what it does to an axis of time
    gradient  the module of its rule in gradients/rules: how a cotangent of its results goes back to its operands
    flops     for each element of its result; "1/in" is for each element of its first operand; a name is a function of
              report/flops.py
    operands  their element types, as checks/types.py reads them, and behind ">" how many outputs it has if not one

Its traits, which `ops/sets.py` has as sets:

    map          one tensor to one of the same type and shape, element by element
    binary       two tensors of one type to one of that type, element by element
    variadic     any number of tensors of one type to one of that type, element by element
    comparison   two tensors to bools, element by element
    logical      bools to bools, element by element
    bitwise      the bits of integers, element by element
    like         its result has the type and shape of its first operand
    elementwise  none of these, and yet an element of the result depends on those in the same place of the operands only
    product      sums of products with a matrix; `weights` too where the matrix is usually a constant
    reduction    takes axes together; the axes are the second operand
    cell         a step of a recurrent layer
    view         its result is elements of the first operand, seen in another way
    reshape      a view that keeps the elements in their order
    scatter      its first operand with some elements replaced
    first        the operands behind the first say how, and instructions do not read them
    size         asks for the shape of its operand, not for its elements
    total        cannot fail on operands that its rule in checks allows, if they are no integers divided
    random       may give another result each time
    involution   done twice, it is undone
    idempotent   done twice, it is as done once
    nonnegative  gives no number below 0
    gate         gives numbers from 0 to 1
"""

# ruff: noqa: E501  a row is a line

from __future__ import annotations

TABLE = """
op                         shape        check        plan         time     gradient   flops           operands>outputs        traits

[activation]
Relu                       elementwise  .            elementwise  compute  activation 1               T:signed                map total idempotent
LeakyRelu                  elementwise  .            elementwise  compute  activation 1               T:float                 map total
PRelu                      elementwise  elementwise  elementwise  compute  activation 2               T:wide,T                elementwise total like
ThresholdedRelu            elementwise  .            elementwise  compute  activation 1               T:float                 map total
Elu                        elementwise  .            elementwise  compute  activation 1               T:float                 map total
Celu                       elementwise  .            elementwise  compute  activation 1               T:float                 map total
Selu                       elementwise  .            elementwise  compute  activation 1               T:float                 map total
Sigmoid                    elementwise  .            elementwise  compute  activation 1               T:float                 map total nonnegative gate
HardSigmoid                elementwise  .            elementwise  compute  activation 1               T:float                 map total gate
HardSwish                  elementwise  .            elementwise  compute  activation 1               T:float                 map total
Swish                      elementwise  .            elementwise  compute  activation 1               T:float                 map total
SwiGLU                     elementwise  elementwise  elementwise  .        activation 6               T:float,T
Tanh                       elementwise  .            elementwise  compute  activation 1               T:float                 map total
Softplus                   elementwise  .            elementwise  compute  activation 1               T:float                 map total
Softsign                   elementwise  .            elementwise  compute  activation 1               T:float                 map total
Mish                       elementwise  .            elementwise  compute  activation 1               T:float                 map total
Erf                        elementwise  .            elementwise  compute  activation 1               T:float                 map total
Gelu                       elementwise  .            elementwise  compute  activation 1               T:float                 map total
Shrink                     elementwise  .            elementwise  compute  activation 1               T:number                map total
Softmax                    elementwise  reductions   reductions   compute  activation 5               T:float                 total like
LogSoftmax                 elementwise  reductions   reductions   compute  activation 5               T:float                 total like
Hardmax                    elementwise  reductions   sorting      compute  activation 2               T:float                 like

[arithmetic]
Add                        elementwise  elementwise  elementwise  compute  arithmetic 1               T:number,T              binary total
Sub                        elementwise  elementwise  elementwise  compute  arithmetic 1               T:number,T              binary total
Mul                        elementwise  elementwise  elementwise  compute  arithmetic 1               T:number,T              binary total
Div                        elementwise  elementwise  elementwise  compute  arithmetic 1               T:number,T              binary total
Mod                        elementwise  elementwise  elementwise  compute  arithmetic 1               T:number,T              binary
Pow                        elementwise  elementwise  elementwise  compute  arithmetic 1               T:float+index,T1:number elementwise
Neg                        elementwise  .            elementwise  compute  arithmetic 1               T:signed                map total involution
Abs                        elementwise  .            elementwise  compute  arithmetic 1               T:number                map total idempotent nonnegative
Sign                       elementwise  .            elementwise  compute  arithmetic 1               T:number                map total idempotent
Reciprocal                 elementwise  .            elementwise  compute  arithmetic 1               T:float                 map total
Exp                        elementwise  .            elementwise  compute  arithmetic 1               T:float                 map total nonnegative
Log                        elementwise  .            elementwise  compute  arithmetic 1               T:float                 map total
Sqrt                       elementwise  .            elementwise  compute  arithmetic 1               T:float                 map total
Floor                      elementwise  .            elementwise  compute  arithmetic 1               T:float                 map total idempotent
Ceil                       elementwise  .            elementwise  compute  arithmetic 1               T:float                 map total idempotent
Round                      elementwise  .            elementwise  compute  arithmetic 1               T:float                 map total idempotent
Max                        elementwise  elementwise  elementwise  compute  arithmetic variadic        T:number*               variadic total
Min                        elementwise  elementwise  elementwise  compute  arithmetic variadic        T:number*               variadic total
Sum                        elementwise  elementwise  elementwise  compute  arithmetic variadic        T:float*                variadic total
Mean                       elementwise  elementwise  elementwise  compute  arithmetic variadic        T:float*                variadic total
Clip                       elementwise  elementwise  elementwise  compute  arithmetic 2               T:number,T,T            elementwise total like

[attention]
Attention                  attention    attention    .            .        normalize  attention       T1:float,T1,T2:float,U:number+bool,T1,T2,:i64>4
RotaryEmbedding            attention    attention    .            .        normalize  6               T:float-double,T,T,M:i64

[cast]
Cast                       elementwise  elementwise  elementwise  compute  arithmetic 0               T1:any-complex          elementwise total
CastLike                   elementwise  elementwise  elementwise  layout   arithmetic 0               T1:any-complex,T2:any-complex first
BitCast                    elementwise  elementwise  elementwise  .        .          0               T1:any-string

[constant]
Constant                   .            .            .            .        .          0               .
ConstantOfShape            indexing     layout       pads         layout   .          0               T1:i64                  first
Shape                      layout       .            .            .        .          0               T:any                   total size
Size                       layout       .            .            .        .          0               T:any                   total size
Range                      indexing     layout       indexing     .        .          0               T:signed-int8,T,T
EyeLike                    indexing     layout       indexing     .        indexing   0               T1:number+bool
OneHot                     indexing     layout       indexing     layout   indexing   0               T1:number,T2:number,T3:any

[conv]
Conv                       windows      windows      windows      compute  windows    conv            T:float,T,T             product weights total
ConvTranspose              windows      windows      windows      compute  windows    conv_transpose  T:float,T,T             product
ConvInteger                windows      windows      integers     compute  .          conv            T1:byte,T2:byte,T1,T2   product

[detection]
NonMaxSuppression          indexing     images       sorting      .        .          1/in            :f32,:f32,:i64,:f32,:f32
RoiAlign                   images       images       images       .        .          9               T1:float,T1,T2:i64

[gather_scatter]
Gather                     indexing     indexing     indexing     layout   indexing   0               T:any,Tind:index        view
GatherElements             indexing     indexing     indexing     .        indexing   0               T:any,Tind:index
GatherND                   indexing     indexing     indexing     .        indexing   0               T:any,:i64
ScatterElements            indexing     indexing     indexing     .        indexing   0               T:any,Tind:index,T      scatter
ScatterND                  indexing     indexing     indexing     .        indexing   0               T:any,:i64,T            scatter
TensorScatter              indexing     indexing     indexing     .        indexing   0               T:any,T,:i64            scatter
Compress                   .            reductions   .            .        .          .               T:any,T1:bool
NonZero                    indexing     .            .            .        .          0               T:any

[image]
GridSample                 images       images       images       .        .          9               T1:any,T2:float
AffineGrid                 images       images       images       .        .          5               T1:float,T2:i64
DeformConv                 images       images       images       .        .          conv            T:float,T,T,T,T
Col2Im                     images       images       images       .        .          1/in            T:any,:i64,:i64

[linear]
MatMul                     linear       linear       linear       compute  linear     matmul          T:wide,T                product weights total
Gemm                       linear       linear       .            compute  linear     gemm            T:wide,T,T              product weights total
Einsum                     linear       linear       .            compute  linear     einsum          T:number*               product
MatMulInteger              linear       linear       integers     compute  .          matmul          T1:byte,T2:byte,T1,T2   product
Det                        images       linear       images       .        .          det             T:float

[logic]
Equal                      elementwise  elementwise  elementwise  compute  .          1               T:number+bool+string,T  comparison total
Less                       elementwise  elementwise  elementwise  compute  .          1               T:number,T              comparison total
LessOrEqual                elementwise  elementwise  elementwise  compute  .          1               T:number,T              comparison total
Greater                    elementwise  elementwise  elementwise  compute  .          1               T:number,T              comparison total
GreaterOrEqual             elementwise  elementwise  elementwise  compute  .          1               T:number,T              comparison total
And                        elementwise  elementwise  elementwise  compute  .          1               T:bool,T                logical total
Or                         elementwise  elementwise  elementwise  compute  .          1               T:bool,T                logical total
Xor                        elementwise  elementwise  elementwise  compute  .          1               T:bool,T                logical total
Not                        elementwise  .            elementwise  compute  .          1               T:bool                  logical total involution
BitwiseAnd                 elementwise  elementwise  elementwise  compute  .          1               T:integer,T             bitwise total
BitwiseOr                  elementwise  elementwise  elementwise  compute  .          1               T:integer,T             bitwise total
BitwiseXor                 elementwise  elementwise  elementwise  compute  .          1               T:integer,T             bitwise total
BitwiseNot                 elementwise  .            elementwise  compute  .          1               T:integer               bitwise total involution
BitShift                   elementwise  elementwise  elementwise  compute  .          1               T:integer,T             elementwise
IsNaN                      elementwise  .            elementwise  compute  .          1               T1:float_or_8           elementwise total
IsInf                      elementwise  .            elementwise  compute  .          1               T1:float_or_8           elementwise
Where                      elementwise  elementwise  elementwise  compute  arithmetic 1               B:bool,T:any,T          elementwise total

[loss]
NegativeLogLikelihoodLoss  reductions   reductions   .            .        normalize  1/in            T:float,Tind:index,T
SoftmaxCrossEntropyLoss    reductions   reductions   .            .        normalize  5/in            T:float,Tind:index,T>2

[normalize]
BatchNormalization         elementwise  normalize    normalize    compute  normalize  4               T:float,T1:float,T1,T2:float,T2>3 total
InstanceNormalization      elementwise  normalize    normalize    compute  normalize  8               T:float,T,T             like
GroupNormalization         elementwise  normalize    .            compute  normalize  8               T:float,T,T             like
LayerNormalization         elementwise  normalize    normalize    compute  normalize  8               T:float,T,T>3           total
RMSNormalization           elementwise  normalize    .            compute  normalize  5               T:float,V:float
MeanVarianceNormalization  elementwise  normalize    pools        compute  normalize  7               T:float                 like
LpNormalization            elementwise  reductions   .            compute  normalize  3               T:float                 like
LRN                        elementwise  normalize    pools        compute  normalize  8               T:float                 like
Dropout                    elementwise  normalize    .            compute  normalize  1               T:float_or_8,T1:float_or_8,T2:bool>2 random

[pool]
MaxPool                    windows      windows      pools        compute  windows    pool            T:float+byte>2
AveragePool                windows      windows      pools        compute  windows    pool            T:float
LpPool                     windows      windows      pools        compute  windows    pool            T:float
GlobalAveragePool          windows      windows      pools        compute  windows    1/in            T:float
GlobalMaxPool              windows      windows      pools        compute  windows    1/in            T:float
GlobalLpPool               windows      windows      pools        compute  windows    2/in            T:float
MaxUnpool                  images       windows      pools        .        .          0               T1:float,T2:i64,T2

[quantize]
QuantizeLinear             elementwise  quantize     .            compute  quantize   3               T1:float-double+i32,T2:scale+i32,T3:bits
DequantizeLinear           elementwise  quantize     .            compute  quantize   2               T1:bits+int32,T2:scale,T1
DynamicQuantizeLinear      elementwise  .            integers     compute  .          4               T1:f32>3
QLinearMatMul              linear       quantize     .            compute  .          matmul          T1:quantized,TS:float-double,T1,T2:quantized,TS,T2,TS,T3:quantized product
QLinearConv                windows      windows      .            compute  .          conv            T1:byte,:f32,T1,T2:byte,:f32,T2,:f32,T3:byte,T4:i32 product

[quantized_lstm]
com.microsoft:DynamicQuantizeLSTM .            .            .            .        .          .               .

[recurrent]
LinearAttention            .            .            .            .        .          .               T:float-double,T,T,S:float-double,T,T>2
CausalConvWithState        .            .            .            .        .          .               T:float-double,T,T,T>2

[reduce]
ReduceSum                  reductions   reductions   reductions   compute  reduce     1/in            T:wide,:i64             reduction first total
ReduceProd                 reductions   reductions   reductions   compute  reduce     1/in            T:wide,:i64             reduction first
ReduceMean                 reductions   reductions   reductions   compute  reduce     1/in            T:wide,:i64             reduction first
ReduceMax                  reductions   reductions   reductions   compute  reduce     1/in            T:wide+bool+byte,:i64   reduction first total
ReduceMin                  reductions   reductions   reductions   compute  reduce     1/in            T:wide+bool+byte,:i64   reduction first total
ReduceL1                   reductions   reductions   reductions   compute  reduce     2/in            T:wide,:i64             reduction first total nonnegative
ReduceL2                   reductions   reductions   reductions   compute  reduce     2/in            T:wide,:i64             reduction first total nonnegative
ReduceSumSquare            reductions   reductions   reductions   compute  reduce     2/in            T:wide,:i64             reduction first total nonnegative
ReduceLogSum               reductions   reductions   reductions   compute  reduce     1/in            T:float,:i64            reduction first
ReduceLogSumExp            reductions   reductions   reductions   compute  reduce     3/in            T:float,:i64            reduction first
ArgMax                     reductions   reductions   sorting      compute  .          1/in            T:number
ArgMin                     reductions   reductions   sorting      compute  .          1/in            T:number
CumSum                     elementwise  reductions   sorting      compute  reduce     1               T:wide,T2:index         like
CumProd                    elementwise  reductions   sorting      compute  reduce     1               T:wide,T2:index         like

[resize]
Resize                     resize       images       images       compute  resize     7               T1:any,T2:float-bfloat16,:f32,:i64

[sequence]
SequenceConstruct          sequences    .            .            .        .          0               T:any*
SequenceEmpty              sequences    .            .            .        .          0               .
SequenceAt                 sequences    .            .            .        .          0               _,I:index
SequenceInsert             sequences    .            .            .        .          0               _,T:any,I:index
SequenceErase              sequences    .            .            .        .          0               _,I:index
SequenceLength             sequences    .            .            .        .          0               .
ConcatFromSequence         sequences    .            .            .        .          0               .
SplitToSequence            sequences    layout       .            .        .          0               T:any,I:index
Optional                   .            .            .            .        .          0               .
OptionalHasElement         sequences    .            .            .        .          0               .
OptionalGetElement         .            .            .            .        .          0               .

[shape]
Identity                   elementwise  .            layout       layout   layout     0               .                       reshape total like
Reshape                    layout       layout       layout       layout   layout     0               T:any,:i64              reshape first
Flatten                    layout       layout       layout       layout   layout     0               T:any                   reshape first total
Squeeze                    layout       layout       layout       layout   layout     0               T:any,:i64              reshape first total
Unsqueeze                  layout       layout       layout       layout   layout     0               T:any,:i64              reshape first total
Transpose                  layout       layout       layout       layout   layout     0               T:any                   view total
Expand                     layout       layout       layout       layout   layout     0               T:any,:i64              view first
Tile                       layout       layout       pads         layout   layout     0               T:any,T1:i64            first
Concat                     layout       layout       layout       layout   layout     0               T:any*                  total
Split                      layout       layout       layout       layout   layout     0               T:any,:i64>many         view first total
Slice                      indexing     layout       layout       layout   layout     0               T:any,Tind:index,Tind,Tind,Tind view first
Pad                        layout       layout       pads         layout   layout     0               T:any,:i64,T,Tind:index first
CenterCropPad              layout       layout       pads         .        .          0               T:any,Tind:index        first
DepthToSpace               layout       layout       pads         .        layout     0               T:any
SpaceToDepth               layout       layout       pads         .        layout     0               T:any
Trilu                      elementwise  layout       indexing     compute  layout     0               T:any,:i64              like
ReverseSequence            elementwise  layout       indexing     layout   layout     0               T:any,:i64              like

[signal]
DFT                        signal       signal       signal       compute  signal     dft             T1:float,T2:index,:i64  first
STFT                       signal       signal       signal       .        signal     stft            T1:float,T2:index,T1,T2
HannWindow                 signal       signal       .            .        .          4               T1:index
HammingWindow              signal       signal       .            .        .          4               T1:index
BlackmanWindow             signal       signal       .            .        .          7               T1:index
MelWeightMatrix            signal       signal       .            .        .          2               T1:index,T1,T1,T2:float,T2

[sort]
TopK                       reductions   reductions   sorting      compute  reduce     1/in            T:number,:i64>2         first
Unique                     reductions   reductions   sorting      .        .          1/in            T:any>4

[text]
StringConcat               .            elementwise  .            .        .          .               T:string,T
StringSplit                .            .            .            .        .          .               T1:string>2

[trigonometry]
Sin                        elementwise  .            elementwise  compute  arithmetic 1               T:float                 map total
Cos                        elementwise  .            elementwise  compute  arithmetic 1               T:float                 map total
Tan                        elementwise  .            elementwise  compute  arithmetic 1               T:float                 map total
Asin                       elementwise  .            elementwise  compute  arithmetic 1               T:float                 map total
Acos                       elementwise  .            elementwise  compute  arithmetic 1               T:float                 map total
Atan                       elementwise  .            elementwise  compute  arithmetic 1               T:float                 map total
Sinh                       elementwise  .            elementwise  compute  arithmetic 1               T:float                 map total
Cosh                       elementwise  .            elementwise  compute  arithmetic 1               T:float                 map total
Asinh                      elementwise  .            elementwise  compute  arithmetic 1               T:float                 map total
Acosh                      elementwise  .            elementwise  compute  arithmetic 1               T:float                 map total
Atanh                      elementwise  .            elementwise  compute  arithmetic 1               T:float                 map total

[.]
If                         .            .            control      .        control    0               .
Bernoulli                  .            .            .            .        .          .               .                       random
Multinomial                .            .            .            .        .          .               .                       random
RandomNormal               .            .            .            .        .          .               .                       random
RandomNormalLike           .            .            .            .        .          .               .                       random
RandomUniform              .            .            .            .        .          .               .                       random
RandomUniformLike          .            .            .            .        .          .               .                       random
webrnn:Scan                .            .            scans        .        control    0               .
webrnn:Expression          .            .            elementwise  .        linear     expression      .
webrnn:Linear              linear       linear       linear       compute  linear     linear          T:float,T,T             product
webrnn:RnnCell             linear       linear       cells        compute  cells      cell            T:float,T               cell
webrnn:GruCell             linear       linear       cells        compute  cells      cell            T:float,T,T             cell
webrnn:GruReset            linear       linear       cells        compute  cells      cell            T:float,T,T>2           cell
webrnn:GruUpdate           linear       linear       cells        compute  cells      cell            T:float,T,T,T           cell
webrnn:LstmCell            linear       linear       cells        compute  cells      cell            T:float,T,T,T>2         cell
webrnn:RnnCellBackward     linear       linear       cells        .        .          backward_cell   T:float,T,T             cell
webrnn:GruCellBackward     linear       linear       cells        .        .          backward_cell   T:float,T,T,T>3         cell
webrnn:GruResetBackward    linear       linear       cells        .        .          backward_cell   T:float,T,T,T,T>3       cell
webrnn:GruUpdateBackward   linear       linear       cells        .        .          backward_cell   T:float,T,T,T,T>4       cell
webrnn:LstmCellBackward    linear       linear       cells        .        .          backward_cell   T:float,T,T,T,T,T>3     cell
webrnn:SmallLinear         linear       linear       small        .        .          linear          :f32,:byte-uint8+int16,:f32,:f32 product
webrnn:SmallConv           windows      windows      small        .        .          conv            :f32,:byte-uint8+int16,:f32,:f32 product
webrnn:ExpectShape         indexing     .            layout       layout   layout     0               .
webrnn:Random              indexing     .            random       .        .          10              .                       first
webrnn:Choose              reductions   .            random       .        .          10/in           .
webrnn:SequenceMask        indexing     indexing     indexing     layout   .          0               :index,T:any
webrnn:Ring                windows      windows      rings        .        .          0               T:any,T,:i64>2
webrnn:SequenceJoin        sequences    .            .            .        .          0               .
"""
