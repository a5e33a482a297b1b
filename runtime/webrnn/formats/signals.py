"""Signals of several channels while a graph is built: each knows what it is in silence.

NAM's models are run on a signal with zeros before it, as many as they look back (`pad_start`). What a layer remembers
then is what it gives in silence, which biases make other than zero. Here a layer works on the difference to that: the
difference is zero in silence, so the history of a convolution starts from zeros, and what is constant goes into biases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from webrnn.errors import UnsupportedOp
from webrnn.ir import GraphBuilder, Value
from webrnn.reference.registry import call

from .entries import MOST_HISTORY, Entry


@dataclass(frozen=True, eq=False)
class Signal:
    """[1, channels, time]."""

    value: Value
    silence: np.ndarray | None
    """What it is while the input has been zero for long, float64 [1, channels, 1]; None if that is not known."""
    channels: int
    is_centered: bool = False
    """Whether the value is the difference to the silence."""

    @property
    def is_zero_in_silence(self) -> bool:
        return self.is_centered or (self.silence is not None and not self.silence.any())


class SignalBuilder:
    """Adds ops on signals to a graph."""

    def __init__(self, b: GraphBuilder):
        self.b = b
        self.history = 0

    def conv(
        self,
        x: Signal,
        weight: np.ndarray,
        bias: np.ndarray | None,
        layer: Entry,
        dilation: int = 1,
        groups: int = 1,
        centered: bool = False,
    ) -> Signal:
        """weight: [outputs, inputs / groups, kernel]. The last frame of a window is the newest."""
        outputs, _, kernel = weight.shape
        before = (kernel - 1) * dilation
        if before:
            x = self.centered(x, layer)
            self.history += before * x.channels
            if self.history > MOST_HISTORY:
                raise layer.unsupported("the model would have to remember more than 2^26 numbers")
        constant = np.zeros(outputs) if bias is None else bias.astype(np.float64)
        silence = None
        if x.silence is not None:
            sums = weight.astype(np.float64).sum(axis=2).reshape(groups, outputs // groups, -1)
            silence = constant + (sums @ x.silence.reshape(groups, -1, 1)).reshape(-1)
            self._require_finite(silence, layer)
            constant = silence if x.is_centered else constant
            constant = constant - silence if centered else constant
        operands = [x.value, self.b.constant(np.ascontiguousarray(weight), f"{layer.node}.w")]
        if constant.any():
            operands.append(self.b.constant(constant.astype(np.float32), f"{layer.node}.b"))
        value = self.b.op(
            "Conv",
            *operands,
            name=layer.node,
            dilations=[dilation],
            group=groups,
            kernel_shape=[kernel],
            pads=[before, 0],
            strides=[1],
        )
        known = None if silence is None else silence.reshape(1, -1, 1)
        return Signal(value, known, outputs, centered and silence is not None)

    def op(self, op: str, *operands: Signal | float | np.ndarray, **attrs: Any) -> Signal:
        """An op that works on each number alone. Arrays are [1, channels, 1]."""
        plain = [self.plain(each) if isinstance(each, Signal) else each for each in operands]
        values = [
            each.value if isinstance(each, Signal) else self.b.constant(np.asarray(each, np.float32)) for each in plain
        ]
        arrays = [each.silence if isinstance(each, Signal) else np.asarray(each, np.float64) for each in plain]
        channels = max(each.channels for each in plain if isinstance(each, Signal))
        silence = None
        if all(array is not None for array in arrays):
            silence = np.asarray(call(op, "", arrays, dict(attrs))[0])
        return Signal(self.b.op(op, *values, **attrs), silence, channels)

    def add(self, left: Signal, right: Signal) -> Signal:
        """The sum; of two differences to silence it is one, too."""
        if left.silence is None or right.silence is None or not (left.is_zero_in_silence and right.is_zero_in_silence):
            return self.op("Add", left, right)
        value = self.b.op("Add", left.value, right.value)
        return Signal(value, left.silence + right.silence, left.channels, is_centered=True)

    def halves(self, x: Signal) -> tuple[Signal, Signal]:
        """The first channels and the others."""
        x, half = self.plain(x), x.channels // 2
        first, second = self.b.split(x.value, ["first", "second"], axis=1)
        if x.silence is None:
            return Signal(first, None, half), Signal(second, None, half)
        return Signal(first, x.silence[:, :half], half), Signal(second, x.silence[:, half:], half)

    def centered(self, x: Signal, layer: Entry) -> Signal:
        """With a value that is zero in silence."""
        if x.silence is None:
            raise UnsupportedOp(
                "it looks back at a signal that is not constant in silence", node=layer.node, op=layer.op
            )
        if x.is_zero_in_silence:
            return Signal(x.value, x.silence, x.channels, is_centered=True)
        silence = self.b.constant(x.silence.astype(np.float32), "silence")
        return Signal(self.b.op("Sub", x.value, silence), x.silence, x.channels, is_centered=True)

    def plain(self, x: Signal) -> Signal:
        """With its own value."""
        if not x.is_centered:
            return x
        assert x.silence is not None
        if not x.silence.any():
            return Signal(x.value, x.silence, x.channels)
        silence = self.b.constant(x.silence.astype(np.float32), "silence")
        return Signal(self.b.op("Add", x.value, silence), x.silence, x.channels)

    def _require_finite(self, silence: np.ndarray, layer: Entry) -> None:
        if not (np.abs(silence) < np.finfo(np.float32).max).all():
            raise layer.wrong("its result in silence is no finite number")
