"""`Guesses`: what is worth a try for all inputs of a model together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from math import prod
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from webrnn.errors import OptionError, ShapeError
from webrnn.ir import Graph, Value
from webrnn.names import unknown_name

from .constraints import Constraints, Takes, with_ranks
from .sizes import LENGTHS, WORDS, OpenSize, arithmetic, open_sizes, sizes_of
from .uses import INDEX, uses_of
from .values import Fill, fills

_MOST_TRIES = 40
_MOST_CHOICES = 4000
"""Of sizes that are looked at where the conditions refuse the plausible ones."""
_MOST_SEARCHES = 16
"""For a number that goes with those of the other sizes."""
_MOST_FILLS = 6
_MOST_ELEMENTS = 2**40
"""Of all inputs; what is more than the memory of a machine, the machine says."""
_ELEMENTS = 2
"""Of a sequence."""
_BY_CHANCE = 2
"""A sequence of so few frames may fit only because one frame is repeated: 1500 positions are added to it, say."""
_LENGTH = 8
"""Where no input has an axis that could be time."""


class Row(NamedTuple):
    """What is said of an input, for people."""

    name: str
    shape: str
    values: str
    why: str


class SizeRow(NamedTuple):
    """The same of an open size."""

    name: str
    number: int
    why: str


@dataclass(frozen=True, eq=False)
class Guess:
    """Sizes and numbers for all inputs."""

    inputs: tuple[Value, ...]
    sizes: dict[str, int]
    fills: dict[str, Fill]
    given: Mapping[str, Any]
    times: tuple[str, ...]
    """Sizes that may be the length of a sequence."""
    reasons: Mapping[str, str]
    """Of sizes: why they are so."""

    def shape(self, value: Value) -> tuple[int, ...]:
        names = open_sizes(value)
        return tuple(
            dim if isinstance(dim, int) else self.sizes.get(names[axis], 1)
            for axis, dim in enumerate(value.shape or ())
        )

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {
            value.name: tuple(np.shape(self.given[value.name])) if value.name in self.given else self.shape(value)
            for value in self.inputs
            if not value.container
        }

    @property
    def length(self) -> int:
        """Of the sequence, for inputs that say how long it is."""
        times = [self.sizes[name] for name in self.times if name in self.sizes]
        open_ones = [self.sizes[name] for value in self.inputs for name in open_sizes(value).values()]
        static = [size for value in self.inputs for size in self.shape(value)]
        return max(
            times or [size for size in open_ones if size > 1] or [size for size in static if size > 1] or [_LENGTH]
        )

    @property
    def n_elements(self) -> int:
        return sum(prod(self.shape(value)) for value in self.inputs if value.name not in self.given)

    def feeds(self, rng: np.random.Generator) -> dict[str, Any]:
        """Arrays for all inputs; those that were given stay."""
        if self.n_elements > _MOST_ELEMENTS:
            shapes = ", ".join(f"{name} {_spell(shape)}" for name, shape in self.shapes.items())
            raise ShapeError(f"inputs of these sizes are too large: {shapes}")
        return {
            value.name: self.given[value.name] if value.name in self.given else self._made(value, value.container, rng)
            for value in self.inputs
        }

    def _made(self, value: Value, container: tuple[str, ...], rng: np.random.Generator) -> Any:
        if container and container[0] == "optional":
            return self._made(value, container[1:], rng)
        if container:
            return [self._made(value, container[1:], rng) for _ in range(_ELEMENTS)]
        assert value.dtype is not None
        return self.fills[value.name].make(value.dtype, self.shape(value), self.sizes, self.length, rng)

    def rows(self) -> list[Row]:
        """Of each input its shape, what it is filled with, and why."""
        found = []
        for value in self.inputs:
            if value.name in self.given:
                found.append(Row(value.name, _spell(np.shape(self.given[value.name])), "given", ""))
                continue
            fill = self.fills[value.name]
            shape = "" if value.container else _spell(self.shape(value))
            found.append(Row(value.name, shape, fill.text(self.sizes, self.length, value.dtype), fill.why))
        return found

    def size_rows(self) -> list[SizeRow]:
        names = dict.fromkeys(name for value in self.inputs for name in open_sizes(value).values())
        return [SizeRow(name, self.sizes[name], self.reasons.get(name, "")) for name in names if name in self.sizes]

    @property
    def options(self) -> str:
        """How a person says the same, to be changed.

        >>> from webrnn.ir import DType, Symbol
        >>> next(iter(Guesses([Value("x", DType.FLOAT, (Symbol("batch"), Symbol("T"), 80))]).tries())).options
        '--size batch=1 T=200'
        """
        guessed = [quote(f"{row.name}={row.number}") for row in self.size_rows() if row.why != GIVEN]
        return f"--size {' '.join(guessed)}" if guessed else ""

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "sizes": [row._asdict() for row in self.size_rows()],
            "inputs": [{**row._asdict(), "shape": list(self.shapes.get(row.name, ()))} for row in self.rows()],
        }


GIVEN = "given"


def _spell(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


class Guesses:
    """Of a model: its inputs, its graph if there is one, the inputs that are states, and what a caller has said.

    `sizes` are of open sizes by name, `shapes` of inputs, `given` the arrays of some inputs. `is_step` is for a step of
    a stream: sequences have one frame. `takes` says of a plan, which has no graph, whether it takes some sizes.
    """

    def __init__(
        self,
        inputs: Sequence[Value],
        graph: Graph | None = None,
        states: Collection[str] = (),
        sizes: Mapping[str, int] | None = None,
        shapes: Mapping[str, Sequence[int]] | None = None,
        given: Mapping[str, Any] | None = None,
        is_step: bool = False,
        takes: Takes | None = None,
    ):
        self._is_step = is_step
        self.given = dict(given or {})
        inputs, graph = with_ranks(inputs, graph, {*self.given, *(shapes or {})})
        self.inputs = tuple(_shaped(value, shapes or {}) for value in inputs)
        names = [value.name for value in inputs]
        for name in self.given:
            if name not in names:
                raise OptionError(unknown_name("input", name, names))
        self._sizes = {**_sizes_of(inputs, self.given), **bound_sizes(inputs, sizes or {}, shapes or {})}
        self._states = frozenset(states)
        self._uses, self._loops = ({}, frozenset()) if graph is None else uses_of(graph)
        self._constraints = Constraints(graph, takes)
        for value in self.inputs:
            if value.name not in self.given:
                _require_known(value)

    def tries(self) -> Iterator[Guess]:
        """Different guesses, the most plausible first; at least one."""
        choices = list(self._choices())
        times = self._times
        alternatives = {
            value.name: fills(value, self._uses.get(value.name, ()), value.name in self._states, bool(times))
            for value in self.inputs
            if value.name not in self.given
        }
        first = {name: options[0] for name, options in alternatives.items()}
        yield self._guess(choices[0], first, times)
        others = list(islice(_other_fills(alternatives), _MOST_FILLS))
        yield from (self._guess(choices[0], each, times) for each in others)
        for sizes in choices[1:]:
            yield self._guess(sizes, first, times)
        for sizes in choices[1:]:
            yield from (self._guess(sizes, each, times) for each in others)

    def _guess(self, sizes: dict[str, int], chosen: dict[str, Fill], times: tuple[str, ...]) -> Guess:
        return Guess(self.inputs, sizes, chosen, self.given, times, self._reasons)

    # --- sizes ---

    def _choices(self) -> Iterator[dict[str, int]]:
        """Numbers for all open sizes: first each its first one, then each its second, then each alone."""
        known = self._constraints.resolved(self._sizes)
        names = {name for value in self.inputs for name in open_sizes(value).values()}
        derived = [name for name in names if name not in known and _is_derived(name, names)]
        indices = [name for name, uses in self._uses.items() if any(use.kind == INDEX for use in uses)]
        settled = {**dict.fromkeys((*derived, *self._constraints.settled), 1), **known}
        found = sizes_of(self.inputs, self._states, settled, indices, self._loops)
        if self._is_step:
            found = [OpenSize(size.name, "step") if size.kind in ("frames", "tokens") else size for size in found]
        self._times = tuple(size.name for size in found if size.is_time)
        self._reasons = {size.name: WORDS[size.kind] for size in found}
        self._reasons |= dict.fromkeys((*derived, *self._constraints.settled), "follows from the other sizes")
        self._reasons |= dict.fromkeys(self._sizes, GIVEN)
        numbers = {size.name: self._numbers(size, known) for size in found}

        def complete(chosen: Mapping[str, int]) -> dict[str, int]:
            sizes = self._constraints.resolved({**self._sizes, **chosen})
            for name in derived:
                sizes[name] = arithmetic(name, sizes) or 0
            return {name: max(sizes.get(name, 1), 0) for name in dict.fromkeys((*sizes, *names))}

        seen: list[dict[str, int]] = []
        fallback: dict[str, int] | None = None
        for chosen in (*_levels(numbers), *islice(_products(numbers), _MOST_CHOICES)):
            sizes = complete(chosen)
            fallback = fallback or sizes
            if sizes not in seen and self._constraints.allows(sizes):
                seen.append(sizes)
                yield sizes
            if len(seen) == _MOST_TRIES:
                return
        if not seen:
            order = [size.name for size in sorted(found, key=lambda size: size.kind != "batch")]
            together = self._searched(order, numbers, known, iter(range(_MOST_CHOICES)), iter(range(_MOST_SEARCHES)))
            yield from [complete(chosen) for chosen in islice(together, 1)] or [fallback or {}]

    def _searched(
        self,
        order: Sequence[str],
        numbers: Mapping[str, Sequence[int]],
        known: Mapping[str, int],
        choices: Iterator[int],
        searches: Iterator[int],
    ) -> Iterator[dict[str, int]]:
        """Numbers that the conditions allow together: one size after the other gets a plausible one, or else one that
        goes with those before it. `choices` and `searches` end it: there may be too many to try all of them."""
        if not order:
            yield dict(known)
            return
        name, *others = order
        for number in numbers[name]:
            if next(choices, None) is None:
                return
            if self._constraints.allows({**known, name: number}):
                yield from self._searched(others, numbers, {**known, name: number}, choices, searches)
        if next(searches, None) is not None:
            for number in self._constraints.allowed_alone(name, known):
                yield from self._searched(others, numbers, {**known, name: number}, choices, searches)

    def _numbers(self, size: OpenSize, known: Mapping[str, int]) -> list[int]:
        """What one size may be, as far as conditions on it alone say it."""
        plausible = [
            number for number in LENGTHS[size.kind] if self._constraints.allows({**known, size.name: number})
        ]  # fmt: skip
        if max(plausible, default=0) > _BY_CHANCE or (plausible and size.kind == "batch"):
            return plausible
        alone = [number for number in self._constraints.allowed_alone(size.name, known) if number not in plausible]
        return sorted((*alone, *plausible), key=lambda number: number <= _BY_CHANCE) or list(LENGTHS[size.kind])


def _levels(numbers: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    deepest = max((len(each) for each in numbers.values()), default=1)
    for level in range(deepest):
        yield {name: each[min(level, len(each) - 1) if len(each) > 2 else 0] for name, each in numbers.items()}
    for name, each in numbers.items():
        for number in each[1:]:
            yield {**{other: options[0] for other, options in numbers.items()}, name: number}


def _products(numbers: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    for chosen in product(*numbers.values()):
        yield dict(zip(numbers, chosen, strict=True))


def _other_fills(alternatives: Mapping[str, Sequence[Fill]]) -> Iterator[dict[str, Fill]]:
    """All but the first choice: one input after the other takes its others, then all of them at once."""
    first = {name: options[0] for name, options in alternatives.items()}
    deepest = max((len(options) for options in alternatives.values()), default=1)
    for level in range(1, deepest):
        yield {name: options[min(level, len(options) - 1)] for name, options in alternatives.items()}
        for name, options in alternatives.items():
            if level < len(options):
                yield {**first, name: options[level]}


def _is_derived(name: str, names: Collection[str]) -> bool:
    return arithmetic(name, dict.fromkeys(names - {name}, 1)) is not None  # type: ignore[operator]


def _shaped(value: Value, shapes: Mapping[str, Sequence[int]]) -> Value:
    """With a shape that was given, if the declared one allows it."""
    shape = shapes.get(value.name)
    if shape is None:
        return value
    declared = value.shape
    fits = declared is None or (
        len(declared) == len(shape)
        and all(not isinstance(dim, int) or dim == size for dim, size in zip(declared, shape, strict=True))
    )
    if not fits:
        text = ", ".join("?" if dim is None else str(dim) for dim in declared or ())
        raise ShapeError(f"input {value.name!r} cannot be {_spell(shape)}: the model declares [{text}]")
    return value if declared is not None else Value(value.name, value.dtype, tuple(shape), value.container)


def _sizes_of(inputs: Sequence[Value], given: Mapping[str, Any]) -> dict[str, int]:
    """The open sizes that arrays have; whether they fit, the model says."""
    found: dict[str, int] = {}
    for value in inputs:
        shape = np.shape(given[value.name]) if value.name in given and not value.container else ()
        if len(shape) == len(value.shape or ()):
            for axis, name in open_sizes(value).items():
                found.setdefault(name, int(shape[axis]))
    return found


def bound_sizes(
    inputs: Sequence[Value], sizes: Mapping[str, int], shapes: Mapping[str, Sequence[int]]
) -> dict[str, int]:
    """The open sizes that a caller has settled, by name or by the shape of an input. Raises on names that the model
    does not have and on shapes that it does not take."""
    names = list(dict.fromkeys(name for value in inputs for name in open_sizes(value).values()))
    values = {value.name: value for value in inputs}
    for name in sizes:
        if name not in names:
            raise OptionError(unknown_name("size", name, names))
    found = dict(sizes)
    for name, shape in shapes.items():
        if name not in values:
            raise OptionError(unknown_name("input", name, values))
        value = _shaped(values[name], shapes)
        for axis, size_name in open_sizes(value).items():
            size = int(shape[axis])
            if found.setdefault(size_name, size) != size:
                raise OptionError(f"the size {size_name!r} is said to be {found[size_name]} and {size}")
    return found


def _require_known(value: Value) -> None:
    if value.dtype is None:
        raise ShapeError(
            f"input {value.name!r} cannot be made up: its type is not known; give --input {value.name}=FILE"
        )
    if value.shape is None and not value.container:
        raise ShapeError(
            f"input {value.name!r} cannot be made up: its rank is not known; give --shape {value.name}=1x16, say"
        )
