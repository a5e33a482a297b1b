"""Empty lists of axes, reductions of nothing, pads, sequences."""

from __future__ import annotations

import numpy as np

from .case import Citation, case, floats, ints, node

X = floats(1, -2, 3).reshape(1, 3, 1)
SQUEEZE = Citation(
    "Squeeze", 13, "If `axes` is not provided, all the single dimensions will be removed from the shape."
)
NOOP = "composite-reduction operators will still perform the non-reduction steps as needed."
TORUS = Citation("Pad", 19, "wrap-around padding as if the data tensor forms a torus")
NO_KEEPDIMS = Citation("SplitToSequence", 11, "If input 'split' is specified, this attribute is ignored.")

_ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)


def _reduced_by_nothing(op: str, x: np.ndarray, expected: np.ndarray):
    return case(
        f"{op} without axes and with noop_with_empty_axes",
        node(op, x, opset=18, noop_with_empty_axes=1),
        expected,
        "both",
        "only the reduction is left out; what happens to each element before and after it stays",
        Citation(op, 13 if op == "ReduceSum" else 18, NOOP),
        1e-6,
    )


CASES = [
    case(
        "Squeeze-13 with an empty list of axes",
        node("Squeeze", X, ints(), opset=13),
        floats(1, -2, 3),
        "onnxruntime",
        "the text knows axes that are given or not; an empty list counts as not given",
        SQUEEZE,
    ),
    case(
        "Squeeze-11 with an empty attribute axes",
        node("Squeeze", X, opset=11, axes=[]),
        floats(1, -2, 3),
        "onnxruntime",
        "an empty list counts as not given",
        Citation("Squeeze", 11, "If `axes` is not provided, all the single dimensions will be removed from the shape."),
    ),
    case(
        "Unsqueeze with an empty list of axes",
        node("Unsqueeze", X, ints(), opset=13),
        X,
        "both",
        "there is no default: no axis is added",
        Citation("Unsqueeze", 13, "The order of values in `axes` does not matter and can come in any order."),
    ),
    case(
        "ReduceSum-13 with an empty list of axes",
        node("ReduceSum", X, ints(), opset=13),
        floats(2).reshape(1, 1, 1),
        "both",
        "an empty list reduces all axes unless noop_with_empty_axes is 1",
        Citation("ReduceSum", 13, "If false (default), reduction happens over all axes"),
    ),
    *(
        _reduced_by_nothing(op, floats(1, -2, 3), expected)
        for op, expected in {
            "ReduceSum": floats(1, -2, 3),
            "ReduceL1": floats(1, 2, 3),
            "ReduceL2": floats(1, 2, 3),
            "ReduceSumSquare": floats(1, 4, 9),
            "ReduceLogSumExp": floats(1, -2, 3),
        }.items()
    ),
    _reduced_by_nothing("ReduceLogSum", floats(1, 2, 4), np.log(floats(1, 2, 4))),
    case(
        "Pad wrap with a negative pad before",
        node("Pad", floats(0, 1, 2, 3, 4), ints(-2, 3), opset=19, mode="wrap"),
        floats(2, 3, 4, 0, 1, 2),
        "spec",
        "the data tensor is the torus; onnxruntime makes a torus of what a negative pad has left of it",
        TORUS,
    ),
    case(
        "Pad wrap with a negative pad after",
        node("Pad", floats(0, 1, 2, 3, 4), ints(3, -2), opset=19, mode="wrap"),
        floats(2, 3, 4, 0, 1, 2),
        "spec",
        "the data tensor is the torus",
        TORUS,
    ),
    case(
        "Pad wrap by more than the extent",
        node("Pad", floats(0, 1, 2), ints(4, 5), opset=19, mode="wrap"),
        floats(2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1),
        "both",
        "a torus has no end",
        TORUS,
    ),
    case(
        "SplitToSequence with the scalar 1 and keepdims=0",
        node("SplitToSequence", _ROWS, np.array(1), opset=11, axis=0, keepdims=0),
        [floats(0, 1), floats(2, 3), floats(4, 5)],
        "onnxruntime",
        "the text ignores keepdims where split is given, but this is how PyTorch exports unbind, for a runtime that "
        "takes the axis away",
        NO_KEEPDIMS,
    ),
    case(
        "SplitToSequence with a list of ones and keepdims=0",
        node("SplitToSequence", _ROWS, ints(1, 1, 1), opset=11, axis=0, keepdims=0),
        [_ROWS[:1], _ROWS[1:2], _ROWS[2:]],
        "both",
        "keepdims is ignored where split is given",
        NO_KEEPDIMS,
    ),
    case(
        "SplitToSequence with the scalar 2 and a rest",
        node("SplitToSequence", _ROWS, np.array(2), opset=11, axis=0),
        [_ROWS[:2], _ROWS[2:]],
        "both",
        "the last part is shorter",
        Citation("SplitToSequence", 11, "The last chunk alone may be smaller than 'split'"),
    ),
    case(
        "MaxPool with dilations and SAME",
        node(
            "MaxPool",
            floats(0, 1, 2, 3).reshape(1, 1, 4),
            opset=22,
            kernel_shape=[2],
            dilations=[2],
            auto_pad="SAME_LOWER",
        ),
        floats(1, 2, 3, 2).reshape(1, 1, 4),
        "spec",
        "the result is as long as the input; onnxruntime pads as if the window were not dilated",
        Citation("MaxPool", 22, "pad the input so that `output_shape[i] = ceil(input_shape[i] / strides[i])`"),
    ),
    case(
        "StringSplit of an empty string",
        node("StringSplit", np.array([""], object), opset=20, outputs=2, delimiter="."),
        (np.array([[""]], object), ints(1)),
        "spec",
        "what no delimiter divides is one string, as in ONNX's reference; onnxruntime gives none",
        Citation("StringSplit", 20, "Consecutive delimiters are not grouped together and are deemed to delimit empty"),
    ),
    case(
        "Slice by the least integer",
        node("Slice", floats(0, 1, 2), ints(0), ints(2**63 - 1), ints(0), ints(-(2**63)), opset=13),
        floats(),
        "spec",
        "it walks down from the first element and its end is above; onnxruntime negates the step, which overflows",
        Citation("Slice", 13, "For slicing to the end of a dimension with unknown size, it is recommended to pass"),
    ),
]
