"""Products of integers: bytes with packed weights, and other types term by term."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import webrnn
from tests.backends import BACKENDS
from tests.onnx.models import model

RNG = np.random.default_rng(7)
TYPES = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}


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


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("left", TYPES)
@pytest.mark.parametrize("right", TYPES)
def test_bytes(left, right, backend):
    for m, k, n in ((1, 1, 1), (1, 7, 16), (4, 8, 17), (5, 33, 40), (9, 2, 15), (2, 0, 3)):
        a, b = _bytes(left, m, k), _bytes(right, k, n)
        zeros = [(None, None), (_bytes(left), _bytes(right)), (_bytes(left, m), _bytes(right, n))]
        for a_zero, b_zero in zeros[: 2 if m == 1 else 3]:
            session, feeds = _session(a, b, a_zero, b_zero, backend)
            assert np.array_equal(session.run(None, feeds)[0], _product(a, b, a_zero, b_zero))
            assert "numpy" not in session.report() or backend == "numpy"


@pytest.mark.parametrize("backend", BACKENDS)
def test_extremes_and_batches(backend):
    a = np.zeros((2, 3, 5000), np.uint8)
    a[0] = 255
    b = np.full((5000, 3), -128, np.int8)
    session, feeds = _session(a, b, None, None, backend, rank_free=True)
    assert np.array_equal(session.run(None, feeds)[0], a.astype(np.int64) @ b.astype(np.int64))
    a = _bytes(np.uint8, 5000)
    session, feeds = _session(a, b, np.array(3, np.uint8), None, backend)
    assert np.array_equal(session.run(None, feeds)[0], (a.astype(np.int64) - 3) @ b.astype(np.int64))


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
