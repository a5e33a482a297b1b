"""Attributes that take one of a few values, by name: what the specification lists, for all ops that have them."""

from __future__ import annotations

from webrnn.errors import ModelError
from webrnn.reference.resize import FLOOR_OR_CEIL

from .check import Check

_FLAGS = """
    allowzero antialias center_point_box ceil_mode count_include_pad detect_negative detect_positive exclude_outside
    exclusive fmod inverse is_causal keepdims largest new_axis noop_with_empty_axes onesided periodic reverse saturate
    select_last_index sorted storage_order training_mode transA transB unk upper align_corners interleaved
"""
FLAGS = frozenset(_FLAGS.split())
"""0 or 1."""

CHOICES: dict[tuple[str, str], tuple[str | int, ...]] = {
    ("", "auto_pad"): ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
    ("", "coordinate_transformation_mode"): (
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
        "tf_half_pixel_for_nn", "output_half_pixel",
    ),
    ("", "keep_aspect_ratio_policy"): ("stretch", "not_larger", "not_smaller"),
    ("", "nearest_mode"): ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", FLOOR_OR_CEIL),
    ("", "padding_mode"): ("zeros", "border", "reflection"),
    ("", "round_mode"): ("up", "down", "nearest"),
    ("", "approximate"): ("none", "tanh"),
    ("BitShift", "direction"): ("LEFT", "RIGHT"),
    ("DepthToSpace", "mode"): ("DCR", "CRD"),
    ("GridSample", "mode"): ("linear", "nearest", "cubic"),
    ("NegativeLogLikelihoodLoss", "reduction"): ("none", "sum", "mean"),
    ("Pad", "mode"): ("constant", "reflect", "edge", "wrap"),
    ("Resize", "mode"): ("nearest", "linear", "cubic"),
    ("RoiAlign", "mode"): ("avg", "max"),
    ("ScatterElements", "reduction"): ("none", "add", "mul", "max", "min"),
    ("ScatterND", "reduction"): ("none", "add", "mul", "max", "min"),
    ("SoftmaxCrossEntropyLoss", "reduction"): ("none", "sum", "mean"),
    ("TensorScatter", "mode"): ("linear", "circular"),
}  # fmt: skip
"""By op, "" is any, and attribute."""


def check_attributes(c: Check) -> None:
    for name, value in c.attrs.items():
        if name in FLAGS:
            c.that(value in (0, 1), f"it must be 0 or 1, not {value!r}", name, ModelError)
        choices = CHOICES.get((c.op, name)) or CHOICES.get(("", name))
        if choices is not None:
            c.one_of(name, value, choices)
