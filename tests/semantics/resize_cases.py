"""Lengths, positions and roundings of Resize and Upsample."""

from __future__ import annotations

import numpy as np

from .case import Citation, case, floats, ints, node

FLOOR = "output_dimension = floor(input_dimension * (roi_end - roi_start) * scale)"
AVERAGE = "it calculates every value in the output tensor as a weighted average of neighborhood"


def _line(n: int, dtype: type = np.float32) -> np.ndarray:
    return np.arange(n, dtype=dtype).reshape(1, 1, 1, n)


def _row(*numbers: float, dtype: type = np.float32) -> np.ndarray:
    return np.array(numbers, dtype).reshape(1, 1, 1, -1)


_IMAGE = np.array([[10, 57, 200], [33, 4, 255]], np.uint8).reshape(1, 1, 2, 3)
_SIGNED = np.array([[-100, 57, -3], [33, -4, 127]], np.int8).reshape(1, 1, 2, 3)

CASES = [
    case(
        "Resize of 10 by 1.9",
        node("Resize", _line(10), None, floats(1, 1, 1, 1.9), opset=18, mode="nearest"),
        _row(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 6, 7, 7, 8, 8, 9, 9),
        "both",
        "scales are float32 and so is the product: 10 * 1.9f is 19, as in ONNX's shape inference; and the position 4.5 "
        "of the tenth element is a tie, which goes down",
        Citation("Resize", 18, FLOOR),
    ),
    case(
        "Resize of 10 by 0.7",
        node("Resize", _line(10), None, floats(1, 1, 1, 0.7), opset=18, mode="linear"),
        _row(0.2142857, 1.6428571, 3.0714287, 4.5, 5.928571, 7.357143, 8.785714),
        "both",
        "10 * 0.7f is 7 in float32",
        Citation("Resize", 18, FLOOR),
        1e-5,
    ),
    case(
        "Resize of 3 by 1.3, which keeps the length",
        node("Resize", _line(3), None, floats(1, 1, 1, 1.3), opset=18, mode="linear"),
        _row(0, 0.65384614, 1.4230769),
        "spec",
        "positions follow from the scale; onnxruntime copies where the shape does not change",
        Citation("Resize", 18, "x_original = (x_resized + 0.5) / scale - 0.5"),
        1e-5,
    ),
    case(
        "Resize of a tie that float32 does not hit",
        node(
            "Resize",
            _line(20),
            None,
            None,
            ints(1, 1, 1, 6),
            opset=18,
            mode="nearest",
            nearest_mode="round_prefer_ceil",
        ),
        _row(1, 5, 8, 11, 15, 18),
        "both",
        "(4 + 0.5) * 20 / 6 - 0.5 is 14.5; its float32 is a little less and is a tie nevertheless",
        Citation("Resize", 18, '"round_prefer_ceil" (as known as round half up)'),
    ),
    case(
        "Resize-10 nearest by 0.6",
        node("Resize", np.arange(1, 9, dtype=np.float32).reshape(1, 1, 2, 4), floats(1, 1, 0.6, 0.6), opset=10),
        _row(1, 3),
        "onnxruntime",
        "the text does not say which element is nearest; the example of ONNX 1.5 takes the next one downwards",
        Citation("Resize", 10, "output_dimension = floor(input_dimension * scale)."),
    ),
    case(
        "Resize-10 nearest, one axis up, one down",
        node("Resize", np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4), floats(1, 1, 1.5, 0.6), opset=10),
        np.float32([0, 2, 0, 2, 4, 6, 8, 10]).reshape(1, 1, 4, 2),
        "onnxruntime",
        "each axis goes by its own scale",
        Citation("Resize", 10, "output_dimension = floor(input_dimension * scale)."),
    ),
    case(
        "Upsample-9 nearest by 1.5",
        node("Upsample", _line(4), floats(1, 1, 1, 1.5), opset=9, mode="nearest"),
        _row(0, 0, 1, 2, 2, 3),
        "both",
        "floor(x / scale)",
        Citation("Upsample", 9, "output_dimension = floor(input_dimension * scale)."),
    ),
    case(
        "Resize with an empty attribute axes",
        node("Resize", _line(2), None, floats(1, 1, 1, 2), opset=18, axes=[]),
        _row(0, 0, 1, 1),
        "onnxruntime",
        "an empty list counts as not provided",
        Citation("Resize", 18, "If not provided, all axes are assumed [0, 1, ..., r-1]"),
    ),
    case(
        "Resize linear of uint8",
        node("Resize", _IMAGE, None, None, ints(1, 1, 4, 5), opset=18, mode="linear"),
        np.uint8(
            [[10, 28, 57, 142, 200], [15, 26, 43, 145, 213], [27, 23, 17, 151, 241], [33, 21, 4, 154, 255]]
        ).reshape(1, 1, 4, 5),
        "onnxruntime",
        "the text does not say how the average becomes an integer; the fraction is cut off",
        Citation("Resize", 18, AVERAGE),
    ),
    case(
        "Resize linear of int8",
        node("Resize", _SIGNED, None, None, ints(1, 1, 4, 5), opset=18, mode="linear"),
        np.int8([[-100, -37, 57, 20, -3], [-66, -23, 41, 34, 29], [0, 4, 11, 61, 94], [33, 18, -4, 74, 127]]).reshape(
            1, 1, 4, 5
        ),
        "onnxruntime",
        "the fraction is cut off, toward 0",
        Citation("Resize", 18, AVERAGE),
    ),
    case(
        "Resize linear of uint8, antialiased",
        node("Resize", _IMAGE, None, None, ints(1, 1, 1, 2), opset=18, mode="linear", antialias=1),
        np.uint8([25, 162]).reshape(1, 1, 1, 2),
        "onnxruntime",
        "the text does not say how the average becomes an integer; with a filter it is rounded after each axis",
        Citation("Resize", 18, AVERAGE),
    ),
    case(
        "Resize align_corners to a fractional width",
        node(
            "Resize",
            np.arange(1, 9, dtype=np.float32).reshape(1, 1, 2, 4),
            None,
            floats(1, 1, 0.6, 0.6),
            opset=19,
            mode="linear",
            coordinate_transformation_mode="align_corners",
        ),
        _row(1, 3.142857),
        "spec",
        "the width is 2.4 here, as in ONNX's case resize_downsample_scales_linear_align_corners; onnxruntime takes 2",
        Citation("Resize", 19, "which can be a fractional number when it is calculated out of a scale factor"),
        1e-5,
    ),
    case(
        "Resize tf_crop_and_resize by a scale",
        node(
            "Resize",
            _line(6),
            floats(0, 0, 0, 0.2, 1, 1, 1, 0.8),
            floats(1, 1, 1, 0.6),
            opset=18,
            mode="linear",
            coordinate_transformation_mode="tf_crop_and_resize",
        ),
        _row(1, 2.5, 4),
        "both",
        "length_resized is the length of the resized tensor, an integer; ONNX's reference takes 3.6",
        Citation("Resize", 18, "x_resized * (end_x - start_x) * (length_original - 1) / (length_resized - 1)"),
        1e-5,
    ),
    case(
        "Resize pytorch_half_pixel to one element",
        node(
            "Resize",
            _line(5),
            None,
            None,
            ints(1, 1, 1, 1),
            opset=18,
            mode="cubic",
            coordinate_transformation_mode="pytorch_half_pixel",
        ),
        _row(0),
        "both",
        "the position is 0, not that of half a pixel; ONNX's reference takes -0.5",
        Citation("Resize", 18, "x_original = length_resized > 1 ? (x_resized + 0.5) / scale - 0.5 : 0"),
        1e-6,
    ),
]
