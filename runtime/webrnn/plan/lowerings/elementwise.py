"""Element-wise ops and expressions of them."""

from __future__ import annotations

from collections.abc import Callable

from webrnn.ir import WEBRNN, DType, Graph, Node, Value

from ..lowering import DTYPES, Lowering, Rule, attribute, present
from ..opcodes import MAX_REGISTERS
from ..program import ExpressionOp
from ..views import View

_UNARY = {
    "Exp": "exp", "Log": "log", "Tanh": "tanh", "Sigmoid": "sigmoid", "Erf": "erf", "Sin": "sin", "Cos": "cos",
    "Sqrt": "sqrt", "Reciprocal": "reciprocal", "Abs": "abs", "Neg": "neg", "Round": "round", "Floor": "floor",
    "Ceil": "ceil", "Relu": "relu", "Softplus": "softplus", "Softsign": "softsign", "IsNaN": "isnan",
}  # fmt: skip
_BINARY = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Min": "min", "Max": "max", "Sum": "add", "Equal": "equal",
    "Less": "less", "LessOrEqual": "less_or_equal", "Greater": "greater", "GreaterOrEqual": "greater_or_equal",
    "And": "and", "Or": "or", "Xor": "xor",
}  # fmt: skip
_ACTIVATIONS: dict[str, tuple[str, tuple[float, float]]] = {
    "LeakyRelu": ("leaky_relu", (0.01, 0.0)),
    "ThresholdedRelu": ("thresholded_relu", (1.0, 0.0)),
    "HardSigmoid": ("hard_sigmoid", (0.2, 0.5)),
    "Elu": ("elu", (1.0, 0.0)),
}
_SUFFIX = {"f32": "", "i64": "_i", "u8": "_u", "i32": "_j"}
_LAST_FINITE = (2 - 2.0**-23) * 2.0**127
_CASTS = {"f32": "f", "i64": "i", "u8": "u", "i32": "j"}
_RESULTS = {"equal", "less", "less_or_equal", "greater", "greater_or_equal", "isnan"}
_HAS_INT = {"add", "sub", "mul", "div", "min", "max", "neg", "abs", "equal", "less", "less_or_equal", "greater",
            "greater_or_equal", "select", "copy"}  # fmt: skip
_HAS_BOOL = {"and", "or", "xor", "equal", "not", "select", "copy"}


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
            if array is not None and array.size == 1 and DType.of(array) in DTYPES:
                number = array.reshape(-1)[0]
                dtype = DTYPES[DType.of(array)]
                self.constants.append((dtype, float(number) if dtype == "f32" else int(number)))
                self._seen[value] = ("constant", len(self.constants) - 1)
            else:
                self.inputs.append(self.l.view(value))
                self._seen[value], dtype = ("input", len(self.inputs) - 1), self.inputs[-1].dtype
            self.types[self._seen[value]] = dtype
        return self._seen[value]

    def name(self, value: Value, register: tuple[str, int]) -> None:
        self._seen[value] = register

    def knows(self, value: Value) -> bool:
        return value in self._seen

    def op(self, code: str, *operands: tuple[str, int], alpha: float = 0.0, beta: float = 0.0) -> tuple[str, int]:
        """`code` without the suffix of its type, which is that of the last operand."""
        dtype = self.types[operands[-1]]
        if (dtype in ("i64", "i32") and code not in _HAS_INT) or (dtype == "u8" and code not in _HAS_BOOL):
            raise self.l.refuse(f"{code} of {dtype}")
        if dtype == "f32" and code in ("and", "or", "xor", "not"):
            raise self.l.refuse(f"{code} of {dtype}")
        suffix = "_f" if code == "copy" and dtype == "f32" else _SUFFIX[dtype]
        return self._add(code + suffix, operands, "u8" if code in _RESULTS else dtype, alpha, beta)

    def cast(self, operand: tuple[str, int], to: str) -> tuple[str, int]:
        source = self.types[operand]
        if source == to:
            return operand
        return self._add(f"{_CASTS[source]}_to_{_CASTS[to]}", (operand,), to, 0.0, 0.0)

    def _add(
        self, code: str, operands: tuple[tuple[str, int], ...], dtype: str, alpha: float, beta: float
    ) -> tuple[str, int]:
        self.ops.append(ExpressionOp(code, operands, alpha, beta))  # type: ignore[arg-type]
        register = ("op", len(self.ops) - 1)
        self.types[register] = dtype
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
    if op in _UNARY:
        return w.op(_UNARY[op], operands[0])
    if op in _ACTIVATIONS:
        code, (alpha, beta) = _ACTIVATIONS[op]
        return w.op(code, operands[0], alpha=attribute(node, "alpha", alpha), beta=attribute(node, "beta", beta))
    if op == "Div" and w.types[operands[1]] in ("i64", "i32"):
        _require_divisor(w, present(node.inputs[1]), operands[1])
    if op in _BINARY:
        result = operands[0]
        for operand in operands[1:]:
            result = w.op(_BINARY[op], result, operand)
        return result
    if op in _OTHERS:
        return _OTHERS[op](w, node, operands)
    raise w.l.refuse(f"{op} is not an operation of expressions")


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


def _select(w: _Writer, node: Node, operands: list[tuple[str, int]]) -> tuple[str, int]:
    return w.op("select", *operands)


def _not(w: _Writer, node: Node, operands: list[tuple[str, int]]) -> tuple[str, int]:
    return w.op("not", operands[0])


def _cast(w: _Writer, node: Node, operands: list[tuple[str, int]]) -> tuple[str, int]:
    to = DTYPES.get(DType(node.attrs["to"]))
    if to is None:
        raise w.l.refuse("a cast to a type that the VM does not have")
    result = w.cast(operands[0], to)
    return w.op("copy", result) if result[0] != "op" else result


def _copy(w: _Writer, node: Node, operands: list[tuple[str, int]]) -> tuple[str, int]:
    return w.op("copy", operands[0])


_OTHERS: dict[str, Callable[[_Writer, Node, list[tuple[str, int]]], tuple[str, int]]] = {
    "Where": _select,
    "Not": _not,
    "Cast": _cast,
    "Identity": _copy,
}


def _node(l: Lowering, node: Node) -> None:
    output = present(node.outputs[0])
    w = _Writer(l)
    result = _translate(w, node)
    if result[0] != "op":
        result = w.op("copy", result)
    w.write([(l.output_like(output, w.inputs), result)])


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


_OPS = {*_UNARY, *_BINARY, *_ACTIVATIONS, *_OTHERS, "Clip"} - {"Identity"}

RULES: dict[tuple[str, str], Rule] = {
    **{("", op): _node for op in _OPS},
    (WEBRNN, "Expression"): _expression,
}
