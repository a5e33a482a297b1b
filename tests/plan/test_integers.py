"""Products of integers: bytes with packed weights, and other types term by term."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import webrnn
from tests.backends import BACKENDS, INSIDE_PYODIDE
from tests.onnx.models import model
from webrnn.engine.kernels import loading as kernels

BUILDS = BACKENDS if INSIDE_PYODIDE else (*kernels.available(), "numpy")
"""Sums of integers are the same on all of them."""
RNG = np.random.default_rng(7)
TYPES = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}

SHAPES = (
    (1, 1, 1), (1, 7, 16), (4, 8, 17), (5, 33, 40), (9, 2, 15), (2, 0, 3), (1, 66, 100), (2, 12, 64), (3, 5, 130),
    (7, 18, 49), (70, 9, 33), (130, 3, 5),
)  # fmt: skip
"""Of products m, k, n: below, at and above the rows, terms and columns that tiles have."""


def _bytes(dtype, *shape):
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def _product(a, b, a_zero=None, b_zero=None):
    left, right = a.astype(np.int64), b.astype(np.int64)
    if a_zero is not None:
        left = left - (a_zero.astype(np.int64)[:, None] if a_zero.ndim else a_zero.astype(np.int64))
    return (left @ (right - (0 if b_zero is None else b_zero.astype(np.int64)))).astype(np.int32)


def _session(a, b, a_zero, b_zero, backend, rank_free=False):
    names = ["a", "b", "a_zero" if a_zero is not None else "", "b_zero" if b_zero is not None else ""]
    node = helper.make_node("MatMulInteger", names, ["y"])
    shape = ["m", *a.shape[1:]] if rank_free else list(a.shape)
    inputs = [helper.make_tensor_value_info("a", TYPES[a.dtype.type], shape)]
    feeds = {"a": a}
    if a_zero is not None:
        inputs.append(helper.make_tensor_value_info("a_zero", TYPES[a.dtype.type], list(a_zero.shape)))
        feeds["a_zero"] = a_zero
    constants = [helper.make_tensor("b", TYPES[b.dtype.type], b.shape, b.tobytes(), raw=True)]
    if b_zero is not None:
        constants.append(helper.make_tensor("b_zero", TYPES[b.dtype.type], b_zero.shape, b_zero.tobytes(), raw=True))
    outputs = [helper.make_tensor_value_info("y", TensorProto.INT32, None)]
    session = webrnn.InferenceSession(model([node], inputs, outputs, constants).SerializeToString(), backend=backend)
    return session, feeds


@pytest.mark.parametrize("backend", BUILDS)
@pytest.mark.parametrize("left", TYPES)
@pytest.mark.parametrize("right", TYPES)
def test_bytes(left, right, backend):
    for m, k, n in SHAPES:
        a, b = _bytes(left, m, k), _bytes(right, k, n)
        zeros = [(None, None), (_bytes(left), _bytes(right)), (_bytes(left, m), _bytes(right, n))]
        for a_zero, b_zero in zeros[: 2 if m == 1 else 3]:
            session, feeds = _session(a, b, a_zero, b_zero, backend)
            assert np.array_equal(session.run(None, feeds)[0], _product(a, b, a_zero, b_zero))
            assert "numpy" not in session.report() or backend == "numpy"


@pytest.mark.parametrize("backend", BUILDS)
def test_extremes_and_batches(backend):
    a = np.zeros((2, 3, 5000), np.uint8)
    a[0] = 255
    b = np.full((5000, 3), -128, np.int8)
    session, feeds = _session(a, b, None, None, backend, rank_free=True)
    assert np.array_equal(session.run(None, feeds)[0], a.astype(np.int64) @ b.astype(np.int64))
    a = _bytes(np.uint8, 5000)
    session, feeds = _session(a, b, np.array(3, np.uint8), None, backend)
    assert np.array_equal(session.run(None, feeds)[0], (a.astype(np.int64) - 3) @ b.astype(np.int64))


CONVOLUTIONS = (
    ((2, 40, 9), (8, 40, 3), {"pads": [1, 2]}),
    ((1, 5, 7, 6), (9, 5, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 1]}),
    ((3, 33, 4, 4), (17, 33, 1, 1), {}),
    ((1, 12, 20), (8, 12, 3), {"dilations": [3], "strides": [2]}),
    ((1, 4, 9, 9), (8, 4, 3, 3), {"dilations": [2, 1], "auto_pad": "SAME_UPPER"}),
    ((2, 8, 6), (8, 4, 3), {"group": 2}),
    ((1, 3, 8), (2, 3, 2), {}),
)


@pytest.mark.parametrize("backend", BUILDS)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("shape", "kernel", "attrs"), CONVOLUTIONS)
def test_convolutions(shape, kernel, attrs, kind, backend):
    """Exact, also where the zero point is known only while running: it is what stands around x."""
    x, w, x_zero = _bytes(kind, *shape), _bytes(np.int8, *kernel), _bytes(kind)
    for w_zero in (None, _bytes(np.int8), _bytes(np.int8, kernel[0])):
        names = ["x", "w", "x_zero", *(["w_zero"] if w_zero is not None else [])]
        inputs = [
            helper.make_tensor_value_info("x", TYPES[kind], ["n", *shape[1:]]),
            helper.make_tensor_value_info("x_zero", TYPES[kind], []),
        ]
        given = {"w": w, **({} if w_zero is None else {"w_zero": w_zero})}
        constants = [numpy_helper.from_array(np.asarray(array), name) for name, array in given.items()]
        outputs = [helper.make_tensor_value_info("y", TensorProto.INT32, None)]
        proto = model([helper.make_node("ConvInteger", names, ["y"], **attrs)], inputs, outputs, constants)
        feeds = {"x": x, "x_zero": x_zero}
        session = webrnn.InferenceSession(proto.SerializeToString(), backend=backend)
        expected = webrnn.InferenceSession(proto.SerializeToString(), backend="numpy", disable=["all"]).run(None, feeds)
        assert np.array_equal(session.run(None, feeds)[0], expected[0])
        assert "numpy" not in session.report() or backend == "numpy"


def test_weights_of_convolutions_stay_bytes(tmp_path):
    w = _bytes(np.int8, 64, 32, 3)
    constants = [helper.make_tensor("w", TensorProto.INT8, w.shape, w.tobytes(), raw=True)]
    proto = model(
        [helper.make_node("ConvInteger", ["x", "w"], ["y"])],
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 32, 9])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, None)],
        constants,
    )
    webrnn.InferenceSession(proto.SerializeToString()).export(tmp_path / "model.rnn")
    assert (tmp_path / "model.rnn").stat().st_size < 1.5 * w.size


RANGES = {
    "both signs": np.float32([-1.5, 0.3, 2.7, 0, -0.0]),
    "positive": np.float32([1, 2, 3]),
    "negative": np.float32([-1, -2.5]),
    "zeros": np.zeros(40, np.float32),
    "nothing": np.zeros(0, np.float32),
    "tiny": np.float32([1e-44, -3e-45]),
    "huge": np.float32([3e38, -3e38, 1]),
    "infinite": np.float32([np.inf, 1, -2]),
    "minus infinity": np.float32([-np.inf, 1, -2]),
    "not a number": np.float32([1, np.nan, -2]),
    "long": np.random.default_rng(5).standard_normal(1003).astype(np.float32),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("backend", BUILDS)
@pytest.mark.parametrize("x", RANGES.values(), ids=RANGES)
def test_dynamic_quantize(x, backend):
    """By ONNX's formula, all in float32; with NaN or infinity in it all bytes are 0."""
    low, high = min(x.min(initial=0), 0), max(x.max(initial=0), 0)
    scale = np.float32(1) if low == high else np.float32(np.float32(high - low) / np.float32(255))
    start = np.float32(-low) / scale
    zero = np.rint(np.clip(start, 0, 255)) if start == start else np.float32(0)
    whole = np.rint(x / scale) + zero
    quantized = np.clip(np.where(np.isnan(whole), 0, whole), 0, 255).astype(np.uint8)
    outputs = ("q", TensorProto.UINT8), ("s", TensorProto.FLOAT), ("z", TensorProto.UINT8)
    proto = model(
        [helper.make_node("DynamicQuantizeLinear", ["x"], [name for name, _ in outputs])],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs],
    )
    session = webrnn.InferenceSession(proto.SerializeToString(), backend=backend)
    results = session.run(None, {"x": x})
    for result, expected in zip(results, (quantized, scale, np.uint8(zero)), strict=True):
        assert np.array_equal(result, expected, equal_nan=True)
    assert "numpy" not in session.report() or backend == "numpy"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64, np.float64])
def test_other_types(dtype, backend):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    for a_shape, b_shape in (
        ((3, 4), (4, 2)),
        ((4,), (2, 4, 3)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((4,), (4,)),
        ((2, 0), (0, 3)),
    ):
        a, b = (RNG.integers(0, 1 << 31, shape).astype(dtype) for shape in (a_shape, b_shape))
        with np.errstate(over="ignore"):
            expected = np.matmul(a, b)
        inputs = [helper.make_tensor_value_info(name, kind, x.shape) for name, x in (("a", a), ("b", b))]
        proto = model(
            [helper.make_node("MatMul", ["a", "b"], ["y"])], inputs, [helper.make_tensor_value_info("y", kind, None)]
        )
        session = webrnn.InferenceSession(proto.SerializeToString(), backend=backend)
        (result,) = session.run(None, {"a": a, "b": b})
        assert result.dtype == dtype
        assert np.allclose(result, expected, rtol=1e-12)
        assert "numpy" not in session.report() or backend == "numpy"
