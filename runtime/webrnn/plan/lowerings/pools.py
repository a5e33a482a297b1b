"""Pools over windows and over whole planes, and the normalizations that look at neighbours or planes.

Pools over one or two axes are one instruction. What that does not know (indices, more axes, pads that depend on a size,
windows that reach beyond the pads) goes axis by axis, from the last to the first: a maximum of maxima, a mean of means.
"""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import Dim, Node
from webrnn.ir.dims import floor_divide
from webrnn.shapes.rules.images import implied_lengths

from ..draft import ExpressionOp
from ..instructions import POOLINGS, REDUCTIONS, SCATTERS
from ..lowering import Lowering, attribute, present, rule
from ..views import View, count_of, dense_strides
from . import channels_last
from .axes import Axis, axes_of, window_of
from .windows import planes


@rule("MaxPool", "AveragePool", "LpPool")
def _pool(l: Lowering, node: Node) -> None:
    x, output = present(node.inputs[0]), present(node.outputs[0])
    view = _floats(l, l.view(x))
    axes = axes_of(l, node, list(node.attrs["kernel_shape"]), view.shape[2:], l.shape(output)[2:])
    if node.op == "LpPool":
        p = attribute(node, "p", 2)
        sums = _pool_by_axes(l, _powers(l, view, p), axes, "sum")
        _root(l, sums, p, l.output_like(output, [sums]))
        return
    kind = "max" if node.op == "MaxPool" else "average"
    if kind == "average" and attribute(node, "count_include_pad", 0):
        kind = "average_with_padding"
    index = node.outputs[1] if len(node.outputs) > 1 else None
    if index is not None:
        l.views[output], l.views[index] = _pool_with_index(l, view, axes, attribute(node, "storage_order", 0))
    elif _is_one_instruction(view, axes, kind):
        if _has_channels(view):
            l.views[output] = _pool_channels(l, view, axes, kind)
            return
        target = l.dense_output(output)
        l.emit("pool", planes(l, view), planes(l, target), POOLINGS.index(kind), *window_of(axes))
    else:
        l.views[output] = _pool_by_axes(l, view, axes, kind)


def _floats(l: Lowering, view: View) -> View:
    if view.dtype != "f32":
        raise l.refuse("it is not of float")
    return view


def _is_one_instruction(x: View, axes: Sequence[Axis], kind: str) -> bool:
    if len(axes) > 2 or not all(axis.is_plain for axis in axes):
        return False
    if kind != "average_with_padding":
        return True
    # By axes a mean is rounded in another way: which of them it is must not depend on whether sizes are numbers.
    return all(axis.positions == _full_windows(axis, size) for axis, size in zip(axes, x.shape[2:], strict=True))


def _full_windows(axis: Axis, size: Dim) -> Dim:
    """How many windows end within the padding."""
    return floor_divide(axis.before + size + axis.after - axis.extent, axis.stride) + 1


def _has_channels(x: View) -> bool:
    """Whether vectors across channels pay."""
    return isinstance(x.shape[1], int) and x.shape[1] >= channels_last.FEWEST_CHANNELS


def _pool_channels(l: Lowering, x: View, axes: Sequence[Axis], kind: str) -> View:
    rows = channels_last.rows_of_channels(x)
    if not channels_last.is_channels_last(rows):
        rows = l.dense(rows)
    pair = channels_last.pair_of(axes)
    target = l.temporary((rows.shape[0], *(axis.positions for axis in pair), rows.shape[3]))
    l.emit("pool_rows", rows, target, POOLINGS.index(kind), *window_of(pair))
    return channels_last.channels_second(target, x.rank)


def _pool_by_axes(l: Lowering, x: View, axes: Sequence[Axis], kind: str) -> View:
    for at, axis in reversed(list(enumerate(axes, 2))):
        if (axis.kernel, axis.stride, axis.before, axis.after) != (1, 1, 0, 0):
            x = pool_axis(l, x, at, axis, kind)
    return x


def pool_axis(l: Lowering, x: View, at: int, axis: Axis, kind: str) -> View:
    """The windows along one axis of any tensor."""
    made = l.temporary((*x.shape[:at], axis.positions, *x.shape[at + 1 :]))
    l.emit(
        "pool_axis", _around(l, x, at), None, _around(l, made, at), None, POOLINGS.index(kind), *_numbers(axis), 0, 0
    )
    return made


def _numbers(axis: Axis) -> list[Dim]:
    return [axis.kernel, axis.stride, axis.dilation, axis.before, axis.after]


def _around(l: Lowering, view: View, axis: int) -> View:
    """[outer, size, inner]"""
    return l.reshaped(l.dense(view), (count_of(view.shape[:axis]), view.shape[axis], count_of(view.shape[axis + 1 :])))


def _pool_with_index(l: Lowering, x: View, axes: Sequence[Axis], columns_first: int) -> tuple[View, View]:
    """The maxima and where they are in the flattened input; the first of equal ones, row by row."""
    sizes = x.shape[2:]
    strides = dense_strides(sizes[::-1])[::-1] if columns_first else dense_strides(sizes)
    places: View | None = None
    for at, axis in reversed(list(enumerate(axes, 2))):
        shape = (*x.shape[:at], axis.positions, *x.shape[at + 1 :])
        made, index = l.temporary(shape), l.temporary(shape, "i64")
        plane = count_of(sizes) if at == 2 else 0
        l.emit(
            "pool_axis", _around(l, x, at), None if places is None else _around(l, places, at), _around(l, made, at),
            _around(l, index, at), POOLINGS.index("max"), *_numbers(axis), strides[at - 2], plane,
        )  # fmt: skip
        x, places = made, index
    assert places is not None
    return x, places


@rule("MaxUnpool")
def _max_unpool(l: Lowering, node: Node) -> None:
    """The indices count in the shape that the attributes imply; a larger one that is stated has it in its corner."""
    x, output = _floats(l, l.view(present(node.inputs[0]))), present(node.outputs[0])
    shape, count = l.shape(output), x.count
    implied = [size for size in implied_lengths(node, x.shape[2:]) if size is not None]
    inner = l.temporary((*x.shape[:2], *implied))
    places, total = l.temporary((1, count), "i64"), inner.count
    index = l.reshaped(l.view(present(node.inputs[1])), (1, count, 1))
    l.emit("flat_index", l.dense(index), places, rest=[total, 0, total, 1])
    l.emit("fill", inner, 0.0)
    flat = inner.reshaped((total, 1))
    l.emit("scatter", places.reshaped((count,)), l.reshaped(x, (count, 1)), flat, SCATTERS.index("none"))
    if inner.shape == shape:
        l.views[output] = inner
        return
    target = place = l.dense_output(output)
    l.emit("fill", target, 0.0)
    for axis, (size, most) in enumerate(zip(inner.shape, shape, strict=True)):
        l.require_not_negative(most - size)
        place = place.sliced(axis, 0, size)
    l.copy(inner, place)


# --- powers ----------------------------------------------------------------------------------------------------------


MOST_BY_PRODUCTS = 1 << 12
"""A power that is larger takes more operations than expressions have room for."""


def _powers(l: Lowering, x: View, p: int) -> View:
    """|x| to the power of p."""
    made = l.temporary(x.shape)
    if p >= MOST_BY_PRODUCTS:
        large = [ExpressionOp("abs", (0,)), ExpressionOp("pow", (2, 1))]
        l.expression([x], [(made, 3)], [("f32", float(p))], large)
        return made
    ops, last = [ExpressionOp("abs", (0,))], 1
    for bit in bin(p)[3:]:  # square and multiply, from the second bit on
        ops.append(ExpressionOp("mul", (last, last)))
        last += 1
        if bit == "1":
            ops.append(ExpressionOp("mul", (last, 1)))
            last += 1
    l.expression([x], [(made, last)], [], ops)
    return made


def _root(l: Lowering, x: View, p: int, target: View) -> None:
    if p == 1:
        l.copy(x, target)
    elif p == 2:
        l.expression([x], [(target, 1)], [], [ExpressionOp("sqrt", (0,))])
    else:
        raised, ops = power(0, 1, 2, 1 / p)
        l.expression([x], [(target, raised)], [("f32", 1 / p)], ops)


def power(x: int, exponent: int, first: int, number: float) -> tuple[int, list[ExpressionOp]]:
    """A number that is not negative to a constant power, and the register that it is in. `exponent` is the register of
    the power, `first` the first one that is free."""
    if number == 0.75:
        codes: list[tuple[str, tuple[int, ...]]] = [("sqrt", (x,)), ("sqrt", (first,)), ("mul", (first, first + 1))]
    else:
        codes = [("log", (x,)), ("mul", (first, exponent)), ("exp", (first + 1,))]
    return first + len(codes) - 1, [ExpressionOp(code, operands) for code, operands in codes]


# --- whole planes ----------------------------------------------------------------------------------------------------


@rule("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def _global_pool(l: Lowering, node: Node) -> None:
    view, output = _floats(l, l.view(present(node.inputs[0]))), present(node.outputs[0])
    p = attribute(node, "p", 2)
    if node.op == "GlobalLpPool":
        view = _powers(l, view, p)
    rows, n = count_of(view.shape[:2]), count_of(view.shape[2:])
    if node.op == "GlobalMaxPool":
        l.require_not_negative(n - 1)
    target = l.dense_output(output)
    kind = {"GlobalAveragePool": "mean", "GlobalMaxPool": "max", "GlobalLpPool": "sum"}[node.op]
    l.emit("reduce", l.reshaped(view, (rows, n, 1)), target.reshaped((rows, 1)), REDUCTIONS.index(kind))
    if node.op == "GlobalLpPool" and p != 1:
        _root(l, target, p, target)


@rule("LRN")
def _lrn(l: Lowering, node: Node) -> None:
    """x / (bias + alpha / size * the sum of the squares of channels nearby) ** beta"""
    x, output = _floats(l, l.view(present(node.inputs[0]))), present(node.outputs[0])
    size, beta = node.attrs["size"], attribute(node, "beta", 0.75)
    before = (size - 1) // 2
    sums = pool_axis(l, _powers(l, x, 2), 1, Axis(size, 1, 1, before, size - 1 - before, x.shape[1]), "sum")
    constants = [("f32", attribute(node, "alpha", 1e-4) / size), ("f32", attribute(node, "bias", 1.0)), ("f32", beta)]
    base = [ExpressionOp("mul", (1, 2)), ExpressionOp("add", (5, 3))]
    raised, ops = power(6, 4, 7, beta)
    target = l.output_like(output, [x])
    l.expression([x, sums], [(target, raised + 1)], constants, [*base, *ops, ExpressionOp("div", (0, raised))])


@rule("MeanVarianceNormalization")
def _mean_variance_norm(l: Lowering, node: Node) -> None:
    """(x - mean) / (deviation + 1e-9)"""
    x, output = _floats(l, l.view(present(node.inputs[0]))), present(node.outputs[0])
    axes = [axis % x.rank for axis in attribute(node, "axes", [0, 2, 3])]
    centred, target = l.temporary(x.shape), l.output_like(output, [x])
    l.expression([x, _mean(l, x, axes)], [(centred, 2)], [], [ExpressionOp("sub", (0, 1))])
    squares = l.temporary(x.shape)
    l.expression([centred], [(squares, 1)], [], [ExpressionOp("mul", (0, 0))])
    ops = [ExpressionOp("sqrt", (1,)), ExpressionOp("add", (3, 2)), ExpressionOp("div", (0, 4))]
    l.expression([centred, _mean(l, squares, axes)], [(target, 5)], [("f32", 1e-9)], ops)


def _mean(l: Lowering, x: View, axes: Sequence[int]) -> View:
    """Over some axes, which it keeps with a size of 1."""
    kept = [axis for axis in range(x.rank) if axis not in axes]
    rows, n = count_of(x.shape[axis] for axis in kept), count_of(x.shape[axis] for axis in axes)
    made = l.temporary([1 if axis in axes else size for axis, size in enumerate(x.shape)])
    moved = l.dense(x.transposed([*kept, *axes]))
    l.emit("reduce", l.reshaped(moved, (rows, n, 1)), made.reshaped((rows, 1)), REDUCTIONS.index("mean"))
    return made
