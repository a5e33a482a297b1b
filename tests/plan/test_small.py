"""Instructions with small weights: on every build the bits of the reference, whatever the shapes."""

import numpy as np
import pytest

from tests.plan.harness import BUILDS, arguments_of, assert_close, assert_same_bits, graph_of, plan_of, run_plan
from tests.plan.test_fused_sequences import GATES, recurrence
from webrnn.engine.executor.executor import Executor
from webrnn.ir import Graph
from webrnn.ir.scan import TraceSpec
from webrnn.passes.small_weights import make_weights_small
from webrnn.passes.weight_forms import WeightForms

FORMS = ("int8", "int16")
RNG = np.random.default_rng(11)


def small(graph: Graph, form: str) -> Graph:
    """A graph with all of its weights small."""
    report = make_weights_small(graph, WeightForms(form), fewest=0)
    assert report.rows
    assert all(row.form == form for row in report.rows)
    return graph


def _weights(*shape):
    return (RNG.standard_normal(shape) * 10.0 ** RNG.integers(-3, 3, shape[-1:])).astype(np.float32)


def small_graph(form: str) -> Graph:
    """A product, a convolution with an expression that runs along, and a lookup."""

    def build(b, x, image, index):
        convolved = b.op(
            "Conv", image, b.constant(_weights(16, 2, 2, 3)), b.constant(_weights(16)), group=2, pads=[1, 0] * 2
        )
        return (
            b.op("MatMul", x, b.constant(_weights(5, 17))),
            b.op("Relu", convolved),
            b.op("Gather", b.constant(_weights(4, 6)), index, axis=0),
        )

    return small(graph_of(build, "f n 5", "f n 4 3 5", "i n"), form)


def check_everywhere(
    graph: Graph, *runs, tolerance: float | None = None, options=frozenset()
) -> list[list[np.ndarray]]:
    """All builds give the same bits: numpy's, or where numpy has functions of its own, close ones."""
    with np.errstate(all="ignore"):
        executor = Executor(graph)
        wanted = [executor.run(arguments) for arguments in runs]
    data, first = plan_of(graph, options), None
    for spec in BUILDS:
        results = run_plan(data, spec, [*runs, runs[0]])
        first = first or results
        for got, other in zip(results, first, strict=True):
            assert_same_bits(got, other, spec)
    for got, want in zip(first, [*wanted, wanted[0]], strict=True):
        if tolerance is None:
            assert_same_bits(got, want)
        else:
            assert_close(got, want, tolerance)
    return first


SHAPES = ((1, 1, 8), (1, 2, 16), (2, 3, 17), (3, 64, 48), (4, 7, 33), (5, 255, 96), (27, 16, 9), (50, 33, 130))


@pytest.mark.parametrize("form", FORMS)
def test_products(form):
    for m, k, n in SHAPES:
        for has_bias in (False, True):

            def build(b, x, k=k, n=n, has_bias=has_bias):
                product = b.op("MatMul", x, b.constant(_weights(k, n)))
                return b.op("Add", product, b.constant(_weights(n))) if has_bias else product

            x = _weights(m, k) * np.float32(10) ** RNG.integers(-20, 20, (m, 1)).astype(np.float32)
            check_everywhere(small(graph_of(build, f"f m {k}"), form), [x])


@pytest.mark.parametrize("form", FORMS)
def test_rows_that_cannot_be_rounded(form):
    graph = small(graph_of(lambda b, x: b.op("MatMul", x, b.constant(_weights(9, 20))), "f m 9"), form)
    x = _weights(30, 9)
    x[1, 3], x[2, 8], x[3], x[4], x[5] = np.nan, np.inf, 0, 2.0**-101, -0.0
    x[6] = np.finfo(np.float32).max
    (first, _) = check_everywhere(graph, [x])
    assert np.isnan(first[0][1:3]).all()
    assert not first[0][3:6].any()
    assert np.isfinite(first[0][7:]).all()


@pytest.mark.parametrize("form", FORMS)
def test_products_of_views(form):
    """Rows that are apart, and more axes than two."""

    def build(b, x):
        turned = b.op("Transpose", x, perm=[1, 0, 2])
        part = b.op("Slice", turned, b.ints(1), b.ints(7), b.ints(2))
        return b.op("MatMul", turned, b.constant(_weights(8, 24))), b.op("MatMul", part, b.constant(_weights(6, 10)))

    graph = small(graph_of(build, "f n 3 8"), form)
    check_everywhere(graph, *(arguments_of(graph, {"n": n}) for n in (4, 1, 0, 30)))


CONVOLUTIONS = (
    ("f n 3 9", (8, 3, 1), {}),
    ("f n 4 20", (17, 4, 3), {"pads": [2, 1], "strides": [2]}),
    ("f n 8 30", (32, 4, 3), {"group": 2, "dilations": [2], "pads": [1, 1]}),
    ("f n 1 300", (24, 1, 64), {"strides": [16]}),
    ("f n 5 6 7", (16, 5, 3, 2), {"pads": [1, 0, 1, 1]}),
    ("f n 6 8 9", (30, 2, 2, 3), {"group": 3, "strides": [2, 3], "auto_pad": "SAME_UPPER"}),
    ("f n 3 9 9", (8, 3, 3, 3), {"dilations": [2, 2], "pads": [2, 2, 2, 2]}),
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("x", "shape", "attrs"), CONVOLUTIONS)
def test_convolutions(form, x, shape, attrs):
    def build(b, x):
        convolved = b.op("Conv", x, b.constant(_weights(*shape)), b.constant(_weights(shape[0])), **attrs)
        return convolved, b.op("Relu", b.op("Conv", x, b.constant(_weights(*shape)), **attrs))

    graph = small(graph_of(build, x), form)
    check_everywhere(graph, *(arguments_of(graph, {"n": n}) for n in (1, 3, 0)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("op", GATES)
def test_sequences_give_what_their_loop_gives(form, op):
    for options in ({}, {"reverse": True}, {"bias": False}, {"trace": None}, {"trace": TraceSpec(1, True), "axis": 1}):
        graph = small(recurrence(op, 11, **options), form)
        runs = [arguments_of(graph, sizes) for sizes in ({"t": 6, "n": 3}, {"t": 0, "n": 2}, {"t": 30, "n": 26})]
        whole = check_everywhere(graph, *runs, tolerance=2e-3)
        loop = check_everywhere(graph, *runs, tolerance=2e-3, options=frozenset({"fused_sequences"}))
        for got, other in zip(whole, loop, strict=True):
            assert_same_bits(got, other)


@pytest.mark.parametrize("form", FORMS)
def test_an_lstm_with_peepholes_and_other_activations(form):
    graph = small(recurrence("LstmCell", 10, peephole=True, couple=True, clip=1.5), form)
    check_everywhere(graph, arguments_of(graph, {"t": 5, "n": 2}), tolerance=2e-3)
    graph = small(recurrence("GruCell", 12, activations=("hard_sigmoid", "softsign")), form)
    check_everywhere(graph, arguments_of(graph, {"t": 5, "n": 2}), tolerance=2e-3)


@pytest.mark.parametrize("form", FORMS)
def test_states_may_be_of_any_size(form):
    graph = small(recurrence("GruCell", 12), form)
    xw, h = arguments_of(graph, {"t": 4, "n": 3})
    h[0], h[1] = 1e6, np.nan
    (first, _) = check_everywhere(graph, [xw, h], tolerance=2e-3)
    assert np.isnan(first[0][1]).all()
    assert np.isfinite(first[0][[0, 2]]).all()
