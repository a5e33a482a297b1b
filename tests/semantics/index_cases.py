"""Slices, indices and what is scattered."""

from __future__ import annotations

import numpy as np

from .case import Citation, case, floats, ints, node

LARGEST, SMALLEST = 2**63 - 1, -(2**63)
_LINE = floats(0, 1, 2, 3, 4)
CLAMPED = Citation("Slice", 13, "or to range `[0, dims[axes[i]]-1]` for negative stepping.")
TO_THE_END = Citation("Slice", 13, "`INT_MAX` when slicing forward and 'INT_MIN' when slicing backward.")


def _slice(start: int, end: int, step: int):
    return node("Slice", _LINE, ints(start), ints(end), ints(0), ints(step), opset=13)


CASES = [
    case(
        "Slice backward from before the first element",
        _slice(-10, SMALLEST, -1),
        floats(0),
        "both",
        "the start is clamped to the first element, which Python's slices do not do; ONNX's reference gives nothing",
        CLAMPED,
    ),
    case(
        "Slice backward to INT_MIN",
        _slice(-1, SMALLEST, -2),
        floats(4, 2, 0),
        "both",
        "the end lies before the first element",
        TO_THE_END,
    ),
    case(
        "Slice backward to INT_MAX",
        _slice(-1, LARGEST, -1),
        floats(),
        "spec",
        "INT_MAX lies behind the start; onnxruntime takes it for INT_MIN",
        TO_THE_END,
    ),
    case(
        "Slice forward beyond both ends",
        _slice(-10, 10, 2),
        floats(0, 2, 4),
        "both",
        "start and end are clamped",
        Citation("Slice", 13, "range `[0, dims[axes[i]]]` for positive stepping"),
    ),
    case(
        "OneHot of fractions",
        node("OneHot", floats(0, 1.7, -1), floats(3), floats(2, 5), opset=11),
        floats(5, 2, 2, 2, 5, 2, 2, 2, 5).reshape(3, 3),
        "spec",
        "1.7 is 1; onnxruntime finds no class that is equal to it",
        Citation(
            "OneHot", 11, "In case 'indices' is of non-integer type, the values will be casted to int64 before use."
        ),
    ),
    case(
        "OneHot outside the classes",
        node("OneHot", ints(-1, -3, -4, 3), ints(3), floats(2, 5), opset=11),
        floats(2, 2, 5, 5, 2, 2, 2, 2, 2, 2, 2, 2).reshape(4, 3),
        "both",
        "-3 is the first class, -4 and 3 are none",
        Citation(
            "OneHot", 11, "values outside the range [-depth, depth-1] will result in one-hot representation with all"
        ),
    ),
    case(
        "TopK of equal values",
        node("TopK", floats(1, 3, 3, 1), ints(3), opset=11, outputs=2),
        (floats(3, 3, 1), ints(1, 2, 0)),
        "both",
        "the lower index comes first",
        Citation("TopK", 11, "That is, the element with the lower index will appear first."),
    ),
    case(
        "ArgMax of equal values, the last one",
        node("ArgMax", floats(3, 1, 3), opset=13, axis=0, select_last_index=1, keepdims=0),
        np.array(2, np.int64),
        "both",
        "select_last_index decides",
        Citation("ArgMax", 13, "If select_last_index is True (default False), the index of the last occurrence"),
    ),
    case(
        "CumSum, exclusive and reverse",
        node("CumSum", floats(1, 2, 3), np.array(0), opset=14, exclusive=1, reverse=1),
        floats(5, 3, 0),
        "both",
        "each element is the sum of those behind it",
        Citation("CumSum", 14, "If set to 1 will return exclusive sum in which the top element is not included."),
    ),
    case(
        "StringSplit of white space, once",
        node("StringSplit", np.array(["  x  y z  "], object), opset=20, outputs=2, maxsplit=1),
        (np.array([["x", "y z"]], object), ints(2)),
        "both",
        "white space at the end is no part of the rest, as it is in Python and in ONNX's reference",
        Citation("StringSplit", 20, "leading or trailing whitespace is removed in the output."),
    ),
    case(
        "StringSplit of nothing",
        node("StringSplit", np.array(["", "a,"], object), opset=20, outputs=2, delimiter=","),
        (np.array([["", ""], ["a", ""]], object), ints(1, 2)),
        "spec",
        "a string without the delimiter is one piece, also an empty one; onnxruntime finds none in it",
        Citation("StringSplit", 20, "Consecutive delimiters are not grouped together and are deemed to delimit empty"),
    ),
    case(
        "ScatterND max of what is not a number",
        node("ScatterND", floats(np.nan, 1), ints(0, 1).reshape(2, 1), floats(1, np.nan), opset=18, reduction="max"),
        floats(np.nan, np.nan),
        "spec",
        "as Max does it, on either side; onnxruntime loses one on the left",
        Citation("ScatterND", 18, "reduction using the maximum operation."),
    ),
]
