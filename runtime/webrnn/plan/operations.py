"""The operations of expressions: one row each.

From a row come its number in plans, its text, what the verifiers ask of its operands, its FLOPs, the ONNX op that is
lowered to it, and in C its number, the types of its operands and its kernel (wasm_kernels/plan_header.py), with its row
in the kernel table (wasm_kernels/table.py). The number of a row is its place: new rows come last, and one that nobody
uses any more is `RETIRED`.

This file imports nothing of webrnn, so that the build can read it before webrnn is installed.

The words of an `expression` behind its four operands: the input tensors; pairs (output tensor, register); the
constants (type, low word, high word); the operations (number, result, three operands, alpha, beta). Registers are the
inputs, then the constants, then one for each operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

OPERATION_WORDS = 7

LETTERS = {"f": "f32", "i": "i64", "j": "i32", "u": "bool", "d": "f64", "v": "u64"}
"""Of element types, in names of operations."""

_TYPES = (
    "f32", "i64", "bool", "i32", "f16", "bf16", "f64", "u8", "i8", "u16", "i16", "u32", "u64",
    "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "u4", "i4", "f4e2m1", "f8e8m0", "u2", "i2", "f6e2m3", "f6e3m2",
)  # fmt: skip
"""Those of opcodes.py that have casts."""
RARE_TYPES = frozenset(("f64", *_TYPES[_TYPES.index("f8e4m3fn") :]))
"""Those that only the full wasm module has."""


class OperationRow(NamedTuple):
    name: str
    base: str
    """The name without the letter of its type: what it does."""
    takes: tuple[str, ...]
    gives: str
    """Element types; an operation `to_` a type and one that sees `bits_` as a type take any."""
    kernel: str = ""
    """The kind of the kernel `name` that runs it; others are in wasm_kernels/expression.c."""
    ulp: float = 0
    """The error bound of that kernel."""
    op: str = ""
    """The ONNX op that it is."""
    defaults: tuple[float, float] = (0.0, 0.0)
    """Of the ONNX op's alpha and beta, which operations of the kind `activation` have."""
    flops: int = 1
    rare: bool = False
    """Whether only the full wasm module has it, whatever its types."""

    @property
    def is_rare(self) -> bool:
        return self.rare or not RARE_TYPES.isdisjoint((*self.takes, self.gives))


RETIRED = OperationRow("", "", (), "f32")


def _unary(name: str, op: str, ulp: float = 0) -> OperationRow:
    return OperationRow(name, name, ("f32",), "f32", "unary", ulp, op)


def _activation(name: str, op: str, alpha: float, beta: float, ulp: float = 0) -> OperationRow:
    return OperationRow(name, name, ("f32",), "f32", "activation", ulp, op, (alpha, beta))


def _binary(name: str, op: str, ulp: float = 0) -> OperationRow:
    return OperationRow(name, name, ("f32", "f32"), "f32", "binary", ulp, op)


def _compare(name: str, op: str) -> OperationRow:
    return OperationRow(name, name, ("f32", "f32"), "bool", "compare", 0, op)


def _typed(bases: str, letters: Iterable[str], form: str, op: str = "", flops: int = 1) -> Iterator[OperationRow]:
    """Operations for several element types; t in the form stands for each of them."""
    for letter in letters:
        types = [LETTERS[letter if each == "t" else each] for each in form]
        for base in bases.split():
            yield OperationRow(f"{base}_{letter}", base, tuple(types[:-1]), types[-1], op=op, flops=flops)


OPERATIONS = (
    _unary("exp", "Exp", 1),
    _unary("log", "Log", 1),
    _unary("tanh", "Tanh", 1.5),
    _unary("sigmoid", "Sigmoid", 2),
    _unary("erf", "Erf", 1),
    _unary("sin", "Sin", 2),
    _unary("cos", "Cos", 2),
    _unary("sqrt", "Sqrt", 0.5),
    _unary("reciprocal", "Reciprocal", 0.5),
    _unary("abs", "Abs"),
    _unary("neg", "Neg"),
    _unary("round", "Round"),
    _unary("floor", "Floor"),
    _unary("ceil", "Ceil"),
    _unary("relu", "Relu"),
    _unary("softplus", "Softplus", 2),
    _unary("softsign", "Softsign", 1.5),
    RETIRED,
    _activation("leaky_relu", "LeakyRelu", 0.01, 0.0),
    _activation("thresholded_relu", "ThresholdedRelu", 1.0, 0.0),
    RETIRED,
    _activation("hard_sigmoid", "HardSigmoid", 0.2, 0.5),
    _activation("elu", "Elu", 1.0, 0.0, 3),
    RETIRED,
    _binary("add", "Add"),
    _binary("sub", "Sub"),
    _binary("mul", "Mul"),
    _binary("div", "Div"),
    _binary("min", "Min"),
    _binary("max", "Max"),
    _compare("equal", "Equal"),
    _compare("less", "Less"),
    _compare("less_or_equal", "LessOrEqual"),
    _compare("greater", "Greater"),
    _compare("greater_or_equal", "GreaterOrEqual"),
    OperationRow("select", "select", ("bool", "f32", "f32"), "f32", op="Where"),
    OperationRow("isnan", "isnan", ("f32",), "bool", op="IsNaN"),
    *_typed("add sub mul div min max", "i", "ttt"),
    *_typed("add sub mul div min max", "j", "ttt"),
    *_typed("equal less less_or_equal greater greater_or_equal", "ij", "ttu"),
    *_typed("neg abs", "ij", "tt"),
    *_typed("select", "iju", "uttt"),
    *_typed("and", "u", "ttt", "And"),
    *_typed("or", "u", "ttt", "Or"),
    *_typed("xor", "u", "ttt", "Xor"),
    *_typed("equal", "u", "ttt"),
    *_typed("not", "u", "tt", "Not"),
    *(RETIRED,) * 12,
    *_typed("copy", "fiju", "tt", flops=0),
    *(OperationRow(f"to_{dtype}", f"to_{dtype}", ("any",), dtype, flops=0) for dtype in _TYPES),
    *(OperationRow(f"bits_{dtype}", f"bits_{dtype}", ("any",), dtype, flops=0) for dtype in _TYPES),
    *_typed("and or xor shift_left shift_right pow", "i", "ttt"),
    *_typed("div shift_right", "v", "ttt"),
    *_typed("add sub mul div min max pow fmod", "d", "ttt"),
    *_typed("equal less less_or_equal greater greater_or_equal", "d", "ttu"),
    *_typed("neg abs sqrt floor round exp expm1 log log1p sin cos atan erf", "d", "tt"),
    *_typed("select", "d", "uttt"),
    *_typed("divisor", "i", "tt", flops=0),  # itself; a run in which it is 0 fails
    _unary("atan", "Atan", 2),
    _unary("hard_swish", "HardSwish"),
    _binary("pow", "Pow", 1),
    _binary("prelu", "PRelu"),
    # to the nearest number, ties to even, plus the second operand; then the limits of a byte, which NaN is the lower of
    _binary("saturate_u8", "")._replace(rare=True),
    _binary("saturate_i8", "")._replace(rare=True),
)

OPERATION_CODES = {row.name: code for code, row in enumerate(OPERATIONS) if row is not RETIRED}
