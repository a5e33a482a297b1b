"""The graph of a step of training: its states are the parameters and what the optimizer remembers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from webrnn.errors import OptionError, ShapeError
from webrnn.gradients.api import derive
from webrnn.ir import DType, Graph, GraphBuilder, Value
from webrnn.losses import Loss, loss_of
from webrnn.shapes.infer import infer

from .optimizers import Optimizer, clipped
from .parameters import OpenModel

LOSS, LR = "loss", "lr"
ADDED = ("target", "mask", "input_lengths", "target_lengths")
"""Inputs that losses add."""


@dataclass(frozen=True, eq=False)
class Step:
    """One step: data, targets, `lr` and states to the loss and the next states."""

    graph: Graph
    carry: dict[str, str]
    starts: dict[str, np.ndarray]
    """What states start from."""
    parameters: list[str]
    added: list[str]
    """The inputs that the loss has added."""


@dataclass(frozen=True)
class Settings:
    """How a step is made."""

    loss: str | Loss | Callable[..., Value]
    optimizer: Optimizer
    prediction: str | None = None
    mask: bool = False
    clip_norm: float | None = None
    clip_value: float | None = None
    truncate: int | None = None
    every: int | None = None


def make_step(model: OpenModel, first: Mapping[str, np.ndarray], settings: Settings) -> Step:
    """Parameters that the loss does not depend on are not part of it."""
    with_loss, added = _with_loss(model, settings)
    derived = derive(with_loss, LOSS, list(model.parameters), truncate=settings.truncate, every=settings.every)
    return _with_update(derived.graph, derived.gradients, with_loss, first, settings, added)


def _with_loss(model: OpenModel, settings: Settings) -> tuple[Graph, list[str]]:
    """The model with the loss as its only output."""
    b = GraphBuilder("loss")
    inputs = [b.input(value.name, value.dtype, value.shape, value.container) for value in model.graph.inputs]
    for name in (LOSS, LR):
        if any(value.name == name for value in inputs):
            raise OptionError(f"the model has an input {name!r}, which a trainer has, too: rename it")
    for name in (LOSS, LR, *ADDED):
        b.unique_name(name)  # what stands in the model under this name gets another one
    outputs = {
        value.name: made for value, made in zip(model.graph.outputs, b.inline(model.graph, *inputs), strict=True)
    }
    infer(b.graph).annotate(b.graph)
    loss, added = settings.loss, []
    if isinstance(loss, str) and loss in outputs:
        if settings.prediction is not None or settings.mask:
            raise OptionError(
                "prediction and mask are for a loss that the trainer adds; this one is an output of the model"
            )
        made = outputs[loss]
    else:
        criterion = loss_of(loss, settings.mask)
        prediction = _prediction(outputs, settings.prediction)
        given = {}
        for name, (dtype, shape) in criterion.inputs(prediction).items():
            if any(value.name == name for value in inputs):
                raise OptionError(f"the model has an input {name!r}, which the loss has, too: rename it")
            given[name] = Value(name, dtype, shape)
            b.graph.inputs.append(given[name])
        made, added = criterion.build(b, prediction, given), list(given)
    known = infer(b.graph).of(made).shape
    if known is not None and any(size != 1 for size in known):
        raise ShapeError(f"a loss is one number; this one has shape {list(map(str, known))}")
    b.graph.outputs = [b.op("Reshape", made, b.ints(), output=Value(LOSS, made.dtype, ()))]
    return b.graph, added


def _prediction(outputs: Mapping[str, Value], name: str | None) -> Value:
    names = ", ".join(map(repr, outputs))
    if name is None and len(outputs) > 1:
        raise OptionError(f"the model has several outputs: prediction= says which one the loss is of, one of {names}")
    if name is not None and name not in outputs:
        raise OptionError(f"prediction={name!r}: the model has {names}")
    found = outputs[name] if name is not None else next(iter(outputs.values()))
    if found.shape is None or found.dtype is None:
        raise ShapeError(f"of the output {found.name!r} it is not known how many axes it has: the loss needs that")
    return found


def _with_update(
    derived: Graph,
    gradients: Mapping[str, str],
    with_loss: Graph,
    first: Mapping[str, np.ndarray],
    settings: Settings,
    added: list[str],
) -> Step:
    names = [name for name in gradients if _reaches(with_loss, name)]
    if not names:
        raise OptionError("the loss does not depend on any of the parameters")
    if len({first[name].dtype for name in names}) > 1:
        raise OptionError("the parameters are of different types: wrt= names those of one type")
    b = GraphBuilder("train")
    b.unique_name(LOSS)
    carry: dict[str, str] = {}
    starts: dict[str, np.ndarray] = {}
    data: dict[str, Value] = {}
    for value in with_loss.inputs:
        if value.name not in gradients:
            data[value.name] = b.input(value.name, value.dtype, value.shape, value.container)
    like = next(value for value in with_loss.inputs if value.name == names[0])
    lr = b.input(LR, like.dtype, ())
    parameters = {name: b.input(name, DType.of(first[name]), first[name].shape) for name in names}
    starts.update({name: first[name] for name in names})
    states = {}
    for slot in settings.optimizer.slots(names):
        shape = () if slot.parameter is None else first[slot.parameter].shape
        dtype = like.dtype if slot.parameter is None else parameters[slot.parameter].dtype
        states[slot.full_name] = b.input(slot.full_name, dtype, shape)
    for name, value in {**parameters, **states}.items():
        if value.name != name:
            raise OptionError(f"the state {name!r} has the name of another input: rename it")
    unused = {name: b.constant(first[name], name) for name in gradients if name not in parameters}
    known = {**data, **parameters, **unused}
    made = dict(
        zip(
            [value.name for value in derived.outputs],
            b.inline(derived, *(known[value.name] for value in derived.inputs)),
            strict=True,
        )
    )
    limited = clipped(b, {name: made[gradients[name]] for name in names}, settings.clip_norm, settings.clip_value)
    changed, after = settings.optimizer.update(b, parameters, limited, lr, states)
    b.graph.outputs = [b.op("Identity", made[LOSS], output=Value(LOSS, like.dtype, ()))]
    for name, value in {**changed, **after}.items():
        before = {**parameters, **states}[name]
        output = b.value(f"{name}_next", before.dtype, before.shape)
        b.graph.outputs.append(b.op("Identity", value, output=output))
        carry[name] = output.name
    b.graph.drop_unused_constants()
    return Step(b.graph, carry, starts, names, added)


def _reaches(graph: Graph, name: str) -> bool:
    """Whether the loss is computed from an input."""
    needed: set[Any] = set(graph.outputs)
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
    return any(value.name == name and value in needed for value in graph.inputs)
