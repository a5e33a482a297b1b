"""A model with inputs to run it on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.engine.feeds import checked_feed
from webrnn.engine.limits import Limits
from webrnn.engine.onnxruntime_names import NodeArg
from webrnn.engine.session import InferenceSession
from webrnn.errors import BackendError, Error, LimitError, OptionError, PlanError, UnsupportedOp
from webrnn.guesses import first_that_runs, open_sizes
from webrnn.ir import DType, Value
from webrnn.ir.dims import is_static
from webrnn.names import unknown_name

from .inputs import Stored, stored_inputs
from .models import BUILT_IN, FURTHER

Shapes = Mapping[str, Sequence[int]]

_FLOATS = (DType.FLOAT, DType.FLOAT16, DType.DOUBLE)
TOLERANCE = 1e-3
"""Results that are farther from the expected ones than this, relative to the largest of them, are not timed."""
SMALL_TOLERANCE = 0.25
"""The same where models are also timed with small weights."""
NUMPY_SECONDS = 20.0
"""A model that takes longer in numpy has the results of another runtime as its expected ones."""
CELLS, WHOLE = "cells", "whole models"
"""The parts of a table."""


@dataclass(frozen=True)
class Case:
    name: str
    model: str | bytes
    """The path of a file, or what one holds."""
    feeds: dict[str, np.ndarray]
    expected: list[np.ndarray]
    """What numpy computes, or `oracle` says who."""
    outputs: list[str]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    section: str = WHOLE
    tolerance: float = TOLERANCE
    oracle: str = "numpy"

    def data(self) -> bytes:
        return self.model if isinstance(self.model, bytes) else Path(self.model).read_bytes()


def make_case(
    name: str,
    model: str | bytes,
    sizes: Mapping[str, int] | None = None,
    fixed: Mapping[str, Any] | None = None,
    seed: int = 0,
    stored: Stored | None = None,
    tolerance: float = TOLERANCE,
    section: str = WHOLE,
    shapes: Shapes | None = None,
) -> Case:
    """Inputs for a model, and the results for them. What is not stored is made up: named sizes that are not given are
    guessed, or 1 if none is."""
    session, oracle = _opened(model, fixed)
    feeds = feeds_for(session, stored, sizes, shapes, seed)
    outputs = [value.name for value in session.outputs]
    if stored is not None and outputs and all(name in stored.outputs for name in outputs):
        expected, oracle = [stored.outputs[name] for name in outputs], stored.source
    else:
        expected, oracle = _results(session, oracle, model, feeds, fixed)
    return Case(name, model, feeds, expected, outputs, fixed or {}, section, tolerance, oracle)


def _opened(model: str | bytes, fixed: Mapping[str, Any] | None) -> tuple[InferenceSession, str]:
    """In numpy where that is possible: it is not for a plan file, which has no graph."""
    try:
        return InferenceSession(model, backend="numpy", fixed=fixed, limits=Limits(seconds=NUMPY_SECONDS)), "numpy"
    except Error:
        return InferenceSession(model, fixed=fixed), "webrnn"


def feeds_for(
    session: InferenceSession,
    stored: Stored | None,
    sizes: Mapping[str, int] | None,
    shapes: Shapes | None = None,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """What is not stored is made up; without `sizes` all that are open are 1."""
    for value in (*session.inputs, *session.outputs):
        if "seq" in value.container or value.dtype is DType.STRING:
            raise OptionError(f"results are compared as numbers, and {value.name!r} is {NodeArg.of(value).type}")
    given = stored.inputs if stored is not None else {}
    if unknown := [name for name in given if name not in {value.name for value in session.inputs}]:
        names = ", ".join(value.name for value in session.inputs)
        raise OptionError(f"there are inputs for {', '.join(unknown)}, but the model has {names}")
    bound: dict[str, int] = {}
    arrays = {
        value.name: checked_feed(value, given[value.name], bound) for value in session.inputs if value.name in given
    }
    if sizes is None:
        sizes = {name: 1 for value in session.inputs for name in open_sizes(value).values()}
    tries = session.guesses(sizes, shapes, arrays).tries()
    if all(is_static(value.shape) and value.dtype in _FLOATS for value in session.inputs):
        return next(tries).feeds(np.random.default_rng(seed))
    return first_that_runs(tries, lambda feeds: session.run(None, feeds), seed, fatal=(LimitError,))[1]


def _results(
    session: InferenceSession,
    oracle: str,
    model: str | bytes,
    feeds: dict[str, np.ndarray],
    fixed: Mapping[str, Any] | None,
) -> tuple[list[np.ndarray], str]:
    """And whose they are: numpy's, or onnxruntime's where numpy takes too long or does not know an op, or our own."""
    try:
        return session.run(None, feeds), oracle
    except (LimitError, UnsupportedOp, PlanError, BackendError):
        if oracle != "numpy":
            raise
    if found := _onnxruntime_results(model, feeds) if not fixed else None:
        return found, "onnxruntime"
    return InferenceSession(model, fixed=fixed).run(None, feeds), "webrnn"


def _onnxruntime_results(model: str | bytes, feeds: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    try:
        import onnxruntime

        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        return [np.asarray(result) for result in session.run(None, feeds)]
    except Exception:  # its own kinds of errors: then there is nothing to compare with
        return None


def feeds_of(
    model: str | bytes,
    sizes: Mapping[str, int] | None,
    fixed: Mapping[str, Any],
    stored: Stored | None = None,
    seed: int = 0,
    shapes: Shapes | None = None,
) -> dict[str, np.ndarray]:
    """Inputs alone, as `make_case` makes them."""
    return feeds_for(_opened(model, fixed)[0], stored, sizes, shapes, seed)


def require_sizes(inputs: Sequence[Value], sizes: Mapping[str, int]) -> None:
    """Raises if a size is of no axis that the model leaves open."""
    names = list(dict.fromkeys(name for value in inputs for name in open_sizes(value).values()))
    if unknown := [name for name in sizes if name not in names]:
        raise OptionError(unknown_name("size", unknown[0], names))


def is_built_in(text: str) -> bool:
    return text in BUILT_IN or text in FURTHER


def model_of(text: str) -> tuple[str, str | bytes]:
    """The name and the file of an argument, or the bytes of a built-in model."""
    built = {**BUILT_IN, **FURTHER}
    if is_built_in(text):
        return text, built[text]()
    if not Path(text).exists():
        raise OptionError(f"{text!r} is no file, and no built-in model: those are {', '.join(built)}")
    return Path(text).stem, text


def built_in(name: str, tolerance: float = TOLERANCE) -> Case:
    return make_case(name, {**BUILT_IN, **FURTHER}[name](), section=CELLS, tolerance=tolerance)


def from_argument(
    text: str,
    sizes: Mapping[str, int],
    fixed: Mapping[str, Any],
    inputs: Path | None = None,
    tolerance: float = TOLERANCE,
    shapes: Shapes | None = None,
) -> Case:
    """The path of a file, or the name of a built-in model."""
    if is_built_in(text):
        return built_in(text, tolerance)
    name, model = model_of(text)
    stored = stored_inputs(inputs, name) if inputs is not None else None
    return make_case(name, model, sizes, fixed, stored=stored, tolerance=tolerance, shapes=shapes)
