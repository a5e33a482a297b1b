"""What was found, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from webrnn.passes.weight_forms import F32
from webrnn.tables import bytes_text, table

if TYPE_CHECKING:
    from .study import Quantization

MEANING = "error: the largest difference from float32 in an output, relative to the largest magnitude in that output"


def report_text(found: Quantization) -> str:
    return "\n".join([nodes_text(found), "", *_summary(found)])


def nodes_text(found: Quantization) -> str:
    rows = [
        (
            row.unit.name, row.unit.op, f"{row.unit.count:,}", bytes_text(row.unit.size(F32)), row.form,
            bytes_text(row.bytes), error_text(row.error), row.reason,
        )
        for row in found.rows
    ]  # fmt: skip
    header = ("node", "op", "weights", "float32", "form", "becomes", "error alone", "why not smaller")
    return table("nodes with weights", rows, header)


def _summary(found: Quantization) -> Iterator[str]:
    share = found.weight_bytes / (found.plain_bytes or 1)
    yield f"weights   {bytes_text(found.plain_bytes)} become {bytes_text(found.weight_bytes)}: {share:.2f}"
    plain, small = found.plan_bytes()
    if plain is not None and small is not None:
        yield f"plan      {bytes_text(plain)} becomes {bytes_text(small)}: {small / plain:.2f}"
    yield f"error     {error_text(found.error)}, all together, on {found.trial.about}"
    for name, each in found.differences:
        yield f"  {name}: {each.largest:.2g} where the largest magnitude is {each.scale:.3g}"
    yield f"  ({MEANING})"


def error_text(error: float) -> str:
    """
    >>> error_text(0.0), error_text(0.001234), error_text(2e-5)
    ('0', '0.0012', '2.0e-05')
    """
    if not error:
        return "0"
    return f"{error:.2g}" if error >= 1e-4 else f"{error:.1e}"
