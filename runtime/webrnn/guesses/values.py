"""Numbers for an input: which ones are legal, by what the input is used for, and arrays of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from webrnn.errors import ShapeError
from webrnn.ir import Dim, DType, SymbolicDim, Value
from webrnn.reference.narrow import TYPES, encode

from .sizes import SECOND, open_sizes
from .uses import CONDITION, EQUAL, INDEX, LENGTH, LOOP, MASK, OPERAND, Use

NOISE, BELOW, NUMBER, LIST, LENGTH_OF, BETWEEN, TEXT = (
    "noise", "below", "number", "list", "length", "between", "text",
)  # fmt: skip

SCALE = 0.5
"""Of normal noise: activations stay where they are neither linear nor saturated."""
_STEPS = 3
"""Of a loop whose number of steps is an input."""
_WORD = "a"
_SIGNALS = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16)
"""Integers that are rather a signal or an image than a mask."""
_RATE = re.compile(r"(^|_)(sr|fs|rate|sample_?rate)($|_)", re.IGNORECASE)
_LENGTH = re.compile(r"len(gth)?s?($|_|\b)", re.IGNORECASE)
_MASK = re.compile(r"mask", re.IGNORECASE)
_INTEGERS = "integers "


@dataclass(frozen=True)
class Fill:
    """What an input is filled with, and why."""

    kind: str
    number: Dim | float = 0
    """All of its elements; of `below` one more than the largest."""
    numbers: tuple[int, ...] = ()
    """Of `list` its elements, of `below` numbers to avoid."""
    why: str = ""

    def make(self, dtype: DType, shape: Sequence[int], sizes: Mapping[str, int], length: int, rng: Any) -> np.ndarray:
        made = self._floats(tuple(shape), sizes, length, rng)
        if dtype is DType.STRING:
            return np.full(shape, _WORD, object)
        target = dtype.array_type
        if dtype in TYPES:
            return encode(made.astype(np.float32), TYPES[dtype])
        if self.kind == NOISE and target.kind in "iu":
            made = np.rint(2 * made) if target.kind == "i" else np.rint(np.abs(2 * made))
        return np.asarray(made > 0 if target.kind == "b" else made.astype(target))

    def _floats(self, shape: tuple[int, ...], sizes: Mapping[str, int], length: int, rng: Any) -> np.ndarray:
        if self.kind == NOISE:
            return np.asarray(SCALE * rng.standard_normal(shape))
        if self.kind == BETWEEN:
            return np.asarray(rng.uniform(0.5, 1.0, shape))
        if self.kind == BELOW:
            most = self.below(sizes)
            legal = [number for number in range(min(most, 64)) if number not in self.numbers and number]
            if most > 64 or not legal:
                return np.asarray(rng.integers(0, max(most, 1), shape), np.float64)
            return np.asarray(rng.choice(legal, shape), np.float64)
        if self.kind == LIST:
            return np.resize(np.array(self.numbers or (0,), np.float64), shape)
        number = length if self.kind == LENGTH_OF else self.number
        return np.full(shape, number if isinstance(number, int | float) else 1, np.float64)

    def below(self, sizes: Mapping[str, int]) -> int:
        most = self.number.substitute(sizes) if isinstance(self.number, SymbolicDim) else self.number
        return int(most) if isinstance(most, int | float) else 1

    def text(self, sizes: Mapping[str, int], length: int, dtype: DType | None) -> str:
        """For people.

        >>> Fill("below", 256).text({}, 20, DType.INT64), Fill("number", 1).text({}, 20, DType.BOOL)
        ('below 256', 'true')
        """
        if self.kind == BELOW:
            return f"below {self.below(sizes)}" if self.below(sizes) > 1 else "0"
        if self.kind == LENGTH_OF:
            return f"{length}"
        if self.kind == NUMBER:
            return ("true" if self.number else "false") if dtype is DType.BOOL else f"{self.number}"
        if self.kind == LIST:
            return ", ".join(map(str, self.numbers))
        return {NOISE: "noise", BETWEEN: "0.5 to 1", TEXT: repr(_WORD)}[self.kind]


def fills(value: Value, uses: Sequence[Use], is_state: bool, has_time: bool) -> list[Fill]:
    """What to fill an input with, the most plausible first; there is always one."""
    found = _by_use(value, uses)
    if not found and is_state:
        is_float = value.dtype is not None and _is_float(value.dtype)
        found = [Fill(NOISE, why="a state")] if is_float else []
        found.append(Fill(NUMBER, 0, why="a state, as it begins"))
    if not found:
        found = _by_type(value, uses, has_time)
    zero = Fill(NUMBER, 0, why="zero, since nothing else ran")
    return [*found, zero] if all(fill.kind != NUMBER or fill.number != 0 for fill in found) else found


def _by_use(value: Value, uses: Sequence[Use]) -> list[Fill]:
    by_kind = {kind: [use for use in uses if use.kind == kind] for kind in (INDEX, EQUAL, LENGTH, LOOP, OPERAND)}
    is_single = _is_single(value)
    is_float = value.dtype is not None and _is_float(value.dtype)
    operands = [use for use in by_kind[OPERAND] if not is_float or is_single or not use.operand.startswith(_INTEGERS)]
    if by_kind[INDEX]:
        use = _smallest(by_kind[INDEX])
        avoided = tuple(each.number for each in by_kind[EQUAL] if isinstance(each.number, int))
        return [Fill(BELOW, use.number if use.number is not None else 1, avoided, f"an index of {use.node}")]
    if operands:
        return [_operand(use, value) for use in operands[:2]]
    known = sorted({use.number for use in by_kind[EQUAL] if isinstance(use.number, int)}, reverse=True)
    if known and is_single and value.dtype is not DType.BOOL:
        where = by_kind[EQUAL][0].node
        return [Fill(NUMBER, number, why=f"compared with {number}: {where}") for number in known]
    if by_kind[LOOP]:
        steps = 1 if value.dtype is DType.BOOL else _STEPS
        return [Fill(NUMBER, steps, why=f"of the loop {by_kind[LOOP][0].node}")]
    if by_kind[LENGTH] and not is_float and value.dtype is not DType.BOOL:
        where = by_kind[LENGTH][0].node
        return [Fill(LENGTH_OF, why=f"a length: {where}"), Fill(NUMBER, 1, why=f"a length: {where}")]
    return []


def _by_type(value: Value, uses: Sequence[Use], has_time: bool) -> list[Fill]:
    kinds = {use.kind for use in uses}
    dtype, name = value.dtype, value.name
    if dtype is DType.STRING:
        return [Fill(TEXT, why="text")]
    if dtype is DType.BOOL:
        if CONDITION in kinds or _is_single(value):
            return [Fill(NUMBER, 0, why="a switch"), Fill(NUMBER, 1, why="a switch")]
        return [Fill(NUMBER, 1, why="a mask: nothing is hidden")]
    if _MASK.search(name) and not _is_single(value):
        return [Fill(NUMBER, 1, why="a mask by its name: nothing is hidden")]
    if dtype is None or _is_float(dtype):
        return [Fill(BETWEEN, why="one number")] if _is_single(value) else [Fill(NOISE, why="numbers")]
    if dtype in _SIGNALS or dtype in TYPES:
        return [Fill(NOISE, why="small numbers")]
    if _RATE.search(name) and _is_single(value):
        return [Fill(NUMBER, rate, why="a sample rate by its name") for rate in (SECOND, SECOND // 2)]
    if len(value.shape or ()) <= 1 and has_time:
        by_name = "a length by its name" if _LENGTH.search(name) else "perhaps a length"
        return [Fill(LENGTH_OF, why=by_name), Fill(NUMBER, 1, why=by_name)]
    if MASK in kinds:
        return [Fill(NUMBER, 1, why="a mask: nothing is hidden")]
    return [Fill(NUMBER, 1, why="one number")] if _is_single(value) else [Fill(NOISE, why="small numbers")]


def _operand(use: Use, value: Value) -> Fill:
    """What a node can take for an operand that says how."""
    why = f"how {use.node} works"
    size = next((size for size in value.shape or () if isinstance(size, int)), 1)
    if use.operand == "axes":
        return Fill(LIST, numbers=tuple(range(size)), why=why)
    if use.operand == "shape":
        return Fill(LIST, numbers=(-1, *[1] * (size - 1)), why=why)
    if use.operand == "singles":
        ones = tuple(axis for axis, each in enumerate(use.sizes) if each == 1)
        return Fill(LIST, numbers=ones[:size] or (0,), why=why)
    if use.operand == "same":
        sizes = tuple(each for each in use.sizes if isinstance(each, int))
        return Fill(LIST, numbers=sizes[-size:] or (1,), why=why)
    if use.operand == "parts":
        whole = use.sizes[0] if use.sizes and isinstance(use.sizes[0], int) else size
        return Fill(LIST, numbers=(whole - whole // size * (size - 1), *[whole // size] * (size - 1)), why=why)
    number = float(use.operand.removeprefix(_INTEGERS))
    return Fill(NUMBER, int(number) if number == int(number) else number, why=why)


def _smallest(uses: Sequence[Use]) -> Use:
    """That with the fewest rows; one whose number is not known before a run is not taken for few."""
    known = [use for use in uses if isinstance(use.number, int)]
    return min(known, key=lambda use: use.number) if known else uses[0]  # type: ignore[arg-type,return-value]


def _is_single(value: Value) -> bool:
    """One element, as far as it is declared."""
    return value.shape is not None and all(size == 1 for size in value.shape)


def _is_float(dtype: DType) -> bool:
    return dtype.array_type.kind in "fc" or dtype is DType.BFLOAT16


def random_input(value: Value, sizes: Mapping[str, int], rng: np.random.Generator) -> Any:
    """Normal noise for floats, zeros otherwise; sizes that the model leaves open are 1 unless given."""
    if value.container or value.shape is None or value.dtype is None:
        raise ShapeError(f"input {value.name!r} cannot be made up: its type or rank is not known")
    names = open_sizes(value)
    shape = [dim if isinstance(dim, int) else sizes.get(names[axis], 1) for axis, dim in enumerate(value.shape)]
    if value.dtype.array_type.kind == "f":
        return rng.standard_normal(shape).astype(value.dtype.array_type)
    if value.dtype is DType.BFLOAT16:
        return encode(rng.standard_normal(shape, np.float32), TYPES[value.dtype])
    return np.zeros(shape, value.dtype.array_type)
