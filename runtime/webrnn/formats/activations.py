"""NAM's activations, which have the names and the meaning of torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .entries import Entry
from .signals import Signal, SignalBuilder

Activation = Callable[[SignalBuilder, Signal, Entry], Signal]

_PLAIN: dict[str, tuple[str, dict[str, Any]]] = {
    "CELU": ("Celu", {"alpha": 1.0}),
    "ELU": ("Elu", {"alpha": 1.0}),
    "GELU": ("Gelu", {}),
    "Hardsigmoid": ("HardSigmoid", {"alpha": 1 / 6, "beta": 0.5}),
    "Hardswish": ("HardSwish", {}),
    "Mish": ("Mish", {}),
    "ReLU": ("Relu", {}),
    "SELU": ("Selu", {}),
    "Sigmoid": ("Sigmoid", {}),
    "Softplus": ("Softplus", {}),
    "Softsign": ("Softsign", {}),
    "Tanh": ("Tanh", {}),
}


def activated(s: SignalBuilder, x: Signal, given: Any, layer: Entry, key: str = "activation") -> Signal:
    """The function of a name, or of an object with its `type` and numbers."""
    if isinstance(given, str):
        given = {"type": given}
    setting = Entry.of(given, f"{layer.node}.{key}", layer.op)
    name = setting.text("type", None) or setting.text("name")
    if name in _PLAIN:
        setting.refuse_others({"type", "name"})
        op, attrs = _PLAIN[name]
        return s.op(op, x, **attrs)
    if name not in _OTHERS:
        known = ", ".join(sorted([*_PLAIN, *_OTHERS]))
        raise setting.unsupported(f"the activation {name!r} is not known; it knows {known}")
    return _OTHERS[name](s, x, setting)


def paired(s: SignalBuilder, x: Signal, mode: str, primary: Any, secondary: Any, layer: Entry) -> Signal:
    """Two halves of the channels become one: what comes of the first, weighed by the second."""
    first, second = s.halves(x)
    made = activated(s, first, primary, layer)
    share = activated(s, second, secondary, layer, "secondary_activation")
    if mode == "gated":
        return s.op("Mul", made, share)
    return s.op("Add", s.op("Mul", share, made), s.op("Mul", s.op("Sub", 1.0, share), first))


def _identity(s: SignalBuilder, x: Signal, setting: Entry) -> Signal:
    setting.refuse_others({"type", "name"})
    return x


def _silu(s: SignalBuilder, x: Signal, setting: Entry) -> Signal:
    setting.refuse_others({"type", "name"})
    x = s.plain(x)
    return s.op("Mul", x, s.op("Sigmoid", x))


def _log_sigmoid(s: SignalBuilder, x: Signal, setting: Entry) -> Signal:
    setting.refuse_others({"type", "name"})
    return s.op("Neg", s.op("Softplus", s.op("Neg", x)))


def _tanhshrink(s: SignalBuilder, x: Signal, setting: Entry) -> Signal:
    setting.refuse_others({"type", "name"})
    x = s.plain(x)
    return s.op("Sub", x, s.op("Tanh", x))


def _softsigmoid(s: SignalBuilder, x: Signal, setting: Entry) -> Signal:
    setting.refuse_others({"type", "name"})
    return s.op("Mul", 0.5, s.op("Add", 1.0, s.op("Softsign", x)))


def _leaky_relu(s: SignalBuilder, x: Signal, setting: Entry) -> Signal:
    setting.refuse_others({"type", "name", "negative_slope"})
    return s.op("LeakyRelu", x, alpha=setting.number("negative_slope", 0.01))


def _prelu(s: SignalBuilder, x: Signal, setting: Entry) -> Signal:
    setting.refuse_others({"type", "name", "negative_slope", "negative_slopes"})
    if not setting.has("negative_slopes"):
        return s.op("LeakyRelu", x, alpha=setting.number("negative_slope", 0.25))
    slopes = setting.array(setting.items("negative_slopes"), (x.channels,), "negative_slopes")
    return s.op("PRelu", x, slopes.reshape(1, -1, 1))


def _relu6(s: SignalBuilder, x: Signal, setting: Entry) -> Signal:
    setting.refuse_others({"type", "name"})
    return s.op("Clip", x, 0.0, 6.0)


def _hardtanh(s: SignalBuilder, x: Signal, setting: Entry) -> Signal:
    setting.refuse_others({"type", "name", "min_val", "max_val"})
    return s.op("Clip", x, *_bounds(setting))


def _leaky_hardtanh(s: SignalBuilder, x: Signal, setting: Entry) -> Signal:
    """Between its bounds the signal itself, beyond them a line of another slope."""
    setting.refuse_others({"type", "name", "min_val", "max_val", "min_slope", "max_slope"})
    low, high = _bounds(setting)
    slopes = setting.number("min_slope", 0.01), setting.number("max_slope", 0.01)
    x = s.plain(x)
    inside = s.op("Clip", x, low, high)
    below = s.op("Mul", s.op("Min", s.op("Sub", x, low), 0.0), slopes[0])
    above = s.op("Mul", s.op("Max", s.op("Sub", x, high), 0.0), slopes[1])
    return s.op("Add", s.op("Add", inside, below), above)


def _bounds(setting: Entry) -> tuple[float, float]:
    low, high = setting.number("min_val", -1.0), setting.number("max_val", 1.0)
    if low > high:
        raise setting.wrong(f"min_val {low:g} is above max_val {high:g}")
    return float(np.float32(low)), float(np.float32(high))


_OTHERS: dict[str, Activation] = {
    "Hardtanh": _hardtanh,
    "Identity": _identity,
    "LeakyHardtanh": _leaky_hardtanh,
    "LeakyReLU": _leaky_relu,
    "LogSigmoid": _log_sigmoid,
    "PReLU": _prelu,
    "ReLU6": _relu6,
    "SiLU": _silu,
    "Softsigmoid": _softsigmoid,
    "Tanhshrink": _tanhshrink,
}
