"""An AveragePool whose windows have fewer frames at the ends of the sequence, in a stream.

Sums, by a Conv with ones, are divided by how many elements each of them has. A pooling adds and divides in the same
order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from webrnn.ir import Dim, DType, Value

from .kinds import Along
from .paces import Pace
from .writer import Writer


@dataclass(frozen=True, slots=True)
class Counted:
    """Windows along time: frame i of the result reads `taps` frames, from `i * step - before` on, `dilation` apart."""

    taps: int
    step: int
    before: int
    dilation: int

    def frames(self, writer: Writer, made: Value, operand: Along, result: Along) -> Value:
        """How many frames of the sequence each window of a step has: floats, beside the result `made`."""
        b, by = writer.builder, writer.scalar(self.dilation)
        begin = b.op("Mul", writer.numbers(result), writer.scalar(self.step))
        begin = b.op("Sub", begin, writer.scalar(self.before))
        missing = b.op("Max", b.op("Sub", writer.scalar(self.dilation - 1), begin), writer.scalar(0))
        first = b.op("Div", missing, by)
        last = b.op("Unsqueeze", writer.last_frame(Pace.of(operand.length)), b.ints(1))
        until = b.op("Div", b.op("Add", b.op("Sub", last, begin), by), by)
        count = b.op("Sub", b.op("Min", until, writer.scalar(self.taps)), first)
        count = b.op("Max", count, writer.scalar(1))  # frames that are not shown may have none
        assert result.axis is not None
        return writer.beside(made, b.op("Cast", count, to=int(DType.FLOAT)), result.axis)


def counts_along(
    size: Dim | None, length: Dim | None, taps: Sequence[int], step: int, before: int
) -> np.ndarray | None:
    """How many elements each window has along an axis that is not time; None if that is only known when it runs.

    >>> counts_along(3, 3, range(3), 1, 1)
    array([2., 3., 2.], dtype=float32)
    """
    if not isinstance(size, int) or not isinstance(length, int):
        return None
    places = np.arange(length)[:, None] * step - before + np.array(taps)
    return ((places >= 0) & (places < size)).sum(axis=1).astype(np.float32)
