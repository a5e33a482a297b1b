"""Ops of com.microsoft and ai.onnx.ml against onnxruntime, on all backends.

Quantized results may differ by one where a number lies in the middle of two: onnxruntime multiplies by the inverse of a
scale, or looks results up in tables. Weights of products have 7 bits: without VNNI onnxruntime adds two products of
bytes up in 16 bits, which saturate. `tests/plan/test_integers.py` has all 8.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import webrnn
from tests.backends import BACKENDS

MICROSOFT = "com.microsoft"


@dataclass
class Case:
    op: str
    inputs: list[Any]
    """Arrays; what is a constant of the model is wrapped in `Constant`, None is left out."""
    attrs: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    domain: str = MICROSOFT
    apart: int = 0
    """How much quantized results may differ."""
    tolerance: float = 2e-5


@dataclass
class Constant:
    array: np.ndarray


def _rng(seed=0):
    return np.random.default_rng(seed)


def _floats(*shape, seed=0):
    return _rng(seed).standard_normal(shape).astype(np.float32)


def _bytes(dtype, *shape, seed=0):
    info = np.iinfo(dtype)
    return _rng(seed).integers(info.min, info.max + 1, shape).astype(dtype)


def _weights(*shape):
    return Constant(_rng(0).integers(-64, 64, shape).astype(np.int8))


def _f(number):
    return Constant(np.array(number, np.float32))


def _u8(number):
    return Constant(np.array(number, np.uint8))


def _i8(number):
    return Constant(np.array(number, np.int8))


Q, S, Z = _bytes(np.uint8, 2, 3, 8), _f(0.03), _u8(120)
QI = _bytes(np.int8, 2, 3, 8)
IMAGE = _bytes(np.uint8, 1, 4, 7, 6)
BSH = _floats(2, 5, 12)
CACHE = Constant(_floats(16, 2, seed=8)), Constant(_floats(16, 2, seed=9))


def _attention_cases():
    q, k, v = (_floats(2, steps, 12, seed=seed) for seed, steps in ((1, 4), (2, 6), (3, 6)))
    past = [_floats(2, 3, 5, 4, seed=seed) for seed in (4, 5)]
    mask = np.array([[1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 1]], np.int32)
    w, b = Constant(_floats(12, 36, seed=6) / 4), Constant(_floats(36, seed=7))
    pair = _floats(2, 2, 3, 5, 4, seed=5)
    same = [_floats(2, 4, 12, seed=seed) for seed in (1, 2, 3)]
    yield Case("MultiHeadAttention", [q, k, v], {"num_heads": 3})
    yield Case("MultiHeadAttention", [q, k, v, Constant(_floats(36))], {"num_heads": 3, "scale": 0.3})
    yield Case("MultiHeadAttention", [q, k, v, None, mask], {"num_heads": 3})
    yield Case("MultiHeadAttention", [q, k, v, None, np.array([4, 6], np.int32)], {"num_heads": 3})
    yield Case("MultiHeadAttention", [q, k, v, None, None, _floats(1, 3, 4, 6)], {"num_heads": 3})
    yield Case("MultiHeadAttention", [q, _floats(2, 3, 6, 4), _floats(2, 3, 6, 4, seed=3)], {"num_heads": 3})
    yield Case("MultiHeadAttention", [*same, None, None, None, *past], {"num_heads": 3}, 3)
    yield Case("MultiHeadAttention", same, {"num_heads": 3, "unidirectional": 1})
    yield Case("MultiHeadAttention", [q, k, v, None, mask], {"num_heads": 3, "unidirectional": 1})
    sums = np.array([4, 6, 0, 4, 8, 0, 6, 12], np.int32)
    yield Case("MultiHeadAttention", [q, k, v, None, sums], {"num_heads": 3})
    held = [None, np.array([[1, 1, 0, 1, 1, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1, 0, 1, 0]], np.int32), _floats(2, 1, 4, 9)]
    yield Case("MultiHeadAttention", [*same, *held, *past], {"num_heads": 3, "unidirectional": 1}, 3)
    yield Case("MultiHeadAttention", [q, *past, None, None, None, *past], {"num_heads": 3, "unidirectional": 1}, 3)
    yield Case("Attention", [same[0], w, b], {"num_heads": 3})
    yield Case("Attention", [same[0], w, b], {"num_heads": 3, "unidirectional": 1})
    yield Case("Attention", [same[0], w, b, mask[:, :4]], {"num_heads": 3})
    yield Case("Attention", [same[0], w, b, np.array([2, 4], np.int32)], {"num_heads": 3})
    yield Case("Attention", [same[0], w, b, np.array([3, 4, 1, 2], np.int32)], {"num_heads": 3})
    yield Case("Attention", [same[0], w, b, np.array([[1], [0]], np.int32)], {"num_heads": 3})
    sizes = {"num_heads": 3, "qkv_hidden_sizes": [6, 6, 9]}
    yield Case("Attention", [same[0], Constant(_floats(12, 21)), Constant(_floats(21))], sizes)
    yield Case("Attention", [same[0], w, b, None, pair], {"num_heads": 3, "unidirectional": 1}, 2)
    yield Case("Attention", [same[0], w, b, None, None, _floats(2, 3, 4, 4)], {"num_heads": 3})
    quantized = [
        _bytes(np.uint8, 2, 4, 12),
        _weights(12, 36),
        b,
        _f(0.02),
        _f(0.01),
        None,
        _u8(128),
        _i8(0),
    ]
    yield Case("QAttention", quantized, {"num_heads": 3}, tolerance=1e-4)


def _grouped_cases():
    q, k, v = _floats(1, 4, 64, seed=1), _floats(1, 4, 32, seed=2), _floats(1, 4, 32, seed=3)
    caches = Constant(_floats(16, 8, seed=8)), Constant(_floats(16, 8, seed=9))
    heads = {"num_heads": 4, "kv_num_heads": 2}
    none = [np.zeros((1, 2, 0, 16), np.float32)] * 2
    past = [_floats(1, 2, 5, 16, seed=seed) for seed in (4, 5)]
    prompt, later = ([np.array([total - 1], np.int32), np.array(total, np.int32)] for total in (4, 6))
    one = [x[:, :1] for x in (q, k, v)]
    yield Case("GroupQueryAttention", [q, k, v, None, None, *prompt], heads, 3)
    yield Case("GroupQueryAttention", [*one, *past, *later], heads, 3)
    yield Case("GroupQueryAttention", [*one, *past, *later, *caches], {**heads, "do_rotary": 1}, 3)
    yield Case(
        "GroupQueryAttention", [q, k, v, *none, *prompt, *caches], {**heads, "do_rotary": 1, "rotary_interleaved": 1}, 3
    )
    yield Case(
        "GroupQueryAttention", [q, k, v, None, None, *prompt], {**heads, "local_window_size": 2, "softcap": 2.0}, 3
    )
    packed = np.concatenate([q, k, v], axis=2)
    yield Case("GroupQueryAttention", [packed, None, None, None, None, *prompt], {**heads, "scale": 0.4}, 3)


def _cached(sizes, held, last, total, turned=False, others=(), **attrs):
    """Queries of (batch, steps), a buffer of past keys, the last positions of sequences and their greatest length."""
    new = [_floats(*sizes, width, seed=seed) for seed, width in ((1, 64), (2, 32), (3, 32))]
    past = [_floats(sizes[0], 2, held, 16, seed=seed) for seed in (4, 5)]
    caches = [Constant(_floats(16, 8, seed=seed)) if turned else None for seed in (8, 9)]
    lengths = np.array(last, np.int32), np.array(total, np.int32)
    attrs = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": int(turned), **attrs}
    return Case("GroupQueryAttention", [*new, *past, *lengths, *caches, *others], attrs, 3)


def _static_cache_cases():
    for turned in (False, True):
        yield _cached((1, 4), 9, [3], 4, turned)  # a prompt
        yield _cached((2, 4), 9, [3, 1], 4, turned)
        yield _cached((2, 1), 9, [3, 6], 7, turned)
        yield _cached((2, 1), 9, [9, 6], 10, turned)  # the buffer grows
        yield _cached((1, 3), 9, [6], 7, turned)
        yield _cached((1, 3), 9, [11], 12, turned)
    yield _cached((2, 1), 9, [3, 6], 7, local_window_size=2, softcap=1.5)
    yield _cached((2, 4), 9, [3, 1], 4, local_window_size=1)
    yield _cached((2, 4), 9, [3, 1], 4, local_window_size=1, softcap=1.5)
    yield _cached((2, 4), 9, [3, 1], 4, others=[None, _floats(1, 4, 4, 4)])
    yield _cached((2, 1), 9, [3, 6], 7, others=[None, _floats(2, 1, 1, 7)])
    yield _cached((2, 1), 9, [3, 6], 7, True, [np.array([[1], [8]], np.int64)])
    yield _cached((2, 4), 9, [3, 3], 4, True, [np.array([[2, 3, 4, 5], [7, 1, 1, 1]], np.int64)])


def _embedding_cases():
    ids, kinds = np.array([[1, 4, 2], [3, 0, 5]], np.int32), np.array([[0, 0, 1], [1, 1, 0]], np.int32)
    tables = [Constant(_floats(n, 6, seed=n)) for n in (7, 9, 2)]
    ends = [Constant(_floats(6, seed=1)), Constant(_floats(6, seed=2))]
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    yield Case("EmbedLayerNormalization", [ids, kinds, *tables, *ends, mask], {"epsilon": 1e-5}, 2)
    yield Case("EmbedLayerNormalization", [ids, None, *tables[:2], None, *ends], {}, 2)
    turned = _floats(2, 3, 5, 4)
    at = np.array([[3, 4, 5, 6, 7], [0, 1, 2, 3, 4]], np.int64)
    yield Case("RotaryEmbedding", [turned, at, *CACHE])
    yield Case("RotaryEmbedding", [turned, np.array([2], np.int64), *CACHE], {"interleaved": 1})
    yield Case("RotaryEmbedding", [BSH, at, *CACHE], {"num_heads": 3})
    yield Case("RotaryEmbedding", [BSH, at, *CACHE])
    wide = Constant(_floats(16, 2, seed=3)), Constant(_floats(16, 2, seed=4))
    yield Case("RotaryEmbedding", [_floats(2, 5, 18), at, *wide], {"num_heads": 3, "rotary_embedding_dim": 4})


def _fused_cases():
    x, w, b = _floats(1, 3, 8, 7), Constant(_floats(4, 3, 3, 3)), Constant(_floats(4))
    window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 1]}
    for activation, params in (("Relu", []), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.7]), ("HardSigmoid", [0.3, 0.4])):
        given = {"activation_params": params} if params else {}
        yield Case("FusedConv", [x, w, b], {**window, "activation": activation, **given})
    yield Case("FusedConv", [x, w, b, _floats(1, 4, 4, 7)], {**window, "activation": "Relu"})
    a, c = _floats(2, 3, 4, 5), _floats(2, 3, 5, 6, seed=1)
    yield Case("FusedMatMul", [a, c], {"alpha": 0.5})
    yield Case("FusedMatMul", [_floats(2, 3, 5, 4), _floats(2, 3, 6, 5)], {"transA": 1, "transB": 1})
    yield Case(
        "FusedMatMul", [_floats(4, 2, 3, 5), _floats(6, 2, 3, 5)], {"transBatchA": 1, "transB": 1, "transBatchB": 1}
    )
    yield Case("TransposeMatMul", [_floats(5, 4), _floats(5, 3)], {"transA": 1})
    yield Case(
        "FusedGemm",
        [_floats(4, 5), Constant(_floats(3, 5)), Constant(_floats(3))],
        {"transB": 1, "alpha": 2.0, "activation": "LeakyRelu", "activation_alpha": 0.1},
    )
    yield Case("Gelu", [BSH])
    yield Case("BiasGelu", [BSH, Constant(_floats(12))])
    yield Case("FastGelu", [BSH])
    yield Case("FastGelu", [BSH, Constant(_floats(12))])
    yield Case("QuickGelu", [BSH], {"alpha": 1.5})
    vectors = [Constant(_floats(12, seed=seed)) for seed in range(3)]
    yield Case("SkipLayerNormalization", [BSH, _floats(2, 5, 12, seed=4), *vectors], {"epsilon": 1e-5})
    yield Case("SkipLayerNormalization", [BSH, _floats(5, 12, seed=4), vectors[0]], {"epsilon": 1e-5})
    yield Case("SkipSimplifiedLayerNormalization", [BSH, _floats(2, 5, 12, seed=4), *vectors[:2]], {"epsilon": 1e-5})
    yield Case("SimplifiedLayerNormalization", [BSH, vectors[0]], {"epsilon": 1e-5}, domain="")
    yield Case("GatherND", [BSH, np.array([[0, 1], [1, 4]], np.int64)])
    yield Case("Range", [np.array(1.5, np.float32), np.array(4, np.float32), np.array(0.5, np.float32)])
    yield Case("Range", [np.array(1, np.int64), np.array(4, np.int64)])
    yield Case("ExpandDims", [BSH, Constant(np.array(-1, np.int32))])
    yield Case("Trilu", [_floats(4, 5), np.array(1, np.int64)], {"upper": 0})
    yield Case("Pad", [_floats(3, 4), Constant(np.array([1, 0, 0, 2], np.int64)), _f(3)], {"mode": "constant"})
    yield Case("Unique", [np.array([2, 1, 1, 3, 4, 3], np.float32)], outputs=3)
    yield Case("ArrayFeatureExtractor", [_floats(3, 5), np.array([[4, 0]], np.int64)], domain="ai.onnx.ml")
    yield Case("Binarizer", [_floats(3, 5)], {"threshold": 0.3}, domain="ai.onnx.ml")
    yield Case("ArrayFeatureExtractor", [_floats(5), np.array([4, 0], np.int64)], domain="ai.onnx.ml")


def _quantized_cases():
    for op in ("QLinearAdd", "QLinearMul"):
        yield Case(op, [Q, S, Z, _bytes(np.uint8, 3, 8, seed=1), _f(0.02), _u8(7), _f(0.05), _u8(100)], apart=1)
        yield Case(op, [QI, S, _i8(-3), _bytes(np.int8, 8, seed=1), _f(0.02), _i8(0), _f(0.05), _i8(4)], apart=1)
    yield Case("QLinearConcat", [_f(0.04), _u8(90), Q, S, Z, Q, _f(0.04), _u8(90)], {"axis": 1}, apart=1)
    yield Case("QLinearSigmoid", [Q, S, Z, _f(1 / 256), _u8(0)], apart=1)
    yield Case("QLinearLeakyRelu", [QI, S, _i8(5), _f(0.02), _i8(-10)], {"alpha": 0.2}, apart=1)
    yield Case("QLinearSoftmax", [Q, S, Z, _f(1 / 256), _u8(0)], {"axis": -1, "opset": 13}, apart=1)
    yield Case("QLinearSoftmax", [Q, S, Z, _f(1 / 256), _u8(0)], {"axis": 1, "opset": 12}, apart=1)
    pool = {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1]}
    yield Case("QLinearAveragePool", [IMAGE, S, Z, _f(0.04), _u8(100)], pool, apart=1)
    yield Case("QLinearAveragePool", [IMAGE, S, Z, _f(0.04), _u8(100)], {**pool, "count_include_pad": 1}, apart=1)
    yield Case("QLinearGlobalAveragePool", [IMAGE, S, Z, _f(0.01), _u8(100)], {"channels_last": 0}, apart=1)
    yield Case("QLinearGlobalAveragePool", [IMAGE, S, Z, _f(0.01), _u8(100)], {"channels_last": 1}, apart=1)
    condition = np.array([True, False] * 4)
    yield Case("QLinearWhere", [condition, Q, S, Z, Q[::-1], _f(0.02), _u8(9), _f(0.05), _u8(100)], apart=1)
    a, b = _bytes(np.uint8, 4, 9), _weights(9, 5)
    c, columns = Constant(np.arange(5, dtype=np.int32) * 1000), Constant(np.linspace(0.01, 0.02, 5, dtype=np.float32))
    turned = Constant(np.ascontiguousarray(b.array.T))
    yield Case("QGemm", [a, S, Z, b, _f(0.02), _i8(0), c, _f(1.5), _u8(128)], apart=1)
    yield Case(
        "QGemm", [a, S, Z, turned, columns, Constant(np.arange(5, dtype=np.int8)), c], {"transB": 1, "alpha": 0.5}
    )
    yield Case("MatMulIntegerToFloat", [a, b, S, columns, Z, None, Constant(_floats(5))])
    yield Case("MatMulIntegerToFloat", [a, b, S, _f(0.02)])
    yield Case("DynamicQuantizeMatMul", [_floats(4, 9), b, columns, None, Constant(_floats(5))], tolerance=1e-4)
    yield Case("DynamicQuantizeMatMul", [_floats(2, 4, 9), b, _f(0.02), _i8(3)], tolerance=1e-4)
    scales = Constant(_floats(6 * 2) / 10)
    for zeros in (None, Constant(_bytes(np.uint8, 6))):
        blob = Constant(_bytes(np.uint8, 6, 2, 8))
        yield Case(
            "MatMulNBits",
            [_floats(3, 32), blob, scales, zeros],
            {"K": 32, "N": 6, "bits": 4, "block_size": 16},
            tolerance=1e-4,
        )
    yield Case("QuantizeLinear", [BSH, _f(0.02), Constant(np.array(9, np.uint16))], {"axis": 1})
    yield Case("DequantizeLinear", [Q, S, Z])


CASES = [
    *_attention_cases(),
    *_grouped_cases(),
    *_static_cache_cases(),
    *_embedding_cases(),
    *_fused_cases(),
    *_quantized_cases(),
]


def _model(case: Case) -> tuple[bytes, dict[str, np.ndarray]]:
    names, values, constants, feeds = [], [], [], {}
    for index, item in enumerate(case.inputs):
        name = "" if item is None else f"x{index}"
        names.append(name)
        if isinstance(item, Constant):
            constants.append(numpy_helper.from_array(item.array, name))
        elif item is not None:
            kind = helper.np_dtype_to_tensor_dtype(item.dtype)
            values.append(helper.make_tensor_value_info(name, kind, item.shape))
            feeds[name] = item
    outputs = [f"y{index}" for index in range(case.outputs)]
    while names[-1] == "":
        names.pop()
    node = helper.make_node(case.op, names, outputs, domain=case.domain, **case.attrs)
    made = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph([node], "g", values, made, constants)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString(), feeds


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_as_onnxruntime(case):
    data, feeds = _model(case)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    expected = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, feeds)
    for backend in BACKENDS:
        session = webrnn.InferenceSession(data, backend=backend)
        results = session.run(None, feeds)
        if backend != "numpy" and case.op.endswith("Attention"):
            assert "in numpy" not in session.report()
        for result, wanted in zip(results, expected, strict=True):
            assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
            if wanted.dtype.kind in "iu":
                assert np.abs(result.astype(np.int64) - wanted.astype(np.int64)).max(initial=0) <= case.apart
            else:
                np.testing.assert_allclose(result, wanted, atol=case.tolerance, rtol=case.tolerance)


def _of_any_length(case: Case) -> bytes:
    model = onnx.load_from_string(_model(case)[0])
    for value in model.graph.input:
        names = ("batch", None, "held", None) if value.name in ("x3", "x4") else ("batch", "steps", None)
        for name, dim in zip(names, value.type.tensor_type.shape.dim, strict=False):
            if name is not None:
                dim.dim_param = name
    return model.SerializeToString()


def test_grouped_attention_has_one_plan_for_all_lengths():
    cases = [case for case in _static_cache_cases() if len(case.inputs) == 9 and case.attrs["do_rotary"]]
    data = _of_any_length(cases[0])
    sessions = [webrnn.InferenceSession(data, backend=backend) for backend in BACKENDS]
    for case in cases:
        feeds = _model(case)[1]
        expected = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feeds)
        for session in sessions:
            for result, wanted in zip(session.run(None, feeds), expected, strict=True):
                np.testing.assert_allclose(result, wanted, atol=case.tolerance, rtol=case.tolerance)
    for session in sessions[:-1]:
        assert "in numpy" not in session.report()


CONTRADICTIONS = [
    _cached((2, 1), 9, [3, 6], 12),  # a buffer of 12 would have a gap
    _cached((1, 4), 9, [1], 7),  # fewer keys than queries
    _cached((1, 1), 5, [12], 6),
    _cached((1, 1), 5, [-1], 6),
    _cached((1, 3), 8, [4], 2),
    _cached((2, 1), 9, [3, 6], 7, others=[None, _floats(2, 1, 1, 9)]),
    Case("MultiHeadAttention", [BSH, BSH, BSH, None, np.ones((2, 4), np.int32)], {"num_heads": 3}),
    Case("MultiHeadAttention", [BSH, BSH, BSH, None, np.ones(4, np.int32)], {"num_heads": 3}),
    Case("MultiHeadAttention", [BSH, BSH, BSH, None, None, _floats(1, 1, 5, 4)], {"num_heads": 3}),
]


@pytest.mark.parametrize("case", CONTRADICTIONS, ids=lambda case: case.op)
def test_lengths_that_contradict_are_errors(case):
    data, feeds = _model(case)
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument):
        onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feeds)
    for backend in BACKENDS:
        with pytest.raises(webrnn.ShapeError):
            webrnn.InferenceSession(data, backend=backend).run(None, feeds)


def _refusal(case: Case) -> str:
    with pytest.raises(webrnn.UnsupportedOp) as error:
        webrnn.InferenceSession(_model(case)[0])
    return str(error.value)


def test_other_forms_are_refused():
    assert "activation" in _refusal(
        Case("FusedConv", [_floats(1, 1, 4), Constant(_floats(1, 1, 2))], {"activation": "Mish"})
    )
    assert "past_sequence_length" in _refusal(
        Case("MultiHeadAttention", [BSH] * 3 + [None] * 5 + [np.zeros(1, np.int32)], {"num_heads": 3})
    )
    weights = Constant(_floats(12, 36)), Constant(_floats(36))
    shared = {"num_heads": 3, "past_present_share_buffer": 1}
    assert "(Attention), attribute 'past_present_share_buffer'" in _refusal(Case("Attention", [BSH, *weights], shared))
    sinks = _cached((2, 1), 9, [3, 6], 7, others=[None, None, _floats(4)])
    assert "(GroupQueryAttention): input 11" in _refusal(sinks)
    nbits = {"K": 32, "N": 6, "bits": 4, "block_size": 16}
    message = _refusal(Case("MatMulNBits", [_floats(3, 32), _bytes(np.uint8, 6, 2, 8), Constant(_floats(12))], nbits))
    assert "(MatMulNBits): B has to be a constant" in message
    assert "is_packed_batching" in _refusal(
        Case("RotaryEmbedding", [BSH, np.zeros((2, 5), np.int64), *CACHE], {"is_packed_batching": 1})
    )
