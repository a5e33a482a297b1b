import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, assert_same_results, floats, graph_of, ops, reasons
from webrnn.ir import DType, GraphBuilder, Symbol
from webrnn.ir.fused import is_expression
from webrnn.ops.sets import BITWISE, LOGICAL, MAPS, VARIADIC
from webrnn.passes import run_passes
from webrnn.passes.fuse_elementwise import FUSED, MOST_OPERANDS, MOST_OPS

NAME = "fuse_elementwise"


def builder(*shapes, dtype=DType.FLOAT):
    b = GraphBuilder("g")
    return b, *(b.input(f"x{index}", dtype, shape) for index, shape in enumerate(shapes))


def fused(graph, *arguments):
    assert_keeps_results(graph, list(arguments), NAME)
    outcome = apply(graph, NAME)
    return [node for node in graph.nodes if is_expression(node)], outcome


def test_a_chain():
    b, x = builder((2, 3))
    b.graph.outputs = [b.op("Mul", b.op("Tanh", b.op("Add", x, b.constant(floats(3)))), b.constant(np.float32(2)))]
    (expression,), _ = fused(b.graph, floats(2, 3))
    assert len(b.graph.nodes) == 1
    assert [node.op for node in expression.attrs["body"].nodes] == ["Add", "Tanh", "Mul"]
    assert len(expression.inputs) == 2
    assert [array.shape for array in expression.attrs["body"].constants.values()] == [()]


def test_several_outputs_in_the_order_in_which_they_are_made():
    b, x = builder((Symbol("n"), 3))
    a = b.op("Exp", x)
    c = b.op("Neg", a)
    total = b.op("ReduceSum", a, b.ints(1))
    b.graph.outputs = [c, total, a]
    (expression,), _ = fused(b.graph, floats(2, 3))
    assert expression.outputs == [a, c]


@pytest.mark.parametrize("op", sorted(FUSED - BITWISE - {"Where", "Cast", "Clip", "IsNaN", "IsInf"}))
def test_every_op(op):
    is_bool = op in LOGICAL
    b, x, y = builder((2, 3), (3,), dtype=DType.BOOL if is_bool else DType.FLOAT)
    operands = [x] if op in MAPS | {"Not"} else [x, y]
    made = b.op(op, *operands)
    known = ops(b.graph)
    same = b.op("Not", made) if is_bool or "Equal" in op or op in ("Less", "Greater") else b.op("Neg", made)
    b.graph.outputs = [same]
    arrays = [abs(floats(2, 3)) + 1, abs(floats(3, seed=1)) + 1]
    (expression,), _ = fused(b.graph, *(array > 1.5 if is_bool else array for array in arrays))
    assert known <= ops(b.graph)
    assert len(expression.attrs["body"].nodes) == 2


def test_where_cast_clip_and_is_nan():
    b, x, y = builder((2, 3), (2, 1))
    low, high = b.constant(np.float32(-1)), b.constant(np.float32([0.5]))
    clipped = b.op("Clip", x, low, high)
    chosen = b.op("Where", b.op("IsNaN", clipped), y, clipped)
    b.graph.outputs = [b.op("Cast", b.op("Cast", chosen, to=7), to=9)]
    (expression,), _ = fused(b.graph, np.float32([[np.nan, 2, 3], [-4, 5, np.nan]]), floats(2, 1))
    assert len(b.graph.nodes) == 1
    assert expression.inputs == [x, y]


def test_a_smaller_shape_stays_outside():
    b, x, scale = builder((4, 3), (4, 1))
    factor = b.op("Exp", b.op("Neg", scale))
    b.graph.outputs = [b.op("Tanh", b.op("Mul", x, factor))]
    expressions, _ = fused(b.graph, floats(4, 3), floats(4, 1))
    assert [[node.op for node in each.attrs["body"].nodes] for each in expressions] == [["Neg", "Exp"], ["Mul", "Tanh"]]


def test_single_nodes_stay():
    b, x = builder((2, 3))
    b.graph.outputs = [b.op("Neg", b.op("ReduceSum", b.op("Exp", x), b.ints(0)))]
    assert not fused(b.graph, floats(2, 3))[0]
    assert ops(b.graph) == {"Exp": 1, "ReduceSum": 1, "Neg": 1}


def test_no_circle_through_another_node():
    """The sum needs the first op and is needed by the last."""
    b, x = builder((3, 3))
    first = b.op("Exp", x)
    total = b.op("Softmax", first)
    b.graph.outputs = [b.op("Neg", b.op("Mul", b.op("Add", first, total), total))]
    expressions, _ = fused(b.graph, floats(3, 3))
    assert [[node.op for node in each.attrs["body"].nodes] for each in expressions] == [["Add", "Mul", "Neg"]]


def test_no_circle_between_two_groups():
    """a1 -> b1 and b2 -> a2: each pair could be a group, not both."""
    b, x, y = builder((3, 3), (3, 3))
    a1, b2 = b.op("Exp", x), b.op("Neg", y)
    b1 = b.op("Softmax", a1)
    a2 = b.op("Mul", a1, b.op("Softmax", b2))
    b.graph.outputs = [a2, b.op("Add", b2, b1)]
    expressions, _ = fused(b.graph, floats(3, 3), floats(3, 3, seed=1))
    assert len(expressions) == 1


def test_nodes_are_brought_into_order():
    """A reader of the first op stands before the last."""
    b, x = builder((3, 3))
    first = b.op("Exp", x)
    early = b.op("ReduceSum", first, b.ints(0))
    b.graph.outputs = [early, b.op("Neg", first)]
    (expression,), _ = fused(b.graph, floats(3, 3))
    assert b.graph.nodes[0] is expression


def test_bound_on_ops():
    b, x = builder((2, 2))
    value = x
    for _ in range(MOST_OPS + 5):
        value = b.op("Tanh", value)
    b.graph.outputs = [value]
    expressions, _ = fused(b.graph, floats(2, 2))
    assert sorted(len(each.attrs["body"].nodes) for each in expressions) == [5, MOST_OPS]


def test_bound_on_operands():
    b, *inputs = builder(*[(2, 2)] * (MOST_OPERANDS + 6))
    value = inputs[0]
    for other in inputs[1:]:
        value = b.op("Add", value, other)
    b.graph.outputs = [value]
    expressions, _ = fused(b.graph, *(floats(2, 2, seed=seed) for seed in range(len(inputs))))
    assert [len(each.inputs) for each in expressions] == [MOST_OPERANDS, 7]


def test_a_constant_that_decides_the_shape_is_an_operand():
    b, x = builder((3,))
    b.graph.outputs = [b.op("Neg", b.op("Add", x, b.constant(np.ones((1, 1), np.float32))))]
    (expression,), _ = fused(b.graph, floats(3))
    assert len(expression.inputs) == 2


@pytest.mark.parametrize("first", [True, False])
def test_one_constant_as_scalar_and_as_operand(first):
    """Of x + c the constant decides the shape, of y * c it does not."""
    b, x, y = builder((3,), (1, 3))
    one = b.constant(np.ones((1, 1), np.float32))
    made = [
        b.op(*each) for each in ((("Add", x, one), ("Mul", y, one)) if first else (("Mul", y, one), ("Add", x, one)))
    ]
    b.graph.outputs = [b.op("Sub", *made)]
    (expression,), _ = fused(b.graph, floats(3), floats(1, 3))
    assert {x, y, one} == {*expression.inputs}


def test_integers_and_bools():
    b, x, y = builder((4,), (4,), dtype=DType.INT64)
    is_less = b.op("Less", b.op("Add", x, y), b.constant(np.int64(3)))
    b.graph.outputs = [b.op("Where", is_less, x, b.op("Mul", y, y))]
    (expression,), _ = fused(b.graph, np.int64([0, 1, 2, 3]), np.int64([3, 2, 1, 0]))
    assert len(expression.attrs["body"].nodes) == 4


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("g (float[3] x) => (string[3] y) { a = Neg(x) y = Cast<to = 8>(a) }", "it is of strings"),
        ("g (int32[3] x, int32[3] z) => (int32[3] y) { a = Neg(x) y = Div(a, z) }", "its divisor may be zero"),
        ("g (float[3] x, float low) => (float[3] y) { a = Neg(x) y = Clip(a, low) }", "its bounds are not constants"),
        (
            "g (float[3] x) => (int64[1, n] y) { i = NonZero(x) a = Neg(x) j = NonZero(a) b = Neg(i) y = Add(b, j) }",
            "a size is not known",
        ),
        (
            "g (float[3] x) => (float[m, n] y) <float[5, 1] w = {1, 2, 3, 4, 5}>"
            "{ i = NonZero(x) f = Cast<to = 1>(i) y = Add(f, w) }",
            "a size is not known",
        ),
    ],
)
def test_declines(text, reason):
    graph = graph_of(text)
    outcome = apply(graph, NAME)
    assert reasons(outcome, NAME) == {reason}
    assert "Expression" not in ops(graph)


def test_sizes_that_are_not_known_but_the_same():
    text = """g (float[4] x) => (float[1, n] y) <float[1, 1] one = {1}, float two = {2}> {
        i = NonZero(x) f = Cast<to = 1>(i) a = Mul(two, f) b = Add(f, one) c = Sub(a, b) y = Exp(c)
    }"""
    graph = graph_of(text)
    assert_keeps_results(graph, [np.float32([0, 1, 0, 2])], NAME)
    apply(graph, NAME)
    assert ops(graph)["Expression"] == 1
    assert len(graph.nodes) == 2


@pytest.mark.parametrize("kind", ["double", "int32", "float16", "uint8"])
def test_other_types(kind):
    graph = graph_of(f"g ({kind}[3] x) => ({kind}[3] y) {{ a = Add(x, x) y = Abs(a) }}")
    apply(graph, NAME)
    assert ops(graph)["Expression"] == 1


def test_a_lonely_node_is_no_reason():
    graph = graph_of("g (double[3] x) => (double y) { a = Neg(x) y = ReduceSum<keepdims = 0>(a) }")
    assert not reasons(apply(graph, NAME), NAME)


def test_the_body_is_closed_to_passes():
    """The elements of a small integer operand are known, and yet it stays an operand."""
    b, x = builder((3,), dtype=DType.INT64)
    b.graph.outputs = [b.op("Add", b.op("Mul", x, b.constant(np.int64([1, 2, 3]))), b.constant(np.int64([4, 5, 6])))]
    run_passes(b.graph, check=True)
    (expression,) = b.graph.nodes
    assert len(expression.inputs) == 3
    assert not expression.attrs["body"].constants
    assert not sum(run_passes(b.graph).rewrites.values())


def test_an_output_that_nobody_reads_any_more_goes():
    b, x, y = builder((2, 3), (2, 3))
    a = b.op("Exp", x)
    c = b.op("Mul", b.op("Neg", a), y)
    b.graph.outputs = [a, c]
    run_passes(b.graph)
    before = b.graph.copy()
    b.graph.outputs = b.graph.outputs[:1]
    apply(b.graph, "remove_dead")
    (expression,) = b.graph.nodes
    assert expression.inputs == [x]
    assert [node.op for node in expression.attrs["body"].nodes] == ["Exp"]
    before.outputs = before.outputs[:1]
    assert_same_results(before, b.graph, [floats(2, 3), floats(2, 3)])


def test_variadic_ops_keep_all_operands():
    b, x, y, z = builder((2, 3), (3,), (2, 1))
    made = [b.op(op, x, y, z) for op in sorted(VARIADIC)]
    b.graph.outputs = [b.op("Sum", *made)]
    (expression,), _ = fused(b.graph, floats(2, 3), floats(3), floats(2, 1))
    assert expression.inputs == [x, y, z]
