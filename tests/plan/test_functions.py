"""Functions that are made of operations, and those of doubles: their errors in units in the last place."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.backends import KERNELS, MAIN
from tests.plan.harness import graph_of, plan_of, run_plan

WIDE = np.longdouble
FUNCTIONS = {
    "Exp": np.exp, "Log": np.log, "Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Atan": np.arctan, "Asin": np.arcsin,
    "Acos": np.arccos, "Sinh": np.sinh, "Cosh": np.cosh, "Asinh": np.arcsinh, "Acosh": np.arccosh,
    "Atanh": np.arctanh, "Tanh": np.tanh, "Softplus": lambda x: np.logaddexp(x, WIDE(0)),
}  # fmt: skip
BOUNDS = {"f64": 4.0, "f": 2.5}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 5e-324, 1e308, -1e308, 709.7, 709.8, -745, -746, 710.4]

pytestmark = [
    pytest.mark.skipif(np.finfo(WIDE).nmant <= 52, reason="there is no wider type to compare with"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]


def _arguments(op: str, dtype: type) -> np.ndarray:
    rng = np.random.default_rng(0)
    powers = np.concatenate([rng.integers(-8, 4, 2000), rng.integers(-300, 300, 2000)])
    x = np.concatenate([rng.standard_normal(4000) * 10.0**powers, SPECIAL])
    near = 10.0 ** -rng.uniform(0, 15, 500)
    if op in ("Asin", "Acos", "Atanh"):
        x = np.concatenate([np.tanh(x), 1 - near])
    elif op == "Acosh":
        x = np.concatenate([1 + np.abs(x), 1 + near])
    return x.astype(dtype)


def _worst(result: np.ndarray, wanted: np.ndarray) -> float:
    """In units in the last place; what is not finite has to be the same."""
    rounded = wanted.astype(result.dtype)
    finite = np.isfinite(rounded) & np.isfinite(result)
    np.testing.assert_array_equal(result[~finite], rounded[~finite])
    errors = (result.astype(WIDE) - wanted) / np.spacing(np.abs(rounded)).astype(WIDE)
    return float(np.abs(errors[finite]).max())


@pytest.mark.parametrize(("kind", "dtype"), [("f64", np.float64), ("f", np.float32)])
@pytest.mark.parametrize("op", FUNCTIONS)
def test_errors(op, kind, dtype):
    x = _arguments(op, dtype)
    data = plan_of(graph_of(lambda b, x: b.op(op, x), f"{kind} {x.size}"))
    (result,) = run_plan(data, MAIN, [[x]])[0]
    assert _worst(result, FUNCTIONS[op](x.astype(WIDE))) < BOUNDS[kind]
    np.testing.assert_array_equal(result, run_plan(data, "wasm:relaxed", [[x]])[0][0])


def test_the_error_function_of_doubles():
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.standard_normal(1000) * 10.0 ** rng.integers(-5, 1, 1000), SPECIAL])
    (result,) = run_plan(plan_of(graph_of(lambda b, x: b.op("Erf", x), f"f64 {x.size}")), MAIN, [[x]])[0]
    assert _worst(result, np.array([math.erf(number) for number in x], WIDE)) < 20


def test_halves():
    """All of them to floats, and floats of all sizes to them."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    floats = np.random.default_rng(2).integers(0, 1 << 32, 1 << 16, np.uint32).view(np.float32)
    around = np.nextafter(halves.astype(np.float32), np.float32(np.inf))

    def build(b, x, y, z):
        return b.op("Cast", x, to=1), b.op("Cast", y, to=10), b.op("Cast", z, to=10)

    graph = graph_of(build, f"f16 {1 << 16}", f"f {1 << 16}", f"f {1 << 16}")
    for spec in KERNELS:
        results = run_plan(plan_of(graph), spec, [[halves, floats, around]])[0]
        wanted = [halves.astype(np.float32), floats.astype(np.float16), around.astype(np.float16)]
        for result, want in zip(results, wanted, strict=True):
            np.testing.assert_array_equal(result, want)
