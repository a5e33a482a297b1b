"""Element-wise ops and expressions of them."""

from __future__ import annotations

from collections.abc import Callable

from webrnn.ir import WEBRNN, DType, Graph, Node, Value

from ..draft import ExpressionOp
from ..lowering import DTYPES, Lowering, attribute, present, rule
from ..opcodes import MAX_REGISTERS
from ..operations import LETTERS, OPERATIONS, RETIRED, OperationRow
from ..views import View

_BY_OP = {row.op: row for row in OPERATIONS if row.op}
_BY_OP["Sum"] = _BY_OP["Add"]
_BY_TYPE = {(row.base, row.takes[-1]): row for row in OPERATIONS if row is not RETIRED}
_CASTS = {(*row.takes, row.gives): row for row in OPERATIONS if "_to_" in row.name}
_LAST_FINITE = (2 - 2.0**-23) * 2.0**127


class _Writer:
    """The operations of one expression. Registers are numbered when it is done: inputs, constants, operations."""

    def __init__(self, lowering: Lowering):
        self.l = lowering
        self.inputs: list[View] = []
        self.constants: list[tuple[str, float | int]] = []
        self.ops: list[ExpressionOp] = []
        self.types: dict[tuple[str, int], str] = {}
        self._seen: dict[Value, tuple[str, int]] = {}

    def operand(self, value: Value) -> tuple[str, int]:
        if value not in self._seen:
            array = self.l.array(value)
            if array is not None and array.size == 1 and DTYPES.get(DType.of(array)) in LETTERS.values():
                number = array.reshape(-1)[0]
                dtype = DTYPES[DType.of(array)]
                self.constants.append((dtype, float(number) if dtype == "f32" else int(number)))
                self._seen[value] = ("constant", len(self.constants) - 1)
            else:
                self.inputs.append(self.l.view(value))
                self._seen[value], dtype = ("input", len(self.inputs) - 1), self.inputs[-1].dtype
            self.types[self._seen[value]] = dtype
        return self._seen[value]

    def view(self, view: View) -> tuple[str, int]:
        """An operand that is no value of the graph."""
        self.inputs.append(view)
        register = ("input", len(self.inputs) - 1)
        self.types[register] = view.dtype
        return register

    def name(self, value: Value, register: tuple[str, int]) -> None:
        self._seen[value] = register

    def op(self, base: str, *operands: tuple[str, int], alpha: float = 0.0, beta: float = 0.0) -> tuple[str, int]:
        """The operation `base` for the type of the last operand."""
        dtype = self.types[operands[-1]]
        row = _BY_TYPE.get((base, dtype))
        if row is None:
            raise self.l.refuse(f"{base} of {dtype}")
        return self._add(row, operands, alpha, beta)

    def cast(self, operand: tuple[str, int], to: str) -> tuple[str, int]:
        source = self.types[operand]
        if source == to:
            return operand
        if (source, to) not in _CASTS:
            raise self.l.refuse(f"a cast of {source} to {to}")
        return self._add(_CASTS[source, to], (operand,))

    def _add(
        self, row: OperationRow, operands: tuple[tuple[str, int], ...], alpha: float = 0.0, beta: float = 0.0
    ) -> tuple[str, int]:
        self.ops.append(ExpressionOp(row.name, operands, alpha, beta))  # type: ignore[arg-type]
        register = ("op", len(self.ops) - 1)
        self.types[register] = row.gives
        return register

    def number(self, number: float | int, dtype: str = "f32") -> tuple[str, int]:
        self.constants.append((dtype, number))
        register = ("constant", len(self.constants) - 1)
        self.types[register] = dtype
        return register

    def write(self, outputs: list[tuple[View, tuple[str, int]]]) -> None:
        base = {"input": 0, "constant": len(self.inputs), "op": len(self.inputs) + len(self.constants)}
        if base["op"] + len(self.ops) > MAX_REGISTERS:
            raise self.l.refuse("its expression needs too many registers")

        def number(register: tuple[str, int]) -> int:
            return base[register[0]] + register[1]

        for view, register in outputs:
            if self.types[register] != view.dtype:
                raise self.l.refuse(f"a result of {self.types[register]} where {view.dtype} is declared")
        ops = [
            ExpressionOp(op.code, tuple(number(operand) for operand in op.operands), op.alpha, op.beta)  # type: ignore[arg-type]
            for op in self.ops
        ]
        self.l.expression(self.inputs, [(view, number(register)) for view, register in outputs], self.constants, ops)


def _present(values: list[Value | None]) -> list[Value]:
    return [value for value in values if value is not None]


def _translate(w: _Writer, node: Node) -> tuple[str, int]:
    """One node as operations; its result."""
    op = node.op
    if op == "Clip":
        return _clip(w, node)
    operands = [w.operand(value) for value in _present(node.inputs)]
    if op in _OTHERS:
        return _OTHERS[op](w, node, operands)
    row = _BY_OP.get(op)
    if row is None:
        raise w.l.refuse(f"{op} is not an operation of expressions")
    if row.kernel == "activation":
        alpha, beta = row.defaults
        return w.op(row.base, *operands, alpha=attribute(node, "alpha", alpha), beta=attribute(node, "beta", beta))
    if op == "Div" and w.types[operands[1]] in ("i64", "i32"):
        _require_divisor(w, present(node.inputs[1]), operands[1])
    if len(row.takes) != 2:
        return w.op(row.base, *operands)
    result = operands[0]
    for operand in operands[1:]:
        result = w.op(row.base, result, operand)
    return result


def _require_divisor(w: _Writer, value: Value, register: tuple[str, int]) -> None:
    """An integer divided by zero is an error, which an expression cannot raise."""
    kind, index = register
    array = w.l.array(value)
    content = w.l.facts.of(value).content
    if kind == "constant":
        content = (int(w.constants[index][1]),)
    elif array is not None and array.all():
        return
    if content is None or None in content or 0 in content:
        raise w.l.refuse("its divisor may be zero")
    for size in content:
        if size is not None and not isinstance(size, int):
            w.l.require_not_negative(size - 1)


def _clip(w: _Writer, node: Node) -> tuple[str, int]:
    """ONNX: min(max(x, low), high). A bound that is not given is the last finite number."""
    result = w.operand(present(node.inputs[0]))
    is_float = w.types[result] == "f32"
    bounds = [*node.inputs[1:3], None, None]
    for code, bound, last in zip(("max", "min"), bounds, (-_LAST_FINITE, _LAST_FINITE), strict=False):
        if bound is not None:
            result = w.op(code, result, w.operand(bound))
        elif is_float:
            result = w.op(code, result, w.number(last))
    return w.op("copy", result) if result[0] != "op" else result


def _cast(w: _Writer, node: Node, operands: list[tuple[str, int]]) -> tuple[str, int]:
    to = DTYPES.get(DType(node.attrs["to"]))
    if to is None:
        raise w.l.refuse("a cast to a type that the VM does not have")
    result = w.cast(operands[0], to)
    return w.op("copy", result) if result[0] != "op" else result


def _copy(w: _Writer, node: Node, operands: list[tuple[str, int]]) -> tuple[str, int]:
    return w.op("copy", operands[0])


_OTHERS: dict[str, Callable[[_Writer, Node, list[tuple[str, int]]], tuple[str, int]]] = {
    "Cast": _cast,
    "Identity": _copy,
}


@rule(*{*_BY_OP, *_OTHERS, "Clip"} - {"Identity"})
def _node(l: Lowering, node: Node) -> None:
    output = present(node.outputs[0])
    w = _Writer(l)
    result = _translate(w, node)
    if result[0] != "op":
        result = w.op("copy", result)
    w.write([(l.output_like(output, w.inputs), result)])


@rule("Expression", domain=WEBRNN)
def _expression(l: Lowering, node: Node) -> None:
    body: Graph = node.attrs["body"]
    w = _Writer(l)
    l.arrays.update(body.constants)
    for inner, operand in zip(body.inputs, _present(node.inputs), strict=True):
        w.name(inner, w.operand(operand))
    for step in body.nodes:
        result = _translate(w, step)
        w.name(present(step.outputs[0]), result)
    outputs = []
    for outer, inner in zip(node.outputs, body.outputs, strict=True):
        if outer is not None:
            result = w.operand(inner)
            outputs.append((l.output_like(outer, w.inputs), result if result[0] == "op" else w.op("copy", result)))
    w.write(outputs)
