"""Whether an application of an op is allowed: its attributes, its element types, and the rule of the op.

Which element types the operands of an op may have, which of them have to have the same, and how many outputs it has is
what the specification says of its newest version (ops/table.py). What only moves elements takes all types.
"""

from __future__ import annotations

from functools import cache

from webrnn.errors import Error, ModelError
from webrnn.ir import DType
from webrnn.ops.rows import ROWS, Row
from webrnn.reference.arrays import FLOOR_OR_CEIL

from .check import FLOATS, INTEGERS, NO_TENSOR, Check
from .registry import check

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


@cache
def signature(operands: str) -> list[tuple[str, frozenset[DType] | None, bool]]:
    """The group, the types and whether it may come several times, of each operand of an op.

    An operand is `group:types`; those of one group have one type. A group alone has the types that were given before,
    `*` is any number of operands, `_` is no tensor. Types are a set, `+` and `-` others.
    """
    found: list[tuple[str, frozenset[DType] | None, bool]] = []
    known: dict[str, frozenset[DType] | None] = {}
    for position, operand in enumerate(operands.split(",") if operands else ()):
        group, _, spelled = operand.rstrip("*").partition(":")
        group = group or f"operand {position}"
        types = known[group] = _types(spelled) if spelled else known.get(group)
        found.append((group, types, operand.endswith("*")))
    return found


def check_types(c: Check, row: Row) -> None:
    most = row.outputs
    c.that(c.n_outputs <= most, f"the node has {c.n_outputs} outputs, this op at most {most}", kind=ModelError)
    expected = signature(row.operands)
    if not expected:
        return
    of_group: dict[str, DType] = {}
    for index, operand in enumerate(c.operands):
        group, types, repeats = expected[min(index, len(expected) - 1)]
        if operand is None or types is None or (index >= len(expected) and not repeats):
            continue
        if operand is NO_TENSOR:
            c.fail(f"input {index} is a sequence or an optional, it must be a tensor", kind=ModelError)
        if operand.dtype is None:
            continue
        dtype = operand.dtype
        if dtype not in types:
            allowed = "floating point" if types == FLOATS else ", ".join(sorted(each.text for each in types))
            c.fail(f"input {index} is a tensor of {dtype.text}, it must be of {allowed}", kind=ModelError)
        if of_group.setdefault(group, dtype) != dtype:
            c.fail(f"the inputs have different types, {of_group[group].text} and {dtype.text}", kind=ModelError)


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
    ("SpaceToDepth", "mode"): ("DCR", "CRD"),
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


def decide(c: Check, domain: str) -> None:
    """Raise if it is not allowed."""
    domain = "" if domain == "ai.onnx" else domain
    row, rule = ROWS.get((domain, c.op)), check.get(domain, c.op)
    try:
        if row is not None and (row.operands or (row.numpy and not domain)):
            check_attributes(c)
            check_types(c, row)
        if rule is not None:
            rule(c)
        elif row is not None and len(signature(row.operands)) > 1:  # how these fit together only a run decides
            c.reads_unknown = True
    except Error as error:
        raise type(error)(error.message, op=c.op, attribute=error.attribute) from error
