"""Which form each node gets so that the error of all together stays below a bound, and the weights are small.

1. All nodes begin with their smallest form. Raising a node to its next larger form costs bytes and takes error away.
   The error of each node is measured alone; errors of several nodes add up about as their squares do. So nodes are
   raised in the order of (error² that goes) / (bytes that come), until all are float32. This order is the path.
2. The error of all nodes together is measured on the path: halving finds a place where it is within the bound, and one
   step before it is not. The end of the path is float32, so there always is one.
3. Each node that was raised is tried one form smaller, those that save most first, and stays there if the error of all
   together is still within the bound.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from .lab import Forms, Lab, Unit


class Ladder(NamedTuple):
    """The forms that a node may get, the smallest first."""

    unit: Unit
    forms: list[str]


def ladders(lab: Lab, asked: Forms, fixed: Collection[str]) -> list[Ladder]:
    """`asked` has the smallest form of each node that may be tried; nodes in `fixed` get that if they can have it."""
    found = []
    for unit in lab.units:
        forms = unit.forms(asked[unit.name])
        found.append(Ladder(unit, [unit.possible(asked[unit.name])] if unit.name in fixed else forms))
    return found


def path(lab: Lab, rows: list[Ladder]) -> list[dict[str, str]]:
    """The forms of all nodes, from all as small as can be to all as large."""
    places = dict.fromkeys((row.unit.name for row in rows), 0)
    found = [_forms(rows, places)]
    while True:
        steps = [(_worth(lab, row, places[row.unit.name]), row) for row in rows if _may_rise(row, places)]
        if not steps:
            return found
        _, row = max(steps, key=lambda step: step[0])
        places[row.unit.name] += 1
        found.append(_forms(rows, places))


def smallest_within(lab: Lab, rows: list[Ladder], most: float) -> dict[str, str]:
    """The forms of all nodes, found as the module says."""
    points = path(lab, rows)
    low, high = 0, len(points) - 1
    while low < high:
        middle = (low + high) // 2
        if lab.outcome(points[middle], "all together").error <= most:
            high = middle
        else:
            low = middle + 1
    forms = points[low]
    for row, smaller in _lowered(rows, forms):
        tried = {**forms, row.unit.name: smaller}
        if lab.outcome(tried, f"{row.unit.name} with {smaller} again").error <= most:
            forms = tried
    return forms


def _forms(rows: list[Ladder], places: dict[str, int]) -> dict[str, str]:
    return {row.unit.name: row.forms[places[row.unit.name]] for row in rows}


def _may_rise(row: Ladder, places: dict[str, int]) -> bool:
    return places[row.unit.name] + 1 < len(row.forms)


def _worth(lab: Lab, row: Ladder, place: int) -> float:
    now, then = row.forms[place], row.forms[place + 1]
    gone = lab.alone(row.unit, now) ** 2 - lab.alone(row.unit, then) ** 2
    return gone / (row.unit.size(then) - row.unit.size(now))


def _lowered(rows: list[Ladder], forms: Forms) -> Iterator[tuple[Ladder, str]]:
    raised = [(row, row.forms.index(forms[row.unit.name])) for row in rows]
    steps = [(row, row.forms[place - 1], row.forms[place]) for row, place in raised if place]
    steps.sort(key=lambda step: step[0].unit.size(step[1]) - step[0].unit.size(step[2]))
    return ((row, smaller) for row, smaller, _ in steps)
