"""Finding the state that a model takes as an input and gives back as an output."""

from __future__ import annotations

import re
from collections.abc import Sequence

from webrnn.ir import Graph, Value

_MARKS = re.compile(
    r"(?<![a-z])(in|out|input|output|prev|past|new|next|present|initial|final|cur|old|0|n)(?![a-z])|[_.:/\W]"
)
_STATE_NAME = re.compile(r"(^|[^a-z])(h|c|hx|cx|h0|c0|hn|cn)([^a-z]|$)|state|hidden|cell|past|cache|memory", re.I)


def carried_pairs(graph: Graph) -> list[tuple[str, str]]:
    """(input, output) names that look like one state before and after.

    They have the same type and sizes that do not contradict each other, and either both names speak of a state or they
    have four axes, which neither signals nor scores have. A guess for people to read: nothing is carried because of it.
    """
    pairs: list[tuple[str, str]] = []
    outputs = list(graph.outputs)
    for value in graph.inputs:
        likely = [output for output in outputs if _may_carry(value, output)]
        if likely:
            best = max(likely, key=lambda output: _likeness(value.name, output.name))
            pairs.append((value.name, best.name))
            outputs.remove(best)
    return pairs


def likely_pairs(inputs: Sequence[Value], outputs: Sequence[Value]) -> dict[str, list[str]]:
    """For each input that looks like a state the outputs that may be its next value; names that agree decide."""
    found = {}
    for value in inputs:
        likeness = {out.name: _likeness(value.name, out.name) for out in outputs if _may_carry(value, out)}
        if likeness:
            best = max(likeness.values())
            found[value.name] = [name for name, score in likeness.items() if score > best - 0.1]
    return found


def _may_carry(before: Value, after: Value) -> bool:
    if before.dtype != after.dtype or before.container != after.container:
        return False
    if before.shape is None or after.shape is None or not 2 <= len(before.shape) == len(after.shape):
        return False
    known = [pair for pair in zip(before.shape, after.shape, strict=True) if all(isinstance(dim, int) for dim in pair)]
    if any(have != give for have, give in known):
        return False
    speaks_of_state = bool(_STATE_NAME.search(before.name) and _STATE_NAME.search(after.name))
    return speaks_of_state or (len(before.shape) >= 4 and len(known) >= 2)


def _likeness(before: str, after: str) -> float:
    from difflib import SequenceMatcher  # slow to import inside Pyodide

    return SequenceMatcher(None, _MARKS.sub("", before.lower()), _MARKS.sub("", after.lower())).ratio()
