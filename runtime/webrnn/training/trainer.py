"""`webrnn.trainer`: a model that learns, step by step, on the same plans that it runs on."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.engine.feeds import checked_feed
from webrnn.engine.session import InferenceSession
from webrnn.errors import OptionError, ShapeError
from webrnn.ir import DType, Graph, GraphBuilder, Value
from webrnn.losses import Loss
from webrnn.onnx.saving import with_weights

from .optimizers import Optimizer, optimizer_of
from .parameters import Model, OpenModel, open_model, redrawn
from .step import LR, Settings, Step, make_step


def trainer(
    model: Model,
    loss: str | Loss | Callable[..., Value],
    optimizer: str | Optimizer = "sgd",
    wrt: Sequence[str] | None = None,
    *,
    lr: float = 0.01,
    prediction: str | None = None,
    mask: bool = False,
    clip_norm: float | None = None,
    clip_value: float | None = None,
    truncate: int | None = None,
    every: int | None = None,
    seed: int | None = None,
    fixed: Mapping[str, Any] | None = None,
    **options: Any,
) -> Trainer:
    """Make a model learn: an ONNX file or its bytes, a graph, or a net of `webrnn.build`.

    `loss` is "mse", "cross_entropy" or "ctc", one of `webrnn.training` with options, a function that adds ops to a
    graph, or the name of an output of the model that is a loss. `prediction` names the output that it compares with
    the input "target", if there are several; with `mask` there is an input "mask". `optimizer` is "sgd", "adam",
    "adamw", or one with options. `wrt` names the weights that learn, or patterns of names; all learn without it. `lr`
    is the learning rate of steps that are not given one.

    Gradients are at most `clip_value` in each element, then at most `clip_norm` long all together. `truncate` and
    `every` are those of `webrnn.gradient`. With a `seed` weights are drawn anew, with the mean and the deviation that
    they have. `fixed` and all other options are those of `webrnn.InferenceSession`.

    >>> import webrnn
    >>> net = webrnn.build.torch({"out.weight": np.zeros((1, 2), np.float32)})
    >>> net.output("y", net.linear("out", net.input("x", ("batch", 2))))
    >>> learner = webrnn.trainer(net, "mse", lr=0.1)
    >>> x = np.float32([[1, 0], [0, 1]])
    >>> for _ in range(100):
    ...     loss = learner.step({"x": x, "target": np.float32([[3], [5]])})
    >>> bool(loss < 1e-6), learner.parameters()["out_WT"].round(2).ravel()
    (True, array([3., 5.], dtype=float32))
    """
    settings = Settings(
        loss, optimizer_of(optimizer), prediction, mask, clip_norm, clip_value, truncate, every
    )  # fmt: skip
    return Trainer(open_model(model, wrt, fixed), settings, _rate(lr), seed, wrt, options)


class Trainer:
    """A model that learns. `webrnn.trainer` makes it."""

    def __init__(
        self,
        model: OpenModel,
        settings: Settings,
        lr: float,
        seed: int | None,
        wrt: Sequence[str] | None,
        options: Mapping[str, Any],
    ):
        self.lr = lr
        """The learning rate of steps that are not given one."""
        first = model.parameters if seed is None else redrawn(model.parameters, seed)
        self._step: Step = make_step(model, first, settings)
        for name in wrt or ():
            if name in model.parameters and name not in self._step.parameters:
                raise OptionError(f"wrt: the loss does not depend on {name!r}")
        left = [name for name in model.parameters if name not in self._step.parameters]
        model.close(left)
        self._model, self._settings, self._options = model, settings, dict(options)
        self._session = InferenceSession(self._step.graph, **options)
        self._stream = self._session.stream(carry=self._step.carry, starts=self._step.starts)
        self._predictor: InferenceSession | None = None
        carried = self._step.carry
        self._inputs = {value.name: value for value in self._step.graph.inputs if value.name not in carried}

    @property
    def inputs(self) -> dict[str, tuple[DType | None, tuple[Any, ...] | None]]:
        """What a step takes beside the learning rate: types and shapes by name."""
        return {name: (value.dtype, value.shape) for name, value in self._inputs.items() if name != LR}

    def step(self, feeds: Mapping[str, Any], lr: float | None = None) -> float:
        """Learn from a batch: the model's inputs, "target" and what else the loss takes. The loss before the step.

        Integers may be of any type of integers. A step whose inputs are refused changes nothing.
        """
        if LR in feeds:
            raise OptionError("the learning rate is an argument: step(feeds, lr=0.01)")
        arrays = {name: _converted(self._inputs.get(name), array) for name, array in feeds.items()}
        kind = (self._inputs[LR].dtype or DType.FLOAT).array_type
        arrays[LR] = np.array(self.lr if lr is None else _rate(lr), kind)
        (loss,) = self._stream.step(arrays)
        return float(loss)

    def predict(self, feeds: Mapping[str, Any]) -> list[Any]:
        """What the model gives with the parameters that it has now."""
        if self._predictor is None:
            self._predictor = InferenceSession(self._model.graph, **self._options)
        return self._predictor.run(None, {**feeds, **self.parameters()})

    @property
    def state(self) -> dict[str, np.ndarray]:
        """A snapshot of all states: the parameters, and what the optimizer remembers."""
        zeros = {
            value.name: np.zeros(_sizes(value), (value.dtype or DType.FLOAT).array_type)
            for value in self._step.graph.inputs
            if value.name in self._step.carry
        }
        return self._stream.state or {**zeros, **{name: array.copy() for name, array in self._step.starts.items()}}

    def parameters(self) -> dict[str, np.ndarray]:
        """The weights that learn, as they are now."""
        state = self.state
        return {name: state[name] for name in self._step.parameters}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot, or from some of its states, such as parameters; the others stay as they are."""
        known = self.state
        for name in state:
            if name not in known:
                raise OptionError(f"there is no parameter or state {name!r}; there are {', '.join(map(repr, known))}")
        checked = {
            name: checked_feed(value, state[name], {})
            for name, value in ((value.name, value) for value in self._step.graph.inputs)
            if name in state
        }
        self._stream.load({**known, **checked})

    def reset(self) -> None:
        """Start anew, from the parameters at the start."""
        self._stream.reset()

    def save_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the model with its parameters as they are now: the ONNX file that it is from, with other weights."""
        found = self.onnx(Path(path).parent)
        with open(path, "wb") as file:
            file.write(found)

    def onnx(self, folder: Path | None = None) -> bytes:
        """The same as bytes."""
        if self._model.source is None:
            raise OptionError(
                "the model is not from an ONNX file: save trainer.parameters(), or export(path, predict=path)"
            )
        return with_weights(self._model.source, self.parameters(), folder)

    def export(
        self,
        path: str | os.PathLike[str],
        predict: str | os.PathLike[str] | None = None,
        shapes: Mapping[str, Sequence[int]] | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Write the plan of a step, which learns without Python, from the parameters as they are now: a stream that
        takes a batch and "lr" and gives "loss", and whose states are the parameters and what the optimizer remembers.

        `predict` is a path for a second plan, the model itself: a stream whose states are the parameters, which stay
        as they are; load those of the first into it. `shapes` and `about` are those of `InferenceSession.export`;
        `about["trainer"]` says the names of the parameters and the learning rate. What is to be said of the plans is
        returned.
        """
        learning = {
            "parameters": self._step.parameters,
            "lr": self.lr,
            "optimizer": self._settings.optimizer.name,
            "targets": self._step.added,
        }
        told = {**(about or {}), "trainer": learning}
        fed = dict(shapes or {}) or None
        said = self._session.export(path, shapes=fed, carry=self._step.carry, about=told, starts=self.state)
        if predict is not None:
            graph, carry = _with_states(self._model.graph, self._step.parameters)
            names = {value.name for value in graph.inputs}
            mine = {name: shape for name, shape in (fed or {}).items() if name in names} or None
            session = InferenceSession(graph, **self._options)
            said += session.export(predict, shapes=mine, carry=carry, about=told, starts=self.parameters())
        return said

    def report(self) -> str:
        """On what a step runs."""
        return self._session.report()


def _with_states(graph: Graph, parameters: Sequence[str]) -> tuple[Graph, dict[str, str]]:
    """The model with parameters that are states and stay as they are."""
    b = GraphBuilder("predict")
    inputs = [b.input(value.name, value.dtype, value.shape, value.container) for value in graph.inputs]
    by_name = {value.name: value for value in inputs}
    made = b.inline(graph, *inputs)
    for before, output in zip(graph.outputs, made, strict=True):
        output.name = before.name
    b.graph.outputs = made
    carry = {}
    for name in parameters:
        output = b.value(f"{name}_next", by_name[name].dtype, by_name[name].shape)
        b.graph.outputs.append(b.op("Identity", by_name[name], output=output))
        carry[name] = output.name
    return b.graph, carry


def _converted(value: Value | None, given: Any) -> Any:
    """Integers of another width than the input's, if they fit."""
    if value is None or value.dtype is None or not isinstance(given, np.ndarray):
        return given
    kind = value.dtype.array_type
    if given.dtype == kind or given.dtype.kind not in "iu" or kind.kind not in "iu":
        return given
    made = given.astype(kind)
    if not np.array_equal(made, given):
        raise ShapeError(f"input {value.name!r} has numbers that {value.dtype.text} does not have")
    return made


def _sizes(value: Value) -> tuple[int, ...]:
    return tuple(size for size in value.shape or () if isinstance(size, int))


def _rate(lr: Any) -> float:
    try:
        found = float(lr)
    except (TypeError, ValueError):
        raise OptionError(f"lr={lr!r}: it is a number") from None
    if not np.isfinite(found) or found < 0:
        raise OptionError(f"lr={lr}: it is a number of at least 0")
    return found
