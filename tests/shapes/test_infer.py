import numpy as np
import pytest

from tests.models.fetch import MODELS, Unavailable, model_path
from tests.models.test_against_onnxruntime import SHAPES
from tests.passes.differential import graph_of
from tests.passes.scans import ScanBuilder
from tests.reference.onnx_cases import node_cases, to_webrnn
from tests.shapes.watching import run_and_compare
from webrnn.errors import Error
from webrnn.ir import DType, GraphBuilder, Symbol
from webrnn.onnx.reader import read_model
from webrnn.shapes.infer import infer

N = Symbol("n")


def fact_of_output(text):
    graph = graph_of(text)
    return infer(graph).of(graph.outputs[0])


def test_a_shape_computed_from_a_named_size():
    fact = fact_of_output(
        """g (float[n, 4] x) => (float[a, b, c] y) <int64[1] zero = {0}, int64[1] two = {2}, int64[1] rest = {-1}> {
            sizes = Shape(x)
            n = Gather(sizes, zero)
            target = Concat<axis = 0>(n, two, rest)
            y = Reshape(x, target)
        }"""
    )
    assert fact.shape == (N, 2, 2)


def test_arithmetic_on_sizes():
    fact = fact_of_output(
        """g (float[n, 4] x) => (float[m] y) <int64 two = {2}> {
            count = Size(x)
            doubled = Mul(count, two)
            half = Div(doubled, two)
            axes = Constant<value_ints = [0]>()
            shape = Unsqueeze(half, axes)
            y = ConstantOfShape(shape)
        }"""
    )
    assert (fact.dtype, fact.shape) == (DType.FLOAT, (4 * N,))


def test_a_size_that_may_be_zero_is_not_trusted_as_a_target():
    """Reshape reads 0 as 'copy': with no steps the result of this has batch rows, not 0."""
    text = """g (float[batch, steps, 4] x) => (float[a, b] y) <int64[1] rest = {-1}, int64[1] zero = {0}> {
        sizes = Shape<end = 2>(x)
        rows = ReduceProd(sizes)
        target = Concat<axis = 0>(rows, rest)
        y = Reshape(x, target)
    }"""
    graph = graph_of(text)
    assert infer(graph).shape(graph.outputs[0]) == (None, None)


def test_declared_sizes_of_inner_values_are_not_believed():
    graph = graph_of("g (float[a, b] x) => (float[7, 7] y) { y = Relu(x) }")
    assert infer(graph).shape(graph.outputs[0]) == (Symbol("a"), Symbol("b"))


def test_an_unknown_size_meets_a_known_one():
    graph = graph_of("g (float[n, 4] x, float[3, m] z) => (float[a, b] y) { y = Add(x, z) }")
    assert infer(graph).shape(graph.outputs[0]) == (3, 4)


def test_a_state_that_grows_is_unknown():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    graph = s.finish(states=[s.body.op("Concat", h, x, axis=0)])
    assert infer(graph).shape(graph.outputs[0]) == (None,)


def test_traces_gain_the_axis_that_sequences_lose():
    s = ScanBuilder()
    x, h = s.sequence("x", axis=1), s.state("h")
    after = s.body.op("Add", x, h)
    graph = s.finish(states=[after], traces=[after])
    facts = infer(graph)
    assert facts.shape(x) == (3,)
    assert [facts.shape(value) for value in graph.outputs] == [(3,), (Symbol("steps"), 3)]


def test_branches_that_differ():
    graph = graph_of(
        """g (bool c, float[2, 3] x) => (float[a, b] y) {
            y = If(c) <
                then_branch = yes () => (float[a, b] t) { t = Identity(x) },
                else_branch = no () => (float[a, b] e) { e = Transpose<perm = [1, 0]>(x) }
            >
        }"""
    )
    fact = infer(graph).of(graph.outputs[0])
    assert (fact.dtype, fact.shape) == (DType.FLOAT, (None, None))


def test_operands_that_never_fit_are_no_error_here():
    b = GraphBuilder("g")
    x = b.input("x", DType.FLOAT, (2, 3))
    y = b.op("Transpose", x, perm=[0, 1, 2, 3])
    assert infer(b.graph).of(y).shape is None


@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "named"])
def test_facts_hold_on_the_onnx_suite(symbolic):
    """With named sizes every axis of every input is a name of its own, which is all that a rule then knows."""
    compared = 0
    for name, case in node_cases().items():
        try:
            graph = read_model(case.model.SerializeToString())
        except Error:
            continue
        if symbolic:
            for value in graph.inputs:
                value.shape = value.shape and tuple(Symbol(f"{value.name}_{i}") for i in range(len(value.shape)))
        facts = infer(graph)
        for inputs, _ in case.data_sets:
            arguments = [to_webrnn(item) for item in inputs] + [None] * (len(graph.inputs) - len(inputs))
            try:
                compared += run_and_compare(graph, arguments, facts)
            except Error:
                pass
            except AssertionError as error:
                error.add_note(name)
                raise
    assert compared > (6000 if symbolic else 12000)


def model_arguments(name, graph):
    rng = np.random.default_rng(5)
    for value in graph.inputs:
        shape = SHAPES.get(name, {}).get(value.name) or [size if isinstance(size, int) else 1 for size in value.shape]
        array = np.array(16000, np.int64) if value.name == "sr" else rng.standard_normal(shape) * 0.1
        yield array.astype(value.dtype.array_type)


def read_real_model(name, **options):
    try:
        return read_model(model_path(name), **options)
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", sorted(MODELS))
def test_facts_hold_on_real_models(name):
    graph = read_real_model(name)
    known = run_and_compare(graph, list(model_arguments(name, graph)), infer(graph))
    assert known > 30
