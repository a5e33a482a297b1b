"""Chains of operations that quantize become one operation each, before an expression is emitted.

    min(select(t > 0, t, 0), 255) with t = round(q) + zero    is    saturate_u8(q, zero)
    to_f32(to_u8(saturate_u8(q, zero)))                       is    saturate_u8(q, zero)

and the same for int8, with its limits: the same bits. What nothing reads any more goes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..draft import ExpressionOp

Register = tuple[str, int]
Constant = tuple[str, float | int]
_LIMITS = {"saturate_u8": (0, 255), "saturate_i8": (-128, 127)}
_CASTS = {"to_u8": "saturate_u8", "to_i8": "saturate_i8"}


@dataclass
class Chains:
    """Operations whose operands are registers by kind and number; each reads only those before it."""

    constants: list[Constant]
    ops: list[ExpressionOp]

    def saturated(self) -> None:
        """Rewrite them in place: every operation keeps its number, so some may now be read by nothing."""
        for index, op in enumerate(self.ops):
            found = self._saturation(op)
            if found is not None:
                self.ops[index] = found
        for index, op in enumerate(self.ops):
            operands = tuple(self._uncast(operand) for operand in op.operands)  # type: ignore[arg-type]
            self.ops[index] = replace(op, operands=operands)  # type: ignore[arg-type]

    def read(self, outputs: Iterable[Register]) -> list[int]:
        """The numbers of the operations that the outputs depend on."""
        needed = {register[1] for register in outputs if register[0] == "op"}
        for index in range(len(self.ops) - 1, -1, -1):
            if index in needed:
                needed.update(each[1] for each in self.ops[index].operands if each[0] == "op")  # type: ignore[index]
        return sorted(needed)

    def _saturation(self, least: ExpressionOp) -> ExpressionOp | None:
        """What takes the place of the last operation of a chain."""
        select = self._op(least.operands[0], "select") if least.code == "min" else None
        greater = self._op(select.operands[0], "greater") if select is not None else None
        if select is None or greater is None or greater.operands != select.operands[1:]:
            return None
        limits = self._number(select.operands[2]), self._number(least.operands[1])
        code = next((code for code, each in _LIMITS.items() if each == limits), None)
        added = self._op(select.operands[1], "add")
        rounded = self._op(select.operands[1] if added is None else added.operands[0], "round")
        if code is None or rounded is None:
            return None
        zero = self._nothing() if added is None else added.operands[1]
        return ExpressionOp(code, (rounded.operands[0], zero))  # type: ignore[arg-type]

    def _uncast(self, register: Register) -> Register:
        """What a cast to bytes and back to floats is of, if that is whole numbers in their range."""
        back = self._op(register, "to_f32")
        if back is None:
            return register
        for code, saturate in _CASTS.items():
            cast = self._op(back.operands[0], code)
            if cast is not None and self._op(cast.operands[0], saturate) is not None:
                return cast.operands[0]  # type: ignore[return-value]
        return register

    def _op(self, register: object, code: str) -> ExpressionOp | None:
        assert isinstance(register, tuple)
        kind, index = register
        return self.ops[index] if kind == "op" and self.ops[index].code == code else None

    def _number(self, register: object) -> float | None:
        assert isinstance(register, tuple)
        kind, index = register
        return self.constants[index][1] if kind == "constant" and self.constants[index][0] == "f32" else None

    def _nothing(self) -> Register:
        if ("f32", 0.0) not in self.constants:
            self.constants.append(("f32", 0.0))
        return "constant", self.constants.index(("f32", 0.0))
