"""What the expansions give is compared with the numpy functions of the ops, which define them."""

import numpy as np
import pytest

from tests.passes.differential import apply, assert_gives, assert_same_results, ops, reasons
from webrnn.engine.executor.executor import Executor
from webrnn.ir import DType, GraphBuilder, Node, Symbol

NAME = "expand_ops"
N, T = Symbol("n"), Symbol("t")
RNG = np.random.default_rng(3)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def integers(dtype, *shape):
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, endpoint=True).astype(dtype)


def graph_of(op, *operands, outputs=1, **attrs):
    """A node of inputs, given as (array, shape), and of constants; the graph and the arrays of its inputs."""
    b = GraphBuilder("g")
    values, arguments = [], []
    for index, operand in enumerate(operands):
        if isinstance(operand, tuple):
            array, shape = operand
            values.append(b.input(f"x{index}", DType.of(array), shape))
            arguments.append(array)
        else:
            values.append(None if operand is None else b.constant(operand))
    made = [b.value(f"y{index}") for index in range(outputs)]
    b.add(Node(op, values, made, attrs, "node"))
    b.graph.outputs = made
    return b.graph, arguments


def assert_expands(op, *operands, bits=False, **attrs):
    graph, arguments = graph_of(op, *operands, **attrs)
    after = graph.copy()
    apply(after, NAME)
    assert op not in ops(after)
    assert_same_results(graph, after, arguments, bits=bits)


Q, K = (floats(2, 4, 3, 8), (N, 4, T, 8)), (floats(2, 2, 5, 8), (N, 2, Symbol("k"), 8))
PAST = (floats(2, 2, 6, 8), (N, 2, Symbol("p"), 8))
MASK = (RNG.integers(0, 2, (2, 1, 3, 5)).astype(bool), (N, 1, T, Symbol("k")))


@pytest.mark.parametrize(
    ("operands", "attrs"),
    [
        ([Q, K, K], {}),
        ([Q, K, K], {"is_causal": 1, "scale": 0.3, "outputs": 4, "qk_matmul_output_mode": 2}),
        ([Q, K, K, MASK], {"softcap": 0.7, "outputs": 4, "qk_matmul_output_mode": 1}),
        ([Q, K, K, None, PAST, PAST], {"is_causal": 1, "outputs": 3}),
        ([Q, K, K, (floats(3, 5), (T, Symbol("k")))], {"left_window_size": 1, "right_window_size": 1}),
        ([Q, K, K, None, None, None, (np.array([5, 3], np.int64), (N,))], {"is_causal": 1}),
        ([(floats(2, 3, 24), (N, T, 24)), (floats(2, 5, 12), (N, 5, 12)), (floats(2, 5, 6), (N, 5, 6)), floats(3, 4)],
         {"q_num_heads": 6, "kv_num_heads": 3, "outputs": 4}),
    ],
)  # fmt: skip
def test_attention(operands, attrs):
    assert_expands("Attention", *operands, **attrs)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("size", [0, 4])
def test_rotary_embedding(interleaved, size):
    half = (size or 6) // 2
    caches = [floats(9, half), floats(9, half)]
    positions = (RNG.integers(0, 9, (2, 5)), (N, T))
    attrs = {"interleaved": interleaved, "rotary_embedding_dim": size}
    assert_expands("RotaryEmbedding", (floats(2, 3, 5, 6), (N, 3, T, 6)), *caches, positions, **attrs)
    assert_expands("RotaryEmbedding", (floats(2, 5, 18), (N, T, 18)), *caches, positions, num_heads=3, **attrs)
    rows = [(floats(2, 5, half), (N, T, half))] * 2
    assert_expands("RotaryEmbedding", (floats(2, 3, 5, 6), (N, 3, T, 6)), *rows, **attrs)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_quantize_and_dequantize(dtype):
    x = np.concatenate([floats(3, 7) * 50, np.float32([[np.nan, np.inf, -np.inf, 0.5, 1.5, -0.5, 1e30]])])
    for scale, zero in ((np.float32(0.5), integers(dtype)), (np.float32([0.1, 1, 2, 0.5]), integers(dtype, 4))):
        assert_expands("QuantizeLinear", (x, (N, 7)), scale, zero, axis=0, bits=True)
        assert_expands("DequantizeLinear", (integers(dtype, 4, 7), (N, 7)), scale, zero, axis=0, bits=True)
    scale = np.abs(floats(4, 3)) + np.float32(0.1)
    assert_expands("QuantizeLinear", (x, (N, 7)), scale, integers(dtype, 4, 3), axis=1, block_size=3, bits=True)
    assert_expands("DequantizeLinear", (integers(np.int32, 4, 7), (N, 7)), scale, axis=1, block_size=3, bits=True)


def _scales():
    return np.float32(0.02), np.float32(0.3), np.float32(1.7)


def test_products_of_bytes_are_exact():
    a, b = (integers(np.uint8, 2, 3, 700), (N, 3, 700)), (integers(np.int8, 700, 5), (700, 5))
    assert_expands("MatMulInteger", a, b, integers(np.uint8, 3), integers(np.int8, 5), bits=True)
    assert_expands("MatMulInteger", a, (integers(np.int8, 2, 700, 4), (N, 700, 4)), bits=True)
    assert_expands("MatMulInteger", (integers(np.int8, 300), (300,)), (integers(np.int8, 300, 2), (300, 2)), bits=True)
    s = _scales()
    zeros = integers(np.uint8), integers(np.int8)
    assert_expands("QLinearMatMul", a, s[0], zeros[0], b, s[1], zeros[1], s[2] * 500, np.int8(3), bits=True)


def test_convolutions_of_bytes_are_exact():
    x = (integers(np.uint8, 2, 40, 9), (N, 40, T))
    for w in (integers(np.int8, 4, 40, 3), (integers(np.int8, 4, 40, 3), (4, 40, 3))):
        assert_expands("ConvInteger", x, w, integers(np.uint8), pads=[1, 1], bits=True)
    x = (integers(np.uint8, 2, 600, 9), (N, 600, T))  # too many channels for one sum in float32
    assert_expands("ConvInteger", x, np.full((2, 600, 3), 127, np.int8), pads=[1, 1], bits=True)
    s, per_filter = _scales(), np.float32([0.1, 0.2, 0.3, 0.4])
    x, w = (integers(np.uint8, 2, 6, 9, 7), (N, 6, 9, T)), integers(np.int8, 4, 3, 3, 2)
    zeros, bias = (integers(np.uint8), integers(np.int8, 4)), integers(np.int32, 4) // 1000
    scaled = (x, s[0], zeros[0], w, per_filter, zeros[1], s[2] * 300, np.uint8(100), bias)
    assert_expands("QLinearConv", *scaled, group=2, strides=[2, 1], bits=True)


@pytest.mark.parametrize("dtype", [np.int32, np.uint64, np.float64, np.float16])
def test_gemm_of_other_types(dtype):
    a, b, c = ((RNG.integers(0, 9, shape).astype(dtype), shape) for shape in ((3, 4), (5, 3), (5,)))
    assert_expands("Gemm", a, b, c, transA=1, transB=1)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax_of_doubles(op):
    assert_expands(op, (floats(3, 4, 5).astype(np.float64) * 200, (N, 4, T)), axis=1)


def test_declines():
    def declined(*arguments, **attrs):
        return reasons(apply(graph_of(*arguments, **attrs)[0], NAME), NAME)

    a = (integers(np.uint8, 2, 3), (2, 3))
    assert declined("MatMulInteger", a, integers(np.int8, 3, 4)) == set()
    assert declined("Gemm", (floats(2, 3), (2, 3)), floats(3, 4)) == set()
    integer = (integers(np.int32, 2, 3), (2, 3))
    assert declined("Gemm", integer, integers(np.int32, 3, 4), alpha=0.5) == {"it scales integers"}
    x = (floats(2, 3), (2, 3))
    assert declined("QuantizeLinear", x, np.float64(1)) == {"a type is not one that plans have"}
    long = (integers(np.uint8, 1, 1, 400), (1, 1, 400))
    weights = (integers(np.uint8, 1, 1, 300), (1, 1, 300))
    assert declined("ConvInteger", long, weights) == {"its sums may be too large for float32"}
    assert declined("Attention", (floats(2, 4, 3, 8), (2, N, 3, 8)), K, K) == {"a size is not known"}
    assert declined("Attention", (floats(2, 4, 3, 8), None), K, K) == {"a rank is not known"}
    mask = (floats(3, 2), (3, Symbol("m")))
    assert declined("Attention", Q, K, K, mask) == {"it is not known how long the mask is"}
    mask = (np.zeros((3, 5), np.float64), (3, Symbol("k")))
    assert declined("Attention", Q, K, K, mask) == {"the mask has another type"}


def test_names_of_nodes_stay():
    graph, arguments = graph_of("Attention", Q, K, K)
    wanted = Executor(graph.copy()).run(arguments)
    apply(graph, NAME)
    assert {node.name for node in graph.nodes} == {"node"}
    assert_gives(graph, arguments, wanted, bits=False)
