import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, ops, reasons
from webrnn.ir import DType, Graph, GraphBuilder, Scan, Symbol, Value

RNG = np.random.default_rng(3)
X, Y = (RNG.standard_normal(shape).astype(np.float32) for shape in ((4, 2, 3), (4, 2, 5)))
W = RNG.standard_normal((3, 5)).astype(np.float32)
ARGUMENTS = [X, Y, W]


class Loop:
    """A Scan over x [steps, 2, 3] and y [steps, 2, 5] with a running matrix h [2, 5]; sums are added to it."""

    def __init__(self, reverse: bool = False):
        self.outside = GraphBuilder("g")
        self.x = self.outside.input("x", DType.FLOAT, (Symbol("n"), 2, 3))
        self.y = self.outside.input("y", DType.FLOAT, (Symbol("n"), 2, 5))
        self.w = self.outside.input("w", DType.FLOAT, (3, 5))
        self.b = GraphBuilder("body", self.outside)
        self.scan = Scan(self.b.graph, name="loop")
        self.x_t, self.y_t = self.b.value("x_t"), self.b.value("y_t")
        self.scan.add_sequence(self.x, self.x_t, 0, reverse)
        self.scan.add_sequence(self.y, self.y_t, 0, reverse)
        before, self.h = self.b.value("h"), self.b.value("h_next")
        self.b.op("Tanh", self.b.op("Add", before, self.y_t), output=self.h)
        start = self.outside.constant(np.zeros((2, 5), np.float32))
        self.scan.add_state(start, before, self.h, self.outside.value("h_last"))

    def sum(self, added: Value, shape: tuple[int, ...], start: float = 0.0) -> Value:
        before, final = self.b.value("sum"), self.outside.value("total")
        init = self.outside.constant(np.full(shape, start, np.float32))
        self.scan.add_state(init, before, self.b.op("Add", before, added), final)
        return final

    def transposed(self, value: Value) -> Value:
        return self.b.op("Transpose", value, perm=[1, 0])

    def graph(self, *outputs: Value) -> Graph:
        self.scan.add_captures(self.b)
        self.outside.add(self.scan.to_node())
        self.outside.graph.outputs = list(outputs)
        return self.outside.graph


def _states(graph: Graph) -> int:
    return sum(len(Scan.of(node).states) for node in graph.nodes if node.op == "Scan")


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("start", [0.0, 2.0])
@pytest.mark.parametrize("steps", [0, 1, 4])
def test_a_sum_of_products_is_one_product(reverse, start, steps):
    loop = Loop(reverse)
    graph = loop.graph(loop.sum(loop.b.op("MatMul", loop.transposed(loop.x_t), loop.h), (3, 5), start))
    assert_keeps_results(graph, [X[:steps], Y[:steps], W], "sink_sums")
    apply(graph, "sink_sums")
    assert _states(graph) == 1
    assert [node.op for node in graph.nodes].count("MatMul") == 1
    assert "MatMul" not in ops(next(node.attrs["body"] for node in graph.nodes if node.op == "Scan"))


def test_factors_that_are_not_transposed():
    loop = Loop()
    graph = loop.graph(loop.sum(loop.b.op("MatMul", loop.h, loop.transposed(loop.y_t)), (2, 2)))
    assert_keeps_results(graph, ARGUMENTS, "sink_sums")
    apply(graph, "sink_sums")
    assert _states(graph) == 1


def test_a_sum_over_axes_of_what_is_traced_already():
    loop = Loop()
    product = loop.sum(loop.b.op("MatMul", loop.transposed(loop.x_t), loop.h), (3, 5))
    rows = loop.b.op("ReduceSum", loop.h, loop.b.ints(0), keepdims=0)
    kept = loop.b.op("ReduceSum", loop.h, loop.b.ints(0), keepdims=1)
    graph = loop.graph(product, loop.sum(rows, (5,)), loop.sum(kept, (1, 5)))
    assert_keeps_results(graph, ARGUMENTS, "sink_sums")
    apply(graph, "sink_sums")
    assert _states(graph) == 1


def test_linear_ops_behind_the_product():
    loop = Loop()
    b = loop.b
    product = b.op("MatMul", loop.transposed(loop.x_t), loop.h)
    scaled = b.op("Mul", b.op("Neg", product), b.constant(np.float32(3)))
    moved = b.op("Reshape", b.op("Sub", scaled, b.op("MatMul", loop.transposed(loop.x_t), loop.y_t)), b.ints(5, 3))
    weighted = b.op("MatMul", b.capture(loop.w), moved)
    graph = loop.graph(loop.sum(weighted, (3, 3)))
    assert_keeps_results(graph, ARGUMENTS, "sink_sums")
    apply(graph, "sink_sums")
    assert _states(graph) == 1


def _declined(loop: Loop, *outputs: Value, steps: int = 4) -> set[str]:
    graph = loop.graph(*outputs)
    outcome = assert_keeps_results(graph, [X[:steps], Y[:steps], W], "sink_sums")
    assert not outcome.rewrites["sink_sums"]
    return reasons(outcome, "sink_sums")


def _product(loop: Loop) -> Value:
    return loop.b.op("MatMul", loop.transposed(loop.x_t), loop.h)


def test_declines_what_is_no_product():
    loop = Loop()
    product = loop.b.op("MatMul", loop.transposed(loop.x_t), loop.h)
    squares = loop.b.op("Mul", product, product)
    assert _declined(loop, loop.sum(squares, (3, 5))) == {"what it adds is no product"}


def test_nothing_is_said_of_loops_without_products():
    loop = Loop()
    assert _declined(loop, loop.sum(loop.b.op("Mul", loop.h, loop.y_t), (2, 5))) == set()


def test_declines_a_sum_over_axes_of_what_is_not_traced():
    loop = Loop()
    rows = loop.b.op("ReduceSum", loop.h, loop.b.ints(0), keepdims=0)
    assert _declined(loop, loop.sum(rows, (5,))) == {"what it sums is not traced"}


def test_declines_a_product_of_more_axes():
    loop = Loop()
    left, right = (loop.b.op("Unsqueeze", value, loop.b.ints(0)) for value in (loop.transposed(loop.x_t), loop.h))
    found = _declined(loop, loop.sum(loop.b.op("MatMul", left, right), (1, 3, 5)))
    assert found == {"the axes of a product are not those of two matrices"}


def test_declines_what_is_repeated():
    loop = Loop()
    row = loop.b.op("MatMul", loop.b.op("ReduceSum", loop.x_t, loop.b.ints(0), keepdims=1), loop.b.capture(loop.w))
    shrunk = loop.b.op("MatMul", row, loop.transposed(loop.y_t))
    assert _declined(loop, loop.sum(shrunk, (3, 2))) == {"what it adds is of another shape"}


def test_declines_a_loop_that_saves_memory():
    loop = Loop()
    loop.scan.frugal = True
    assert _declined(loop, loop.sum(_product(loop), (3, 5))) == {"it saves memory"}


def test_declines_a_loop_that_may_end_early():
    loop = Loop()
    loop.scan.body_cond = loop.b.op("Less", loop.b.op("ReduceSum", loop.h, keepdims=0), loop.b.constant(np.float32(9)))
    loop.scan.cond = loop.outside.constant(np.array(True))
    assert _declined(loop, loop.sum(_product(loop), (3, 5))) == {"it may end early"}


@pytest.mark.parametrize("who", ["trace", "step"])
def test_leaves_a_sum_that_is_read_on_the_way(who):
    loop = Loop()
    final = loop.sum(_product(loop), (3, 5))
    outputs = [final]
    state = loop.scan.states[-1]
    read = state.body_out if who == "trace" else loop.b.op("Neg", state.body_in[0])
    whole = loop.outside.value("read")
    loop.scan.add_trace(read, whole)
    graph = loop.graph(*outputs, whole)
    outcome = assert_keeps_results(graph, ARGUMENTS, "sink_sums")
    assert not outcome.rewrites["sink_sums"]


def test_a_transpose_that_turns_nothing():
    loop = Loop()
    same = loop.b.op("Transpose", loop.x_t, perm=[0, 1])
    total = loop.sum(loop.b.op("MatMul", same, loop.transposed(loop.x_t)), (2, 2))
    assert_keeps_results(loop.graph(total), ARGUMENTS, "sink_sums")
