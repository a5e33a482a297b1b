"""Fourier transforms and windows."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.ir import Dim, DType, Node
from webrnn.ir.dims import floor_divide

from ..facts import Fact
from .registry import from_front, is_given, operand, rule


@rule("DFT")
def dft(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    x = inputs[0]
    axes = operand(inputs, 2).ints if is_given(node, 2) else (-2,)
    if x.shape is None or axes is None:
        return [Fact(x.dtype, None if x.shape is None else (None,) * len(x.shape))]
    axis = from_front(axes[0], len(x.shape))
    onesided, inverse = node.attrs.get("onesided", 0), node.attrs.get("inverse", 0)
    length = x.shape[axis]
    if is_given(node, 1):
        length = _number(inputs[1])
    elif onesided and inverse and length is not None:
        length = 2 * (length - 1)
    if onesided and not inverse:
        length = _half_spectrum(length)
    last = 1 if onesided and inverse else 2
    return [Fact(x.dtype, (*x.shape[:axis], length, *x.shape[axis + 1 : -1], last))]


@rule("STFT")
def stft(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    signal, step, window = inputs[0], _number(inputs[1]), operand(inputs, 2)
    length = _number(inputs[3]) if is_given(node, 3) else window.shape[0] if window.shape else None
    batch, samples = (None, None) if signal.shape is None else signal.shape[:2]
    frames: Dim | None = None
    if samples is not None and length is not None and isinstance(step, int) and step > 0:
        frames = floor_divide(samples - length, step) + 1
    bins = _half_spectrum(length) if node.attrs.get("onesided", 1) else length
    return [Fact(signal.dtype, (batch, frames, bins, 2))]


@rule("HannWindow", "HammingWindow", "BlackmanWindow")
def window(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    return [Fact(DType(node.attrs.get("output_datatype", DType.FLOAT)), (_number(inputs[0]),))]


@rule("MelWeightMatrix")
def mel_weight_matrix(node: Node, inputs: Sequence[Fact]) -> Sequence[Fact]:
    dtype = DType(node.attrs.get("output_datatype", DType.FLOAT))
    return [Fact(dtype, (_half_spectrum(_number(inputs[1])), _number(inputs[0])))]


def _number(fact: Fact) -> Dim | None:
    return fact.content[0] if fact.content else None


def _half_spectrum(length: Dim | None) -> Dim | None:
    return None if length is None else floor_divide(length, 2) + 1
