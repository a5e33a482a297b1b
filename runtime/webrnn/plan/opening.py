"""Nodes whose results have shapes that are known only while running.

An opener reads what says how while running, computes sizes from it as ONNX says, and lets late sizes be these. Some
lower the node as well, and return True; after the others the facts of the operands are known, with late sizes in them,
and the rule of the op goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from webrnn.ir import Dim, DType, Node, Value
from webrnn.ops.sets import BINARY, BITWISE, COMPARISONS, LOGICAL, REDUCTIONS, VARIADIC
from webrnn.shapes.facts import Fact

from .lowering import Lowering, attribute, present, rule
from .lowerings.expressions import Writer
from .numbers import LEAST, MOST, Number, Numbers
from .views import View, count_of

Opener = Callable[[Lowering, Node], bool]

SIZE_OPERANDS = {
    "ConstantOfShape": 0, "Tile": 1, "TopK": 1, "OneHot": 1, "Split": 1, "MaxUnpool": 2,
    "AffineGrid": 1, "HannWindow": 0, "HammingWindow": 0, "BlackmanWindow": 0,
}  # fmt: skip
"""Which operand of an op is of sizes, and nothing else."""


def _read_sizes(l: Lowering, node: Node) -> bool:
    index = SIZE_OPERANDS[node.op]
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is not None:
        l.content_now(value)
    return False


def _broadcast(l: Lowering, node: Node) -> bool:
    shape = l.broadcast_sizes([l.shape(value) for value in node.inputs if value is not None])
    for output in node.outputs:
        if output is not None:
            l.set_shape(output, shape)
    return _by_rule(l, node)


def _by_rule(l: Lowering, node: Node) -> bool:
    """Lower a node the shapes of whose results are known now."""
    found = rule.get(node.domain, node.op)
    if found is None:
        raise l.refuse("it has no instruction")
    found(l, node)
    return True


def _expand(l: Lowering, node: Node) -> bool:
    source, output = l.view(present(node.inputs[0])), present(node.outputs[0])
    wanted = l.content_now(present(node.inputs[1]))
    shape = l.broadcast_sizes([source.shape, wanted])
    numbers = Numbers(l)
    for have, need in zip(wanted[::-1], shape[::-1], strict=False):
        size = numbers.of(have)
        numbers.demand(size.is_equal(1) | size.is_equal(need))
    l.set_shape(output, shape)
    l.views[output] = l.fitted(source, shape)
    return True


def _reshape(l: Lowering, node: Node) -> bool:
    """0 is the size of the operand's axis, -1 what is left for it."""
    source, output = l.view(present(node.inputs[0])), present(node.outputs[0])
    keeps_zero = bool(attribute(node, "allowzero", 0))
    numbers = Numbers(l)
    sizes: list[Number] = []
    for axis, element in enumerate(l.elements(present(node.inputs[1]))):
        size = numbers.of(element)
        if not keeps_zero:
            same: Dim = source.shape[axis] if axis < source.rank else -2
            size = numbers.where(size.is_equal(0), same, size)
        sizes.append(size)
    is_open = [size.is_equal(-1) for size in sizes]
    parts = [numbers.where(opened, 1, size) for opened, size in zip(is_open, sizes, strict=True)]
    others = numbers.product(parts)
    n_open = numbers.of(0)
    for opened in is_open:
        n_open = n_open + numbers.where(opened, 1, 0)
    numbers.demand(n_open <= 1, n_open.is_equal(0) | (others - 1 >= 0))
    rest = numbers.of(source.count).divided(others)
    shape = numbers.let(*(numbers.where(opened, rest, size) for opened, size in zip(is_open, sizes, strict=True)))
    l.require_equal(source.count, count_of(shape))
    l.set_shape(output, shape)
    l.views[output] = l.reshaped(source, shape)
    return True


def _axis_numbers(
    l: Lowering, rank: int, axes: Value | None, given: Sequence[tuple[Value | None, int]]
) -> list[list[Dim | View]]:
    """For each axis of a tensor what each operand says of it, or what holds for an axis that they do not name."""
    elements = [None if value is None else l.elements(value) for value, _ in given]
    count = max(len(each) for each in elements if each is not None)
    named = list(range(count)) if axes is None else l.elements(axes)
    found: list[list[Dim | View]] = []
    known = [axis % rank if isinstance(axis, int) else None for axis in named]
    if axes is not None and None in known:
        for axis in named:
            numbers = Numbers(l)
            number = numbers.of(axis)
            numbers.demand((number >= -rank) & (number < rank))
        for pair in combinations(named, 2):  # none is named twice
            numbers = Numbers(l)
            first, second = (
                numbers.where(numbers.of(axis) < 0, numbers.of(axis) + rank, numbers.of(axis)) for axis in pair
            )
            numbers.demand((first < second) | (second < first))
    for axis in range(rank):
        row: list[Dim | View] = []
        for each, (_, default) in zip(elements, given, strict=True):
            if None not in known:
                at = known.index(axis) if axis in known else None
                row.append(default if each is None or at is None else each[at])
                continue
            numbers = Numbers(l)
            number = numbers.of(default)
            for name, element in zip(named, each if each is not None else (), strict=False):
                is_it = numbers.of(name).is_equal(axis) | numbers.of(name).is_equal(axis - rank)
                number = numbers.where(is_it, numbers.of(element), number)
            row += [number.dim] if number.dim is not None else numbers.views(number)
        found.append(row)
    return found


def _slice(l: Lowering, node: Node) -> bool:
    view, output = l.view(present(node.inputs[0])), present(node.outputs[0])
    starts, ends, axes, steps = [*node.inputs[1:], None, None][:4]
    rows = _axis_numbers(l, view.rank, axes, [(starts, 0), (ends, MOST), (steps, 1)])
    for axis, row in enumerate(rows):
        if row != [0, MOST, 1]:
            view = _sliced(l, view, axis, *row)
    l.set_shape(output, view.shape)
    l.views[output] = view
    return True


def _sliced(l: Lowering, view: View, axis: int, start: Dim | View, end: Dim | View, step: Dim | View) -> View:
    """A start is clamped to the elements that there are, an end to one before or behind them. A number beyond what a
    size can be is as good as the largest one."""
    numbers = Numbers(l)
    size = numbers.of(view.shape[axis])
    first, last, pace = (_clamped(numbers, number) for number in (start, end, step))
    if pace.dim is None:
        numbers.demand((pace < 0) | (pace >= 1))
    goes_back = pace < 0
    highest = numbers.where(goes_back, size - 1, size)

    def on_axis(number: Number, lowest: Number) -> Number:
        return numbers.smaller(numbers.where(number < 0, numbers.larger(number + size, lowest), number), highest)

    first, last = on_axis(first, numbers.of(0)), on_axis(last, numbers.where(goes_back, -1, 0))
    rest = numbers.where(goes_back, 1, -1)
    count = numbers.larger((last - first + pace + rest).divided(pace), 0)
    at, by, length = numbers.let(first, pace, count, signed=2)
    shape, strides = list(view.shape), list(view.strides)
    skip = strides[axis] * at
    shape[axis], strides[axis] = length, strides[axis] * by
    return view.relaid(shape, strides, skip)


def _clamped(numbers: Numbers, number: Dim | View) -> Number:
    if isinstance(number, int):
        return numbers.of(min(max(number, LEAST), MOST))
    found = numbers.of(number)
    return numbers.smaller(numbers.larger(found, LEAST), MOST) if isinstance(number, View) else found


def _pad(l: Lowering, node: Node) -> bool:
    """What is negative is cut off; the rest is a node of its own that only adds."""
    value, pads, filled, axes = [*node.inputs, None, None][:4]
    view = l.view(present(value))
    elements = l.elements(present(pads))
    half = len(elements) // 2
    sides = [_placed(l, part) for part in (elements[:half], elements[half:])]
    rows = _axis_numbers(l, view.rank, axes, [(side, 0) for side in sides])
    mode = attribute(node, "mode", "constant")
    if mode != "constant":
        from .lowerings.pads import pad_by_index  # a page waits for what is imported

        pad_by_index(l, view, present(node.outputs[0]), rows, mode)
        return True
    return _padded(l, node, view, rows, filled)


def _padded(
    l: Lowering, node: Node, view: View, rows: Sequence[Sequence[Dim | View]], filled: Value | None = None
) -> bool:
    """With so many elements more before and after each axis."""
    added: list[Dim] = []
    shape: list[Dim] = []
    for axis, row in enumerate(rows):
        numbers = Numbers(l)
        before, after = map(numbers.of, row)
        cuts = [numbers.larger(numbers.of(0) - side, 0) for side in (before, after)]
        more = [numbers.larger(side, 0) for side in (before, after)]
        left = numbers.of(view.shape[axis]) - cuts[0] - cuts[1]
        first, size, *grown, whole = numbers.let(cuts[0], left, *more, left + more[0] + more[1])
        view = view.sliced(axis, first, size)
        added += grown
        shape.append(whole)
    source, amounts, output = Value(present(node.inputs[0]).name), Value("pads"), present(node.outputs[0])
    l.views[source] = view
    l.facts.set(source, Fact(l.facts.dtype(node.inputs[0]), view.shape))
    l.facts.set(amounts, Fact(DType.INT64, (len(added),), (*added[::2], *added[1::2])))
    l.facts.set(output, Fact(l.facts.dtype(node.inputs[0]), tuple(shape)))
    attributes = {"mode": attribute(node, "mode", "constant")}
    return _by_rule(l, Node("Pad", [source, amounts, filled], [output], attributes, node.name))


def _center_crop_pad(l: Lowering, node: Node) -> bool:
    view, wanted = l.view(present(node.inputs[0])), l.elements(present(node.inputs[1]))
    axes = attribute(node, "axes", None) or range(view.rank)
    rows: list[list[Dim | View]] = [[0, 0] for _ in range(view.rank)]
    for axis, size in zip(axes, wanted, strict=True):
        numbers = Numbers(l)
        missing = numbers.of(size) - view.shape[axis]
        before = missing.divided(2)
        rows[axis] = [*numbers.views(before, missing - before)]
    return _padded(l, node, view, rows)


def _placed(l: Lowering, elements: Sequence[Dim | View]) -> Value:
    """A value whose elements are these."""
    value = Value("numbers")
    content = tuple(None if isinstance(element, View) else element for element in elements)
    l.facts.set(value, Fact(DType.INT64, (len(content),), content))
    if None in content:
        vector = l.temporary((len(content),), "i64")
        for index, element in enumerate(elements):
            if isinstance(element, View):
                numbers = Numbers(l)
                l.copy(numbers.views(numbers.of(element))[0], vector.without_axis(0, index))
        l.views[value] = vector
    return value


def _steps_between(l: Lowering, start: View, limit: View, delta: View) -> View:
    """ceil((limit - start) / delta) of floats, which have to be finite."""
    writer = Writer(l)
    first, last, by = (writer.cast(writer.view(number), "f64") for number in (start, limit, delta))
    steps = writer.op("div", writer.op("sub", last, first), by)
    is_finite = writer.op("equal", writer.op("sub", steps, steps), 0.0)
    fits, count = l.temporary((), "bool"), l.temporary((), "i64")
    whole = writer.cast(steps, "i64")  # towards zero
    is_more = writer.op("less", writer.cast(whole, "f64"), steps)
    writer.write([(fits, is_finite), (count, writer.op("add", whole, writer.cast(is_more, "i64")))])
    l.emit("demand", fits)
    return count


def _range(l: Lowering, node: Node) -> bool:
    start, limit, delta = (l.reshaped(l.view(present(value)), ()) for value in node.inputs)
    output = present(node.outputs[0])
    numbers = Numbers(l)
    if start.dtype not in ("i64", "i32", "i16"):
        count = numbers.of(_steps_between(l, start, limit, delta))
    else:
        first, last, by = map(numbers.of, (start, limit, delta))
        numbers.demand((by < 0) | (by >= 1))
        count = (last - first + by + numbers.where(by < 0, 1, -1)).divided(by)
    l.set_shape(output, numbers.let(numbers.larger(count, 0)))
    return _by_rule(l, node)


# --- axes that come with the inputs -----------------------------------------------------------------------------------


def _flags(l: Lowering, rank: int, axes: Sequence[Dim | View]) -> list[View]:
    """For each axis 1 if it is one of `axes`, else 0. Each is named once."""
    found: list[View] = []
    for axis in range(rank):
        numbers = Numbers(l)
        if not axis:
            for name in map(numbers.of, axes):
                numbers.demand((name >= -rank) & (name < rank))
        is_named = numbers.of(0)
        for name in map(numbers.of, axes):
            is_it = name.is_equal(axis) | name.is_equal(axis - rank)
            is_named = numbers.where(is_it, 1, is_named)
        found += numbers.views(is_named)
    numbers = Numbers(l)
    count = numbers.of(0)
    for flag in found:
        count = count + numbers.of(flag)
    numbers.demand(count.is_equal(len(axes)))
    return found


def _others(l: Lowering, sizes: Sequence[Dim], flags: Sequence[View], count: int) -> list[Dim]:
    """The sizes of the axes that are not named, in their order; `count` of them."""
    numbers = Numbers(l)
    found = [numbers.of(0) for _ in range(count)]
    before = numbers.of(0)
    for size, flag in zip(sizes, map(numbers.of, flags), strict=True):
        for place in range(count):
            is_here = before.is_equal(place) & flag.is_equal(0)
            found[place] = numbers.where(is_here, size, found[place])
        before = before + numbers.where(flag.is_equal(0), 1, 0)
    return numbers.let(*found)


def _reduce(l: Lowering, node: Node) -> bool:
    value, axes = [*node.inputs, None][:2]
    if axes is None:
        return False
    named = l.elements(axes)
    if not named or not any(isinstance(axis, View) for axis in named):
        l.facts.set(axes, Fact(DType.INT64, (len(named),), tuple(named)))  # type: ignore[arg-type]
        return False
    from .lowerings.reductions import reduce_chosen  # a page waits for what is imported

    view, output = l.view(present(value)), present(node.outputs[0])
    flags = _flags(l, view.rank, named)
    numbers = Numbers(l)
    count = numbers.of(0)
    for flag in flags:
        count = count + numbers.of(flag)
    numbers.demand(count.is_equal(len(named)))
    kept, reduced = [], []
    for size, flag in zip(view.shape, flags, strict=True):
        numbers = Numbers(l)
        is_reduced = numbers.of(flag).is_equal(1)
        first, second = numbers.let(numbers.where(is_reduced, 1, size), numbers.where(is_reduced, size, 1))
        kept.append(first)
        reduced.append(second)
    is_kept = attribute(node, "keepdims", 1)
    l.set_shape(output, kept if is_kept else _others(l, view.shape, flags, view.rank - len(named)))
    reduce_chosen(l, node, kept, reduced)
    return True


def _squeeze(l: Lowering, node: Node) -> bool:
    value, axes = [*node.inputs, None][:2]
    view, named = l.view(present(value)), [] if axes is None else l.elements(axes)
    if not named:  # an empty list counts as not given
        if not all(isinstance(size, int) for size in view.shape):
            raise l.refuse("which of its axes are of one element is known only while running")
        return _seen_as(l, node, view, [size for size in view.shape if size != 1])
    flags = _flags(l, view.rank, named)
    numbers = Numbers(l)
    for size, flag in zip(view.shape, flags, strict=True):
        numbers.demand(numbers.of(flag).is_equal(0) | numbers.of(size).is_equal(1))
    return _seen_as(l, node, view, _others(l, view.shape, flags, view.rank - len(named)))


def _unsqueeze(l: Lowering, node: Node) -> bool:
    view, named = l.view(present(node.inputs[0])), l.elements(present(node.inputs[1]))
    flags = _flags(l, view.rank + len(named), named)
    shape: list[Dim] = []
    before: Dim | View = 0
    for flag in flags:
        numbers = Numbers(l)
        count = numbers.of(before)
        is_new = numbers.of(flag).is_equal(1)
        size = numbers.of(1)
        for axis, old in enumerate(view.shape):
            size = numbers.where(count.is_equal(axis), old, size)
        shape += numbers.let(numbers.where(is_new, 1, size))
        (before,) = numbers.views(count + numbers.where(is_new, 0, 1))
    return _seen_as(l, node, view, shape)


def _seen_as(l: Lowering, node: Node, view: View, shape: Sequence[Dim]) -> bool:
    output = present(node.outputs[0])
    l.require_equal(view.count, count_of(shape))
    l.facts.set(output, Fact(l.facts.dtype(node.inputs[0]), tuple(shape)))
    l.views[output] = l.reshaped(view, shape)
    return True


def _nonzero(l: Lowering, node: Node) -> bool:
    output = present(node.outputs[0])
    source = l.dense(l.view(present(node.inputs[0])))
    source = source if source.rank else source.with_axis(0)
    l.facts.set(output, Fact(DType.INT64, (source.rank, _count_set(l, source))))
    l.emit("nonzero", source, l.dense_output(output), None)
    return True


def _count_set(l: Lowering, source: View) -> Dim:
    """How many elements are not zero."""
    count = l.temporary((), "i64")
    l.emit("nonzero", source, None, count)
    return l.late_size(count)


def _compress(l: Lowering, node: Node) -> bool:
    source, output = l.view(present(node.inputs[0])), present(node.outputs[0])
    condition = l.dense(l.view(present(node.inputs[1])))
    axis = attribute(node, "axis", None)
    if axis is None:
        source, axis = l.reshaped(source, (source.count,)), 0
    axis %= source.rank
    chosen = l.reshaped(condition, (condition.count,))
    count = _count_set(l, chosen)
    places = l.temporary((1, count), "i64")
    l.emit("nonzero", chosen, places, None)
    l.require_not_negative(source.shape[axis] - condition.count)
    outer, inner = source.shape[:axis], source.shape[axis + 1 :]
    l.facts.set(output, Fact(l.facts.dtype(node.inputs[0]), (*outer, count, *inner)))
    target = l.dense_output(output)
    rows = l.reshaped(l.dense(source), (count_of(outer), source.shape[axis], count_of(inner)))
    shaped = target.reshaped((count_of(outer), count, count_of(inner)))
    l.emit("gather", rows, places.reshaped((count,)), shaped)
    return True


def _resize(l: Lowering, node: Node) -> bool:
    from .lowerings.images import open_resize  # a page waits for what is imported

    open_resize(l, node)
    return True


def _col2im(l: Lowering, node: Node) -> bool:
    from .lowerings.images import open_col2im

    open_col2im(l, node)
    return True


def _dft(l: Lowering, node: Node) -> bool:
    length, axis = [*node.inputs[1:], None, None][:2]
    if length is not None:
        l.content_now(length)
    if axis is None or l.facts.of(axis).ints is not None:
        return False
    from .lowerings.signal import open_dft  # a page waits for what is imported

    return open_dft(l, node)


def _stft(l: Lowering, node: Node) -> bool:
    from .lowerings.signal import open_stft  # as above

    return open_stft(l, node)


OPENERS: dict[str, Opener] = {
    **dict.fromkeys(SIZE_OPERANDS, _read_sizes),
    **dict.fromkeys((*BINARY, *BITWISE, *COMPARISONS, *LOGICAL, *VARIADIC, "Pow", "BitShift", "Where"), _broadcast),
    "Expression": _broadcast,
    "Expand": _expand,
    "Reshape": _reshape,
    "Slice": _slice,
    "Pad": _pad,
    "CenterCropPad": _center_crop_pad,
    "Range": _range,
    **dict.fromkeys(REDUCTIONS, _reduce),
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "DFT": _dft,
    "STFT": _stft,
    "NonZero": _nonzero,
    "Compress": _compress,
    "Resize": _resize,
    "Col2Im": _col2im,
}

KNOW_MORE_WHILE_RUNNING = {"Expand", "Reshape", "Slice", "Pad", "CenterCropPad", "Squeeze", "Unsqueeze"}
"""Ops whose rules refuse what is not decided for all sizes, although the shapes of their results are known."""
