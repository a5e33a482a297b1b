"""The equation of an Einsum, taken apart."""

from __future__ import annotations

from collections.abc import Sequence

from webrnn.errors import ModelError

Letters = tuple[str, ...]


def parse(equation: str, ranks: Sequence[int]) -> tuple[list[Letters], Letters]:
    """The axes of each operand and of the result. Those of an ellipsis are numbers, counted from its end.

    >>> parse("...ij,jk", [4, 2])
    ([('1', '0', 'i', 'j'), ('j', 'k')], ('1', '0', 'i', 'k'))
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    spelled = left.split(",")
    if len(spelled) != len(ranks):
        raise ModelError(f"{equation!r} has {len(spelled)} terms, the node {len(ranks)} inputs", attribute="equation")
    terms = [_axes(term, equation, rank) for term, rank in zip(spelled, ranks, strict=True)]
    every = [axis for term in terms for axis in term]
    repeated = sorted({axis for axis in every if axis.isdecimal()}, key=int, reverse=True)
    if arrow:
        result = _axes(right, equation, len(right.replace("...", "")) + ("..." in right) * len(repeated))
    else:
        result = (*repeated, *sorted(axis for axis in set(every) if axis.isalpha() and every.count(axis) == 1))
    if len(set(result)) != len(result) or not set(result) <= set(every):
        raise ModelError(f"{equation!r}: the result has an axis twice or one that no input has", attribute="equation")
    if not set(repeated) <= set(result):
        raise ModelError(f"{equation!r}: the result needs the ellipsis of the inputs", attribute="equation")
    return terms, result


def _axes(term: str, equation: str, rank: int) -> Letters:
    before, dots, after = term.partition("...")
    if not (before + after).isalpha() and before + after:
        raise ModelError(f"{equation!r} is not letters, commas, an arrow and ellipses", attribute="equation")
    count = rank - len(before) - len(after)
    if count < 0 or (count and not dots):
        raise ModelError(f"{term!r} of {equation!r} does not fit a tensor of rank {rank}", attribute="equation")
    return (*before, *(str(number) for number in reversed(range(count))), *after)
