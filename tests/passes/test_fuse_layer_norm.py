import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, ops, reasons
from webrnn.ir import DType, GraphBuilder, Symbol
from webrnn.passes import run_passes

NAME, WIDTH = "fuse_layer_norm", 5


def written(
    shape=(2, 3, WIDTH), axes=(-1,), square="Mul", division="Div", gamma=None, beta=None, dtype=DType.FLOAT, read=None
):
    b = GraphBuilder("g")
    x = b.input("x", dtype, shape)
    number = dtype.array_type.type
    mean = b.op("ReduceMean", x, b.ints(*axes), keepdims=1)
    centred = b.op("Sub", x, mean)
    squared = b.op("Mul", centred, centred) if square == "Mul" else b.op("Pow", centred, b.constant(number(2)))
    variance = b.op("ReduceMean", squared, b.ints(*axes), keepdims=1)
    deviation = b.op("Sqrt", b.op("Add", variance, b.constant(number(1e-3))))
    if division == "Div":
        made = b.op("Div", centred, deviation)
    elif division == "Reciprocal":
        made = b.op("Mul", b.op("Reciprocal", deviation), centred)
    else:
        made = b.op("Mul", centred, b.op("Div", b.constant(number(1)), deviation))
    for op, row in (("Mul", gamma), ("Add", beta)):
        if row is not None:
            made = b.op(op, b.constant(row), made)
    b.graph.outputs = [made]
    if read is not None:
        b.graph.outputs.append(b.op("Relu", {"mean": mean, "centred": centred, "deviation": deviation}[read]))
    return b.graph


@pytest.mark.parametrize("square", ["Mul", "Pow"])
@pytest.mark.parametrize("division", ["Div", "Reciprocal", "1 / x"])
@pytest.mark.parametrize("gamma", [None, floats(WIDTH), floats(1, 1, WIDTH)], ids=["none", "row", "1, 1, row"])
@pytest.mark.parametrize("beta", [None, floats(WIDTH, seed=1)], ids=["none", "row"])
def test_becomes_one_node(square, division, gamma, beta):
    graph = written(square=square, division=division, gamma=gamma, beta=beta)
    assert_keeps_results(graph, [floats(2, 3, WIDTH)], NAME)
    apply(graph, NAME)
    assert ops(graph) == {"LayerNormalization": 1}
    assert len(graph.nodes[0].inputs) == 2 + (beta is not None)
    assert graph.nodes[0].attrs["epsilon"] == pytest.approx(1e-3)


@pytest.mark.parametrize("axes", [(2,), (-1,)])
def test_either_way_to_name_the_last_axis(axes):
    graph = written((Symbol("n"), 3, WIDTH), axes)
    assert_keeps_results(graph, [floats(4, 3, WIDTH)], NAME)
    assert apply(graph, NAME).rewrites[NAME] == 1


def test_what_is_no_row_stays_behind_it():
    graph = written(gamma=floats(3, 1), beta=floats(WIDTH))
    assert_keeps_results(graph, [floats(2, 3, WIDTH)], NAME)
    apply(graph, NAME)
    assert ops(graph) == {"LayerNormalization": 1, "Mul": 1, "Add": 1}


def test_a_result_that_is_read_twice_keeps_its_scale_outside():
    graph = written(gamma=floats(WIDTH))
    graph.outputs.append(graph.nodes[-1].inputs[1])
    assert_keeps_results(graph, [floats(2, 3, WIDTH)], NAME)
    apply(graph, NAME)
    assert ops(graph) == {"LayerNormalization": 1, "Mul": 1}


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (written(axes=(1,)), "it is not over the last axis alone"),
        (written(axes=(1, 2)), "it is not over the last axis alone"),
        (written((2, Symbol("n"))), "a size is not known"),
        (written(dtype=DType.DOUBLE), "its type is not float32"),
        (written(read="mean"), "a part of it is read elsewhere"),
        (written(read="centred"), "a part of it is read elsewhere"),
        (written(read="deviation"), "a part of it is read elsewhere"),
    ],
)
def test_declines(graph, reason):
    outcome = apply(graph, NAME)
    assert reasons(outcome, NAME) == {reason}
    assert "LayerNormalization" not in ops(graph)


def test_another_square_is_none():
    graph = written()
    product = next(node for node in graph.nodes if node.op == "Mul")
    product.inputs[1] = graph.inputs[0]
    before = graph.copy()
    assert not apply(graph, NAME).rewrites[NAME]
    assert ops(graph) == ops(before)


def test_a_mean_of_something_else_is_none():
    b = GraphBuilder("g")
    x, y = b.input("x", DType.FLOAT, (2, WIDTH)), b.input("y", DType.FLOAT, (2, WIDTH))
    centred = b.op("Sub", x, b.op("ReduceMean", y, b.ints(-1)))
    variance = b.op("ReduceMean", b.op("Mul", centred, centred), b.ints(-1))
    deviation = b.op("Sqrt", b.op("Add", variance, b.constant(np.float32(1e-3))))
    b.graph.outputs = [b.op("Div", centred, deviation)]
    assert not apply(b.graph, NAME).rewrites[NAME]


def test_the_pipeline_makes_powers_products_first():
    graph = written(square="Pow", gamma=floats(WIDTH), beta=floats(WIDTH))
    run_passes(graph, check=True)
    assert ops(graph) == {"LayerNormalization": 1}
