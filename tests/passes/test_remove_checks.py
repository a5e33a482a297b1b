import pytest

from tests.passes.differential import apply, floats, ops, reasons
from webrnn.engine.executor.executor import Executor
from webrnn.errors import ShapeError
from webrnn.ir import WEBRNN, DType, GraphBuilder, Node, Symbol


def checked(shape, sizes, like=None):
    b = GraphBuilder("g")
    x = b.op("Exp", b.input("x", DType.FLOAT, shape))
    y = b.value("y")
    operands = [x] if like is None else [x, b.input("z", DType.FLOAT, like)]
    attrs = {"sizes": sizes, "what": "X", "same": () if like is None else ((1, 0),)}
    b.add(Node("ExpectShape", operands, [y], attrs, "check", WEBRNN))
    b.graph.outputs = [b.op("Neg", y)]
    return b.graph


@pytest.mark.parametrize(("shape", "sizes"), [((2, 3), (2, None)), ((None, 3), (None, 3))])
def test_a_proven_check_goes(shape, sizes):
    graph = checked(shape, sizes)
    assert apply(graph, "remove_checks").rewrites["remove_checks"] == 1
    assert ops(graph) == {"Exp": 1, "Neg": 1}


@pytest.mark.parametrize(("shape", "sizes"), [((None, 3), (2, 3)), (None, (None, None)), ((2, 3), (2, 4))])
def test_declines_what_is_not_proven(shape, sizes):
    graph = checked(shape, sizes)
    outcome = apply(graph, "remove_checks")
    assert reasons(outcome, "remove_checks") == {f"the shape {list(sizes)} of X is not proven"}
    with pytest.raises(ShapeError):
        Executor(graph).run([floats(4, 4, 4)])


@pytest.mark.parametrize(("shape", "like"), [((2, 3), (3,)), ((2, Symbol("n")), (Symbol("n"),))])
def test_a_proven_likeness_goes(shape, like):
    graph = checked(shape, (None, None), like)
    assert apply(graph, "remove_checks").rewrites["remove_checks"] == 1


def test_a_likeness_that_is_not_proven_stays_and_says_how_long_the_axis_is():
    graph = checked((2, Symbol("n")), (2, None), (Symbol("m"),))
    assert apply(graph, "remove_checks").rewrites["remove_checks"] == 0
    assert graph.outputs[0].shape == (2, Symbol("m"))
    assert Executor(graph).run([floats(2, 3), floats(3)])[0].shape == (2, 3)
    with pytest.raises(ShapeError, match="axis 1 needs to be 4"):
        Executor(graph).run([floats(2, 3), floats(4)])
