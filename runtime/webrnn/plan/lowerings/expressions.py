"""Writing an expression: its inputs, its constants and its operations, each in a type that has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from webrnn.ir import DType, Value

from ..draft import ExpressionOp
from ..lowering import DTYPES, Lowering, NotLowered
from ..opcodes import MAX_REGISTERS
from ..operations import OPERATIONS, RETIRED, OperationRow
from ..views import View
from ..widening import SMALL, WIDE, widened
from .saturation import Chains

_BY_TYPE = {(row.base, row.takes[-1]): row for row in OPERATIONS if row is not RETIRED}
_BY_NAME = {row.name: row for row in OPERATIONS}
_CONSTANTS = ("f32", "f64", "i64", "i32", "bool")
_SIGN_BIT = -(2**63)

Register = tuple[str, int]


class TooManyRegisters(NotLowered):
    """An expression that has to be written in parts."""


class Writer:
    """The operations of one expression. Registers are numbered when it is done: inputs, constants, operations."""

    def __init__(self, lowering: Lowering):
        self.l = lowering
        self.inputs: list[View] = []
        self.constants: list[tuple[str, float | int]] = []
        self.ops: list[ExpressionOp] = []
        self.types: dict[Register, str] = {}
        self._seen: dict[Value, Register] = {}
        self._made: dict[object, Register] = {}

    def operand(self, value: Value) -> Register:
        """A value; a constant of one element is a number, of a wider type if its own has no arithmetic."""
        if value not in self._seen:
            array = self.l.array(value)
            dtype = None if array is None or array.size != 1 else DTYPES.get(DType.of(array))
            wide = dtype if dtype in _CONSTANTS else WIDE.get(dtype or "")
            if array is not None and wide is not None and dtype not in SMALL:
                self._seen[value] = self.number(widened(array, wide).reshape(-1)[0].item(), wide)
            else:
                self._seen[value] = self.view(self.l.view(value))
        return self._seen[value]

    def view(self, view: View) -> Register:
        self.inputs.append(view)
        register = ("input", len(self.inputs) - 1)
        self.types[register] = view.dtype
        return register

    def name(self, value: Value, register: Register) -> None:
        self._seen[value] = register

    def number(self, number: float | int, dtype: str = "f32") -> Register:
        key = ("number", dtype, np.float64(number).tobytes() if dtype in ("f32", "f64") else number)
        if key not in self._made:
            self.constants.append((dtype, number))
            self._made[key] = ("constant", len(self.constants) - 1)
            self.types[self._made[key]] = dtype
        return self._made[key]

    # --- operations --------------------------------------------------------------------------------------------------

    def op(self, base: str, *operands: Register | float, alpha: float = 0.0, beta: float = 0.0) -> Register:
        """The operation `base` for the type of its last register; numbers are of that type."""
        dtype = next(self.types[each] for each in reversed(operands) if isinstance(each, tuple))
        registers = tuple(each if isinstance(each, tuple) else self.number(each, dtype) for each in operands)
        row = _BY_TYPE.get((base, dtype))
        if row is not None:
            return self._add(row, registers, alpha, beta)
        wider = {"f32": "f64", "i32": "i64"}.get(dtype)
        if wider is not None and (base, wider) in _BY_TYPE:
            result = self._add(_BY_TYPE[base, wider], tuple(self.cast(each, wider) for each in registers), alpha, beta)
            return self.cast(result, dtype) if self.types[result] == wider else result
        if base == "select":
            return self._select(dtype, *registers)
        raise self.l.refuse(f"{base} of {dtype}")

    def _select(self, dtype: str, condition: Register, *branches: Register) -> Register:
        """Of a type that has no such operation: of others that move its bits."""
        if dtype in SMALL:
            return self.bits(self.op("select", condition, *(self.bits(each, "bool") for each in branches)), dtype)
        return self.narrow(self.op("select", condition, *map(self.wide, branches)), dtype)

    def has(self, base: str, dtype: str) -> bool:
        return (base, dtype) in _BY_TYPE

    def cast(self, operand: Register, to: str, saturates: bool = True, round_mode: str = "up") -> Register:
        if self.types[operand] == to:
            return operand
        mode = float(("up", "down", "nearest").index(round_mode))
        return self._add(_BY_NAME[f"to_{to}"], (operand,), float(saturates), mode)

    def bits(self, operand: Register, to: str) -> Register:
        """The same bits, seen as another type."""
        return self._add(_BY_NAME[f"bits_{to}"], (operand,))

    def wide(self, operand: Register) -> Register:
        """In a type that has arithmetic; of uint64 the bits as int64."""
        dtype = self.types[operand]
        return self.bits(operand, "i64") if dtype == "u64" else self.cast(operand, WIDE.get(dtype, dtype))

    def narrow(self, operand: Register, to: str) -> Register:
        """Back to the type of a result."""
        if to == "u64" and self.types[operand] == "i64":
            return self.bits(operand, to)
        return self.cast(operand, to)

    def ordered(self, operand: Register) -> Register:
        """Of bits of uint64: int64 that compare as they do; done twice, it is undone."""
        return self.op("xor", operand, _SIGN_BIT)

    def copy(self, operand: Register) -> Register:
        return self.bits(operand, self.types[operand])

    def _add(
        self, row: OperationRow, operands: tuple[Register, ...], alpha: float = 0.0, beta: float = 0.0
    ) -> Register:
        key = (row.name, operands, alpha, beta)
        if key not in self._made:
            self.ops.append(ExpressionOp(row.name, operands, alpha, beta))  # type: ignore[arg-type]
            self._made[key] = register = ("op", len(self.ops) - 1)
            self.types[register] = row.gives
        return self._made[key]

    def write(self, outputs: Sequence[tuple[View | Callable[[list[View]], View], Register]]) -> None:
        """Emit it; a place for a result may depend on the inputs."""
        chains = Chains([*self.constants], [*self.ops])
        chains.saturated()
        kept = chains.read(register for _, register in outputs)
        read = {each for index in kept for each in chains.ops[index].operands} | {register for _, register in outputs}
        constants = [index for index in range(len(chains.constants)) if ("constant", index) in read]
        registers = [
            *(("input", index) for index in range(len(self.inputs))),
            *(("constant", index) for index in constants),
            *(("op", index) for index in kept),
        ]
        if len(registers) > MAX_REGISTERS:
            raise TooManyRegisters(self.l.node, "its expression needs too many registers")
        number = {register: index for index, register in enumerate(registers)}
        placed = [(place if isinstance(place, View) else place(self.inputs), register) for place, register in outputs]
        for view, register in placed:
            if self.types[register] != view.dtype:
                raise self.l.refuse(f"a result of {self.types[register]} where {view.dtype} is declared")
        ops = [
            replace(chains.ops[index], operands=tuple(number[each] for each in chains.ops[index].operands))  # type: ignore[index]
            for index in kept
        ]
        places = [(view, number[register]) for view, register in placed]
        self.l.expression(self.inputs, places, [chains.constants[index] for index in constants], ops)
