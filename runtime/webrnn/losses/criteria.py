"""Losses as gradients and trainers take them: their names and options, and the inputs that they add."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from webrnn.errors import OptionError
from webrnn.ir import WEBRNN, Dim, DType, GraphBuilder, Node, Shape, SymbolicDim, Value

from .ctc import ctc
from .functions import cross_entropy, mean_squared_error, rank_of

Inputs = dict[str, tuple[DType, Shape]]
"""Their types and shapes by name."""


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What all of them have. `mask` adds the input "mask": weights of what the mean is taken over."""

    mask: bool = False
    name: ClassVar[str] = ""

    def inputs(self, prediction: Value) -> Inputs:
        """The inputs that it needs beside a prediction whose type and shape are known."""
        found = {"target": self.target(prediction)}
        if self.mask:
            found["mask"] = (prediction.dtype or DType.FLOAT, self.masked(prediction))
        return found

    def target(self, prediction: Value) -> tuple[DType, Shape]:
        return prediction.dtype or DType.FLOAT, _declared(prediction.shape)

    def masked(self, prediction: Value) -> Shape:
        """The shape of a mask."""
        return _declared((prediction.shape or ())[: max(1, rank_of(prediction, "the prediction") - 1)])

    def build(self, b: GraphBuilder, prediction: Value, given: Mapping[str, Value]) -> Value:
        """Add it to a graph."""
        return self.of(
            b, prediction, {name: _held(b, value, prediction, self.left_out) for name, value in given.items()}
        )

    @property
    def left_out(self) -> int | None:
        """The axis of the prediction that a target of fewer axes does not have."""
        return None

    def of(self, b: GraphBuilder, prediction: Value, given: Mapping[str, Value]) -> Value:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class MeanSquaredError(Loss):
    """The mean over all elements. The mask is [batch, time] for a prediction of [batch, time, features]."""

    name: ClassVar[str] = "mse"

    def of(self, b: GraphBuilder, prediction: Value, given: Mapping[str, Value]) -> Value:
        return mean_squared_error(b, prediction, given["target"], given.get("mask"))


@dataclass(frozen=True, kw_only=True)
class CrossEntropy(Loss):
    """Of logits, along `axis`. The target is the number of the class, int32, or with `distributions` one of these."""

    axis: int = -1
    weight: Sequence[float] | None = None
    smoothing: float = 0.0
    distributions: bool = False
    name: ClassVar[str] = "cross_entropy"

    def target(self, prediction: Value) -> tuple[DType, Shape]:
        return super().target(prediction) if self.distributions else (DType.INT32, self.masked(prediction))

    def masked(self, prediction: Value) -> Shape:
        rank = rank_of(prediction, "the prediction")
        return _declared(tuple(size for at, size in enumerate(prediction.shape or ()) if at != self.axis % rank))

    @property
    def left_out(self) -> int | None:
        return self.axis

    def of(self, b: GraphBuilder, prediction: Value, given: Mapping[str, Value]) -> Value:
        options = {"axis": self.axis, "weight": self.weight, "smoothing": self.smoothing}
        return cross_entropy(b, prediction, given["target"], given.get("mask"), **options)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Ctc(Loss):
    """Of logits [time, batch, classes] and labels [batch, labels], with their lengths: "input_lengths" and
    "target_lengths", int32 [batch]. These are its masks."""

    blank: int = 0
    batch_first: bool = False
    zero_infinity: bool = False
    reduction: str = "mean"
    name: ClassVar[str] = "ctc"

    def inputs(self, prediction: Value) -> Inputs:
        if self.mask:
            raise OptionError('mask is not for "ctc", which takes input_lengths and target_lengths')
        if rank_of(prediction, "the prediction") != 3:
            raise OptionError(f"the prediction has {rank_of(prediction, '')} axes; CTC takes time, batch and classes")
        batch = _declared(prediction.shape)[0 if self.batch_first else 1]
        return {
            "target": (DType.INT32, (batch, None)),
            "input_lengths": (DType.INT32, (batch,)),
            "target_lengths": (DType.INT32, (batch,)),
        }

    def build(self, b: GraphBuilder, prediction: Value, given: Mapping[str, Value]) -> Value:
        options = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "mask"}
        return ctc(b, prediction, given["target"], given["input_lengths"], given["target_lengths"], **options)


@dataclass(frozen=True, kw_only=True)
class Function(Loss):
    """Any function that adds ops: (builder, prediction, target) or, with a mask, (builder, prediction, target, mask);
    the target is of the type and shape of the prediction."""

    function: Callable[..., Value]
    name: ClassVar[str] = "function"

    def of(self, b: GraphBuilder, prediction: Value, given: Mapping[str, Value]) -> Value:
        made = self.function(b, prediction, *given.values())
        if not isinstance(made, Value):
            raise OptionError(f"a loss gives a value of the graph, not a {type(made).__name__}")
        return made


LOSSES: dict[str, type[Loss]] = {kind.name: kind for kind in (MeanSquaredError, CrossEntropy, Ctc)}


def loss_of(given: str | Loss | Callable[..., Value], mask: bool = False) -> Loss:
    """A loss, the one of this name without options, or one of a function.

    >>> loss_of("mse", mask=True)
    MeanSquaredError(mask=True)
    """
    if isinstance(given, str) and given in LOSSES:
        return LOSSES[given](mask=mask)
    if isinstance(given, Loss):
        return replace(given, mask=True) if mask else given
    if callable(given):
        return Function(function=given, mask=mask)
    names = ", ".join(map(repr, LOSSES))
    raise OptionError(
        f"loss={given!r}: it is one of {names}, one with options, webrnn.training.CrossEntropy(axis=1), a function, "
        "or an output of the model"
    )


def _declared(shape: Shape | None) -> tuple[Dim | None, ...]:
    """Sizes as an input declares them: numbers and names; others are left open."""
    return tuple(
        size if isinstance(size, int) or (isinstance(size, SymbolicDim) and str(size) in size.names) else None
        for size in shape or ()
    )


def _held(b: GraphBuilder, value: Value, prediction: Value, left_out: int | None) -> Value:
    """A target or a mask behind a check that its sizes are those of the prediction, where an input cannot say so: the
    prediction of a convolution is time - 2 long. What follows knows them."""
    sizes, rank = value.shape or (), len(prediction.shape or ())
    axes = list(range(rank))
    if len(sizes) < rank and left_out is not None:
        axes.remove(left_out % rank)
    axes = axes[: len(sizes)]
    if None not in sizes or (prediction.shape or ())[axes[sizes.index(None)]] is None:
        return value
    shape = tuple((prediction.shape or ())[axis] for axis in axes)
    attrs = {"sizes": (None,) * len(sizes), "what": value.name, "same": tuple(enumerate(axes))}
    checked = b.value(value.name, value.dtype, shape)
    b.add(Node("ExpectShape", [value, prediction], [checked], attrs, value.name, WEBRNN))
    return checked
