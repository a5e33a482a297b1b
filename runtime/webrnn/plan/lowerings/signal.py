"""Fourier transforms of lengths that are powers of two. Complex values are a last axis of (real, imaginary)."""

from __future__ import annotations

from functools import cache

import numpy as np

from webrnn.ir import Dim, Node

from ..draft import ExpressionOp
from ..instructions import FFT_SLACK, FFTS, MAX_FFT, MIN_FFT
from ..lowering import Lowering, attribute, present, rule
from ..views import View, count_of


@cache
def twiddles(n: int, real: bool) -> np.ndarray:
    """The constants of a transform of n numbers, as wasm_kernels/fft.c reads them.

    >>> twiddles(8, False)
    array([ 1.        ,  0.70710677,  0.        , -0.70710677, -0.        ,
           -0.70710677, -1.        , -0.70710677], dtype=float32)
    """
    m = n // 2 if real else n
    return np.concatenate([_circle(m // 2, m), _circle(m, n)] if real else [_circle(m // 2, m)])


def _circle(count: int, turn: int) -> np.ndarray:
    """cos and -sin of the first `count` of `turn` steps around the circle, exact where they are 0."""
    steps = np.arange(count)
    angles = 2 * np.pi * steps / turn
    cosine, sine = np.where(4 * steps == turn, 0, np.cos(angles)), np.sin(angles)
    return np.concatenate([cosine, -sine]).astype(np.float32)


def _transform(l: Lowering, kind: str, n: Dim, x: View, y: View) -> None:
    """Rows of x to rows of y, neither with gaps."""
    if not isinstance(n, int) or not MIN_FFT <= n <= MAX_FFT or n.bit_count() != 1:
        raise l.refuse(f"its length of {n} is not a power of two from {MIN_FFT} to {MAX_FFT}")
    real = kind in ("rfft", "irfft")
    scratch = l.temporary((4 * ((n // 2 if real else n) + 2 * FFT_SLACK),))
    l.emit("fft", x, l.constant(twiddles(n, real)), y, scratch, FFTS.index(kind))


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
    order = [*(a for a in range(view.rank - 1) if a != axis), axis, view.rank - 1]
    moved = view.transposed(order)
    n = view.shape[axis] if kind != "irfft" else shape[axis]
    wanted = {"rfft": _half(n), "irfft": n}.get(kind, n)
    if shape[axis] != wanted or (kind == "irfft" and view.shape[axis] != _half(n)):
        raise l.refuse("its input is cut or padded")
    if kind == "rfft" and view.shape[-1] != 1:
        raise l.refuse("its input is not real")
    if kind != "rfft" and view.shape[-1] == 1:
        moved = _as_complex(l, moved)
    if moved.shape[-1] not in (1, 2):
        raise l.refuse("its last axis does not hold complex numbers")
    made = l.dense_output(output) if axis == view.rank - 2 else l.temporary([shape[a] for a in order])
    target = made.reshaped((count_of(made.shape[:-2]), count_of(made.shape[-2:])))
    assert target is not None
    _transform(l, kind, n, _rows(l, moved), target)
    if axis != view.rank - 2:
        l.views[output] = made.transposed([order.index(a) for a in range(view.rank)])


def _half(n: Dim) -> Dim | None:
    return n // 2 + 1 if isinstance(n, int) and n % 2 == 0 else None


def _as_complex(l: Lowering, view: View) -> View:
    pairs = l.temporary((*view.shape[:-1], 2))
    l.emit("fill", pairs, 0.0)
    l.copy(view, pairs.sliced(pairs.rank - 1, 0, 1))
    return pairs


@rule("STFT")
def _stft(l: Lowering, node: Node) -> None:
    signal, output = present(node.inputs[0]), present(node.outputs[0])
    window = node.inputs[2] if len(node.inputs) > 2 else None
    view, (batch, frames, bins, _) = l.view(signal), l.shape(output)
    if view.dtype != "f32" or not attribute(node, "onesided", 1) or (view.rank == 3 and view.shape[2] != 1):
        raise l.refuse("it is not the half spectrum of a real signal of float")
    step, n = l.ints(node.inputs[1])[0], 2 * (bins - 1)
    given = node.inputs[3] if len(node.inputs) > 3 else None
    length: Dim = l.ints(given)[0] if given is not None else l.shape(present(window))[0]
    if length != n or step < 1:
        raise l.refuse(f"frames of {length} every {step}")
    samples = view.shape[1]
    l.require_not_negative(samples - n)
    dense = l.reshaped(l.dense(view), (batch, samples))
    cut = dense.relaid((batch, frames, n), (samples, step, 1))
    rows = l.temporary((batch, frames, n))
    if window is None:
        l.copy(cut, rows)
    else:
        l.expression([cut, l.view(window)], [(rows, 2)], [], [ExpressionOp("mul", (0, 1))])
    x, y = rows.reshaped((batch * frames, n)), l.dense_output(output).reshaped((batch * frames, n + 2))
    assert x is not None
    assert y is not None
    _transform(l, "rfft", n, x, y)
