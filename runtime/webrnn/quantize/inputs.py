"""What models are run on: given inputs or random ones, at once or step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.bench.case import feeds_for
from webrnn.bench.inputs import Stored, stored_inputs
from webrnn.engine.session import InferenceSession
from webrnn.engine.streams.carry import Carry
from webrnn.errors import OptionError, ShapeError
from webrnn.guesses import first_that_runs, stride_sizes

Feeds = dict[str, np.ndarray]

RUNS = 3
"""With random inputs."""
STEPS = 100
STRIDES = 16
"""Of frames, in a step of a stream by frames."""


@dataclass(frozen=True)
class Trial:
    """Some runs. In streams each feed has an axis of steps in front."""

    runs: list[Feeds]
    about: str
    """What they are, for people."""
    carry: Carry | None = None
    steps: int = STEPS
    """Of streams whose inputs are all states."""

    def results(self, session: InferenceSession) -> Iterator[list[Any]]:
        """Of each run, by output; those of a stream have an axis of steps in front, and the states are left out."""
        for feeds in self.runs:
            if self.carry is None:
                yield session.run(None, feeds)
                continue
            stream = session.stream(self.carry)
            found = [stream.step(frame) for frame in self.frames(feeds)]
            yield [np.stack(each) for each in zip(*found, strict=True)]

    def frames(self, feeds: Feeds) -> Iterator[Feeds]:
        """The feeds of each step of a stream."""
        for step in range(len(next(iter(feeds.values()))) if feeds else self.steps):
            yield {name: array[step] for name, array in feeds.items()}

    @property
    def zeros(self) -> list[str]:
        """The inputs that are nothing but zeros."""
        return [name for name in self.runs[0] if not any(feeds[name].any() for feeds in self.runs)]

    def outputs(self, session: InferenceSession) -> list[str]:
        if self.carry is None:
            return [value.name for value in session.outputs]
        return list(session.stream(self.carry).output_names)


def trial(
    session: InferenceSession,
    files: Sequence[Path] = (),
    sizes: Mapping[str, int] | None = None,
    carry: Carry | None = None,
    steps: int | None = None,
    seed: int = 0,
) -> Trial:
    """Of .npz files, or of random numbers; `carry` makes the runs streams, of random inputs over `steps` steps."""
    if steps is not None and (carry is None or steps < 1):
        raise OptionError("a number of steps, 1 or more, is for streams: say which states they carry")
    stored = [stored_inputs(file, file.stem) for file in files]
    if carry is not None:
        return _streams(session, stored, sizes or {}, carry, steps or STEPS, seed)
    if stored:
        runs = [feeds_for(session, each, {}) for each in stored]
    else:
        guess = first_that_runs(session.guesses(sizes).tries(), lambda feeds: session.run(None, feeds), seed)[0]
        rng = np.random.default_rng(seed)
        runs = [guess.feeds(rng) for _ in range(RUNS)]
    return Trial(runs, f"{len(runs)} run{'s' * (len(runs) > 1)} of {_source(stored)}")


def _streams(
    session: InferenceSession, stored: Sequence[Stored], sizes: Mapping[str, int], carry: Carry, steps: int, seed: int
) -> Trial:
    stream = session.stream(carry)
    carried = stream.carry
    fed = [value.name for value in session.inputs if value.name not in carried]
    if not stored:
        strides = {} if stream.timing is None else stride_sizes(session.inputs, stream.timing, STRIDES)
        tries = session.guesses({**strides, **sizes}).tries()
        guess = first_that_runs(tries, lambda feeds: stream.step({name: feeds[name] for name in fed}), seed)[0]
        rng = np.random.default_rng(seed)
        single = [guess.feeds(rng) for _ in range(steps)]
        feeds = {name: np.stack([each[name] for each in single]) for name in fed}
        return Trial([feeds], f"{steps} steps of a stream of random inputs", carry, steps)
    for each in stored:
        if missing := [name for name in fed if name not in each.inputs]:
            raise OptionError(f"there is no {missing[0]!r} in the file: a stream needs all its inputs")
        lengths = {name: each.inputs[name].shape[:1] for name in fed}
        if len(set(lengths.values())) > 1 or () in lengths.values():
            raise ShapeError(
                f"inputs of a stream have an axis of steps in front, as long for each; these have {lengths}"
            )
    runs = [{name: each.inputs[name] for name in fed} for each in stored]
    made = Trial(runs, "", carry)
    return replace(made, about=f"{sum(len(list(made.frames(run))) for run in runs)} steps of {_source(stored)}")


def _source(stored: Sequence[Stored]) -> str:
    return "given inputs" if stored else "random inputs"
