"""Element-wise ops, one by one and as expressions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.differential import floats
from tests.passes.scans import ScanBuilder, scan_in
from tests.plan.harness import BUILDS, check_graph, graph_of, plan_of, run_plan
from webrnn.errors import ModelError
from webrnn.ir import WEBRNN, DType, GraphBuilder, Node
from webrnn.passes import run_passes
from webrnn.plan.lowering import NotLowered

UNARY = (
    "Exp", "Log", "Tanh", "Sigmoid", "Erf", "Sin", "Cos", "Sqrt", "Reciprocal", "Abs", "Neg", "Round", "Floor", "Ceil",
    "Relu", "Softplus", "Softsign", "IsNaN",
)  # fmt: skip
WITH_NUMBERS = (
    ("LeakyRelu", {"alpha": 0.1}), ("ThresholdedRelu", {"alpha": 0.3}), ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
    ("Elu", {"alpha": 0.7}), ("LeakyRelu", {}), ("ThresholdedRelu", {}), ("HardSigmoid", {}), ("Elu", {}),
)  # fmt: skip
ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Min", "Max")
COMPARISONS = ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")
LOGIC = ("And", "Or", "Xor")
SHAPES = ("7", "", "n 3", "2 0 3", "130", "2 1 130")
BROADCASTS = (
    ("2 3", "2 3"), ("2 3", "3"), ("3", "2 3"), ("2 1", "1 3"), ("", "2 3"), ("2 3", ""), ("", ""), ("4 1 3", "5 1"),
    ("n 3", "n 1"), ("n 1", "1 4"), ("n 3", "3"), ("2 0", "1"), ("2 0", "2 1"), ("t n 2", "n 1"), ("2 130", "2 1"),
    ("1 130", "2 130"), ("1", "1"), ("1 1", "1"),
)  # fmt: skip


@pytest.mark.parametrize("op", UNARY)
def test_unary(op):
    for shape in SHAPES:
        check_graph(graph_of(lambda b, x: b.op(op, x), f"f {shape}"))


@pytest.mark.parametrize(("op", "attrs"), WITH_NUMBERS)
def test_activations_with_numbers(op, attrs):
    for shape in SHAPES:
        check_graph(graph_of(lambda b, x: b.op(op, x, **attrs), f"f {shape}"))


@pytest.mark.parametrize("op", [*ARITHMETIC, *COMPARISONS])
def test_binary_of_floats(op):
    for a, c in BROADCASTS:
        check_graph(graph_of(lambda b, x, y: b.op(op, x, y), f"f {a}", f"f {c}"))


@pytest.mark.parametrize(("kind", "dtype"), [("i", np.int64), ("j", np.int32)])
@pytest.mark.parametrize("op", [*ARITHMETIC, *COMPARISONS])
def test_binary_of_integers(op, kind, dtype):
    def build(b, x, y):
        if op == "Div":  # by what cannot be zero
            return b.op("Add", b.op(op, x, b.constant(dtype(3))), y)
        return b.op(op, x, b.op("Add", b.op("Abs", y), b.constant(dtype(1))))

    for a, c in BROADCASTS:
        check_graph(graph_of(build, f"{kind} {a}", f"{kind} {c}"))


@pytest.mark.parametrize("op", [*LOGIC, "Equal"])
def test_binary_of_bools(op):
    for a, c in BROADCASTS:
        check_graph(graph_of(lambda b, x, y: b.op(op, x, y), f"b {a}", f"b {c}"))


@pytest.mark.parametrize("kind", "fijb")
def test_where(kind):
    for a, c in BROADCASTS:
        check_graph(graph_of(lambda b, p, x, y: b.op("Where", p, x, y), f"b {a}", f"{kind} {c}", f"{kind} {a}"))
        check_graph(graph_of(lambda b, p, x, y: b.op("Where", p, x, y), f"b {c}", f"{kind} {a}", f"{kind}"))


@pytest.mark.parametrize("to", [DType.FLOAT, DType.INT64, DType.INT32, DType.BOOL])
@pytest.mark.parametrize("kind", "fijb")
def test_cast(kind, to):
    for shape in SHAPES:
        check_graph(graph_of(lambda b, x: b.op("Cast", x, to=int(to)), f"{kind} {shape}"))


def test_unary_of_other_types():
    for op, kind in (("Neg", "i"), ("Abs", "i"), ("Neg", "j"), ("Abs", "j"), ("Not", "b")):
        for shape in SHAPES:
            check_graph(graph_of(lambda b, x: b.op(op, x), f"{kind} {shape}"))  # noqa: B023


def test_division_of_integers_is_towards_zero():
    graph = graph_of(lambda b, x: b.op("Div", x, b.constant(np.int64([2, 2, -2, -2]))), "i 4")
    check_graph(graph, [np.int64([7, -7, 7, -7])])


@pytest.mark.parametrize("bounds", [(-0.5, 0.5), (None, 0.5), (-0.5, None), (None, None), (0.5, -0.5)])
def test_clip(bounds):
    def build(b, x):
        low, high = (None if bound is None else b.constant(np.float32(bound)) for bound in bounds)
        return b.op("Clip", x, low, high)

    for shape in SHAPES:
        check_graph(graph_of(build, f"f {shape}"))


def test_clip_with_bounds_that_are_inputs():
    check_graph(graph_of(lambda b, x, low, high: b.op("Clip", x, low, high), "f n 3", "f", "f"))


@pytest.mark.parametrize("op", ["Sum", "Min", "Max"])
def test_several_operands(op):
    check_graph(graph_of(lambda b, *xs: b.op(op, *xs), "f 2 3", "f 3", "f 2 1", "f"))
    check_graph(graph_of(lambda b, x: b.op(op, x), "f 2 3"))
    check_graph(graph_of(lambda b, x: b.op(op, x, x, x), "f 2 3"))


def test_special_numbers():
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38, -1.5, 2.5, 0.5], np.float32)
    for op in UNARY:
        if op not in ("Sin", "Cos", "Log"):  # of infinities; the kernels' own tests have their bounds
            check_graph(graph_of(lambda b, x: b.op(op, x), "f 10"), [special])  # noqa: B023
    pairs = np.meshgrid(special, special)
    for op in (*ARITHMETIC, *COMPARISONS):
        check_graph(graph_of(lambda b, x, y: b.op(op, x, y), "f 10 10", "f 10 10"), pairs)  # noqa: B023


def _constants(b: GraphBuilder, x):
    scaled = b.op("Mul", x, b.constant(np.arange(3, dtype=np.float32)))
    return b.op("Add", b.constant(np.float32([[2.5]])), scaled), b.op("Sub", b.constant(np.float32(1)), x)


def test_constants():
    check_graph(graph_of(_constants, "f n 3"))


LAYOUTS = {
    "transposed": lambda b, x: b.op("Transpose", x, perm=[1, 0]),
    "sliced": lambda b, x: b.op("Slice", x, b.ints(0, 0), b.ints(13, 4), b.ints(0, 1), b.ints(2, 1)),
    "reversed": lambda b, x: b.op("Slice", x, b.ints(-1, -1), b.ints(-100, -100), b.ints(0, 1), b.ints(-1, -1)),
    "repeated": lambda b, x: b.op("Expand", b.op("Slice", x, b.ints(2), b.ints(3), b.ints(1)), b.ints(7, 4)),
}


LAYOUT_SHAPES = {"transposed": "4 7", "sliced": "13 4", "reversed": "7 4", "repeated": "7 4"}


@pytest.mark.parametrize("second", LAYOUTS)
@pytest.mark.parametrize("first", LAYOUTS)
def test_operands_with_gaps(first, second):

    def build(b, x, y):
        left, right = LAYOUTS[first](b, x), LAYOUTS[second](b, y)
        return (
            b.op("Add", b.op("Tanh", left), right),
            b.op("Less", left, right),
            b.op("Transpose", b.op("Sub", left, right)),
        )

    check_graph(graph_of(build, f"f {LAYOUT_SHAPES[first]}", f"f {LAYOUT_SHAPES[second]}"))


def _expression(b: GraphBuilder, inputs, build, n_outputs=1):
    inner = GraphBuilder("expression")
    values = [inner.value(f"e{i}") for i in range(len(inputs))]
    inner.graph.inputs = values
    inner.graph.outputs = build(inner, *values)
    outputs = [b.value(f"y{i}") for i in range(n_outputs)]
    b.add(Node("Expression", list(inputs), list(outputs), {"body": inner.graph}, "", WEBRNN))
    return outputs


def test_expression_of_many_operations():
    def body(e, x, y, z):
        scaled = e.op("Mul", x, e.constant(np.float32(0.5)))
        gate = e.op("Sigmoid", e.op("Add", scaled, y))
        mixed = e.op("Where", e.op("Less", x, z), e.op("Mul", gate, z), e.op("Tanh", y))
        return [e.op("Div", mixed, e.op("Add", e.op("Exp", x), e.constant(np.float32([[1]]))))]

    def build(b, x, y, z):
        return _expression(b, [x, y, z], body)

    for shapes in (("n 4", "4", "n 1"), ("2 3 130", "130", ""), ("", "", ""), ("0 3", "3", "1 1")):
        check_graph(graph_of(build, *(f"f {shape}" for shape in shapes)))


def test_expression_with_several_outputs():
    def body(e, x, y):
        total = e.op("Add", x, y)
        return [total, e.op("Greater", total, x), e.op("Cast", e.op("Mul", total, y), to=int(DType.INT64)), total, x]

    def build(b, x, y):
        return _expression(b, [x, y], body, 5)

    for shapes in (("n 4", "4"), ("2 130", "2 1"), ("", "")):
        check_graph(graph_of(build, *(f"f {shape}" for shape in shapes)))


def test_one_value_for_all_elements():
    def build(b, x, y):
        repeated = b.op("Expand", y, b.op("Shape", x))
        return b.op("Tanh", repeated), b.op("Add", repeated, b.constant(np.float32(1))), b.op("Mul", x, repeated)

    check_graph(graph_of(build, "f n 3", "f"))
    check_graph(graph_of(build, "f 2 130", "f 2 1"))


@pytest.mark.parametrize("sizes", ["5 3", "40 16", "1 7", "9 1", "3 3000", "700 5", "2 40 6", "n t"])
def test_rows_and_columns(sizes):
    """What is one row or one column for all is computed once, and repeated where it meets others."""
    *outer, _, columns = sizes.split()
    column = f"{sizes.rsplit(' ', 1)[0]} 1"

    def body(e, row, column, whole, flag):
        product = e.op("Mul", e.op("Exp", column), e.op("Neg", row))
        chosen = e.op("Where", e.op("And", flag, e.op("Less", row, column)), whole, e.op("Abs", column))
        rounded = e.op("Cast", e.op("Add", column, row), to=int(DType.INT64))
        return [e.op("Sub", chosen, product), rounded, e.op("Add", e.op("Mul", column, column), e.op("Tanh", whole))]

    def build(b, row, column, whole, flag):
        turned = b.op("Transpose", whole, perm=[*range(len(outer)), len(outer) + 1, len(outer)])
        last = b.op("Mul", b.op("Transpose", turned, perm=[*range(len(outer)), len(outer) + 1, len(outer)]), column)
        return *_expression(b, [row, column, whole, flag], body, 3), last

    check_graph(graph_of(build, f"f {columns}", f"f {column}", f"f {sizes}", f"b {column}"))


@pytest.mark.parametrize("width", [3, 40])
def test_rows_apart(width):
    """Rows of a part of a matrix are read, and written, where they are."""

    def build(b, x, y):
        part = b.op("Slice", x, b.ints(1), b.ints(1 + width), b.ints(1))
        total = b.op("Add", b.op("Mul", b.op("Tanh", part), y), part)
        return b.op("Concat", total, b.op("Sub", part, y), axis=1)

    check_graph(graph_of(build, f"f 50 {width + 3}", f"f {width}"))


@pytest.mark.parametrize("width", [5, 300, 5000])
def test_a_state_is_read_behind_its_next_value(width):
    """The next value is made in the place of the one before, unless an operation behind it reads that."""
    s = ScanBuilder(width)
    x, h = s.sequence("x"), s.state("h")
    after = s.body.op("Tanh", s.body.op("Add", h, x))
    graph = s.finish([after], traces=[s.body.op("Sub", s.body.op("Mul", after, after), h)])
    run_passes(graph, disable=["sink_outputs"])
    assert any(node.op == "Expression" and len(node.outputs) == 2 for node in scan_in(graph).body.nodes)
    check_graph(graph, [floats(4, width), floats(width)])


def test_many_operations_are_several_expressions():
    def body(e, x):
        for _ in range(70):
            x = e.op("Tanh", x)
        return [x]

    check_graph(graph_of(lambda b, x: _expression(b, [x], body), "f 3"))


@pytest.mark.parametrize(("op", "operand"), [("Exp", "i 3"), ("Max", "b 3"), ("And", "f 3")])
def test_types_that_the_op_does_not_take_are_refused(op, operand):
    with pytest.raises(NotLowered, match="it must be of"):
        plan_of(graph_of(lambda b, x: b.op(op, *[x] * (1 if op == "Exp" else 2)), operand))


@pytest.mark.parametrize("kind", ["i", "j", "u64", "u8"])
@pytest.mark.parametrize("op", ["Div", "Mod"])
def test_an_integer_divided_by_zero_raises(op, kind):
    graph = graph_of(lambda b, x, y: b.op(op, x, y), f"{kind} 3", f"{kind} 3")
    a, good, bad = (
        np.array(numbers, graph.inputs[0].dtype.array_type) for numbers in ([7, 6, 5], [2, 2, 3], [2, 0, 3])
    )
    data = plan_of(graph)
    for spec in BUILDS:
        (result,) = run_plan(data, spec, [[a, good]])[0]
        assert result.tolist() == ([3, 3, 1] if op == "Div" else [1, 0, 2])
        with pytest.raises(ModelError, match="integer division by zero"):
            run_plan(data, spec, [[a, bad]])


CHAINS = {
    "one after the other": lambda b, x: b.op("Max", b.op("LeakyRelu", x, alpha=0.2), b.constant(np.float32(-0.4))),
    "read again at the end": lambda b, x: b.op("Sub", b.op("Exp", b.op("Abs", x)), x),
    "read twice": lambda b, x: b.op("Mul", b.op("Abs", x), b.op("Add", b.op("Abs", x), b.op("Neg", x))),
    "read later than the next": lambda b, x: (lambda y: b.op("Add", b.op("Sqrt", b.op("Abs", b.op("Neg", y))), y))(
        b.op("Tanh", x)
    ),
    "of truth values": lambda b, x: b.op("Where", b.op("Less", x, b.op("Neg", x)), b.op("Exp", x), x),
    "of numbers and halves": lambda b, x: b.op("Cast", b.op("Floor", b.op("Exp", x)), to=DType.INT64),
}
"""What leads to the result of an expression is made where the result will be, unless that is read later."""


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("shape", ["7", "40 70", "3 2500"])
def test_chains_in_the_place_of_their_result(name, shape):
    graph = graph_of(lambda b, x: b.op("Identity", CHAINS[name](b, b.op("Round", x))), f"f {shape}")
    check_graph(graph.copy())
    run_passes(graph)
    check_graph(graph)
