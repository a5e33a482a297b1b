"""Resize: along each axis a product with a matrix, which is what the op makes of the unit matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webrnn.ir import Value

from ..registry import Pull, rule

Found = Sequence[Value | None]

_KEPT = ("antialias", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside", "mode", "nearest_mode")


@rule("Resize")
def resize(g: Pull) -> Found:
    if g.attr("coordinate_transformation_mode") == "tf_crop_and_resize":
        raise g.refusal("it crops", "coordinate_transformation_mode")
    if g.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise g.refusal("it keeps the ratio of sizes", "keep_aspect_ratio_policy")
    rank = g.b.rank(g.x(0))
    axes = [axis % rank for axis in g.node.attrs.get("axes") or range(rank)]
    d = g.d
    for place, axis in enumerate(axes):
        if not _is_kept(g, place, axis):
            to_end = [*(other for other in range(rank) if other != axis), axis]
            product = g.b.op("MatMul", g.b.transposed(d, to_end), _matrix(g, place, axis))
            d = g.b.transposed(product, [to_end.index(other) for other in range(rank)])
    return [d]


def _is_kept(g: Pull, place: int, axis: int) -> bool:
    """Whether it is known that an axis stays as it is."""
    before, after = g.b.shape(g.x(0))[axis], g.b.shape(g.y())[axis]
    scales = g.operand(2)
    if scales is None:
        return before is not None and before == after
    known = g.b.graph.constants.get(scales)
    return known is not None and known[place] == 1


def _matrix(g: Pull, place: int, axis: int) -> Value:
    """[elements behind it, elements before it]."""
    b, x, scales = g.b, g.x(0), g.operand(2)
    size = b.size(x, axis)
    if isinstance(size, int):
        unit = b.constant(np.eye(size, dtype=b.dtype(x).array_type), "unit")
    else:
        unit = b.op("EyeLike", b.op("Expand", b.number(0.0, x), b.sizes([size, size])))
    attrs = {name: value for name, value in g.node.attrs.items() if name in _KEPT}
    if scales is None:
        return b.op("Resize", unit, None, None, b.sizes([b.size(g.y(), axis), size]), **attrs)
    factor = b.sliced(scales, 0, place, place + 1)
    one = b.constant(np.ones(1, b.dtype(scales).array_type))
    return b.op("Resize", unit, None, b.op("Concat", factor, one, axis=0), None, **attrs)
