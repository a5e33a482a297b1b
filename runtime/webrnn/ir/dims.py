"""Sizes of tensor axes: an int, or a polynomial of named sizes.

>>> n, m = Symbol("n"), Symbol("m")
>>> str(2 * n + m - n + 1), 2 * n - n == n, n - n
('m + n + 1', True, 0)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

_Monomial: TypeAlias = tuple[str, ...]
"""The sorted names that are multiplied; () is the constant term."""


class SymbolicDim:
    """A polynomial with integer coefficients, at least one of its terms not constant. Immutable, compared by value."""

    __slots__ = ("_terms",)

    def __init__(self, terms: Mapping[_Monomial, int]):
        self._terms = tuple(sorted(terms.items()))

    def __add__(self, other: Dim) -> Dim:
        total = dict(self._terms)
        for monomial, factor in _terms_of(other):
            total[monomial] = total.get(monomial, 0) + factor
        return _simplest(total)

    def __mul__(self, other: Dim) -> Dim:
        total: dict[_Monomial, int] = {}
        for left, left_factor in self._terms:
            for right, right_factor in _terms_of(other):
                monomial = tuple(sorted(left + right))
                total[monomial] = total.get(monomial, 0) + left_factor * right_factor
        return _simplest(total)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: Dim) -> Dim:
        return self + other * -1

    def __rsub__(self, other: Dim) -> Dim:
        return self * -1 + other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicDim) and self._terms == other._terms

    def __hash__(self) -> int:
        return hash(self._terms)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for monomial, _ in self._terms for name in monomial)

    def substitute(self, sizes: Mapping[str, Dim]) -> Dim:
        """Replace named sizes.

        >>> (Symbol("n") * 2 + Symbol("m")).substitute({"n": 3, "m": 4})
        10
        """
        total: Dim = 0
        for monomial, factor in self._terms:
            product: Dim = factor
            for name in monomial:
                product = product * sizes.get(name, Symbol(name))
            total = total + product
        return total

    def __str__(self) -> str:
        text = ""
        for monomial, factor in sorted(self._terms, key=lambda term: (not term[0], term[0])):
            magnitude = abs(factor)
            product = "*".join(([] if magnitude == 1 and monomial else [str(magnitude)]) + list(monomial))
            sign = "-" if factor < 0 else "+"
            text += f" {sign} {product}" if text else f"{'-' if factor < 0 else ''}{product}"
        return text

    __repr__ = __str__


Dim: TypeAlias = int | SymbolicDim
Shape: TypeAlias = tuple[Dim | None, ...]
"""A None axis is of unknown size."""


def Symbol(name: str) -> SymbolicDim:
    """A named size."""
    return SymbolicDim({(name,): 1})


def is_static(shape: Shape | None) -> bool:
    """Whether every size is known.

    >>> is_static((1, 2)), is_static((1, Symbol("n"))), is_static(None)
    (True, False, False)
    """
    return shape is not None and all(isinstance(dim, int) for dim in shape)


def _terms_of(dim: Dim) -> tuple[tuple[_Monomial, int], ...]:
    return dim._terms if isinstance(dim, SymbolicDim) else (((), dim),)


def _simplest(terms: Mapping[_Monomial, int]) -> Dim:
    kept = {monomial: factor for monomial, factor in terms.items() if factor}
    if not kept.keys() - {()}:
        return kept.get((), 0)
    return SymbolicDim(kept)
