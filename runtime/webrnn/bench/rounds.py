"""All runners of a model in turn, again and again, so that a busy moment of the machine falls on all of them."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from .case import WHOLE, Case
from .peaks import Bound
from .runners import Runner, Timed

SAMPLE = 1.5e-3
"""Seconds of back-to-back runs that are timed together, if one run is not longer."""
SAMPLES = 4
"""Of a runner in its turn, the quickest counts: what else the machine does interrupts some of them, not all."""
TURN, RAREST = 8e-3, 4
"""Seconds: of longer samples there are fewer in a turn. A runner of whom one takes n times as long has a turn in every
n-th round only, in every RAREST-th at least: slow runners do not take the time of those that are compared most."""
FEWEST_ROUNDS = 9
CALM_SHARE, FEWEST_CALM = 1 / 10, 3
"""Of the rounds: ratios are those of the calmest."""
BUSY = 1.25
"""How much longer than in the calmest rounds a run typically takes on a machine that has other things to do."""


@dataclass(frozen=True)
class Ratio:
    """The median of the ratio within a round, and its quartiles, over the calm rounds."""

    median: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """Half of the range in which half of the rounds are, relative to the median."""
        return (self.high - self.low) / 2 / self.median


@dataclass
class Result:
    """One runner on one model."""

    runner: str
    times: int = 0
    """Runs in a sample."""
    samples: int = 0
    """In a turn."""
    seconds: list[float] = field(default_factory=list)
    """Of a run, by turn: that of the quickest sample."""
    error: float | None = None
    """The largest difference to the expected results, see ModelResult.oracle."""
    same_bits: bool | None = None
    """Whether the results are those of the first runner, bit for bit."""
    failure: str = ""
    """Why there are no times."""
    note: str = ""
    rounds: list[int] = field(default_factory=list)
    """Those in which it had a turn; by default all."""

    def __post_init__(self) -> None:
        self.rounds = self.rounds or list(range(len(self.seconds)))

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def calm(self) -> float:
        """The median of the calmest rounds: what a run takes while nothing else disturbs the machine."""
        return float(np.median(sorted(self.seconds)[: _n_calm(len(self.seconds))]))

    @property
    def is_busy(self) -> bool:
        """Whether the machine did other things: most rounds took clearly longer than the calmest, or not even those
        agree."""
        calmest = sorted(self.seconds)[: _n_calm(len(self.seconds))]
        return self.median > BUSY * self.calm or calmest[-1] > BUSY * calmest[0]

    @property
    def noise(self) -> float:
        """How far a round typically is from the median, relative to it."""
        return float(np.median(np.abs(np.array(self.seconds) - self.median))) / self.median

    def ratio_to(self, base: Result) -> Ratio:
        """How much longer this takes. Rounds count in which both were near their best, as far as there are such: what
        else runs on the machine does not slow all runners down by the same factor."""
        theirs = dict(zip(base.rounds, base.seconds, strict=True))
        pairs = [(mine, theirs[at]) for at, mine in zip(self.rounds, self.seconds, strict=True) if at in theirs]
        pairs.sort(key=lambda pair: max(pair[0] / self.best, pair[1] / base.best))
        calm = pairs[: _n_calm(len(pairs))]
        low, middle, high = np.percentile([mine / their for mine, their in calm], [25, 50, 75])
        return Ratio(float(middle), float(low), float(high))

    def as_data(self, base: Result | None, bound: Bound | None) -> dict[str, Any]:
        if not self.seconds:
            return {"runner": self.runner, "failure": self.failure, "error": self.error}
        data: dict[str, Any] = {
            "runner": self.runner,
            "median_us": _us(self.median),
            "min_us": _us(self.best),
            "noise": round(self.noise, 4),
            "runs": self.times * self.samples * len(self.seconds),
            "error": self.error,
            "same_bits": self.same_bits,
            "round_us": [_us(seconds) for seconds in self.seconds],
        }
        if base is not None:
            ratio = self.ratio_to(base)
            data["ratio"] = {"to": base.runner, "median": round(ratio.median, 4), "spread": round(ratio.spread, 4)}
        if bound is not None:
            data["times_bound"] = round(self.best / bound.seconds, 3)
        if self.note:
            data["note"] = self.note
        return data


@dataclass
class ModelResult:
    """All runners on one model; the first is what the others are compared with."""

    name: str
    bound: Bound | None
    results: list[Result] = field(default_factory=list)
    section: str = WHOLE
    oracle: str = "numpy"
    """Whose results the others are compared with."""

    @property
    def base(self) -> Result | None:
        return self.results[0] if self.results and self.results[0].seconds else None

    def of(self, runner: str) -> Result | None:
        return next((result for result in self.results if result.runner == runner), None)

    def as_data(self) -> dict[str, Any]:
        return {
            "model": self.name,
            "section": self.section,
            "bound": self.bound.as_data() if self.bound else None,
            "results": [result.as_data(self.base, self.bound) for result in self.results],
        }


@dataclass(frozen=True)
class Effort:
    """How long is measured: rounds are made until the time is up, but not fewer than `rounds`."""

    seconds: float = 3.0
    """For each model, on five runners; more runners have more time."""
    rounds: int = FEWEST_ROUNDS
    sample: float = SAMPLE
    rarest: int = RAREST
    """A runner that takes long has its turn in every so-manyth round at least."""
    sittings: int = 3
    """Between them other models have their turn, and runners are made anew: neither a busy second of the machine nor
    where something happens to lie in memory then decides on a model."""

    def part(self) -> Effort:
        """Of one sitting."""
        return replace(self, seconds=self.seconds / self.n_sittings, rounds=-(-self.rounds // self.n_sittings))

    @property
    def n_sittings(self) -> int:
        return min(self.sittings, self.rounds)


Makers = Mapping[str, Callable[[Case], Runner]]
"""How the runners of a model are made, by name."""
Live: TypeAlias = list[tuple[Runner, Result]]
"""What is timed, and where it is written down."""


def race(runners: Mapping[str, Timed], rounds: int, sample: float = SAMPLE) -> list[Result]:
    """Times of runners that nobody has to check, each in every round: for studies."""
    live = [(runner, Result(name)) for name, runner in runners.items()]
    measure(live, Effort(0.0, rounds, sample, rarest=1))
    return [result for _, result in live]


def prepare(case: Case, makers: Makers, bound: Bound | None) -> tuple[ModelResult, Live]:
    """Make the runners and check what they compute; those that fail or are wrong are reported, not timed."""
    found = ModelResult(case.name, bound, section=case.section, oracle=case.oracle)
    live: Live = []
    first: list[np.ndarray] | None = None
    for name, make in makers.items():
        result = Result(name)
        found.results.append(result)
        try:
            runner = make(case)
            arrays = runner.results()
        except Exception as reason:
            result.failure = _one_line(reason)
            continue
        result.note = runner.note
        result.error = difference(arrays, case.expected)
        if first is None:
            first = arrays
        result.same_bits = all(_same(a, b) for a, b in zip(arrays, first, strict=False))
        scale = max((float(np.abs(array).max()) for array in case.expected if array.size), default=1.0)
        if not result.error <= case.tolerance * max(scale, 1.0):
            result.failure = f"wrong results: off by {result.error:.1e}"
            runner.close()
            continue
        live.append((runner, result))
    return found, live


def prepare_again(case: Case, makers: Makers, model: ModelResult) -> Live:
    """Make the runners that were right anew. One that cannot be keeps the times that it has."""
    live: Live = []
    for result in model.results:
        if not result.failure:
            try:
                live.append((makers[result.runner](case), result))
            except Exception as reason:
                result.note = f"not made again: {_one_line(reason)}"
    return live


def measure(
    live: Sequence[tuple[Timed, Result]], effort: Effort, after_round: Callable[[int], None] = lambda done: None
) -> None:
    """Time the runners in rounds in which each has its turn, those that take long in some; the order rotates."""
    every: list[int] = []
    for runner, result in live:
        result.times, result.samples, turn = _calibrate(runner, effort.sample)
        every.append(min(max(1, round(turn / TURN)), effort.rarest) if every else 1)
    first = max((result.rounds[-1] + 1 for _, result in live if result.rounds), default=0)
    gc.collect()
    gc.disable()
    try:
        end = time.perf_counter() + effort.seconds * max(len(live), 1) / 5
        done = 0
        while live and (done < effort.rounds or time.perf_counter() < end):
            for position in range(len(live)):
                index = (position + done) % len(live)
                runner, result = live[index]
                if done % every[index]:
                    continue
                samples = [runner.seconds(result.times) for _ in range(result.samples)]
                result.seconds.append(min(samples) / result.times)
                result.rounds.append(first + done)
            done += 1
            after_round(done)
    finally:
        gc.enable()


def _calibrate(runner: Timed, seconds: float) -> tuple[int, int, float]:
    """Runs in a sample of about so many seconds, samples in a turn, and the seconds of a turn. Neither an interruption
    nor a first run on cold caches, which each turn of another process begins with, must make it look as if few runs
    filled a sample."""
    times = 1
    while (elapsed := min(runner.seconds(times) for _ in range(3))) < 0.7 * seconds:
        times = max(times + 1, min(times * 10, round(times * seconds / max(elapsed, 1e-7))))
    samples = min(max(1, round(TURN / elapsed)), SAMPLES)
    return times, samples, samples * elapsed


def difference(arrays: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """The largest difference of two lists of results; infinite where they are not of the same shapes or kinds."""
    most = 0.0
    if len(arrays) != len(expected):
        return float("inf")
    for array, other in zip(arrays, expected, strict=True):
        if array.shape != other.shape:
            return float("inf")
        if array.size:
            with np.errstate(invalid="ignore"):
                off = np.abs(array.astype(np.float64) - other.astype(np.float64))
            off[(array == other) | (np.isnan(array) & np.isnan(other))] = 0
            most = max(most, float(off.max()))
    return most


def apart(arrays: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> float:
    """0 if they have the same bits, otherwise the largest difference, which is not 0 then.

    >>> apart([np.float32([1])], [np.float32([1])]), apart([np.float32([0.0])], [np.float32([-0.0])]) > 0
    (0.0, True)
    """
    if len(arrays) == len(others) and all(_same(a, b) for a, b in zip(arrays, others, strict=True)):
        return 0.0
    return max(difference(arrays, others), float(np.finfo(np.float32).tiny))


def _n_calm(rounds: int) -> int:
    """How many of so many rounds are the calmest."""
    return max(FEWEST_CALM, round(rounds * CALM_SHARE))


def _us(seconds: float) -> float:
    return round(seconds * 1e6, 3)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _one_line(reason: Exception) -> str:
    text = str(reason).strip().splitlines()
    return f"{type(reason).__name__}: {text[0][:160] if text else ''}"
