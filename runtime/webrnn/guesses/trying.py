"""Guesses are tried until one runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from webrnn.errors import Error

from .guess import Guess

Result = TypeVar("Result")


@dataclass(frozen=True)
class Patience:
    """How long guesses are tried."""

    seconds: float = 15.0
    long: float = 1.0
    """Behind a try that fails after so many seconds only smaller ones follow."""
    n_elements: int = 2**24
    """Of all inputs of a try."""


def first_that_runs(
    tries: Iterable[Guess],
    run: Callable[[dict[str, Any]], Result],
    seed: int = 0,
    patience: Patience = Patience(),  # noqa: B008  frozen
    fatal: tuple[type[Error], ...] = (),
) -> tuple[Guess, dict[str, Any], Result]:
    """The first guess with which `run` does not raise an Error, its feeds and the result. If there is none, what the
    first one met is raised, with what a person can change. After an error that is `fatal` no other guess is tried."""
    first: tuple[Guess, Error] | None = None
    most, end = patience.n_elements + 1, time.perf_counter() + patience.seconds
    for guess in tries:
        if guess.n_elements >= most and first is not None:
            continue
        start = time.perf_counter()
        feeds = guess.feeds(np.random.default_rng(seed))
        try:
            return guess, feeds, run(feeds)
        except Error as error:
            if isinstance(error, fatal):
                raise
            first = first or (guess, error)
        now = time.perf_counter()
        if now - start > patience.long:
            most = guess.n_elements
        if now > end:
            break
    assert first is not None
    plausible, refusal = first
    if plausible.options:
        refusal.args = (f"{refusal} (sizes were guessed, try others: {plausible.options})",)
    raise refusal
