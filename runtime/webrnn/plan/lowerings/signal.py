"""DFT and STFT: transforms of rows (fourier.py) and what brings operands into rows."""

from __future__ import annotations

from webrnn.ir import Dim, Node

from ..draft import ExpressionOp
from ..lowering import Lowering, attribute, present, rule
from ..views import View, count_of
from .fourier import as_complex, transform


def _rows(l: Lowering, view: View) -> View:
    """[..., n, 1 or 2] as [rows, n or 2 n]."""
    return l.reshaped(l.dense(view), (count_of(view.shape[:-2]), count_of(view.shape[-2:])))


@rule("DFT")
def _dft(l: Lowering, node: Node) -> None:
    x, output = present(node.inputs[0]), present(node.outputs[0])
    view, shape = l.view(x), l.shape(output)
    if view.dtype != "f32" or view.rank < 2:
        raise l.refuse("it is not of float")
    given = node.inputs[2] if len(node.inputs) > 2 else None
    axis = (l.ints(given)[0] if given is not None else -2) % view.rank
    if axis == view.rank - 1:
        raise l.refuse("its axis is the last one")
    inverse, onesided = attribute(node, "inverse", 0), attribute(node, "onesided", 0)
    kind = {(0, 1): "rfft", (1, 1): "irfft", (0, 0): "fft", (1, 0): "ifft"}[bool(inverse), bool(onesided)]
    n = _length(l, node, view.shape[axis], kind)
    order = [*(a for a in range(view.rank - 1) if a != axis), axis, view.rank - 1]
    moved = view.transposed(order)
    if kind == "rfft" and view.shape[-1] != 1:
        raise l.refuse("its input is not real")
    moved = _fitted(l, moved, n // 2 + 1 if kind == "irfft" else n)
    if kind != "rfft" and view.shape[-1] == 1:
        moved = as_complex(l, moved)
    if moved.shape[-1] not in (1, 2):
        raise l.refuse("its last axis does not hold complex numbers")
    made = l.dense_output(output) if axis == view.rank - 2 else l.temporary([shape[a] for a in order])
    transform(l, kind, n, _rows(l, moved), _rows(l, made))
    if axis != view.rank - 2:
        l.views[output] = made.transposed([order.index(a) for a in range(view.rank)])


def _length(l: Lowering, node: Node, size: Dim, kind: str) -> int:
    """Of the transform."""
    given = node.inputs[1] if len(node.inputs) > 1 else None
    content = (l.facts.of(given).content or (None,))[0] if given is not None else size
    n = 2 * (size - 1) if given is None and kind == "irfft" else content
    if not isinstance(n, int):
        raise l.refuse(f"its length of {n} is not known")
    return n


def _fitted(l: Lowering, view: View, n: int) -> View:
    """[..., size, parts] cut to n numbers, or with zeros behind them."""
    size, axis = view.shape[-2], view.rank - 2
    if size == n:
        return view
    if not isinstance(size, int):
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
    step = l.ints(node.inputs[1])[0]
    given = node.inputs[3] if len(node.inputs) > 3 else None
    n: Dim = l.ints(given)[0] if given is not None else l.shape(present(window))[0]
    if not isinstance(n, int) or n < 1 or step < 1:
        raise l.refuse(f"frames of {n} every {step}")
    samples = view.shape[1]
    l.require_not_negative(samples - n)
    dense = l.reshaped(l.dense(view), (batch, samples, parts))
    cut = dense.relaid((batch, frames, n, parts), (samples * parts, step * parts, parts, 1))
    rows = l.temporary((batch, frames, n, parts))
    if window is None:
        l.copy(cut, rows)
    else:
        factors = l.reshaped(l.view(window), (n, 1))
        l.expression([cut, factors], [(rows, 2)], [], [ExpressionOp("mul", (0, 1))])
    if not onesided and parts == 1:
        rows = as_complex(l, rows)
    transform(l, "rfft" if onesided else "fft", n, _rows(l, rows), _rows(l, l.dense_output(output)))
