"""Element types: what is computed in a wider type, and casts between all of them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper

import webrnn
from tests.backends import INSIDE_PYODIDE, KERNELS, MAIN
from tests.onnx.models import floats, model, recurrent
from tests.plan.harness import assert_close, check_graph, graph_of, plan_of, run_plan
from webrnn.ir import DType
from webrnn.plan.file import ELEMENT_TYPES
from webrnn.plan.widening import SMALL
from webrnn.reference.cast import convert

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

BUILDS = KERNELS
FLOATS = {"f16": 2e-3, "bf16": 2e-2, "f64": 1e-12}
INTEGERS = ("u8", "i8", "u16", "i16", "u32", "u64")
SPECIAL = np.array(
    [0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, 1e-8, 6e-8, 3e-5, 65504, 65519.9, 65520, -7e4, 448, 464, 465, 57344, 61440, 6,
     7, 255, 256, -129, 3e38, 1e39, -1e300, 2**31, 2**32, 2**53 + 2, 2.0**63, 2.0**64, np.inf, -np.inf, np.nan,
     1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-11 + 2**-40, 0.1, 1 / 3], np.float64
)  # fmt: skip


@pytest.mark.skipif(INSIDE_PYODIDE, reason="numpy's casts of what an integer cannot hold are others there")
@pytest.mark.parametrize("source", list(ELEMENT_TYPES))
def test_casts(source):
    numbers = convert(SPECIAL, ELEMENT_TYPES[source].array_type)

    def build(b, x):
        return [b.op("Cast", x, to=int(dtype)) for dtype in ELEMENT_TYPES.values()]

    data = plan_of(graph_of(build, f"{source} {SPECIAL.size}"))
    for spec in BUILDS:
        for name, result in zip(ELEMENT_TYPES, run_plan(data, spec, [[numbers]])[0], strict=True):
            with np.errstate(all="ignore"):
                wanted = convert(numbers, ELEMENT_TYPES[name].array_type)
            assert_close([result], [wanted], 0, f"{source} to {name}, {spec}")


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("to", [name for name in SMALL if name.startswith("f8")])
def test_casts_that_saturate(to, saturate):
    modes = ("up", "down", "nearest") if to == "f8e8m0" else ("up",)

    def build(b, x):
        return [b.op("Cast", x, to=int(ELEMENT_TYPES[to]), saturate=saturate, round_mode=mode) for mode in modes]

    x = SPECIAL.astype(np.float32)
    results = run_plan(plan_of(graph_of(build, f"f {x.size}")), MAIN, [[x]])[0]
    for mode, result in zip(modes, results, strict=True):
        assert_close([result], [convert(x, ELEMENT_TYPES[to].array_type, bool(saturate), mode)], 0)


UNARY = (
    "Neg", "Abs", "Sign", "Floor", "Ceil", "Round", "Exp", "Tanh", "Sigmoid", "Erf", "Sin", "Cos", "Relu", "Softplus",
    "Softsign", "Elu", "Celu", "Selu", "LeakyRelu", "HardSigmoid", "HardSwish", "Swish", "Mish", "Gelu", "Shrink",
    "Tan", "Atan", "Sinh", "Cosh", "Asinh", "IsNaN", "IsInf", "ThresholdedRelu",
)  # fmt: skip


@pytest.mark.parametrize("kind", ["f32", *FLOATS])
@pytest.mark.parametrize("number", [1e-30, 1e30, 0.0, -1.0, np.inf, -np.inf, np.nan])
def test_activations_whose_numbers_are_no_half_floats_or_none_at_all(kind, number):
    """An attribute is a float whatever the tensor is; what the op makes of it is rounded once."""
    ops = ("Elu", "Celu", "Selu", "LeakyRelu", "HardSigmoid", "Swish", "ThresholdedRelu")

    def build(b, x):
        return [b.op("SwiGLU", x, x, alpha=number), *(b.op(op, x, alpha=number) for op in ops)]

    x = convert(np.array([-3, -0.5, -0.0, 0, 0.5, 3, np.inf, -np.inf, np.nan]), ELEMENT_TYPES[kind].array_type)
    check_graph(graph_of(build, f"{kind} 9"), [x], tolerance=FLOATS.get(kind, 1e-5), builds=BUILDS)


@pytest.mark.parametrize("kind", FLOATS)
def test_functions_of_floats(kind):
    graph = graph_of(lambda b, x: [b.op(op, x) for op in UNARY], f"{kind} 2 33")
    check_graph(graph, tolerance=FLOATS[kind], builds=BUILDS)


@pytest.mark.parametrize("kind", [*FLOATS, "f"])
def test_functions_of_parts_of_the_line(kind):
    def build(b, x):
        inside = b.op("Sin", x)
        above = b.op("Exp", b.op("Abs", x))
        ops = {"Asin": inside, "Acos": inside, "Atanh": inside, "Acosh": above, "Log": above, "Sqrt": above}
        return [b.op(op, value) for op, value in ops.items()]

    check_graph(graph_of(build, f"{kind} 2 33"), tolerance={"f": 1e-5, **FLOATS}[kind] * 10, builds=BUILDS)


BINARY = ("Add", "Sub", "Mul", "Min", "Max", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")


@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS])
def test_arithmetic(kind):
    def build(b, x, y):
        condition = b.op("Less", x, y)
        return [*(b.op(op, x, y) for op in BINARY), b.op("Where", condition, x, y), b.op("Clip", x, None, y2(b, y))]

    def y2(b, y):
        return b.op("Reshape", b.op("Slice", y, *(b.constant(np.int64([n])) for n in (0, 1))), b.constant(np.int64([])))

    check_graph(graph_of(build, f"{kind} 3 5", f"{kind} 5"), tolerance=FLOATS.get(kind, 0), builds=BUILDS)


@pytest.mark.parametrize("kind", [*INTEGERS, "i", "j"])
def test_bits(kind):
    def build(b, x, y):
        named = [b.op(op, x, y) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")]
        shifts = [b.op("BitShift", x, y, direction=way) for way in ("LEFT", "RIGHT")]
        return [*named, *shifts, b.op("BitwiseNot", x)]

    graph = graph_of(build, f"{kind} 40", f"{kind} 40")
    rng = np.random.default_rng(1)
    dtype = graph.inputs[0].dtype.array_type
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, 40, dtype)
    y = rng.integers(-2 if info.min else 0, 70, 40).astype(dtype)
    check_graph(graph, [x, y], tolerance=0, builds=BUILDS)


@pytest.mark.parametrize("fmod", [0, 1])
@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS, "i", "j", "f"])
def test_mod(kind, fmod):
    graph = graph_of(lambda b, x, y: b.op("Mod", x, y, fmod=fmod), f"{kind} 60", f"{kind} 60")
    rng = np.random.default_rng(2)
    dtype = graph.inputs[0].dtype
    is_float = kind in (*FLOATS, "f")
    signed = is_float or np.iinfo(dtype.array_type).min < 0
    numbers = rng.integers(1, 60, (2, 60)) * (rng.choice([-1, 1], (2, 60)) if signed else 1)
    x, y = (convert(each / 4.0 if is_float else each, dtype.array_type) for each in numbers)
    check_graph(graph, [x, y], tolerance=0, builds=BUILDS)


def test_powers_of_integers_wrap_whatever_the_exponents_of_others_are():
    graph = graph_of(lambda b, x, y: b.op("Pow", x, y), "i 5", "i 5")
    check_graph(graph, [np.int64([3, -2, -1, -1, 4]), np.int64([10**18, -3, -3, -2, 8])], builds=BUILDS)


@pytest.mark.parametrize("exponent", ["f", "i", "j", "f16", "f64", "u8"])
@pytest.mark.parametrize("base", ["f", "i", "j", "f16", "f64"])
def test_powers(base, exponent):
    graph = graph_of(lambda b, x, y: b.op("Pow", x, y), f"{base} 20", f"{exponent} 20")
    rng = np.random.default_rng(3)
    kinds = [value.dtype.array_type for value in graph.inputs]
    x = rng.integers(1, 7, 20).astype(kinds[0])
    y = rng.integers(0, 5, 20).astype(kinds[1])
    check_graph(graph, [x, y], tolerance=2e-3 if base == "f16" else 1e-6 if base == "f" else 1e-13, builds=BUILDS)


def test_powers_of_special_numbers():
    line = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 1e30, 1e-30, np.inf, -np.inf, np.nan, 0.3], np.float32)
    graph = graph_of(lambda b, x, y: b.op("Pow", x, y), f"f {line.size} 1", f"f {line.size}")
    check_graph(graph, [line[:, None], line], tolerance=1e-6, builds=BUILDS)
    for number in (0.5, 2, 3, 1, -1, 0, 0.3):
        graph = graph_of(lambda b, x, number=number: b.op("Pow", x, b.constant(np.float32(number))), f"f {line.size}")
        check_graph(graph, [line], tolerance=1e-6, builds=BUILDS)


def test_bits_seen_as_another_type():
    x = np.array([1.5, -2, np.inf, 0.1], np.float32)
    graph = graph_of(lambda b, x: b.op("BitCast", x, to=int(DType.UINT32)), "f 4")
    check_graph(graph, [x], tolerance=0, builds=BUILDS)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_ops_in_a_wider_type(kind):
    dtype = ELEMENT_TYPES[kind].array_type

    def constant(b, *shape):
        return b.constant(convert(np.random.default_rng(0).standard_normal(shape), dtype))

    def build(b, x):
        product = b.op("MatMul", x, constant(b, 6, 4))
        return [product, b.op("Softmax", product), b.op("ReduceMean", x, b.constant(np.int64([-1])))]

    check_graph(graph_of(build, f"{kind} n 6"), tolerance=5 * FLOATS[kind], builds=BUILDS)


def _cast_model(proto, dtype):
    """The same model with weights, inputs and outputs of another type."""
    for tensor in proto.graph.initializer:
        array = convert(numpy_helper.to_array(tensor), dtype.array_type)
        tensor.CopyFrom(helper.make_tensor(tensor.name, int(dtype), array.shape, array.tobytes(), raw=True))
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.elem_type = int(dtype)
    return proto.SerializeToString()


RECURRENT = (
    ("RNN", {}), ("GRU", {}), ("LSTM", {}), ("GRU", {"linear_before_reset": 1, "clip": 0.7}),
    ("LSTM", {"direction": "bidirectional", "activations": ["HardSigmoid", "Softsign", "ScaledTanh"] * 2}),
    ("LSTM", {"input_forget": 1}), ("RNN", {"activations": ["Affine"], "activation_alpha": [0.5]}),
)  # fmt: skip


@pytest.mark.parametrize(("op", "attrs"), RECURRENT)
@pytest.mark.parametrize("kind", FLOATS)
def test_recurrent_layers(kind, op, attrs):
    dtype = ELEMENT_TYPES[kind]
    data = _cast_model(recurrent(op, **attrs), dtype)
    feeds = {"X": convert(np.random.default_rng(1).standard_normal((3, 2, 4)), dtype.array_type)}
    expected = webrnn.InferenceSession(data, backend="numpy").run(None, feeds)
    session = webrnn.InferenceSession(data, backend=MAIN)
    assert_close(session.run(None, feeds), expected, 2 * FLOATS[kind])
    assert "numpy" not in session.report()


def test_python_numbers_are_feeds():
    proto = model([helper.make_node("Add", ["x", "n"], ["y"])], [floats("x", [2]), floats("n", [])], [floats("y", [2])])
    session = webrnn.InferenceSession(proto.SerializeToString(), backend=MAIN)
    assert session.run(None, {"x": [1, 2.5], "n": 3})[0].tolist() == [4, 5.5]
    with pytest.raises(webrnn.ShapeError, match="input 'x'"):
        session.run(None, {"x": ["a", "b"], "n": 3})
    whole = model([helper.make_node("Neg", ["x"], ["y"])], [_values("x", DType.INT8, 2)], [_values("y", DType.INT8, 2)])
    session = webrnn.InferenceSession(whole.SerializeToString(), backend=MAIN)
    assert session.run(None, {"x": (1, -2)})[0].tolist() == [-1, 2]
    for wrong in ([1, 200], [1, 0.5]):
        with pytest.raises(webrnn.ShapeError, match="input 'x'"):
            session.run(None, {"x": wrong})


def _values(name, dtype, *shape):
    return helper.make_tensor_value_info(name, int(dtype), shape)


@pytest.mark.skipif(INSIDE_PYODIDE, reason="there is no ml_dtypes inside Pyodide")
def test_arrays_of_ml_dtypes_are_feeds():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kinds = {
        DType.BFLOAT16: ml_dtypes.bfloat16,
        DType.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
        DType.INT4: ml_dtypes.int4,
    }
    for dtype, foreign in kinds.items():
        node = helper.make_node("Concat", ["x", "x"], ["y"], axis=0)
        proto = model([node], [_values("x", dtype, 2)], [_values("y", dtype, 4)])
        session = webrnn.InferenceSession(proto.SerializeToString(), backend=MAIN)
        (result,) = session.run(None, {"x": np.array([2, -3], foreign)})
        assert result.dtype == foreign
        assert result.astype(np.float32).tolist() == [2, -3, 2, -3]
