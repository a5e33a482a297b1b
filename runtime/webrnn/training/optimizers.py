"""Optimizers: how a step changes the parameters, as nodes of the graph, with PyTorch's formulas.

What an optimizer remembers is a state: `Slot` says what it is called, how large it is and that it starts from zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from webrnn.errors import OptionError
from webrnn.ir import GraphBuilder, Value
from webrnn.losses.functions import number


@dataclass(frozen=True)
class Slot:
    """A state beside a parameter, of its shape; or, of no parameter, a scalar."""

    name: str
    parameter: str | None = None

    @property
    def full_name(self) -> str:
        return self.name if self.parameter is None else f"{self.parameter}.{self.name}"


States = dict[str, Value]
"""Values by the full names of their slots."""


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """What all of them have."""

    weight_decay: float = 0.0
    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        _require("weight_decay", self.weight_decay, "at least 0", lambda decay: decay >= 0)

    def slots(self, parameters: Sequence[str]) -> list[Slot]:
        """The states that it needs."""
        raise NotImplementedError

    def update(
        self,
        b: GraphBuilder,
        parameters: Mapping[str, Value],
        gradients: Mapping[str, Value],
        lr: Value,
        states: States,
    ) -> tuple[dict[str, Value], States]:
        """The parameters and the states after a step."""
        raise NotImplementedError

    def _decayed(self, b: GraphBuilder, parameter: Value, gradient: Value) -> Value:
        if not self.weight_decay:
            return gradient
        return b.op("Add", gradient, b.op("Mul", parameter, number(b, self.weight_decay, parameter)))


@dataclass(frozen=True, kw_only=True)
class Sgd(Optimizer):
    """g += weight_decay p; v = momentum v + g; p -= lr v, or with Nesterov's momentum lr (g + momentum v)."""

    momentum: float = 0.0
    nesterov: bool = False
    name: ClassVar[str] = "sgd"

    def __post_init__(self) -> None:
        super().__post_init__()
        _require("momentum", self.momentum, "at least 0 and less than 1", lambda momentum: 0 <= momentum < 1)
        if self.nesterov and not self.momentum:
            raise OptionError("nesterov=True needs a momentum")

    def slots(self, parameters: Sequence[str]) -> list[Slot]:
        return [Slot("momentum", name) for name in parameters] if self.momentum else []

    def update(
        self,
        b: GraphBuilder,
        parameters: Mapping[str, Value],
        gradients: Mapping[str, Value],
        lr: Value,
        states: States,
    ) -> tuple[dict[str, Value], States]:
        changed, after = {}, {}
        for name, parameter in parameters.items():
            step = gradient = self._decayed(b, parameter, gradients[name])
            if self.momentum:
                slot = Slot("momentum", name).full_name
                factor = number(b, self.momentum, parameter)
                step = after[slot] = b.op("Add", b.op("Mul", states[slot], factor), gradient)
                if self.nesterov:
                    step = b.op("Add", gradient, b.op("Mul", step, factor))
            changed[name] = b.op("Sub", parameter, b.op("Mul", step, lr))
        return changed, after


@dataclass(frozen=True, kw_only=True)
class Adam(Optimizer):
    """m, v: running means of g and g²; p -= lr / (1 - beta1ᵗ) · m / (sqrt(v / (1 - beta2ᵗ)) + eps).

    What means lack in the first steps, 1 - betaᵗ, is a state, too: c = beta c + (1 - beta) from 0. A power of a counter
    would lose half of the digits of float32 there. With `decoupled` (AdamW) the decay of weights is not part of g: p is
    multiplied by 1 - lr weight_decay.
    """

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    decoupled: bool = False
    name: ClassVar[str] = "adam"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.betas, Sequence) or len(self.betas) != 2:
            raise OptionError(f"betas={self.betas!r}: they are two numbers")
        for beta in self.betas:
            _require("betas", beta, "at least 0 and less than 1", lambda share: 0 <= share < 1)
        _require("eps", self.eps, "at least 0", lambda eps: eps >= 0)

    def slots(self, parameters: Sequence[str]) -> list[Slot]:
        moments = [Slot(kind, name) for name in parameters for kind in ("mean", "square")]
        return [*moments, Slot("adam.mean_share"), Slot("adam.square_share")]

    def update(
        self,
        b: GraphBuilder,
        parameters: Mapping[str, Value],
        gradients: Mapping[str, Value],
        lr: Value,
        states: States,
    ) -> tuple[dict[str, Value], States]:
        changed: dict[str, Value] = {}
        after: States = {}
        like = next(iter(parameters.values()))
        for slot, beta in zip(("adam.mean_share", "adam.square_share"), self.betas, strict=True):
            after[slot] = b.op(
                "Add", b.op("Mul", states[slot], number(b, beta, like)), number(b, 1 - np.float64(beta), like)
            )
        rate = b.op("Div", lr, after["adam.mean_share"])
        root = b.op("Sqrt", after["adam.square_share"])
        kept = None
        if self.decoupled and self.weight_decay:
            kept = b.op("Sub", number(b, 1, like), b.op("Mul", lr, number(b, self.weight_decay, like)))
        for name, parameter in parameters.items():
            gradient = gradients[name]
            if kept is not None:
                parameter = b.op("Mul", parameter, kept)
            elif not self.decoupled:
                gradient = self._decayed(b, parameter, gradient)
            mean, square = (self._running(b, states, after, kind, name, gradient) for kind in ("mean", "square"))
            scale = b.op("Add", b.op("Div", b.op("Sqrt", square), root), number(b, self.eps, like))
            changed[name] = b.op("Sub", parameter, b.op("Div", b.op("Mul", mean, rate), scale))
        return changed, after

    def _running(self, b: GraphBuilder, states: States, after: States, kind: str, name: str, gradient: Value) -> Value:
        slot = Slot(kind, name).full_name
        beta = self.betas[kind == "square"]
        new = gradient if kind == "mean" else b.op("Mul", gradient, gradient)
        kept = b.op("Mul", states[slot], number(b, beta, states[slot]))
        after[slot] = b.op("Add", kept, b.op("Mul", new, number(b, 1 - np.float64(beta), states[slot])))
        return after[slot]


@dataclass(frozen=True, kw_only=True)
class AdamW(Adam):
    """Adam whose decay of weights is decoupled."""

    weight_decay: float = 0.01
    decoupled: bool = True
    name: ClassVar[str] = "adamw"


OPTIMIZERS: dict[str, type[Optimizer]] = {kind.name: kind for kind in (Sgd, Adam, AdamW)}


def optimizer_of(given: str | Optimizer) -> Optimizer:
    """An optimizer, or the one of this name as it is without options.

    >>> optimizer_of("adam").betas
    (0.9, 0.999)
    """
    if isinstance(given, Optimizer):
        return given
    if given not in OPTIMIZERS:
        names = ", ".join(map(repr, OPTIMIZERS))
        raise OptionError(f"optimizer={given!r}: it is one of {names}, or one with options: webrnn.training.Sgd(...)")
    return OPTIMIZERS[given]()


def clipped(
    b: GraphBuilder, gradients: Mapping[str, Value], norm: float | None = None, value: float | None = None
) -> dict[str, Value]:
    """Gradients whose elements are at most `value`, and which are at most `norm` long all together."""
    found = dict(gradients)
    for given, what in ((norm, "clip_norm"), (value, "clip_value")):
        if given is not None:
            _require(what, given, "larger than 0", lambda bound: bound > 0)
    if value is not None:
        for name, gradient in found.items():
            found[name] = b.op("Clip", gradient, number(b, -value, gradient), number(b, value, gradient))
    if norm is None:
        return found
    squares = [b.op("ReduceSum", b.op("Mul", gradient, gradient), keepdims=0) for gradient in found.values()]
    length = b.op("Sqrt", squares[0] if len(squares) == 1 else b.op("Sum", *squares))
    some = next(iter(found.values()))
    # PyTorch's formula, to its last constant
    share = b.op("Div", number(b, norm, some), b.op("Add", length, number(b, 1e-6, some)))
    factor = b.op("Min", share, number(b, 1, some))
    return {name: b.op("Mul", gradient, factor) for name, gradient in found.items()}


def _require(what: str, given: object, needed: str, holds: Callable[[float], bool]) -> None:
    """Hold an option to numbers for which something holds."""
    if not isinstance(given, int | float | np.floating | np.integer) or not holds(float(given)):
        raise OptionError(f"{what}={given}: it is a number, {needed}")
