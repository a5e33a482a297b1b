"""`webrnn.optimize`: what the passes do to a model, as a report."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from webrnn.formats import read_model
from webrnn.ir import Graph
from webrnn.passes.base import Decline, Semantics
from webrnn.passes.pipeline import Observer, run_passes

from .measures import Measures, measure


@dataclass(frozen=True, slots=True)
class Step:
    """What one pass did, over all rounds."""

    name: str
    fired: list[str]
    """What each of its rewrites changed, in order."""
    declined: list[Decline]
    """Where it could have acted on the graph as it is at the end, and why it did not."""
    seconds: float

    @property
    def count(self) -> int:
        """How often it fired."""
        return len(self.fired)


@dataclass(frozen=True, slots=True)
class Report:
    """What an optimization did; `str(report)` is for people.

    >>> from onnx.parser import parse_model
    >>> model = parse_model('''<ir_version: 8, opset_import: ["": 17]>
    ... g (float[3] x) => (float[3] y) { a = Neg(x) b = Neg(a) y = Exp(b) }''')
    >>> report = optimize(model.SerializeToString())
    >>> report.before.nodes, report.after.nodes
    (3, 1)
    >>> [(step.name, step.fired) for step in report.steps if step.count]
    [('simplify_algebra', ['Neg -> b']), ('remove_dead', ['Neg -> a'])]
    """

    before: Measures
    after: Measures
    steps: list[Step]
    """One for each pass that was run, in the order of the pipeline."""
    rounds: int
    reached_fixpoint: bool
    """Whether the passes came to an end by themselves."""
    graph: Graph = field(repr=False)
    """The optimized graph."""

    @property
    def seconds(self) -> float:
        """What the passes took; reading and measuring the model is not in it."""
        return sum(step.seconds for step in self.steps)

    def __str__(self) -> str:
        from .text import report_text

        return report_text(self)


def optimize(
    model: str | os.PathLike[str] | bytes,
    *,
    disable: Collection[str] = (),
    fixed: Mapping[str, Any] | None = None,
    semantics: Semantics = "run",
    stop_after: int | None = None,
    memory: bool = False,
    sizes: Mapping[str, int] | None = None,
    observe: Observer | None = None,
) -> Report:
    """Optimize a model, given as the path of a file or as its bytes, and report what was done.

    `disable`, `fixed`: as for `InferenceSession`. `semantics`: "run", states are given and returned with each call, or
    "stream", they live on between calls. `stop_after`: the most rewrites that are made, to find a wrong one by
    bisection. `memory`: estimate the peak memory too. `sizes`: numbers for named sizes in costs. `observe` is called
    with the pass, its result and the graph after each run of a pass.
    """
    graph = read_model(model, fixed)
    before = measure(graph, memory=memory, sizes=sizes)
    outcome = run_passes(graph, disable=disable, semantics=semantics, stop_after=stop_after, observe=observe)
    steps = [
        Step(name, outcome.fired.get(name, []), outcome.declines.get(name, []), spent)
        for name, spent in outcome.seconds.items()
    ]
    after = measure(graph, memory=memory, sizes=sizes)
    return Report(before, after, steps, outcome.rounds, outcome.reached_fixpoint, graph)
