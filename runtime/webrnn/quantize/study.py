"""`quantize`: a model with small weights, node by node."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from webrnn.engine.streams.carry import Carry
from webrnn.errors import OptionError, PlanError
from webrnn.formats import read_model
from webrnn.ir import Graph
from webrnn.passes.weight_forms import EVERY, F16, F32, INT8, INT16, is_called, require_called, weight_forms
from webrnn.plan import file as plan_file

from .differences import Difference
from .inputs import trial
from .lab import Lab, Outcome, Unit, exact, plan_bytes
from .search import Ladder, ladders, path, smallest_within

CURVE_POINTS = 16
"""At most, of mixed forms."""


class Progress(Protocol):
    def __call__(self, what: str, done: int, total: int) -> None:
        """What is tried now, as one of about how many."""
        ...


@dataclass(frozen=True)
class Row:
    """What became of the weights of a node."""

    unit: Unit
    form: str
    error: float
    """If no other node has small weights."""
    reason: str = ""
    """Why its weights are not as small as was asked for."""

    @property
    def bytes(self) -> int:
        return self.unit.size(self.form)


@dataclass(frozen=True)
class Point:
    """A model with some forms: its size and its error."""

    weight_bytes: int
    error: float


class Quantization:
    """What `quantize` found."""

    def __init__(self, lab: Lab, rows: list[Row], ladder: list[Ladder], counter: _Counter):
        self._lab, self._ladder, self._counter = lab, ladder, counter
        self.rows = rows
        self.trial = lab.trial
        """What it was tried on."""
        self.plain = lab.plain
        """The session with float32 weights."""
        self.session = lab.session(self.weights)
        """That with the forms that were found."""
        self.differences: list[tuple[str, Difference]] = list(
            zip(lab.output_names, lab.differences(self.session), strict=True)
        )
        """Of each output, with all forms together."""

    @cached_property
    def weights(self) -> dict[str, str]:
        """What InferenceSession takes: the small form that most weights have for all nodes, and others by name."""
        forms = {row.unit.name: row.form for row in self.rows}
        refused = {row.unit.name: row.unit.refused for row in self.rows}
        counts: Counter[str] = Counter()
        for row in self.rows:
            counts[row.form] += row.unit.count if row.form != F32 else 0
        default = max(counts, key=lambda form: counts[form], default=F32)
        named = [name for name, form in forms.items() if form != default and default not in refused[name]]
        named += [name for name, form in forms.items() if form not in (default, F32) and default in refused[name]]
        short = {EVERY: default, **{name: forms[name] for name in sorted(named, key=len, reverse=True)}}
        asked = weight_forms(short)
        become = {name: F32 if asked.of(name) in refused[name] else asked.of(name) for name in forms}
        return short if become == forms else exact(forms)

    @property
    def error(self) -> float:
        """Of all nodes together."""
        return max((each.error for _, each in self.differences), default=0.0)

    @property
    def plain_bytes(self) -> int:
        return sum(row.unit.size(F32) for row in self.rows)

    @property
    def weight_bytes(self) -> int:
        return sum(row.bytes for row in self.rows)

    def plan_bytes(self) -> tuple[int | None, int | None]:
        """Of the plan with float32 weights, and of this one; None if there is none for all sizes."""
        return plan_bytes(self.plain), plan_bytes(self.session)

    def same_form_everywhere(self) -> dict[str, Point]:
        """For each form: all nodes that can have it do."""
        found = {}
        for form in (INT8, INT16, F16):
            forms = {unit.name: unit.possible(form) for unit in self._lab.units}
            found[form] = _point(self._lab.outcome(forms, f"all {form}"))
        return {**found, F32: Point(self.plain_bytes, 0.0)}

    def curve(self) -> list[Point]:
        """Mixed forms, from the smallest to float32, as `search` goes from one to the other."""
        points = path(self._lab, self._ladder)
        count = min(CURVE_POINTS, len(points))
        places = sorted({round(at * (len(points) - 1) / max(count - 1, 1)) for at in range(count)})
        self._counter.expect(len(places))
        return [_point(self._lab.outcome(points[place], "mixed forms")) for place in places]

    def as_data(self) -> dict[str, Any]:
        return {
            "weights": self.weights,
            "inputs": self.trial.about,
            "error": self.error,
            "outputs": {
                name: {"difference": each.largest, "scale": each.scale} for name, each in self.differences
            },
            "bytes": self.weight_bytes,
            "plain_bytes": self.plain_bytes,
            "nodes": [
                {
                    "name": row.unit.name,
                    "op": row.unit.op,
                    "weights": row.unit.count,
                    "form": row.form,
                    "bytes": row.bytes,
                    "error_alone": row.error,
                    "reason": row.reason,
                }
                for row in self.rows
            ],
        }  # fmt: skip

    def __str__(self) -> str:
        from .text import report_text

        return report_text(self)


def quantize(
    model: str | os.PathLike[str] | bytes | Graph,
    weights: str | Mapping[str, str] = INT8,
    keep: Collection[str] = (),
    *,
    max_error: float | None = None,
    inputs: Sequence[str | os.PathLike[str]] = (),
    sizes: Mapping[str, int] | None = None,
    carry: Carry | None = None,
    steps: int | None = None,
    backend: str = "auto",
    disable: Iterable[str] = (),
    fixed: Mapping[str, Any] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Quantization:
    """Measure what small weights do to a model, node by node and all together.

    `weights` and `keep` are as for InferenceSession. With `max_error` they are the smallest forms that are tried, and
    each node gets the smallest form with which the error of all together is not larger (see `search`); nodes that
    `weights` names keep theirs. `inputs` are .npz files, one run each; without them inputs are random, of `sizes` where
    the model leaves sizes open. With `carry` the runs are streams, whose inputs have an axis of steps in front.
    """
    if max_error is not None and not (math.isfinite(max_error) and max_error >= 0):
        raise OptionError(f"the largest error is a number from 0 on, not {max_error}")
    forms = weight_forms(weights, keep)
    counter = _Counter(progress)
    graph = model if isinstance(model, Graph) else _read(model, fixed)
    lab = Lab(graph, backend, tuple(disable), counter)
    require_called([unit.name for unit in lab.units], forms)
    lab.begin(trial(lab.plain, [Path(file) for file in inputs], sizes, carry, steps, seed))
    asked = {unit.name: forms.of(unit.name) for unit in lab.units}
    named = {unit.name for unit in lab.units if any(is_called(unit.name, given) for given in forms.by_name)}
    ladder = ladders(lab, asked, named)
    counter.expect(_most_tries(ladder, max_error is not None))
    if max_error is None:
        chosen = {unit.name: unit.possible(asked[unit.name]) for unit in lab.units}
    else:
        chosen = smallest_within(lab, ladder, max_error)
    rows = [_row(lab, unit, chosen[unit.name], asked[unit.name]) for unit in lab.units]
    return Quantization(lab, rows, ladder, counter)


def _read(model: str | os.PathLike[str] | bytes, fixed: Mapping[str, Any] | None) -> Graph:
    if plan_file.plan_bytes(model) is not None:
        raise PlanError("weights are made small when a plan is exported, not when it is loaded")
    return read_model(model, fixed)


def _row(lab: Lab, unit: Unit, form: str, asked: str) -> Row:
    if form == asked:
        reason = "asked for" if form == F32 else ""
    else:
        reason = unit.refused.get(asked) or "for the error"
    return Row(unit, form, lab.alone(unit, form), reason)


def _most_tries(ladder: list[Ladder], is_searching: bool) -> int:
    rungs = [len(row.forms) - 1 for row in ladder]
    if not is_searching:
        return sum(1 for row in ladder if row.forms[0] != F32)
    return sum(rungs) + math.ceil(math.log2(sum(rungs) + 1)) + sum(1 for count in rungs if count)


def _point(outcome: Outcome) -> Point:
    return Point(outcome.weight_bytes, outcome.error)


class _Counter:
    """How far it is."""

    def __init__(self, progress: Progress | None):
        self._progress, self._done, self._total = progress, 0, 1

    def expect(self, tries: int) -> None:
        self._total = self._done + max(tries, 1)

    def __call__(self, what: str) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(what, self._done, max(self._done, self._total))
