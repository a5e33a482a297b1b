"""Bounds, activations, products, normalizations and reductions."""

from __future__ import annotations

import numpy as np

from .case import Citation, case, floats, ints, node

LARGEST = float(np.finfo(np.float32).max)
NO_BOUND = Citation("Clip", 13, "They default to numeric_limits::lowest() and numeric_limits::max(), respectively.")
_GRID = np.float32([[1, 2, 4], [8, 0, 2], [3, 3, 9]]).reshape(1, 3, 3)


def _normalized(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    spread = np.sqrt(wide.var(axis=-1, keepdims=True) + 1e-5)
    return ((wide - wide.mean(axis=-1, keepdims=True)) / spread).astype(np.float32)


def _groups():
    """x of one batch and four channels of two elements, two groups; what GroupNormalization makes of it."""
    x = np.arange(8, dtype=np.float32).reshape(1, 4, 2) ** 2
    flat = _normalized(x.reshape(1, 2, 4)).reshape(1, 4, 2)
    return x, flat


_X, _BY_GROUP = _groups()

CASES = [
    case(
        "Clip without bounds",
        node("Clip", floats(np.inf, -np.inf, 1), opset=13),
        floats(LARGEST, -LARGEST, 1),
        "both",
        "a bound that is not given is the last finite number, so infinities are clipped",
        NO_BOUND,
    ),
    case(
        "Clip with one bound",
        node("Clip", floats(np.inf, -np.inf, 1), np.float32(0), opset=13),
        floats(LARGEST, 0, 1),
        "both",
        "the other bound is the last finite number",
        NO_BOUND,
    ),
    case(
        "Clip with min above max",
        node("Clip", floats(-5, 0, 5), np.float32(2), np.float32(-2), opset=13),
        floats(-2, -2, -2),
        "both",
        "max has the last word",
        Citation("Clip", 13, "Thus, this is equivalent to 'Min(max, Max(input, min))'."),
    ),
    case(
        "ThresholdedRelu of NaN",
        node("ThresholdedRelu", floats(np.nan, 2, 0.5, np.inf), opset=10, alpha=1.0),
        floats(0, 2, 0, np.inf),
        "both",
        "NaN is not above the threshold",
        Citation("ThresholdedRelu", 10, "y = x for x > alpha, y = 0 otherwise"),
    ),
    case(
        "Mod of integers",
        node("Mod", ints(7, -7, 7, -7), ints(3, 3, -3, -3), opset=13),
        ints(1, 2, -2, -1),
        "both",
        "the sign is that of the divisor",
        Citation("Mod", 13, "The sign of the result is that of the divisor."),
    ),
    case(
        "Mod with fmod",
        node("Mod", floats(7, -7, 7, -7), floats(3, 3, -3, -3), opset=13, fmod=1),
        floats(1, -1, 1, -1),
        "both",
        "the sign is that of the dividend",
        Citation("Mod", 13, "The returned value has the same sign as `x`"),
    ),
    case(
        "Round of halves",
        node("Round", floats(0.5, 1.5, 2.5, -0.5, -2.5), opset=11),
        floats(0, 2, 2, -0.0, -2),
        "both",
        "halves go to the even integer",
        Citation("Round", 11, "In case of halves, the rule is to round them to the nearest even integer."),
    ),
    case(
        "Gemm with beta 0 and a C that is not finite",
        node("Gemm", floats(1, 2).reshape(1, 2), floats(3, 4).reshape(2, 1), floats(np.nan), opset=13, beta=0.0),
        floats(11).reshape(1, 1),
        "onnxruntime",
        "as in BLAS, C is not read; the formula of the text would give NaN",
        Citation("Gemm", 13, "Compute Y = alpha * A' * B' + beta * C"),
    ),
    case(
        "LayerNormalization with a scale for each row",
        node("LayerNormalization", _GRID, floats(1, 2, 3).reshape(3, 1), opset=17),
        _normalized(_GRID) * floats(1, 2, 3).reshape(3, 1),
        "both",
        "a scale may be broadcast: three elements are not always those of the last axis",
        Citation("LayerNormalization", 17, "should be unidirectional broadcastable to tensor `X`"),
        1e-5,
    ),
    case(
        "GroupNormalization-18 with a scale for each group",
        node("GroupNormalization", _X, floats(1, 2), floats(0, 5), opset=18, num_groups=2),
        _BY_GROUP * floats(1, 1, 2, 2).reshape(4, 1) + floats(0, 0, 5, 5).reshape(4, 1),
        "both",
        "opset 21 has one for each channel",
        Citation("GroupNormalization", 18, "`scale` and `bias` should be specified for each group of channels."),
        1e-4,
    ),
    case(
        "Softmax-11 over all axes from the first",
        node("Softmax", np.float32([[0, 0], [0, np.log(5)]]).reshape(1, 2, 2), opset=11),
        np.float32([[1, 1], [1, 5]]).reshape(1, 2, 2) / 8,
        "both",
        "the input is a matrix of which `axis` is the first column",
        Citation("Softmax", 11, "The input does not need to explicitly be a 2D vector"),
        1e-6,
    ),
    case(
        "LRN of an even size",
        node("LRN", floats(1, 2, 3).reshape(1, 3, 1, 1), opset=13, size=2, alpha=2.0, beta=1.0, bias=1.0),
        np.float32([1 / 6, 2 / 14, 3 / 10]).reshape(1, 3, 1, 1),
        "spec",
        "the region has one more channel behind than before; onnxruntime takes odd sizes only",
        Citation("LRN", 13, "<= i <= min(C - 1, c + ceil((size - 1) / 2))"),
        1e-6,
    ),
    case(
        "ReduceMax of nothing",
        node("ReduceMax", np.zeros((2, 0), np.float32), ints(1), opset=20),
        np.full((2, 1), -np.inf, np.float32),
        "both",
        "minus infinity is the neutral element",
        Citation("ReduceMax", 20, "Reduction over an empty set of values yields minus infinity"),
    ),
    case(
        "ReduceSum of nothing, counted from the back",
        node("ReduceSum", np.zeros((2, 0), np.float32), ints(-1), opset=13),
        np.zeros((2, 1), np.float32),
        "spec",
        "the axis is the same as from the front; onnxruntime does not reduce it",
        Citation("ReduceSum", 13, "Accepted range is [-r, r-1] where r = rank(data)."),
    ),
    case(
        "ReduceLogSumExp of infinities",
        node("ReduceLogSumExp", np.float32([[np.inf, 1], [-np.inf, -np.inf], [200, 200]]), ints(1), opset=18),
        np.float32([[np.inf], [-np.inf], [200 + np.log(2)]]),
        "both",
        "the largest value is taken out first, unless it is infinite",
        Citation("ReduceLogSumExp", 18, "Computes the log sum exponent of the input tensor's elements"),
        1e-6,
    ),
]
