import pytest

from tests.passes.differential import apply, floats, ops, reasons
from webrnn.engine.executor import Executor
from webrnn.errors import ShapeError
from webrnn.ir import WEBRNN, DType, GraphBuilder, Node


def checked(shape, sizes):
    b = GraphBuilder("g")
    x = b.op("Exp", b.input("x", DType.FLOAT, shape))
    y = b.value("y")
    b.add(Node("ExpectShape", [x], [y], {"sizes": sizes, "what": "X"}, "check", WEBRNN))
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
