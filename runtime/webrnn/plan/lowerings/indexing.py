"""Ops that read and write by index, or make tensors of positions.

An index of several numbers, or one that counts along an axis, becomes the place of a row first (`flat_index`, which
refuses what is out of range); rows are then gathered or scattered, whatever their element type.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from webrnn.ir import WEBRNN, Dim, Node, Value
from webrnn.ir.dims import is_nonnegative

from ..index_rules import SUMMED
from ..instructions import SCATTERS
from ..lowering import Lowering, attribute, present, rule
from ..views import View, count_of, dense_strides
from .expressions import Writer
from .positions import converted, number_of, positions


def indices(l: Lowering, value: Value) -> View:
    return converted(l, l.view(value), "i64")


def _gather_rows(l: Lowering, source: View, places: View, output: Value) -> None:
    """Rows of a source without gaps, which may be of one element, at their places."""
    count = places.count
    target = l.dense_output(output)
    inner = count_of(l.shape(output)[places.rank :])
    rows = l.reshaped(l.dense(source), (1, count_of(source.shape[: source.rank - _row_rank(l, places, output)]), inner))
    l.emit("gather", rows, places.reshaped((count,)), target.reshaped((1, count, inner)))


def _row_rank(l: Lowering, places: View, output: Value) -> int:
    return len(l.shape(output)) - places.rank


# --- Gather -----------------------------------------------------------------------------------------------------------


@rule("Gather")
def _gather(l: Lowering, node: Node) -> None:
    source, index = l.view(present(node.inputs[0])), present(node.inputs[1])
    output = present(node.outputs[0])
    axis = attribute(node, "axis", 0) % source.rank
    seen = _seen(l, source, index, axis)
    if seen is not None:
        l.views[output] = seen
        return
    target = l.dense_output(output)
    outer, inner = source.shape[:axis], source.shape[axis + 1 :]
    rows = l.reshaped(source, (count_of(outer), source.shape[axis], count_of(inner)))
    numbers = l.dense(indices(l, index))
    shaped = target.reshaped((count_of(outer), numbers.count, count_of(inner)))
    l.emit("gather", l.dense(rows), numbers.reshaped((numbers.count,)), shaped)


def _seen(l: Lowering, source: View, index: Value, axis: int) -> View | None:
    """What is gathered as a view: one element, or elements that are equally far apart. That known indices are in range
    is a condition of the node already."""
    fact = l.facts.of(index)
    size = source.shape[axis]
    if fact.content is None or fact.shape is None or None in fact.content or len(fact.shape) > 1 or not fact.content:
        return None
    places: list[Dim] = []
    for number in fact.content:
        assert number is not None
        if not isinstance(number, int):
            if not is_nonnegative(number):
                return None
            l.require_not_negative(size - 1 - number)
        places.append(size + number if isinstance(number, int) and number < 0 else number)
    if isinstance(size, int) and any(isinstance(place, int) and not 0 <= place < size for place in places):
        raise l.refuse("its index is out of range")
    if fact.shape == ():
        return source.without_axis(axis, places[0])
    steps = {after - before for before, after in pairwise(places)} or {1}
    step = steps.pop()
    return None if steps or not isinstance(step, int) else source.sliced(axis, places[0], len(places), step)


@rule("GatherElements")
def _gather_elements(l: Lowering, node: Node) -> None:
    source = l.view(present(node.inputs[0]))
    places = _element_places(l, node, source.shape)
    _gather_rows(l, source, places, present(node.outputs[0]))


def _element_places(l: Lowering, node: Node, shape: Sequence[Dim]) -> View:
    """Where the elements lie that stand where their index stands, but along one axis, where it says."""
    index = indices(l, present(node.inputs[1]))
    axis = attribute(node, "axis", 0) % len(shape)
    strides = dense_strides(shape)
    y = l.temporary(index.shape, "i64")
    steps = [0 if a == axis else stride for a, stride in enumerate(strides)]
    l.emit("flat_index", index.with_axis(index.rank), y, rest=[*steps, shape[axis], strides[axis]])
    return y


@rule("GatherND")
def _gather_nd(l: Lowering, node: Node) -> None:
    source = l.view(present(node.inputs[0]))
    places = _tuple_places(l, present(node.inputs[1]), source.shape, attribute(node, "batch_dims", 0))
    _gather_rows(l, source, places, present(node.outputs[0]))


def _tuple_places(l: Lowering, value: Value, shape: Sequence[Dim], batch: int = 0) -> View:
    """The rows that the tuples along the last axis name, in a tensor whose rows are what no tuple speaks of."""
    index = indices(l, value)
    depth = index.shape[-1]
    if not isinstance(depth, int):
        raise l.refuse("how many axes its indices name is not known")
    named = shape[batch : batch + depth]
    outer, rest = count_of(shape[:batch]), count_of(index.shape[batch:-1])
    y = l.temporary((outer, rest), "i64")
    axes = [size for pair in zip(named, dense_strides(named), strict=True) for size in pair]
    l.emit("flat_index", l.reshaped(index, (outer, rest, depth)), y, rest=[count_of(named), 0, *axes])
    places = y.reshaped(index.shape[:-1])
    assert places is not None
    return places


# --- Scatter ----------------------------------------------------------------------------------------------------------


def _scatter_rows(l: Lowering, node: Node, places: View, updates: View, reduction: str, rows: Dim) -> None:
    """A copy of the first operand, seen as so many rows, some of which take updates."""
    source, output = l.view(present(node.inputs[0])), present(node.outputs[0])
    if reduction != "none" and source.dtype not in SUMMED:
        raise l.refuse(f"{reduction} of {source.dtype}")
    count = places.count
    updates = l.dense(updates)
    target = l.dense_output(output)
    if not source.is_at(target):
        l.copy(source, target)
    inner = count_of(updates.shape[places.rank :])
    shaped = [updates.reshaped((count, inner)), target.reshaped((rows, inner))]
    l.emit("scatter", places.reshaped((count,)), *shaped, SCATTERS.index(reduction))


@rule("ScatterElements")
def _scatter_elements(l: Lowering, node: Node) -> None:
    shape, updates = l.shape(present(node.inputs[0])), l.view(present(node.inputs[2]))
    places = _element_places(l, node, shape)
    _scatter_rows(l, node, places, updates, attribute(node, "reduction", "none"), count_of(shape))


@rule("ScatterND")
def _scatter_nd(l: Lowering, node: Node) -> None:
    shape, updates = l.shape(present(node.inputs[0])), l.view(present(node.inputs[2]))
    places = _tuple_places(l, present(node.inputs[1]), shape)
    depth = len(shape) - (updates.rank - places.rank)
    _scatter_rows(l, node, places, updates, attribute(node, "reduction", "none"), count_of(shape[:depth]))


@rule("TensorScatter")
def _tensor_scatter(l: Lowering, node: Node) -> None:
    """Each batch row of a cache takes its update from its own write index on."""
    shape, update = l.shape(present(node.inputs[0])), l.view(present(node.inputs[1]))
    axis = attribute(node, "axis", -2) % len(shape)
    batch, middle, capacity, length = shape[0], count_of(shape[1:axis]), shape[axis], update.shape[axis]
    w = Writer(l)
    at = w.view(positions(l, length, 2, 1))
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        at = w.op("add", at, w.view(indices(l, node.inputs[2]).with_axis(1)))
    if attribute(node, "mode", "linear") == "circular":
        around = w.view(number_of(l, capacity).with_axis(0))
        left = w.op("sub", at, w.op("mul", w.op("div", at, around), around))
        at = w.op("select", w.op("less", left, w.number(0, "i64")), w.op("add", left, around), left)
    starts = l.temporary((batch, length), "i64")
    w.write([(starts, at if at[0] == "op" else w.copy(at))])
    index = starts.with_axis(1).broadcast((batch, middle, length))
    assert index is not None
    places = l.temporary(index.shape, "i64")
    l.emit("flat_index", index.with_axis(3), places, rest=[middle * capacity, capacity, 0, capacity, 1])
    shaped = l.reshaped(l.dense(update), (batch, middle, length, count_of(shape[axis + 1 :])))
    _scatter_rows(l, node, places, shaped, "none", batch * middle * capacity)


# --- sequences of several lengths -------------------------------------------------------------------------------------


def _lengths(l: Lowering, value: Value, batch: Dim, steps: Dim) -> View:
    """Of sequences, each from 0 to the number of steps, [batch]."""
    found = l.dense(indices(l, value))
    if found.rank != 1:
        raise l.refuse("its lengths are not a vector")
    l.require_equal(found.shape[0], batch)
    l.emit("in_range", found, 0, steps)
    return found


@rule("ReverseSequence")
def _reverse_sequence(l: Lowering, node: Node) -> None:
    source = l.view(present(node.inputs[0]))
    time, batch = attribute(node, "time_axis", 0), attribute(node, "batch_axis", 1)
    steps = source.shape[time]
    lengths = _lengths(l, present(node.inputs[1]), source.shape[batch], steps).with_axis(time)
    w = Writer(l)
    at, length = w.view(positions(l, steps, 2, time)), w.view(lengths)
    mirrored = w.op("sub", w.op("sub", length, w.number(1, "i64")), at)
    index = l.temporary(source.shape[:2], "i64")
    w.write([(index, w.op("select", w.op("less", at, length), mirrored, at))])
    places = l.temporary(index.shape, "i64")
    strides = dense_strides(index.shape)
    along = [0 if axis == time else stride for axis, stride in enumerate(strides)]
    l.emit("flat_index", index.with_axis(2), places, rest=[*along, steps, strides[time]])
    _gather_rows(l, source, places, present(node.outputs[0]))


@rule("SequenceMask", domain=WEBRNN)
def _sequence_mask(l: Lowering, node: Node) -> None:
    steps, batch, *_ = l.shape(present(node.inputs[1]))
    lengths = _lengths(l, present(node.inputs[0]), batch, steps)
    w = Writer(l)
    within = w.op("less", w.view(positions(l, steps, 3, 0)), w.view(lengths.with_axis(1)))
    w.write([(l.output(present(node.outputs[0])), within)])


# --- positions --------------------------------------------------------------------------------------------------------


@rule("OneHot")
def _one_hot(l: Lowering, node: Node) -> None:
    """An index below 0 counts from the end; one out of range is nowhere."""
    index, values, output = (
        indices(l, present(node.inputs[0])),
        l.view(present(node.inputs[2])),
        present(node.outputs[0]),
    )
    shape = l.shape(output)
    axis = attribute(node, "axis", -1) % len(shape)
    w = Writer(l)
    wanted, choice = w.view(index.with_axis(axis)), w.view(positions(l, shape[axis], len(shape), axis))
    depth = shape[axis]
    size = w.number(depth, "i64") if isinstance(depth, int) else w.view(number_of(l, depth))
    is_it = w.op("or", w.op("equal", choice, wanted), w.op("equal", w.op("sub", choice, size), wanted))
    if w.has("select", values.dtype):
        off, on = (w.view(values.sliced(0, i, 1)) for i in range(2))
        w.write([(l.output(output), w.op("select", is_it, on, off))])
        return
    chosen = l.temporary(shape, "i64")
    w.write([(chosen, w.cast(is_it, "i64"))])
    _gather_rows(l, values, chosen, output)


@rule("Trilu")
def _trilu(l: Lowering, node: Node) -> None:
    source, output = l.view(present(node.inputs[0])), present(node.outputs[0])
    rows, columns = source.shape[-2:]
    w = Writer(l)
    offset = w.op("sub", w.view(positions(l, columns)), w.view(positions(l, rows, 2, 0)))
    k = node.inputs[1] if len(node.inputs) > 1 else None
    diagonal = w.number(0, "i64") if k is None else w.view(l.reshaped(indices(l, k), (1,)))
    keeps = w.op("greater_or_equal" if attribute(node, "upper", 1) else "less_or_equal", offset, diagonal)
    kept = w.op("select", keeps, w.wide(w.view(source)), 0)
    w.write([(l.output(output), w.narrow(kept, source.dtype))])


@rule("EyeLike")
def _eye_like(l: Lowering, node: Node) -> None:
    output = present(node.outputs[0])
    rows, columns = l.shape(output)
    target = l.output(output)
    w = Writer(l)
    diagonal = w.op("add", w.view(positions(l, rows, 2, 0)), w.number(attribute(node, "k", 0), "i64"))
    w.write([(target, w.cast(w.op("equal", diagonal, w.view(positions(l, columns))), target.dtype))])


@rule("Range")
def _range(l: Lowering, node: Node) -> None:
    output = present(node.outputs[0])
    target = l.output(output)
    start, delta = present(node.inputs[0]), present(node.inputs[2])
    w = Writer(l)
    step = w.cast(w.view(positions(l, target.shape[0])), target.dtype)
    factor, first = (w.view(l.reshaped(l.view(value), (1,))) for value in (delta, start))
    w.write([(target, w.op("add", first, w.op("mul", step, factor)))])
