"""An expression that a rule writes itself, operation by operation, over views."""

from __future__ import annotations

from collections.abc import Sequence

from ..draft import ExpressionOp
from ..lowering import Lowering
from ..views import View

Register = tuple[str, int]


class Formula:
    """Registers are numbered when it is written: inputs, constants, operations."""

    def __init__(self, lowering: Lowering):
        self._l = lowering
        self._inputs: list[View] = []
        self._constants: list[tuple[str, float | int]] = []
        self._ops: list[tuple[str, tuple[Register, ...]]] = []

    def view(self, view: View) -> Register:
        self._inputs.append(view)
        return "input", len(self._inputs) - 1

    def number(self, number: float, dtype: str = "f32") -> Register:
        self._constants.append((dtype, number))
        return "constant", len(self._constants) - 1

    def op(self, name: str, *operands: Register) -> Register:
        """The operation of operations.py that has this name."""
        self._ops.append((name, operands))
        return "op", len(self._ops) - 1

    def write(self, *outputs: tuple[View, Register]) -> None:
        """Inputs are broadcast to the outputs, which have one shape."""
        base = {"input": 0, "constant": len(self._inputs), "op": len(self._inputs) + len(self._constants)}

        def number(register: Register) -> int:
            return base[register[0]] + register[1]

        ops = [ExpressionOp(name, tuple(map(number, operands))) for name, operands in self._ops]
        targets = [(view, number(register)) for view, register in outputs]
        self._l.expression(self._inputs, targets, self._constants, ops)


def compute(l: Lowering, name: str, operands: Sequence[View | float], to: View) -> View:
    """One operation of views and numbers of float32."""
    formula = Formula(l)
    registers = [formula.view(each) if isinstance(each, View) else formula.number(each) for each in operands]
    formula.write((to, formula.op(name, *registers)))
    return to
