from fractions import Fraction

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import webrnn
from tests.backends import KERNELS
from tests.onnx.models import model
from tests.passes.differential import apply, assert_keeps_results, floats, ops, reasons
from webrnn.engine.executor.executor import Executor
from webrnn.ir import DType, GraphBuilder
from webrnn.passes.fold_lookups import MOST_WORK, fused_product

NAME = "fold_lookups"
WORDS, WIDTH, COLUMNS = 6, 4, 5
TOKENS = np.array([[3, 0, 5], [-1, 2, 2]], np.int64)


def lookup(b, shape=(2, 3), table=None):
    index = b.input("i", DType.INT64, shape)
    return b.op("Gather", b.constant(floats(WORDS, WIDTH, seed=1) if table is None else table), index, axis=0)


def product(b, rows, matrix=None):
    matrix = floats(WIDTH, COLUMNS, seed=2) if matrix is None else matrix
    return b.op("Add", b.op("MatMul", rows, b.constant(matrix)), b.constant(floats(matrix.shape[1], seed=3)))


def folded(b, result, *arguments):
    b.graph.outputs = [result]
    assert_keeps_results(b.graph, list(arguments), "fuse_linear", NAME)
    outcome = apply(b.graph, "fuse_linear", NAME)
    return ops(b.graph), outcome


def test_a_product_of_rows_that_are_looked_up():
    b = GraphBuilder("g")
    counts, outcome = folded(b, product(b, lookup(b)), TOKENS)
    assert counts == {"Gather": 1}
    assert outcome.rewrites[NAME] == 1
    assert b.graph.constants[b.graph.nodes[0].inputs[0]].shape == (WORDS, COLUMNS)


def ints(b, *numbers):
    return b.constant(np.array(numbers, np.int64))


@pytest.mark.parametrize(
    ("move", "op"),
    [
        (lambda b, x: b.op("Transpose", x, perm=[1, 0, 2]), "Transpose"),
        (lambda b, x: b.op("Unsqueeze", x, ints(b, 0, -2)), "Unsqueeze"),
        (lambda b, x: b.op("Reshape", x, ints(b, -1, WIDTH)), "Reshape"),
        (lambda b, x: b.op("ReverseSequence", x, ints(b, 2, 1), batch_axis=0, time_axis=1), "ReverseSequence"),
        (lambda b, x: b.op("Squeeze", b.op("Unsqueeze", x, ints(b, 1)), ints(b, -3)), "Squeeze"),
    ],
    ids=["transpose", "unsqueeze", "reshape", "reverse", "squeeze"],
)
def test_what_moves_rows_moves_indices(move, op):
    b = GraphBuilder("g")
    counts, _ = folded(b, product(b, move(b, lookup(b))), TOKENS)
    assert counts["Linear"] == 0
    assert counts["Gather"] == counts[op] == 1
    (moved,) = [node for node in b.graph.nodes if node.op == op]
    assert (
        b.graph.nodes.index(moved)
        < len(b.graph.nodes) - 1
        == b.graph.nodes.index(next(node for node in b.graph.nodes if node.op == "Gather"))
    )


def test_arithmetic_with_one_number():
    b = GraphBuilder("g")
    scaled = b.op("Relu", b.op("Sub", b.constant(np.float32(1)), b.op("Mul", lookup(b), b.constant(np.float32([2])))))
    counts, _ = folded(b, product(b, scaled), TOKENS)
    assert counts == {"Gather": 1}


def test_rows_that_are_read_elsewhere_stay():
    b = GraphBuilder("g")
    rows = lookup(b)
    made = product(b, rows)
    b.graph.outputs = [made, b.op("Exp", rows)]
    assert_keeps_results(b.graph, [TOKENS], "fuse_linear", NAME)
    apply(b.graph, "fuse_linear", NAME)
    assert ops(b.graph) == {"Gather": 2, "Exp": 1}


@pytest.mark.parametrize(("start", "end"), [(0, 2), (1, 2), (-3, -1), (0, -2)])
@pytest.mark.parametrize("turned", [False, True])
def test_a_shape_of_rows_looks_at_their_indices(start, end, turned):
    b = GraphBuilder("g")
    rows = b.op("Transpose", lookup(b), perm=[1, 0, 2]) if turned else lookup(b)
    sizes = b.op("Shape", rows, start=start, end=end)
    b.graph.outputs = [product(b, rows), sizes]
    assert_keeps_results(b.graph, [TOKENS], "fuse_linear", NAME)
    apply(b.graph, "fuse_linear", NAME)
    assert ops(b.graph)["Gather"] == 1


def test_a_shape_of_rows_and_their_length_stays():
    b = GraphBuilder("g")
    rows = lookup(b)
    b.graph.outputs = [product(b, rows), b.op("Shape", rows)]
    assert_keeps_results(b.graph, [TOKENS], "fuse_linear", NAME)
    apply(b.graph, "fuse_linear", NAME)
    assert ops(b.graph)["Gather"] == 2


@pytest.mark.parametrize("shape", [(), (1,), (2, 2)])
def test_tokens_of_any_rank(shape):
    b = GraphBuilder("g")
    rows = lookup(b, shape)
    rows = b.op("Unsqueeze", rows, ints(b, 0)) if not shape else rows
    counts, _ = folded(b, product(b, rows), np.full(shape, 3, np.int64))
    assert counts["Linear"] == 0


@pytest.mark.parametrize(
    "between",
    [
        lambda b, x: b.op("Transpose", x, perm=[0, 2, 1]),
        lambda b, x: b.op("Reshape", x, ints(b, 2, 2, -1)),
        lambda b, x: b.op("Add", x, b.constant(floats(WIDTH))),
        lambda b, x: b.op("Exp", x),
        lambda b, x: b.op("Add", x, x),
    ],
    ids=["columns", "unequal", "row", "exp", "sum"],
)
def test_leaves_what_changes_rows(between):
    b = GraphBuilder("g")
    rows = between(b, lookup(b))
    width = {"Transpose": 3, "Reshape": 6}.get(b.graph.nodes[-1].op, WIDTH)
    counts, outcome = folded(b, product(b, rows, floats(width, COLUMNS)), TOKENS)
    assert counts["Linear"] == 1
    assert outcome.rewrites[NAME] == 0


def test_leaves_a_product_that_nobody_needs():
    b = GraphBuilder("g")
    rows = lookup(b)
    b.op("Neg", product(b, rows))
    b.graph.outputs = [b.op("Exp", rows)]
    assert apply(b.graph, "fuse_linear", NAME).rewrites[NAME] == 0


def test_leaves_a_table_that_is_fed():
    b = GraphBuilder("g")
    table, index = b.input("t", DType.FLOAT, (WORDS, WIDTH)), b.input("i", DType.INT64, (2, 3))
    made = product(b, b.op("Gather", table, index, axis=0))
    assert folded(b, made, floats(WORDS, WIDTH), TOKENS)[0]["Linear"] == 1


def test_leaves_columns_that_are_looked_up():
    b = GraphBuilder("g")
    index = b.input("i", DType.INT64, (WIDTH,))
    rows = b.op("Gather", b.constant(floats(3, WORDS)), index, axis=1)
    assert folded(b, product(b, rows), np.int64([1, 0, 5, 2]))[0]["Linear"] == 1


def test_declines_a_table_that_grows():
    b = GraphBuilder("g")
    made = product(b, lookup(b, table=floats(400, WIDTH)), floats(WIDTH, 400))
    _, outcome = folded(b, made, TOKENS)
    assert reasons(outcome, NAME) == {"the table of its results is much larger than what it is made of"}


def test_declines_much_work():
    b = GraphBuilder("g")
    width = 300
    made = product(b, lookup(b, table=floats(width, width)), floats(width, width))
    assert width**3 > MOST_WORK
    _, outcome = folded(b, made, TOKENS)
    assert reasons(outcome, NAME) == {"there is much to compute beforehand"}


def test_an_index_out_of_range_is_refused():
    b = GraphBuilder("g")
    b.graph.outputs = [product(b, lookup(b))]
    apply(b.graph, "fuse_linear", NAME)
    with pytest.raises(webrnn.ShapeError, match="out of range"):
        Executor(b.graph).run([np.full((2, 3), WORDS, np.int64)])


def fused_exactly(x, w):
    """One chain of multiply-adds in rational numbers, each rounded once."""
    total = Fraction(0)
    for a, b in zip(x.tolist(), w.tolist(), strict=True):
        exact = Fraction(a) * Fraction(b) + total
        near = np.float32(float(exact))
        around = [np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))]
        best = min(abs(Fraction(float(each)) - exact) for each in around)
        nearest = [each for each in around if abs(Fraction(float(each)) - exact) == best]
        chosen = nearest[0] if len(nearest) == 1 else next(e for e in nearest if not e.view(np.int32) & 1)
        total = Fraction(float(chosen))
    return np.float32(float(total))


def test_the_product_is_rounded_as_fused_multiply_adds_are():
    x, w = floats(3, 9), floats(9, 4, seed=7)
    expected = [[fused_exactly(row, w[:, column]) for column in range(4)] for row in x]
    assert np.array_equal(fused_product(x, w), np.float32(expected))


def test_a_sum_in_the_middle_of_two_floats_is_rounded_once():
    # 1 + 2**-24 is in the middle; what is lost behind it decides.
    tiny = np.float32(2**-30)
    x = np.array([[1, 2**-12, -tiny], [1, 2**-12, tiny]], np.float32)
    above, below = np.float32(1 + 2**-12), np.float32(1 - 2**-12)
    w = np.array([[1, 1], [above * np.float32(2**-12), below * np.float32(2**-12)], [0, 0]], np.float32)
    expected = [[fused_exactly(row, w[:, column]) for column in range(2)] for row in x]
    assert np.array_equal(fused_product(x, w), np.float32(expected))
    # the sum in double precision falls on the middle although it is not there
    x, w = np.array([[1, 1 + 2**-23]], np.float32), np.array([[2**30], [2**6 * (1 + 2**-23)]], np.float32)
    assert fused_product(x, w)[0, 0] == fused_exactly(x[0], w[:, 0])


@pytest.mark.parametrize("backend", KERNELS)
def test_plans_give_the_bits_that_they_gave(backend):
    arrays = {"table": floats(20, 16), "matrix": floats(16, 30, seed=1), "bias": floats(30, seed=2)}
    nodes = [
        helper.make_node("Gather", ["table", "i"], ["rows"]),
        helper.make_node("Gemm", ["rows", "matrix", "bias"], ["y"]),
    ]
    proto = model(
        nodes,
        [helper.make_tensor_value_info("i", TensorProto.INT64, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 30])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    ).SerializeToString()
    feeds = {"i": np.arange(-20, 20, dtype=np.int64)}
    results = [webrnn.InferenceSession(proto, backend, disable=off).run(None, feeds)[0] for off in ((), [NAME])]
    assert np.array_equal(*results)
