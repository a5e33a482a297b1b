"""What the instructions with small weights ask of their operands: see operand_rules.py."""

from __future__ import annotations

from .bound import BoundTensor, Maybe, is_dense, is_vector
from .image_rules import has_windows
from .opcodes import INTEGER_PANEL, SMALL_ROWS


def has_small_weights(
    packed: BoundTensor, scale: BoundTensor, bias: Maybe, rounded: BoundTensor, columns: int, terms: int, range_: int
) -> bool:
    even, width = terms + terms % 2, -(-columns // INTEGER_PANEL) * INTEGER_PANEL
    return (
        packed.dtype in ("i8", "i16")
        and 0 < range_ < 2**15
        and 0 < terms < 2**16
        and is_dense(packed, 1)
        and packed.count >= width * even
        and is_vector(scale, columns)
        and (bias is None or is_vector(bias, columns))
        and is_dense(rounded, 1)
        and rounded.count >= SMALL_ROWS * even
    )


def small_rows(
    x: BoundTensor, packed: BoundTensor, scale: BoundTensor, bias: Maybe, y: BoundTensor, scratch: BoundTensor,
    *numbers: int,
) -> bool:  # fmt: skip
    *steps, range_, _ = numbers
    if not has_windows(x, y, steps):
        return False
    return has_small_weights(packed, scale, bias, scratch, y.shape[3], steps[0] * steps[1] * x.shape[3], range_)
