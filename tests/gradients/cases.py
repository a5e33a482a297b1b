"""Operands and attributes for each op that has a rule: arrays of floats are inputs, all others constants."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from webrnn.ir import DType, Graph, GraphBuilder, Node, Symbol, Value


@dataclass(eq=False)
class Case:
    op: str
    operands: list[np.ndarray | None]
    attrs: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    domain: str = ""
    fixed: tuple[int, ...] = ()
    """Operands of floats that are constants too."""

    @property
    def arguments(self) -> list[np.ndarray]:
        return [item for place, item in enumerate(self.operands) if item is not None and self._is_input(place)]

    def _is_input(self, place: int) -> bool:
        item = self.operands[place]
        return item is not None and item.dtype.kind == "f" and place not in self.fixed

    def _is_complex(self, axis: int) -> bool:
        return self.op == "DFT" and axis == np.ndim(self.operands[0]) - 1

    def graph(self, named_sizes: bool = False) -> Graph:
        """With `named_sizes` no size of an input is known before it runs."""
        b = GraphBuilder("case")
        inputs: list[Value | None] = []
        for place, item in enumerate(self.operands):
            if item is None:
                inputs.append(None)
            elif self._is_input(place):
                is_open = named_sizes and not (place and self.op in WITH_WEIGHTS)
                sizes = tuple(
                    Symbol(f"s{place}_{axis}") if is_open and size != 1 and not self._is_complex(axis) else size
                    for axis, size in enumerate(item.shape)
                )
                inputs.append(b.input(f"x{place}", DType.of(item), sizes))
            else:
                inputs.append(b.constant(item))
        outputs = [b.value(f"y{place}") for place in range(self.outputs)]
        b.add(Node(self.op, inputs, [*outputs], self.attrs, "tried", self.domain))
        b.graph.outputs = [*outputs]
        return b.graph


WITH_WEIGHTS = ("Conv", "ConvTranspose")
"""The sizes of a kernel are always known."""

_PLAIN = [
    "Relu", "Elu", "Celu", "Selu", "Sigmoid", "HardSigmoid", "Tanh", "Softplus", "Softsign", "Mish", "Erf", "Gelu",
    "LeakyRelu", "HardSwish", "Swish", "Neg", "Abs", "Exp", "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Asinh",
    "Sign", "Floor", "Ceil", "Round", "Identity",
]  # fmt: skip
_REDUCTIONS = [
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp",
    "ReduceProd",
]  # fmt: skip


def _random(op: str, *shape: int) -> np.ndarray:
    return np.random.default_rng(zlib.crc32(op.encode())).standard_normal(shape)


def _ints(*numbers: Any) -> np.ndarray:
    return np.array(numbers, np.int64)


def cases() -> list[Case]:
    """At least one for each op; ops with graphs inside and recurrent cells have tests of their own."""
    found: list[Case] = []

    def add(
        op: str, *operands: Any, outputs: int = 1, domain: str = "", fixed: tuple[int, ...] = (), **attrs: Any
    ) -> None:
        made = [
            _random(f"{op}{place}", *item) if isinstance(item, tuple) else item for place, item in enumerate(operands)
        ]
        found.append(Case(op, made, attrs, outputs, domain, fixed))

    for op in _PLAIN:
        add(op, (3, 4))
    for op, alpha in (("LeakyRelu", 0.3), ("Elu", 1.7), ("Celu", 0.4), ("ThresholdedRelu", 0.2), ("Swish", 1.5)):
        add(op, (3, 4), alpha=alpha)
    add("HardSigmoid", (3, 4), alpha=0.4, beta=0.3)
    add("HardSwish", 3 * _random("w", 3, 4))
    add("Gelu", (3, 4), approximate="tanh")
    add("Shrink", (3, 4), lambd=0.4, bias=0.2)
    add("SwiGLU", (3, 4), (3, 4), alpha=1.3)
    add("PRelu", (2, 3, 4), (4,))
    add("PRelu", (2, 3, 4), (3, 1))
    for op in ("Log", "Sqrt", "Reciprocal"):
        add(op, np.abs(_random(op, 3, 4)) + 0.5)
    for op in ("Asin", "Acos", "Atanh"):
        add(op, np.tanh(_random(op, 3, 4)))
    add("Acosh", np.abs(_random("Acosh", 3, 4)) + 1.5)
    for axis in (-1, 0, 1):
        add("Softmax", (2, 3, 4), axis=axis)
        add("LogSoftmax", (2, 3, 4), axis=axis)
    for op in ("Add", "Sub", "Mul", "Max", "Min"):
        add(op, (2, 3, 4), (2, 3, 4))
        add(op, (2, 3, 4), (3, 1))
        add(op, (4,), (2, 3, 1))
        add(op, (), (2, 2))
    add("Div", (2, 3), np.abs(_random("Div", 2, 3)) + 0.5)
    add("Div", (2, 3), np.abs(_random("Div", 3)) + 0.5)
    add("Mod", 3 * _random("Mod", 2, 3), np.abs(_random("Mod1", 3)) + 0.5, fmod=1)
    add("Pow", np.abs(_random("Pow", 2, 3)) + 0.5, (2, 3))
    add("Pow", (2, 3), np.array(2.0), fixed=(1,))
    add("Pow", (2, 3), _ints(3))
    add("Pow", (2, 3), np.array([0.0, 1.0, 2.0]), fixed=(1,))
    for op in ("Sum", "Mean", "Max"):
        add(op, (2, 3), (3,), (2, 1))
        add(op, (2, 3))
    add("Clip", (3, 4), np.array(-0.4), np.array(0.6))
    add("Clip", (3, 4), None, np.array(0.6))
    add("Clip", (3, 4), np.array(0.6), np.array(-0.4))
    add("Clip", (3, 4), np.array(-0.4))
    add("Where", _random("c", 3, 4) > 0, (3, 4), (4,))
    add("Where", _random("c", 4) > 0, (), (3, 4))
    add("Cast", (3, 4), to=int(DType.DOUBLE))
    add("CastLike", (3, 4), np.zeros(1), fixed=(1,))

    add("MatMul", (3, 4), (4, 5))
    add("MatMul", (2, 3, 4), (4, 5))
    add("MatMul", (2, 3, 4), (2, 4, 5))
    add("MatMul", (6, 1, 3, 4), (2, 4, 5))
    add("MatMul", (3, 4), (2, 4, 5))
    add("MatMul", (4,), (4, 5))
    add("MatMul", (3, 4), (4,))
    add("MatMul", (4,), (4,))
    add("MatMul", (2, 3, 4), (4,))
    add("MatMul", (4,), (2, 4, 3))
    add("Linear", (2, 3, 4), (4, 5), (5,), domain="webrnn")
    add("Linear", (3, 4), (4, 5), domain="webrnn")
    add("Gemm", (3, 4), (4, 5))
    add("Gemm", (4, 3), (5, 4), (5,), transA=1, transB=1, alpha=0.5, beta=2.0)
    add("Gemm", (3, 4), (4, 5), (3, 1))
    for equation, shapes in (
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("bi,bj->bij", [(2, 3), (2, 4)]),
        ("ij->ji", [(2, 3)]),
        ("bhid,bhjd->bhij", [(2, 2, 3, 4), (2, 2, 5, 4)]),
        ("ij,ij->", [(2, 3), (2, 3)]),
    ):
        add("Einsum", *shapes, equation=equation)

    add("Conv", (2, 3, 8), (4, 3, 3), (4,))
    add("Conv", (2, 4, 9), (6, 2, 3), (6,), group=2, strides=[2], pads=[1, 2])
    add("Conv", (2, 3, 10), (4, 3, 3), dilations=[2], strides=[3], pads=[2, 0])
    add("Conv", (1, 4, 7), (4, 1, 3), group=4, auto_pad="SAME_UPPER", strides=[2])
    add("Conv", (1, 2, 7), (3, 2, 4), auto_pad="SAME_LOWER")
    add("Conv", (2, 2, 5, 6), (3, 2, 3, 2), (3,), strides=[2, 1], pads=[1, 0, 1, 1])
    add("Conv", (1, 2, 9, 9), (2, 1, 6, 6), group=2, strides=[2, 1], dilations=[1, 1])
    add("Conv", (1, 1, 80), (2, 1, 40), strides=[7])
    add("ConvTranspose", (2, 3, 4), (3, 2, 3), (2,), strides=[2])
    add("ConvTranspose", (2, 4, 4), (4, 2, 3), group=2, strides=[3], pads=[1, 0], output_padding=[2])
    add("ConvTranspose", (1, 2, 3, 4), (2, 3, 2, 3), strides=[2, 1], dilations=[2, 1])
    for auto_pad in ("SAME_LOWER", "VALID"):
        add("ConvTranspose", (2, 3, 4), (3, 2, 5), strides=[2], auto_pad=auto_pad)
    add("ConvTranspose", (2, 3, 4), (3, 2, 2), strides=[3], auto_pad="SAME_LOWER")
    add("ConvTranspose", (2, 3, 4), (3, 2, 3), strides=[2], auto_pad="SAME_UPPER", output_shape=[8])
    add("AveragePool", (2, 3, 8), kernel_shape=[3], strides=[2], pads=[1, 1])
    add("AveragePool", (2, 3, 8), kernel_shape=[3], strides=[2], pads=[1, 1], count_include_pad=1)
    add("AveragePool", (1, 2, 5, 6), kernel_shape=[2, 3])
    add("MaxPool", (2, 3, 8), kernel_shape=[3], strides=[2], pads=[1, 1])
    add("MaxPool", (1, 2, 5, 6), kernel_shape=[2, 3], strides=[2, 1])
    add("LpPool", (2, 3, 8), kernel_shape=[3], strides=[2], pads=[1, 1])
    add("LpPool", (1, 2, 5, 6), kernel_shape=[2, 3], p=3)
    for p in (1, 2, 3):
        add("GlobalLpPool", (2, 3, 4), p=p)
    add("Hardmax", (3, 4))
    add("GlobalAveragePool", (2, 3, 4, 5))
    add("GlobalMaxPool", (2, 3, 4, 5))

    for op in _REDUCTIONS:
        add(op, (2, 3, 4), _ints(1), keepdims=0)
        add(op, (2, 3, 4), _ints(0, -1))
        add(op, (2, 3), keepdims=0)
    add("ReduceLogSum", np.abs(_random("l", 2, 3)) + 0.5, _ints(1), keepdims=0)
    add("ReduceSum", (2, 3), _ints(), noop_with_empty_axes=1)
    add("ReduceProd", np.array([[1.0, 0.0, 3.0], [0.0, 0.0, 2.0], [1.0, 2.0, 3.0]]), _ints(1), keepdims=0)
    for attrs in ({}, {"exclusive": 1}, {"reverse": 1}, {"exclusive": 1, "reverse": 1}):
        add("CumSum", (3, 4), np.int64(1), **attrs)
        add("CumProd", np.where(_random("z", 3, 4) > 1, 0.0, _random("CumProd", 3, 4)), np.int64(1), **attrs)
    add("CumProd", (3, 2), np.int64(0))
    add("ReduceProd", (2, 3), _ints(), noop_with_empty_axes=1)
    add("TopK", (3, 5), _ints(2), outputs=2)
    add("TopK", (3, 5), _ints(2), outputs=2, axis=0, largest=0)

    add("LayerNormalization", (2, 3, 4), (4,), (4,))
    add("LayerNormalization", (2, 3, 4), (3, 4), axis=1, epsilon=0.1)
    add("LayerNormalization", (2, 3, 4), (4,), (4,), outputs=3)
    add("LRN", (2, 5, 3), size=3, alpha=0.5, beta=0.6, bias=1.5)
    add("LRN", (2, 5, 3), size=4, alpha=0.5)
    add("RMSNormalization", (2, 3, 4), (4,))
    add("InstanceNormalization", (2, 3, 4), (3,), (3,))
    add("BatchNormalization", (2, 3, 4), (3,), (3,), (3,), np.abs(_random("v", 3)) + 0.5)
    add("BatchNormalization", (4, 3, 4), (3,), (3,), (3,), np.abs(_random("v", 3)) + 0.5, fixed=(3, 4), training_mode=1)
    add("GroupNormalization", (2, 4, 3), (4,), (4,), num_groups=2)
    add("MeanVarianceNormalization", (2, 3, 4, 2))
    add("LpNormalization", (2, 3, 4), axis=1)
    add("LpNormalization", (2, 3, 4), axis=-1, p=1)
    add("Dropout", (2, 3))
    add("Attention", (1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4))

    add("Reshape", (2, 3, 4), _ints(4, -1))
    add("Reshape", (2, 3, 4), _ints(0, 12))
    add("Flatten", (2, 3, 4), axis=2)
    add("Squeeze", (2, 1, 3, 1), _ints(1, -1))
    add("Squeeze", (2, 1, 3))
    add("Unsqueeze", (2, 3), _ints(0, -1))
    add("Transpose", (2, 3, 4), perm=[2, 0, 1])
    add("Transpose", (2, 3, 4))
    add("Expand", (2, 1, 4), _ints(3, 1, 5, 1))
    add("Tile", (2, 3), _ints(2, 3))
    add("Concat", (2, 3), (2, 1), (2, 2), axis=1)
    add("Concat", (2, 3), (1, 3), axis=-2)
    add("Split", (2, 6), _ints(1, 3, 2), outputs=3, axis=1)
    add("Split", (6, 2), outputs=3, num_outputs=3)
    add("Slice", (7, 8), _ints(1), _ints(6), _ints(0))
    add("Slice", (7, 8), _ints(1, -3), _ints(100, -1), _ints(0, 1), _ints(2, 1))
    add("Slice", (7, 8), _ints(-1, 5), _ints(-(2**31), 0), _ints(0, 1), _ints(-1, -2))
    add("Slice", (7, 8), _ints(5, 1), _ints(1, 7), _ints(0, 1), _ints(-3, 3))
    add("Slice", (7, 8), _ints(2, 3), _ints(5, 6))
    add("Slice", (7,), _ints(5), _ints(2), _ints(0))
    add("Pad", (3, 4), _ints(1, 0, 2, 3))
    add("Pad", (3, 4), _ints(-1, 0, 2, -1))
    add("Pad", (3, 4), _ints(1, 2), None, _ints(-1))
    add("Pad", (3, 4), _ints(-1, 0, 2, 1), ())
    add("Pad", (3, 4), _ints(1, 2), (), _ints(-1))
    for mode in ("edge", "reflect", "wrap"):
        add("Pad", (3, 4), _ints(1, 2, 2, 0), mode=mode)
    add("Trilu", (4, 4), np.int64(1))
    add("ReverseSequence", (4, 3, 2), _ints(2, 4, 1), batch_axis=1, time_axis=0)
    add("DepthToSpace", (1, 8, 2, 3), blocksize=2)
    add("DepthToSpace", (1, 8, 2, 3), blocksize=2, mode="CRD")
    add("SpaceToDepth", (1, 2, 4, 6), blocksize=2)
    add("SpaceToDepth", (1, 2, 4, 6), blocksize=2, mode="CRD")

    add("DFT", (2, 5, 1))
    add("DFT", (2, 6, 1), np.int64(6), np.int64(1), onesided=1)
    add("DFT", (2, 6, 2), np.int64(4), np.int64(1))
    add("DFT", (2, 3, 4, 2), np.int64(5), np.int64(-3))
    add("DFT", (2, 6, 2), inverse=1)
    add("DFT", (2, 4, 2), np.int64(6), np.int64(1), inverse=1, onesided=1)
    add("DFT", (2, 4, 2), np.int64(5), np.int64(1), inverse=1, onesided=1)
    add("DFT", (2, 3, 1), np.int64(8), np.int64(1), inverse=1, onesided=1)
    add("DFT", (2, 5, 2), inverse=1, onesided=1)
    add("STFT", (2, 11), np.int64(3), (4,))
    add("STFT", (2, 11), np.int64(3), np.hanning(6), fixed=(2,))
    add("STFT", (2, 11, 1), np.int64(2), None, np.int64(5), onesided=0)

    add("Gather", (4, 3), np.array([[0, 2], [2, -1]]))
    add("Gather", (4, 3), np.int64(2))
    add("Gather", (4, 3), np.int64(-1), axis=1)
    add("Gather", (2, 4, 3), _ints(0, 3, 3), axis=1)
    add("GatherElements", (3, 4), np.array([[0, 2, 2, 1]]), axis=0)
    add("GatherND", (3, 4), np.array([[0], [2], [2]]))
    add("GatherND", (3, 4), np.array([[0, 1], [2, 3]]))
    add("GatherND", (2, 3, 4), np.array([[[0], [2]], [[2], [2]]]), batch_dims=1)
    add("GatherND", (2, 3, 4, 2), np.array([[[1], [0], [3]], [[2], [2], [0]]]), batch_dims=2)
    add("OneHot", np.array([[0, 2], [1, -1]]), np.int64(4), (2,))
    add("OneHot", _ints(2, 0), np.int64(3), (2,), axis=0)
    add("OneHot", np.array([2.25, 0.5]), np.int64(3), (2,))
    add("EyeLike", (3, 3))
    add("TensorScatter", (2, 3, 5, 4), (2, 3, 2, 4), _ints(1, 3))
    add("TensorScatter", (2, 5, 4), (2, 3, 4), _ints(1, 4), axis=1, mode="circular")
    add("TensorScatter", (2, 5, 4), (2, 3, 4))
    for mode in ("nearest", "linear", "cubic"):
        add("Resize", (2, 3, 5), None, np.float32([1, 1, 2.5]), fixed=(2,), mode=mode)
    add("Resize", (1, 2, 3, 4), None, None, _ints(5, 7), axes=[-2, -1], mode="linear")
    add("Resize", (2, 6), None, None, _ints(2, 4), mode="linear", coordinate_transformation_mode="align_corners")
    add("Resize", (2, 9), None, np.float32([1, 0.4]), fixed=(2,), mode="linear", antialias=1)
    add("ScatterElements", (3, 4), np.array([[0, 2], [2, 1]]), (2, 2), axis=1)
    add("ScatterElements", (3, 4), np.array([[0, 2, 0, 1]]), (1, 4), axis=0, reduction="add")
    add("ScatterND", (3, 4), np.array([[0], [2]]), (2, 4))
    add("ScatterND", (3, 4), np.array([[0], [0]]), (2, 4), reduction="add")
    return found
