"""Integers that say how: sizes, starts, counts. What is known stays a size; the rest is computed while running.

numbers = Numbers(lowering)
start = numbers.of(view)          # an element of a tensor
count = numbers.larger(size - start, 0)
length = numbers.let(count)       # a size: a known one, or one that is set while running
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from webrnn.ir import Dim, SymbolicDim
from webrnn.ir.dims import is_nonnegative, quotient

from .draft import ExpressionOp
from .views import View

if TYPE_CHECKING:
    from .lowering import Lowering

LEAST, MOST = -(2**31) + 1, 2**31 - 1
"""What a size of a plan can be."""

_Register = tuple[str, int]


@dataclass(frozen=True, eq=False)
class Number:
    """A size, or a register of the expression that its `Numbers` collect."""

    numbers: Numbers
    dim: Dim | None = None
    register: _Register | None = None
    is_bool: bool = False

    def __add__(self, other: Number | Dim) -> Number:
        return self.numbers.binary("add", self, other)

    def __sub__(self, other: Number | Dim) -> Number:
        return self.numbers.binary("sub", self, other)

    def __mul__(self, other: Number | Dim) -> Number:
        return self.numbers.binary("mul", self, other)

    def __lt__(self, other: Number | Dim) -> Number:
        return self.numbers.binary("less", self, other)

    def __ge__(self, other: Number | Dim) -> Number:
        return self.numbers.binary("greater_or_equal", self, other)

    def __le__(self, other: Number | Dim) -> Number:
        return self.numbers.binary("less_or_equal", self, other)

    def is_equal(self, other: Number | Dim) -> Number:
        return self.numbers.binary("equal", self, other)

    def divided(self, other: Number | Dim) -> Number:
        """Towards zero; 0 by 0."""
        return self.numbers.binary("div", self, other)

    def __and__(self, other: Number) -> Number:
        return self.numbers.logical("and", self, other)

    def __or__(self, other: Number) -> Number:
        return self.numbers.logical("or", self, other)


class Numbers:
    """One expression of scalars, which is emitted when a result is asked for."""

    def __init__(self, lowering: Lowering):
        self.l = lowering
        self._inputs: list[View] = []
        self._constants: list[tuple[str, int]] = []
        self._ops: list[ExpressionOp] = []
        self._registers: dict[View | Dim, _Register] = {}

    def of(self, number: Number | View | Dim) -> Number:
        """A size, or what a tensor of one element holds."""
        if isinstance(number, Number):
            return number
        if isinstance(number, View):
            return Number(self, register=self._input(number))
        return Number(self, dim=number)

    def product(self, factors: Sequence[Number | Dim]) -> Number:
        total = self.of(1)
        for factor in factors:
            total = total * factor
        return total

    def larger(self, a: Number | Dim, b: Number | Dim) -> Number:
        return self.binary("max", a, b)

    def smaller(self, a: Number | Dim, b: Number | Dim) -> Number:
        return self.binary("min", a, b)

    def where(self, condition: Number, a: Number | Dim, b: Number | Dim) -> Number:
        first, second = self.of(a), self.of(b)
        if condition.dim is not None:
            return first if condition.dim else second
        if first.dim is not None and first.dim == second.dim:
            return first
        return self._op("select_i", condition, first, second)

    def binary(self, name: str, a: Number | Dim, b: Number | Dim) -> Number:
        first, second = self.of(a), self.of(b)
        if first.dim is not None and second.dim is not None:
            known = _folded(name, first.dim, second.dim)
            if known is not None:
                return Number(self, dim=known, is_bool=name in _COMPARISONS)
        return self._op(f"{name}_i", first, second, is_bool=name in _COMPARISONS)

    def logical(self, name: str, a: Number, b: Number) -> Number:
        for known, other in ((a, b), (b, a)):
            if known.dim is not None:
                return other if bool(known.dim) == (name == "and") else known
        return self._op(f"{name}_u", a, b, is_bool=True)

    def views(self, *numbers: Number) -> list[View]:
        """Tensors of one element that hold these."""
        return [
            self.l.number_of(number.dim) if number.dim is not None else self._written([number])[0] for number in numbers
        ]

    # --- results -----------------------------------------------------------------------------------------------------

    def let(self, *numbers: Number | Dim, signed: int = 0) -> list[Dim]:
        """Sizes, of which the first `signed` may be negative."""
        found = [self.of(number) for number in numbers]
        places = iter(self._written([number for number in found if number.dim is None]))
        sizes: list[Dim] = []
        for index, number in enumerate(found):
            if number.dim is None:
                sizes.append(self.l.late_size(next(places), LEAST if index < signed else 0))
                continue
            if index >= signed:
                self.l.require_not_negative(number.dim)
            sizes.append(number.dim)
        return sizes

    def demand(self, *conditions: Number) -> None:
        """Let a run end with an error unless all of these hold."""
        if any(condition.dim == 0 for condition in conditions):
            raise self.l.refuse("its operands do not fit")
        for view in self._written([condition for condition in conditions if condition.dim is None]):
            self.l.emit("demand", view)

    def _written(self, numbers: list[Number]) -> list[View]:
        """The registers in tensors of one element each."""
        if not numbers:
            return []
        base = {"input": 0, "constant": len(self._inputs), "op": len(self._inputs) + len(self._constants)}

        def place(register: _Register | None) -> int:
            assert register is not None
            return base[register[0]] + register[1]

        for index, number in enumerate(numbers):
            if number.register is not None and number.register[0] != "op":
                numbers[index] = self._op("copy_i", number)
        views = [self.l.temporary((), "bool" if number.is_bool else "i64") for number in numbers]
        ops = [ExpressionOp(op.code, tuple(place(operand) for operand in op.operands)) for op in self._ops]  # type: ignore[arg-type]
        outputs = [(view, place(number.register)) for view, number in zip(views, numbers, strict=True)]
        self.l.expression(self._inputs, outputs, self._constants, ops)
        return views

    # --- registers ---------------------------------------------------------------------------------------------------

    def _op(self, code: str, *operands: Number, is_bool: bool = False) -> Number:
        registers = tuple(self._register(operand) for operand in operands)
        self._ops.append(ExpressionOp(code, registers))  # type: ignore[arg-type]
        return Number(self, register=("op", len(self._ops) - 1), is_bool=is_bool)

    def _register(self, number: Number) -> _Register:
        if number.register is not None:
            return number.register
        dim = number.dim
        assert dim is not None
        assert not number.is_bool
        if dim not in self._registers:
            if isinstance(dim, int):
                self._constants.append(("i64", dim))
                self._registers[dim] = ("constant", len(self._constants) - 1)
            else:
                self._registers[dim] = self._input(self.l.number_of(dim))
        return self._registers[dim]

    def _input(self, view: View) -> _Register:
        if view not in self._registers:
            scalar = view.relaid((), ())
            self._inputs.append(scalar)
            register: _Register = ("input", len(self._inputs) - 1)
            if view.dtype == "i32":
                self._ops.append(ExpressionOp("to_i64", (register,), 1.0))  # type: ignore[arg-type]
                register = ("op", len(self._ops) - 1)
            elif view.dtype != "i64":
                raise self.l.refuse(f"a number that says how is of {view.dtype}")
            self._registers[view] = register
        return self._registers[view]


_COMPARISONS = ("equal", "less", "less_or_equal", "greater_or_equal")


def _folded(name: str, a: Dim, b: Dim) -> Dim | None:
    """The result of an operation on sizes, if it is one for all sizes."""
    if name in ("add", "sub", "mul"):
        return a + b if name == "add" else a - b if name == "sub" else a * b
    if name == "div":
        if isinstance(a, int) and isinstance(b, int):
            return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient(a, b) if isinstance(b, int) and b else None
    difference = a - b
    if isinstance(difference, SymbolicDim):
        is_less = True if is_nonnegative(-difference - 1) else False if is_nonnegative(difference) else None
        is_more = True if is_nonnegative(difference - 1) else False if is_nonnegative(-difference) else None
    else:
        is_less, is_more = difference < 0, difference > 0
    if name == "max":
        return b if is_less or is_more is False else a if is_more or is_less is False else None
    if name == "min":
        return a if is_less or is_more is False else b if is_more or is_less is False else None
    verdicts = {
        "less": is_less,
        "less_or_equal": None if is_more is None else not is_more,
        "greater_or_equal": None if is_less is None else not is_less,
        "equal": False if is_less or is_more else True if (is_less, is_more) == (False, False) else None,
    }
    verdict = verdicts[name]
    return None if verdict is None else int(verdict)
