"""A model with inputs to run it on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.engine.random_feeds import open_sizes, random_input
from webrnn.engine.session import InferenceSession
from webrnn.errors import Error, OptionError, ShapeError
from webrnn.ir import Value

from .models import BUILT_IN, FURTHER

SCALE = 0.5
"""Of the normal noise that models are fed: activations stay where they are neither linear nor saturated."""


@dataclass(frozen=True)
class Case:
    name: str
    model: str | bytes
    """The path of a file, or what one holds."""
    feeds: dict[str, np.ndarray]
    expected: list[np.ndarray]
    """What numpy computes."""
    outputs: list[str]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def data(self) -> bytes:
        return self.model if isinstance(self.model, bytes) else Path(self.model).read_bytes()


def make_case(
    name: str,
    model: str | bytes,
    sizes: Mapping[str, int] | None = None,
    fixed: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Case:
    """Random inputs for a model, and the results for them; named sizes that are not given are 1."""
    rng = np.random.default_rng(seed)
    try:
        session = InferenceSession(model, backend="numpy", fixed=fixed)
    except Error:
        session = InferenceSession(model, fixed=fixed)  # a plan file: there is no graph for numpy
    feeds = {value.name: random_input(value, sizes or {}, rng) for value in session.inputs}
    for feed in feeds.values():
        if feed.dtype.kind == "f":
            feed *= SCALE
    return Case(name, model, feeds, _results(session, feeds, sizes or {}), _names(session.outputs), fixed or {})


def _results(session: InferenceSession, feeds: dict[str, np.ndarray], sizes: Mapping[str, int]) -> list[np.ndarray]:
    try:
        return session.run(None, feeds)
    except ShapeError as error:
        names = dict.fromkeys(name for value in session.inputs for name in open_sizes(value).values())
        options = " ".join(f"--size {name}=N" for name in names if name not in sizes)
        if not options:
            raise
        raise ShapeError(f"{error} (sizes were taken for 1: {options})") from error


def _names(values: Sequence[Value]) -> list[str]:
    return [value.name for value in values]


def built_in(name: str) -> Case:
    return make_case(name, {**BUILT_IN, **FURTHER}[name]())


def from_argument(text: str, sizes: Mapping[str, int], fixed: Mapping[str, Any]) -> Case:
    """The path of a file, or the name of a built-in model."""
    names = (*BUILT_IN, *FURTHER)
    if text in names:
        return built_in(text)
    if not Path(text).exists():
        raise OptionError(f"{text!r} is no file, and no built-in model: those are {', '.join(names)}")
    return make_case(Path(text).stem, text, sizes, fixed)
