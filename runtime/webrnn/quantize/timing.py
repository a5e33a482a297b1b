"""How much quicker a model is with small weights: both in turn, in one process."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from webrnn.bench.rounds import race
from webrnn.bench.runners import CallRunner, Timed, session_runner
from webrnn.engine.session import InferenceSession

from .inputs import Trial
from .study import Quantization

ROUNDS = 15


class Gain(NamedTuple):
    plain: float
    """Seconds of the best run, or of a step of a stream."""
    small: float
    ratio: float
    """Of the time with small weights to that with float32, in the same round."""
    spread: float


def measure_gain(found: Quantization, rounds: int = ROUNDS) -> Gain:
    trial = found.trial
    runners = {
        name: _runner(session, trial, name) for name, session in (("f32", found.plain), ("small", found.session))
    }
    plain, small = race(runners, rounds)
    ratio = small.ratio_to(plain)
    return Gain(plain.best, small.best, ratio.median, ratio.spread)


def _runner(session: InferenceSession, trial: Trial, name: str) -> Timed:
    if trial.carry is None:
        return session_runner(session, trial.runs[0], name)
    stream, feeds = session.stream(trial.carry), next(trial.frames(trial.runs[0]))
    return CallRunner(name, partial(stream.step, feeds, borrow=True))
