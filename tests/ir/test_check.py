import numpy as np
import pytest

import webrnn
from tests.ir.test_scan import fibonacci
from webrnn.ir import DType, Graph, Node, TraceSpec, Value
from webrnn.ir.check import check


def test_good_graph():
    check(fibonacci())


def test_use_before_definition():
    x, y, z = Value("x"), Value("y"), Value("z")
    graph = Graph("g", [x], [z], [Node("Relu", [y], [z], name="late"), Node("Relu", [x], [y])])
    with pytest.raises(webrnn.ModelError, match=r"'late' \(Relu\): input 'y' is not defined"):
        check(graph)


def test_defined_twice():
    x = Value("x")
    with pytest.raises(webrnn.ModelError, match="'x' is defined twice"):
        check(Graph("g", [x], [x], [Node("Relu", [x], [x])]))


def test_constant_that_contradicts_its_value():
    x = Value("x", DType.FLOAT, (2,))
    with pytest.raises(webrnn.ModelError, match="constant 'x'"):
        check(Graph("g", [], [x], [], {x: np.zeros(3, np.float32)}))


def test_body_that_reaches_outside():
    graph = fibonacci()
    body = graph.nodes[0].attrs["body"]
    body.nodes[0].inputs[0] = graph.inputs[0]
    with pytest.raises(webrnn.ModelError, match="'start' is not defined before it in graph 'step'"):
        check(graph)


def test_operands_that_do_not_fit_the_body():
    graph = fibonacci()
    graph.nodes[0].attrs["body"].inputs.pop()
    with pytest.raises(webrnn.ModelError, match="2 inputs of the body, there need to be 3"):
        check(graph)


def test_loop_that_nothing_ends():
    graph = fibonacci()
    graph.nodes[0].inputs[0] = None
    with pytest.raises(webrnn.ModelError, match="nothing ends the loop"):
        check(graph)


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        (TraceSpec(keep=2, length=3), "a trace that is trimmed has no length"),
        (TraceSpec(length=-1), "a trace has fewer than no elements"),
        (TraceSpec(keep=-1), "a trace has fewer than no elements"),
    ],
)
def test_traces_of_impossible_lengths(trace, message):
    graph = fibonacci(keep=trace.keep, length=trace.length)
    with pytest.raises(webrnn.ModelError, match=message):
        check(graph)
