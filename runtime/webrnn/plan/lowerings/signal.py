"""DFT and STFT: transforms of rows (fourier.py) and what brings operands into rows."""

from __future__ import annotations

from webrnn.ir import Dim, Node, Value
from webrnn.ir.dims import floor_divide

from ..draft import ExpressionOp
from ..lowering import Lowering, attribute, present, rule
from ..numbers import Numbers
from ..views import View, count_of
from .fourier import as_complex, transform


def _rows(l: Lowering, view: View) -> View:
    """[..., n, 1 or 2] as [rows, n or 2 n]."""
    return l.reshaped(l.dense(view), (count_of(view.shape[:-2]), count_of(view.shape[-2:])))


@rule("DFT")
def _dft(l: Lowering, node: Node) -> None:
    x, output = present(node.inputs[0]), present(node.outputs[0])
    view, shape = l.view(x), l.shape(output)
    kind = _kind(node)
    _require_numbers(l, view, kind)
    given = node.inputs[2] if len(node.inputs) > 2 else None
    axis = (l.ints(given)[0] if given is not None else -2) % view.rank
    if axis == view.rank - 1:
        raise l.refuse("its axis is the last one")
    n = _length(l, node, view.shape[axis], kind)
    order = [*(a for a in range(view.rank - 1) if a != axis), axis, view.rank - 1]
    moved = view.transposed(order)
    moved = _fitted(l, moved, floor_divide(n, 2) + 1 if kind == "irfft" else n)
    if kind != "rfft" and view.shape[-1] == 1:
        moved = as_complex(l, moved)
    made = l.dense_output(output) if axis == view.rank - 2 else l.temporary([shape[a] for a in order])
    transform(l, kind, n, _rows(l, moved), _rows(l, made))
    if axis != view.rank - 2:
        l.views[output] = made.transposed([order.index(a) for a in range(view.rank)])


def _require_numbers(l: Lowering, view: View, kind: str) -> None:
    """That it is known whether the last axis holds real numbers or complex ones, and that the transform takes them."""
    if view.dtype != "f32" or view.rank < 2:
        raise l.refuse("it is not of float")
    if kind == "rfft" and view.shape[-1] != 1:
        raise l.refuse("its input is not real")
    if view.shape[-1] not in (1, 2):
        raise l.refuse("its last axis does not hold complex numbers")


def open_dft(l: Lowering, node: Node) -> bool:
    """A transform along an axis that is known only while running."""
    view, output = l.view(present(node.inputs[0])), present(node.outputs[0])
    kind = _kind(node)
    _require_numbers(l, view, kind)
    if node.inputs[1] is not None:
        raise l.refuse("it is not known whether its input is cut or padded")
    axis = l.reshaped(l.view(present(node.inputs[2])), ())
    last = view.rank - 1
    numbers = Numbers(l)
    given = numbers.of(axis)
    numbers.demand((given >= -view.rank) & (given < last), (given < -1) | (given >= 0))
    position = numbers.where(given < 0, given + view.rank, given)
    size, before, behind = numbers.of(1), numbers.of(1), numbers.of(1)
    for other, its in enumerate(view.shape[:-1]):
        size = numbers.where(position.is_equal(other), its, size)
        before = before * numbers.where(position <= other, 1, its)
        behind = behind * numbers.where(position < other, its, 1)
    outer, n, inner = numbers.let(before, size, behind)
    n, made = _lengths(kind, n)
    moved = l.reshaped(l.dense(view), (outer, n if kind != "irfft" else floor_divide(n, 2) + 1, inner, view.shape[-1]))
    moved = moved.transposed([0, 2, 1, 3])
    if kind != "rfft" and view.shape[-1] == 1:
        moved = as_complex(l, moved)
    parts = 1 if kind == "irfft" else 2
    spectra = l.temporary((outer, inner, made, parts))
    transform(l, kind, n, _rows(l, moved), _rows(l, spectra))
    sizes: list[Dim] = []
    for other, its in enumerate(view.shape[:-1]):
        numbers = Numbers(l)
        given = numbers.of(axis)
        is_it = given.is_equal(other) | given.is_equal(other - view.rank)
        sizes += numbers.let(numbers.where(is_it, made, its))
    l.set_shape(output, (*sizes, parts))
    target = l.reshaped(l.dense_output(output), (outer, made, inner, parts))
    l.copy(spectra.transposed([0, 2, 1, 3]), target)
    return True


def _kind(node: Node) -> str:
    inverse, onesided = attribute(node, "inverse", 0), attribute(node, "onesided", 0)
    return {(0, 1): "rfft", (1, 1): "irfft", (0, 0): "fft", (1, 0): "ifft"}[bool(inverse), bool(onesided)]


def _lengths(kind: str, size: Dim) -> tuple[Dim, Dim]:
    """Of a transform of so many numbers, and of its result."""
    n = 2 * (size - 1) if kind == "irfft" else size
    return n, floor_divide(n, 2) + 1 if kind == "rfft" else n


def _number(l: Lowering, value: Value) -> Dim:
    content = l.facts.of(value).content
    if content is None or content[0] is None:
        raise l.refuse(f"what {value.name} is is known only while running")
    return content[0]


def _frame_length(l: Lowering, node: Node) -> Dim:
    given = node.inputs[3] if len(node.inputs) > 3 else None
    return _number(l, given) if given is not None else l.shape(present(node.inputs[2]))[0]


def open_stft(l: Lowering, node: Node) -> bool:
    """Frames whose length or distance is known only while running."""
    for value in (node.inputs[1], *node.inputs[3:4]):
        if value is not None:
            l.content_now(value)
    batch, samples = l.shape(present(node.inputs[0]))[:2]
    step, n = _number(l, present(node.inputs[1])), _frame_length(l, node)
    numbers = Numbers(l)
    length, pace = numbers.of(n), numbers.of(step)
    numbers.demand(length >= 1, pace >= 1, length <= numbers.of(samples))
    (frames,) = numbers.let((numbers.of(samples) - length).divided(pace) + 1)
    bins = floor_divide(n, 2) + 1 if attribute(node, "onesided", 1) else n
    l.set_shape(present(node.outputs[0]), (batch, frames, bins, 2))
    _stft(l, node)
    return True


def _length(l: Lowering, node: Node, size: Dim, kind: str) -> Dim:
    """Of the transform."""
    given = node.inputs[1] if len(node.inputs) > 1 else None
    content = (l.facts.of(given).content or (None,))[0] if given is not None else size
    n = 2 * (size - 1) if given is None and kind == "irfft" else content
    if n is None:
        raise l.refuse("its length is not known")
    return n


def _fitted(l: Lowering, view: View, n: Dim) -> View:
    """[..., size, parts] cut to n numbers, or with zeros behind them."""
    size, axis = view.shape[-2], view.rank - 2
    if size == n:
        return view
    if not isinstance(size, int) or not isinstance(n, int):
        raise l.refuse("it is not known whether its input is cut or padded")
    if size > n:
        return view.sliced(axis, 0, n)
    padded = l.temporary((*view.shape[:-2], n, view.shape[-1]))
    l.emit("fill", padded, 0.0)
    l.copy(view, padded.sliced(axis, 0, size))
    return padded


@rule("STFT")
def _stft(l: Lowering, node: Node) -> None:
    signal, output = present(node.inputs[0]), present(node.outputs[0])
    window = node.inputs[2] if len(node.inputs) > 2 else None
    view, (batch, frames, _, _) = l.view(signal), l.shape(output)
    onesided, parts = attribute(node, "onesided", 1), view.shape[2] if view.rank == 3 else 1
    if view.dtype != "f32" or parts not in (1, 2) or (onesided and parts == 2):
        raise l.refuse("it is not of float, or its last axis does not hold numbers")
    step, n = _number(l, present(node.inputs[1])), _frame_length(l, node)
    samples = view.shape[1]
    for size in (step - 1, n - 1, samples - n):
        l.require_not_negative(size)
    dense = l.reshaped(l.dense(view), (batch, samples, parts))
    cut = dense.relaid((batch, frames, n, parts), (samples * parts, step * parts, parts, 1))
    rows = l.temporary((batch, frames, n, parts))
    if window is None:
        l.copy(cut, rows)
    else:
        l.require_equal(l.shape(window)[0], n)
        factors = l.reshaped(l.view(window), (n, 1))
        l.expression([cut, factors], [(rows, 2)], [], [ExpressionOp("mul", (0, 1))])
    if not onesided and parts == 1:
        rows = as_complex(l, rows)
    transform(l, "rfft" if onesided else "fft", n, _rows(l, rows), _rows(l, l.dense_output(output)))
