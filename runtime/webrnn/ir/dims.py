"""Sizes of tensor axes: an int, or a polynomial of named sizes.

>>> n, m = Symbol("n"), Symbol("m")
>>> str(2 * n + m - n + 1), 2 * n - n == n, n - n
('m + n + 1', True, 0)

What a polynomial cannot say, the rounded-down quotient of one by a number, is a name of its own in another one:

>>> half = floor_divide(n + 3, 2)
>>> half, half.substitute({"n": 4}), floor_divide(4 * n + 3, 2)
((n + 1)//2 + 1, 3, 2*n + 1)
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import TypeAlias

_Monomial: TypeAlias = tuple[str, ...]
"""The sorted names that are multiplied; () is the constant term."""

MOST_TERMS, MOST_FACTORS, LONGEST_QUOTIENT = 200, 30, 2000
"""How many terms a polynomial has, how many names a term, and how many letters a quotient, at most. Sizes of real
models are far from it; a model that multiplies a size by itself again and again doubles them each time."""


class TooComplex(ValueError):
    """A size that cannot be followed; whoever asks for it has to do without."""


class SymbolicDim:
    """A polynomial with integer coefficients, at least one of its terms not constant. Immutable, compared by value."""

    __slots__ = ("_terms",)

    def __init__(self, terms: Mapping[_Monomial, int]):
        if len(terms) > MOST_TERMS:
            raise TooComplex(f"a size of {len(terms)} terms")
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
                if len(monomial) > MOST_FACTORS:
                    raise TooComplex(f"a size of {len(monomial)} factors")
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
    def terms(self) -> tuple[tuple[tuple[str, ...], int], ...]:
        """(names that are multiplied, factor), in a fixed order."""
        return self._terms

    @property
    def names(self) -> frozenset[str]:
        """The named sizes that it depends on, those inside quotients too.

        >>> sorted((Symbol("n") + floor_divide(Symbol("m"), 2)).names)
        ['m', 'n']
        """
        found: set[str] = set()
        for monomial, _ in self._terms:
            for name in monomial:
                found |= name.numerator.names if isinstance(name, FloorQuotient) else {name}
        return frozenset(found)

    def substitute(self, sizes: Mapping[str, Dim]) -> Dim:
        """Replace named sizes.

        >>> (Symbol("n") * 2 + Symbol("m")).substitute({"n": 3, "m": 4})
        10
        """
        total: Dim = 0
        for monomial, factor in self._terms:
            product: Dim = factor
            for name in monomial:
                product = product * _substituted(name, sizes)
            total = total + product
        return total

    def __str__(self) -> str:
        text = ""
        for monomial, factor in sorted(self._terms, key=lambda term: (not term[0], term[0])):
            magnitude = abs(factor)
            factors = [*([] if magnitude == 1 and monomial else [str(magnitude)]), *monomial]
            product = "*".join(factor_text(each) if len(factors) > 1 else each for each in factors)
            sign = "-" if factor < 0 else "+"
            text += f" {sign} {product}" if text else f"{'-' if factor < 0 else ''}{product}"
        return text

    __repr__ = __str__


Dim: TypeAlias = int | SymbolicDim
Shape: TypeAlias = tuple[Dim | None, ...]
"""A None axis is of unknown size."""


class FloorQuotient(str):
    """The name, in a monomial, of a polynomial divided by a number and rounded down.

    It is written in one way only, so that equal quotients are equal names: the numerator's factors are from 0 to below
    the divisor and have no divisor in common with it. It is no named size, even if a model calls one the same.
    """

    __slots__ = ("divisor", "numerator")
    numerator: SymbolicDim
    divisor: int

    def __new__(cls, numerator: SymbolicDim, divisor: int) -> FloorQuotient:
        text = str(numerator)
        if len(text) > LONGEST_QUOTIENT:
            raise TooComplex(f"a quotient of {len(text)} letters")
        self = super().__new__(cls, f"({text})//{divisor}" if " " in text or "*" in text else f"{text}//{divisor}")
        self.numerator, self.divisor = numerator, divisor
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FloorQuotient) and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((FloorQuotient, str.__hash__(self)))


class LateName(str):
    """The name of a size that is known only while running: the program itself finds it. It is no named size, even if a
    model calls one the same.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LateName) and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((LateName, str.__hash__(self)))


def is_late(dim: Dim | None) -> bool:
    """Whether it depends on a size that is known only while running.

    >>> is_late(Symbol("n") + 1), is_late(Symbol(LateName("n")) + 1)
    (False, True)
    """
    return isinstance(dim, SymbolicDim) and any(isinstance(name, LateName) for name in dim.names)


def floor_division(name: str) -> tuple[Dim, int] | None:
    """Numerator and divisor if a name in a monomial is that of a rounded-down quotient; None for a named size.

    >>> [(floor_division(name), names) for names, _ in floor_divide(Symbol("n"), 2).terms for name in names]
    [((n, 2), ('n//2',))]
    """
    return (name.numerator, name.divisor) if isinstance(name, FloorQuotient) else None


def Symbol(name: str) -> SymbolicDim:
    """A named size."""
    return SymbolicDim({(name,): 1})


def is_static(shape: Shape | None) -> bool:
    """Whether every size is known.

    >>> is_static((1, 2)), is_static((1, Symbol("n"))), is_static(None)
    (True, False, False)
    """
    return shape is not None and all(isinstance(dim, int) for dim in shape)


def is_nonnegative(dim: Dim) -> bool:
    """Whether it is at least 0 for all sizes.

    >>> is_nonnegative(Symbol("n") + 1), is_nonnegative(Symbol("n") - 1), is_nonnegative(-1)
    (True, False, False)
    """
    return all(factor >= 0 for _, factor in _terms_of(dim))


def quotient(dim: Dim, divisor: Dim) -> Dim | None:
    """The dim that times `divisor` is `dim`, or None where there is none or this simple division does not find it.

    >>> n, m = Symbol("n"), Symbol("m")
    >>> quotient(6 * n * m + 2 * n, 2 * n), quotient(n, 2), quotient(n + m, n + m)
    (3*m + 1, None, 1)
    """
    if dim == divisor and divisor != 0:
        return 1
    if len(_terms_of(divisor)) != 1 or divisor == 0:
        return None
    ((names, factor),) = _terms_of(divisor)
    result: dict[_Monomial, int] = {}
    for monomial, coefficient in _terms_of(dim):
        rest = list(monomial)
        for name in names:
            if name not in rest:
                return None
            rest.remove(name)
        if coefficient % factor:
            return None
        result[tuple(rest)] = coefficient // factor
    return _simplest(result)


def floor_divide(dim: Dim, divisor: int) -> Dim:
    """The quotient, rounded down.

    >>> n = Symbol("n")
    >>> floor_divide(7, 2), floor_divide(6 * n, 3), floor_divide(floor_divide(n, 2), 3), floor_divide(-n, 2)
    (3, 2*n, n//6, -n + n//2)
    """
    if divisor < 1:
        raise ValueError(f"{divisor} is not positive")
    if isinstance(dim, int):
        return dim // divisor
    whole = _simplest({monomial: factor // divisor for monomial, factor in dim.terms})
    rest = _simplest({monomial: factor % divisor for monomial, factor in dim.terms})
    return whole + _floor_of_proper(rest, divisor)


def _floor_of_proper(rest: Dim, divisor: int) -> Dim:
    """The rounded-down quotient of what has factors from 0 to below the divisor."""
    if isinstance(rest, int):
        return 0
    common = gcd(divisor, *(factor for monomial, factor in rest.terms if monomial))
    if common > 1:
        smaller = _simplest({monomial: factor // common for monomial, factor in rest.terms})
        return floor_divide(smaller, divisor // common)
    for monomial, factor in rest.terms:
        if factor == 1 and len(monomial) == 1 and isinstance(monomial[0], FloorQuotient):
            inner = monomial[0]
            numerator = inner.numerator + (rest - Symbol(inner)) * inner.divisor
            return floor_divide(numerator, inner.divisor * divisor)
    return Symbol(FloorQuotient(rest, divisor))


def _substituted(name: str, sizes: Mapping[str, Dim]) -> Dim:
    if name in sizes:
        return sizes[name]
    if isinstance(name, FloorQuotient):
        return floor_divide(name.numerator.substitute(sizes), name.divisor)
    return Symbol(name)


def factor_text(name: str) -> str:
    """A name of a monomial as it is written beside others."""
    return f"({name})" if isinstance(name, FloorQuotient) else name


def _terms_of(dim: Dim) -> tuple[tuple[_Monomial, int], ...]:
    return dim._terms if isinstance(dim, SymbolicDim) else (((), dim),)


def _simplest(terms: Mapping[_Monomial, int]) -> Dim:
    kept = {monomial: factor for monomial, factor in terms.items() if factor}
    if not kept.keys() - {()}:
        return kept.get((), 0)
    return SymbolicDim(kept)
