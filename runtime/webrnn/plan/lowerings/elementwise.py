"""Element-wise ops and expressions of them. An op is computed in a type that has arithmetic, its result is rounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from webrnn.ir import WEBRNN, DType, Graph, Node, Value

from ..lowering import Lowering, attribute, present, rule
from ..operations import OPERATIONS
from ..views import View
from ..widening import SMALL
from .expressions import Register, TooManyRegisters, Writer
from .functions import COMPOSED, FUNCTIONS

_BY_OP = {row.op: row for row in OPERATIONS if row.op}
_BASES = {op: row.base for op, row in _BY_OP.items()} | {
    "Sum": "add", "BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseXor": "xor",
}  # fmt: skip
_ORDERED = {"Min", "Max", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}

Operands = Sequence[Register]


def _present(values: list[Value | None]) -> list[Value]:
    return [value for value in values if value is not None]


def _translate(w: Writer, node: Node) -> Register:
    """One node as operations; its result, of its own type."""
    if node.op in _WITHOUT_ARITHMETIC:
        return _WITHOUT_ARITHMETIC[node.op](w, node)
    operands = [w.wide(w.operand(value)) for value in _present(node.inputs)]
    unsigned = w.l.facts.dtype(present(node.inputs[0])) is DType.UINT64
    if unsigned and node.op in _ORDERED:
        operands = [w.ordered(operand) for operand in operands]
    result = (_SPECIAL.get(node.op) or _plain)(w, node, operands)
    if unsigned and node.op in ("Min", "Max"):
        result = w.ordered(result)
    return w.narrow(result, _result_type(w, node))


def _result_type(w: Writer, node: Node) -> str:
    return w.l.dtype(present(node.outputs[0]))


def _plain(w: Writer, node: Node, operands: Operands) -> Register:
    """An op that is one operation, or a function of them."""
    dtype = w.types[operands[-1]]
    if node.op in FUNCTIONS:
        return FUNCTIONS[node.op](w, *operands)
    base = _BASES.get(node.op)
    if base is None:
        raise w.l.refuse(f"{node.op} is not an operation of expressions")
    row = _BY_OP.get(node.op)
    numbers = {}
    if row is not None and row.kernel == "activation":
        alpha, beta = row.defaults
        numbers = {"alpha": attribute(node, "alpha", alpha), "beta": attribute(node, "beta", beta)}
    if base in COMPOSED and not w.has(base, dtype):
        return COMPOSED[base](w, *operands, **numbers)
    if node.op in _VARIADIC or len(operands) == 2:
        return reduce(lambda a, b: w.op(base, a, b), operands)
    return w.op(base, *operands, **numbers)


_VARIADIC = {"Sum", "Max", "Min"}


# --- ops that move numbers, or turn them into other types -------------------------------------------------------------


def _cast(w: Writer, node: Node) -> Register:
    saturates, mode = bool(attribute(node, "saturate", 1)), attribute(node, "round_mode", "up")
    if mode not in ("up", "down", "nearest"):
        raise w.l.refuse(f"the mode {mode!r}")
    return w.cast(w.operand(present(node.inputs[0])), _result_type(w, node), saturates, mode)


def _bit_cast(w: Writer, node: Node) -> Register:
    to = _result_type(w, node)
    source = w.view(w.l.view(present(node.inputs[0])))
    if to in SMALL or w.types[source] in SMALL:
        raise w.l.refuse("bits of a small type")
    return w.bits(source, to)


def _identity(w: Writer, node: Node) -> Register:
    return w.narrow(w.operand(present(node.inputs[0])), _result_type(w, node))


def _where(w: Writer, node: Node) -> Register:
    condition, *branches = (w.operand(value) for value in _present(node.inputs))
    dtype = _result_type(w, node)
    if dtype in SMALL:
        return w.op("select", condition, *branches)
    return w.narrow(w.op("select", condition, *map(w.wide, branches)), dtype)


_WITHOUT_ARITHMETIC: dict[str, Callable[[Writer, Node], Register]] = {
    "Cast": _cast,
    "CastLike": _cast,
    "BitCast": _bit_cast,
    "Identity": _identity,
    "Where": _where,
}


# --- ops with attributes, or whose operations depend on their types ---------------------------------------------------


def _clip(w: Writer, node: Node, operands: Operands) -> Register:
    """ONNX: min(max(x, low), high). A bound that is not given is the last finite number."""
    x = present(node.inputs[0])
    dtype = w.l.facts.dtype(x)
    assert dtype is not None
    result = operands[0]
    unsigned = dtype is DType.UINT64
    result = w.ordered(result) if unsigned else result
    is_float = w.types[result] in ("f32", "f64")
    bounds = [*node.inputs[1:3], None, None]
    last = _LAST_FINITE.get(dtype, 0.0)
    for code, bound, missing in zip(("max", "min"), bounds, (-last, last), strict=False):
        if bound is not None:
            number = w.wide(_scalar(w, bound))
            result = w.op(code, result, w.ordered(number) if unsigned else number)
        elif is_float:
            result = w.op(code, result, missing)
    return w.ordered(result) if unsigned else result


_LAST_FINITE = {
    dtype: float(np.finfo(dtype.array_type).max) for dtype in (DType.FLOAT, DType.DOUBLE, DType.FLOAT16)
} | {DType.BFLOAT16: (2 - 2.0**-7) * 2.0**127}  # fmt: skip


def _scalar(w: Writer, value: Value) -> Register:
    """An operand of one element, whatever its rank."""
    if w.l.array(value) is not None or w.l.view(value).rank == 0:
        return w.operand(value)
    return w.view(w.l.reshaped(w.l.view(value), ()))


def _mean(w: Writer, node: Node, operands: Operands) -> Register:
    total = reduce(lambda a, b: w.op("add", a, b), operands)
    return w.op("div", total, len(operands)) if len(operands) > 1 else total


def _divide(w: Writer, node: Node, operands: Operands) -> Register:
    if w.types[operands[1]] in ("i32", "i64") and not _is_never_zero(w, present(node.inputs[1])):
        operands = [operands[0], w.op("divisor", operands[1])]
    if w.l.facts.dtype(present(node.inputs[0])) is DType.UINT64:
        return w.bits(w.op("div", *(w.bits(operand, "u64") for operand in operands)), "i64")
    return w.op("div", *operands)


def _is_never_zero(w: Writer, value: Value) -> bool:
    array, content = w.l.array(value), w.l.facts.of(value).content
    known = content is not None and all(isinstance(number, int) and number for number in content)
    return known or bool(array is not None and array.all())


def _mod(w: Writer, node: Node, operands: Operands) -> Register:
    a, b = operands
    if attribute(node, "fmod", 0) not in (0, 1):
        raise w.l.refuse("fmod is neither 0 nor 1")
    is_float = w.types[a] in ("f32", "f64")
    if is_float:
        rest = w.op("fmod", a, b)
    else:
        rest = w.op("sub", a, w.op("mul", _divide(w, node, operands), b))
    if attribute(node, "fmod", 0) or w.l.facts.dtype(present(node.inputs[0])) is DType.UINT64:
        return rest
    negative = w.op("less", b, 0)
    other_sign = w.op("xor", w.op("less", rest, 0), negative)
    zero = w.op("equal", rest, 0)
    moved = w.op("select", other_sign, w.op("add", rest, b), rest)
    if not is_float:
        return w.op("select", zero, rest, moved)
    return w.op("select", zero, w.op("select", negative, w.number(-0.0, w.types[a]), w.number(0.0, w.types[a])), moved)


def _power(w: Writer, node: Node, operands: Operands) -> Register:
    base, exponent = operands
    kind = w.types[base]
    known = w.l.array(present(node.inputs[1]))
    if kind in ("i32", "i64"):
        if w.types[exponent] in ("i32", "i64"):
            return w.cast(w.op("pow", w.cast(base, "i64"), w.cast(exponent, "i64")), kind)
        return w.cast(w.op("pow", w.cast(base, "f64"), w.cast(exponent, "f64")), kind)
    number = None if known is None or known.size != 1 else float(_decoded(known))
    if number in _POWERS:
        return _POWERS[number](w, base)
    is_float = w.types[exponent] == "f32" or (number is not None and number == float(np.float32(number)))
    computed_in = "f32" if kind == "f32" and is_float else "f64"
    return w.cast(w.op("pow", w.cast(base, computed_in), w.cast(exponent, computed_in)), kind)


def _decoded(array: np.ndarray) -> float:
    from webrnn.reference.narrow import decode, narrow_type

    return (decode(array) if narrow_type(array.dtype) else array).reshape(-1)[0].item()


_POWERS: dict[float | None, Callable[[Writer, Register], Register]] = {
    1.0: lambda w, x: x,
    2.0: lambda w, x: w.op("mul", x, x),
    3.0: lambda w, x: w.op("mul", w.op("mul", x, x), x),
    0.5: lambda w, x: w.op("sqrt", x),
    -1.0: lambda w, x: w.op("div", w.number(1.0, w.types[x]), x),
}


def _shift(w: Writer, node: Node, operands: Operands) -> Register:
    """A shift by a negative amount, or by the width or more, leaves only copies of the sign bit."""
    x, amount = (w.cast(operand, "i64") for operand in operands)
    direction = attribute(node, "direction", "")
    if direction == "LEFT":
        return w.op("shift_left", x, amount)
    if direction != "RIGHT":
        raise w.l.refuse("a shift that is neither LEFT nor RIGHT")
    if w.l.facts.dtype(present(node.inputs[0])) is DType.UINT64:
        return w.bits(w.op("shift_right", w.bits(x, "u64"), w.bits(amount, "u64")), "i64")
    return w.op("shift_right", x, amount)


def _bitwise_not(w: Writer, node: Node, operands: Operands) -> Register:
    return w.op("xor", operands[0], -1)


def _is_nan(w: Writer, node: Node, operands: Operands) -> Register:
    return w.op("not", w.op("equal", operands[0], operands[0]))


def _is_inf(w: Writer, node: Node, operands: Operands) -> Register:
    positive, negative = attribute(node, "detect_positive", 1), attribute(node, "detect_negative", 1)
    x = operands[0]
    if positive and negative:
        return w.op("equal", w.op("abs", x), math.inf)
    if positive or negative:
        return w.op("equal", x, math.inf if positive else -math.inf)
    return w.copy(w.number(0, "bool"))


def _sign(w: Writer, node: Node, operands: Operands) -> Register:
    x = operands[0]
    if w.l.facts.dtype(present(node.inputs[0])) is DType.UINT64:
        return w.op("select", w.op("equal", x, 0), x, w.number(1, "i64"))
    rest = w.op("select", w.op("equal", x, 0), w.number(0, w.types[x]), x)
    below = w.op("select", w.op("less", x, 0), w.number(-1, w.types[x]), rest)
    return w.op("select", w.op("greater", x, 0), w.number(1, w.types[x]), below)


def _abs(w: Writer, node: Node, operands: Operands) -> Register:
    return operands[0] if w.l.facts.dtype(present(node.inputs[0])) is DType.UINT64 else w.op("abs", operands[0])


def _prelu(w: Writer, node: Node, operands: Operands) -> Register:
    x, slope = operands
    if w.l.facts.dtype(present(node.inputs[0])) is DType.UINT64:
        return x
    if w.types[x] == "f32":
        return w.op("prelu", x, slope)
    return w.op("select", w.op("less", x, 0), w.op("mul", slope, x), x)


def _celu(w: Writer, node: Node, operands: Operands) -> Register:
    alpha, x = attribute(node, "alpha", 1.0), operands[0]
    if w.types[x] == "f32" and 0 < alpha < math.inf:
        below = w.op("mul", w.op("elu", w.op("div", x, alpha), alpha=1.0), alpha)
        return w.op("select", w.op("less", x, 0.0), below, x)
    below = w.op("mul", w.op("expm1", w.op("div", x, alpha)), alpha)
    return w.op("add", w.op("max", x, 0.0), w.op("min", below, 0.0))


def _selu(w: Writer, node: Node, operands: Operands) -> Register:
    alpha, gamma = attribute(node, "alpha", 1.6732631921768188), attribute(node, "gamma", 1.0507010221481323)
    x = operands[0]
    if math.isfinite(alpha):
        return w.op("mul", _elu(w, x, alpha), gamma)
    below = w.op("mul", w.op("expm1", x), alpha)  # of 0 it is no number, which elu does not ask
    return w.op("mul", w.op("select", w.op("less", 0.0, x), x, below), gamma)


def _elu(w: Writer, x: Register, alpha: float) -> Register:
    return w.op("elu", x, alpha=alpha) if w.has("elu", w.types[x]) else COMPOSED["elu"](w, x, alpha=alpha)


def _hard_swish(w: Writer, node: Node, operands: Operands) -> Register:
    x = operands[0]
    if w.types[x] == "f32":
        return w.op("hard_swish", x)
    inside = w.op("add", w.op("div", x, 6.0), 0.5)
    return w.op("mul", x, w.op("min", w.op("max", inside, 0.0), 1.0))


def _swish(w: Writer, node: Node, operands: Operands) -> Register:
    alpha, x = attribute(node, "alpha", 1.0), operands[0]
    inside = x if alpha == 1 else w.op("mul", x, alpha)
    sigmoid = w.op("sigmoid", inside) if w.has("sigmoid", w.types[x]) else COMPOSED["sigmoid"](w, inside)
    return w.op("mul", x, sigmoid)


def _swiglu(w: Writer, node: Node, operands: Operands) -> Register:
    return w.op("mul", _swish(w, node, operands), operands[1])


def _gelu(w: Writer, node: Node, operands: Operands) -> Register:
    x, how = operands[0], attribute(node, "approximate", "none")
    if how == "tanh":
        cube = w.op("mul", w.op("mul", w.op("mul", x, x), x), 0.044715)
        inside = w.op("mul", w.op("add", x, cube), math.sqrt(2 / math.pi))
        factor = w.op("tanh", inside) if w.has("tanh", w.types[x]) else COMPOSED["tanh"](w, inside)
    elif how == "none":
        factor = w.op("erf", w.op("mul", x, math.sqrt(0.5)))
    else:
        raise w.l.refuse(f"{how!r} is neither none nor tanh")
    return w.op("mul", w.op("mul", x, 0.5), w.op("add", factor, 1.0))


def _shrink(w: Writer, node: Node, operands: Operands) -> Register:
    bias, limit = attribute(node, "bias", 0.0), attribute(node, "lambd", 0.5)
    kind = w.types[operands[0]]
    x = operands[0] if kind in ("f32", "f64") else w.cast(operands[0], "f64")
    zero = w.number(0.0, w.types[x])
    above = w.op("select", w.op("greater", x, limit), w.op("sub", x, bias), zero)
    return w.cast(w.op("select", w.op("less", x, -limit), w.op("add", x, bias), above), kind)


_SPECIAL: dict[str, Callable[[Writer, Node, Operands], Register]] = {
    "Abs": _abs, "BitShift": _shift, "BitwiseNot": _bitwise_not, "Celu": _celu, "Clip": _clip, "Div": _divide,
    "Gelu": _gelu, "HardSwish": _hard_swish, "IsInf": _is_inf, "IsNaN": _is_nan, "Mean": _mean, "Mod": _mod,
    "PRelu": _prelu, "Pow": _power, "Selu": _selu, "Shrink": _shrink, "Sign": _sign, "SwiGLU": _swiglu,
    "Swish": _swish,
}  # fmt: skip


# --- rules ------------------------------------------------------------------------------------------------------------


@rule(*{*_BASES, *_SPECIAL, *FUNCTIONS, *_WITHOUT_ARITHMETIC} - {"Identity"})
def _node(l: Lowering, node: Node) -> None:
    w = Writer(l)
    _write(l, w, [(present(node.outputs[0]), _translate(w, node))])


def _write(l: Lowering, w: Writer, results: list[tuple[Value, Register]]) -> None:
    def place(value: Value) -> Callable[[list[View]], View]:
        return lambda inputs: l.output_like(value, inputs)

    made = [(place(value), register if register[0] == "op" else w.copy(register)) for value, register in results]
    w.write(made)


@rule("Expression", domain=WEBRNN)
def _expression(l: Lowering, node: Node) -> None:
    body: Graph = node.attrs["body"]
    l.arrays.update(body.constants)
    try:
        w = Writer(l)
        for inner, operand in zip(body.inputs, _present(node.inputs), strict=True):
            w.name(inner, w.operand(operand))
        for step in body.nodes:
            w.name(present(step.outputs[0]), _translate(w, step))
        pairs = zip(node.outputs, body.outputs, strict=True)
        _write(l, w, [(outer, w.operand(inner)) for outer, inner in pairs if outer is not None])
    except TooManyRegisters:
        _in_parts(l, node, body)


def _in_parts(l: Lowering, node: Node, body: Graph) -> None:
    """As several expressions."""
    for inner, operand in zip(body.inputs, _present(node.inputs), strict=True):
        array = l.array(operand)
        if array is not None:
            l.arrays[inner] = array
        else:
            l.views[inner] = l.view(operand)
    _part(l, body.nodes, set(body.outputs))
    for outer, inner in zip(node.outputs, body.outputs, strict=True):
        if outer is not None:
            l.copy(l.view(inner), l.output(outer))


def _part(l: Lowering, nodes: Sequence[Node], read_later: set[Value]) -> None:
    """Some nodes of an expression, of whose results only those that are read later are written."""
    try:
        w = Writer(l)
        for step in nodes:
            w.name(present(step.outputs[0]), _translate(w, step))
        made = [present(step.outputs[0]) for step in nodes]
        _write(l, w, [(value, w.operand(value)) for value in made if value in read_later])
    except TooManyRegisters:
        if len(nodes) == 1:
            raise
        first, second = nodes[: len(nodes) // 2], nodes[len(nodes) // 2 :]
        _part(l, first, read_later | {value for step in second for value in step.inputs if value is not None})
        _part(l, second, read_later)
