"""A model whose nodes get weights of this or that form, and what comes of it: its error, its size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from webrnn.engine.exporting import export_plan
from webrnn.engine.session import InferenceSession
from webrnn.errors import Error
from webrnn.ir import Graph
from webrnn.passes.pipeline import ALL_PASSES
from webrnn.passes.small_weights import weights_to_be
from webrnn.passes.weight_forms import BYTES, EVERY, F16, F32, INT8, INT16, WeightForms, WeightReport, weight_forms

from .differences import Difference, difference, worst
from .inputs import Trial

Forms = Mapping[str, str]
"""The form of each node."""
SMALLEST_FIRST = (INT8, INT16, F16, F32)


@dataclass(frozen=True)
class Unit:
    """A node with weights, or all that have the same name."""

    name: str
    op: str
    count: int
    refused: dict[str, str] = field(default_factory=dict)
    """The forms that it cannot have, with the reason."""

    def size(self, form: str) -> int:
        return self.count * BYTES[form]

    def possible(self, form: str) -> str:
        """This form, or float32 if it cannot have it."""
        return F32 if form in self.refused else form

    def forms(self, smallest: str = INT8) -> list[str]:
        """Those that it can have, the smallest first; of two that are as large, the first of SMALLEST_FIRST."""
        found: list[str] = []
        for form in SMALLEST_FIRST[SMALLEST_FIRST.index(smallest) :]:
            if form not in self.refused and BYTES[form] not in {BYTES[other] for other in found}:
                found.append(form)
        return found


@dataclass(frozen=True)
class Outcome:
    """Of a model with weights of given forms."""

    differences: list[Difference]
    """By output."""
    weight_bytes: int

    @property
    def error(self) -> float:
        return max((each.error for each in self.differences), default=0.0)


class Lab:
    """Runs a model with any forms of its weights. Each combination is tried once."""

    def __init__(
        self,
        graph: Graph,
        backend: str = "auto",
        disable: tuple[str, ...] = (),
        say: Callable[[str], None] = lambda line: None,
    ):
        """`say` is called before a combination is tried."""
        self._graph, self._backend, self._disable, self._say = graph, backend, disable, say
        self.plain = self.session(F32)
        self._quick = _Quick(self.plain, disable)
        self.units = self._find_units()
        self._outcomes: dict[tuple[str, ...], Outcome] = {}

    def session(self, weights: str | Mapping[str, str]) -> InferenceSession:
        return InferenceSession(self._graph, backend=self._backend, disable=self._disable, weights=weights)

    def begin(self, trial: Trial) -> None:
        self.trial = trial
        self.output_names = trial.outputs(self.plain)
        self._expected = list(trial.results(self.plain))

    def _find_units(self) -> list[Unit]:
        units: dict[str, Unit] = {}
        for form in (INT8, INT16, F16):
            counts: Counter[str] = Counter()
            report = self._quick.report(weight_forms(form))
            for row in report.rows:
                counts[row.name] += row.count
                unit = units.setdefault(row.name, Unit(row.name, row.op, row.count))
                if row.reason:
                    unit.refused[form] = row.reason
            units = {name: Unit(name, each.op, counts[name], each.refused) for name, each in units.items()}
        return list(units.values())

    def outcome(self, forms: Forms, what: str) -> Outcome:
        """`what` says to people why it is asked for."""
        key = tuple(forms[unit.name] for unit in self.units)
        if key not in self._outcomes:
            self._say(what)
            size = sum(unit.size(form) for unit, form in zip(self.units, key, strict=True))
            self._outcomes[key] = Outcome(self._differences(exact(forms)), size)
        return self._outcomes[key]

    def _differences(self, weights: Mapping[str, str]) -> list[Difference]:
        session = self.session(weights) if self.trial.carry is not None else self._quick.session(weights)
        return self.differences(session)

    def differences(self, session: InferenceSession) -> list[Difference]:
        found = self.trial.results(session)
        pairs = zip(found, self._expected, strict=True)
        return worst([[difference(a, b) for a, b in zip(ours, theirs, strict=True)] for ours, theirs in pairs])

    def alone(self, unit: Unit, form: str) -> float:
        """The error if no other node has small weights."""
        if form == F32:
            return 0.0
        forms = {each.name: form if each is unit else F32 for each in self.units}
        return self.outcome(forms, f"{unit.name} alone, {form}").error


class _Quick:
    """Sessions that begin with the optimized graph, if there is a plan of it for all sizes: the passes take long."""

    def __init__(self, plain: InferenceSession, disable: tuple[str, ...]):
        self._backend = plain.backend
        is_whole = getattr(plain._program, "plan", None) is not None
        self._graph = plain.graph.copy()
        self._source = None if is_whole else plain._source
        self._own = disable
        self._disable = (*disable, *(step.name for step in ALL_PASSES))

    def session(self, weights: str | Mapping[str, str]) -> InferenceSession:
        if self._source is not None:
            return InferenceSession(self._source, backend=self._backend, disable=self._own, weights=weights)
        return InferenceSession(self._graph, backend=self._backend, disable=self._disable, weights=weights)

    def report(self, forms: WeightForms) -> WeightReport:
        return weights_to_be(self._graph, forms)


def exact(forms: Forms) -> dict[str, str]:
    """What InferenceSession takes so that each node has its form, and none that of another with a similar name.

    >>> exact({"a": "int8", "a/b": "int16"})
    {'*': 'f32', 'a/b': 'int16', 'a': 'int8'}
    """
    if len(set(forms.values())) == 1:
        return {EVERY: next(iter(forms.values()))}
    return {EVERY: F32, **{name: forms[name] for name in sorted(forms, key=len, reverse=True)}}


def plan_bytes(session: InferenceSession) -> int | None:
    """How large the plan is, if there is one for all sizes."""
    try:
        return len(export_plan(session._program, session.inputs, None, None, ()))
    except Error:
        return None
