"""In which form weights are: what a caller asks for, and what became of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from webrnn.errors import OptionError

F32, F16, INT16, INT8 = "f32", "f16", "int16", "int8"
BYTES = {F32: 4, F16: 2, INT16: 2, INT8: 1}
"""Of a weight in each form."""

EVERY = "*"
"""The key of a mapping of forms that stands for all nodes without one."""


MOST_NAMED = 10
"""Nodes that an error names: those that are called most alike."""


class WeightForms(NamedTuple):
    """What a caller asks for."""

    default: str = F32
    by_name: Mapping[str, str] = {}

    def of(self, name: str) -> str:
        """Of a node of this name."""
        return next((form for given, form in self.by_name.items() if is_called(name, given)), self.default)

    @property
    def has_integers(self) -> bool:
        """Then results are to be the same bits on every build."""
        return not {INT16, INT8}.isdisjoint((self.default, *self.by_name.values()))


def weight_forms(weights: str | Mapping[str, str], keep: Collection[str] = ()) -> WeightForms:
    """
    >>> weight_forms("int8", keep=["lstm"])
    WeightForms(default='int8', by_name={'lstm': 'f32'})
    """
    if isinstance(keep, str):
        raise OptionError(f"keep is a list of names, not the text {keep!r}")
    given = {EVERY: weights} if isinstance(weights, str) else dict(weights)
    for name, form in given.items():
        if form not in BYTES:
            of = "" if name == EVERY else f" of {name}"
            raise OptionError(f"weights{of} are {form!r}, they can be {', '.join(BYTES)}")
    return WeightForms(given.pop(EVERY, F32), {**dict.fromkeys(keep, F32), **given})


def is_called(name: str, given: str) -> bool:
    """Whether a node of this name has the given one too, or was made of a node that has it.

    >>> is_called("loop/lstm/from_x", "lstm"), is_called("lstm_2/from_x", "lstm")
    (True, False)
    """
    return f"/{given.strip('/')}/" in f"/{name}/"


def require_called(names: Sequence[str], forms: WeightForms) -> None:
    """That each node that was named is one of these."""
    for given in forms.by_name:
        if not any(is_called(name, given) for name in names):
            there = list(names)
            if len(there) > MOST_NAMED:
                from difflib import get_close_matches  # slow to import inside Pyodide

                there = [*get_close_matches(given, names, MOST_NAMED, cutoff=0.0), f"{len(there) - MOST_NAMED} more"]
            raise OptionError(f"there is no node {given!r} with weights; there are {', '.join(there) or 'none'}")


@dataclass(slots=True)
class WeightRow:
    """The weights of one node."""

    name: str
    op: str
    count: int
    form: str
    reason: str = ""
    """Why they stay, if they do."""

    @property
    def bytes(self) -> int:
        return self.count * BYTES[self.form]


@dataclass(slots=True)
class WeightReport:
    rows: list[WeightRow] = field(default_factory=list)

    def require_names(self, forms: WeightForms) -> None:
        """That each node that was named is there."""
        require_called([row.name for row in self.rows], forms)

    def lines(self) -> Iterator[str]:
        """What became small, and what did not."""
        small = [row for row in self.rows if row.form != F32]
        kept = [row for row in self.rows if row.form == F32]
        forms = ", ".join(dict.fromkeys(row.form for row in small)) or "none"
        was, now = 4 * sum(row.count for row in self.rows), sum(row.bytes for row in self.rows)
        yield f"small weights: {len(small)} of {len(self.rows)} nodes ({forms}), {was:,} bytes became {now:,}"
        yield from (f"  {row.op} {row.name} stays float32: {row.reason}" for row in kept)
