"""What is trained: constants of a model become inputs of its graph."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.build.net import Net
from webrnn.errors import OptionError, PlanError
from webrnn.formats.reader import is_onnx
from webrnn.gradients import parameters
from webrnn.ir import DType, Graph
from webrnn.plan.file import plan_bytes

Model = str | os.PathLike[str] | bytes | Graph | Net

_FLOATS = (DType.FLOAT, DType.DOUBLE)

_NOT_LEARNED = {
    ("BatchNormalization", 3), ("BatchNormalization", 4), ("Clip", 1), ("Clip", 2), ("Pad", 2), ("Resize", 1),
    ("Resize", 2), ("QuantizeLinear", 1), ("DequantizeLinear", 1),
}  # fmt: skip
"""Operands that are constants of an op, not weights: those that are float tensors."""


@dataclass(eq=False)
class OpenModel:
    """A model whose parameters are inputs, behind those that it has."""

    graph: Graph
    parameters: dict[str, np.ndarray]
    """What they are in the model."""
    source: Path | bytes | None
    """The ONNX file that it is from, if it is."""

    def close(self, names: Iterable[str]) -> None:
        """Make some of the parameters constants again."""
        by_name = {value.name: value for value in self.graph.inputs}
        for name in names:
            value = by_name[name]
            self.graph.inputs.remove(value)
            self.graph.constants[value] = self.parameters.pop(name)


def open_model(model: Model, wrt: Sequence[str] | None = None, fixed: Mapping[str, Any] | None = None) -> OpenModel:
    """`wrt` names the parameters, or patterns of names, "decoder.*"; without it they are all weights: float tensors of
    at least one axis that an op does not take as a setting."""
    if isinstance(wrt, str):
        raise OptionError(f"wrt is a list of names: wrt=[{wrt!r}]")
    source = None
    if isinstance(model, Net):
        model = model.graph()
    if not isinstance(model, Graph):
        if plan_bytes(model) is not None:
            raise PlanError("this is a plan: what is trained is a model, and trainer.export(...) makes a plan of that")
        if is_onnx(model):
            source = bytes(model) if isinstance(model, bytes | bytearray | memoryview) else Path(model)
    names = None if wrt is None else _named(model, wrt, fixed)
    opened = parameters.open_model(model, names, fixed)
    used = {value.name for value in opened.graph.inputs}
    found = OpenModel(opened.graph, {name: array for name, array in opened.weights.items() if name in used}, source)
    others = [name for name, array in found.parameters.items() if DType.of(array) not in _FLOATS]
    if wrt is None:
        found.close({*others, *(_settings(found.graph) & found.parameters.keys())})
    elif others:
        raise OptionError(
            f"wrt: {others[0]!r} is of type {found.parameters[others[0]].dtype}; float32 and float64 learn"
        )
    if not found.parameters:
        raise OptionError("the model has no weights to train: float constants of at least one axis")
    return found


def _named(
    model: str | os.PathLike[str] | bytes | Graph, wrt: Sequence[str], fixed: Mapping[str, Any] | None
) -> list[str]:
    """The names that patterns stand for. A name that is no pattern may also be that of a scalar or of a Constant."""
    weights = list(parameters.open_model(model, None, fixed).weights)
    found: list[str] = []
    for pattern in wrt:
        matches = [name for name in weights if name == pattern or fnmatchcase(name, pattern)]
        if not matches and pattern in parameters.open_model(model, [pattern], fixed).weights:
            matches = [pattern]
        if not matches:
            known = ", ".join(map(repr, weights[:12])) + (", ..." if len(weights) > 12 else "")
            raise OptionError(f"wrt: the model has no float constant {pattern!r}; it has {known or 'none'}")
        found += matches
    return list(dict.fromkeys(found))


def _settings(graph: Graph) -> set[str]:
    """Inputs that an op takes as a setting."""
    found = set()
    for node in graph.nodes:
        for place, value in enumerate(node.inputs):
            if value is not None and (node.op, place) in _NOT_LEARNED:
                found.add(value.name)
    return found


def redrawn(parameters: Mapping[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """Other values, by a seed: each parameter is drawn anew with the mean and the deviation that it has. One whose
    elements are all the same, as biases of 0 and scales of 1 at the start, stays as it is."""
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise OptionError(f"seed={seed!r}: it is a whole number, 0 or more")
    rng = np.random.default_rng(seed)
    found = {}
    for name, array in parameters.items():
        found[name] = array.copy()
        if array.size and array.std(dtype=np.float64):
            width = np.sqrt(3) * array.std(dtype=np.float64)
            found[name][...] = rng.uniform(-1, 1, array.shape) * width + array.mean(dtype=np.float64)
    return found
