import numpy as np

from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, ops, reasons
from webrnn.ir import DType, GraphBuilder


def test_equal_nodes_and_what_they_feed():
    graph = graph_of(
        """g (float[3] x) => (float[3] y) {
            a = Exp(x)
            b = Exp(x)
            c = Neg(a)
            d = Neg(b)
            y = Add(c, d)
        }"""
    )
    assert_keeps_results(graph, [floats(3)], "merge_common")
    apply(graph, "merge_common")
    assert ops(graph) == {"Exp": 1, "Neg": 1, "Add": 1}


def test_attributes_tell_nodes_apart():
    graph = graph_of(
        """g (float[3, 3] x) => (float[3, 3] y) {
            a = Softmax<axis = 0>(x)
            b = Softmax<axis = 1>(x)
            y = Add(a, b)
        }"""
    )
    assert apply(graph, "merge_common").rewrites["merge_common"] == 0


def test_constants_are_merged_by_their_bits():
    b = GraphBuilder("g")
    x = b.input("x", DType.FLOAT, (2,))
    for array in (np.float32([0, 1]), np.float32([0, 1]), np.float32([-0.0, 1]), np.float64([0, 1])):
        made = b.op("Identity", b.constant(array))
        b.graph.outputs.append(made)
    b.graph.outputs.append(x)
    apply(b.graph, "merge_common")
    assert len(b.graph.constants) == 3


def test_an_unasked_output_of_the_first_is_taken_from_the_second():
    graph = graph_of(
        """g (float[4] x) => (float[2] y, float[2] z) <int64[2] sizes = {2, 2}> {
            y, a = Split<axis = 0>(x, sizes)
            b, z = Split<axis = 0>(x, sizes)
        }"""
    )
    graph.nodes[0].outputs[1] = None
    assert_keeps_results(graph, [floats(4)], "merge_common")
    apply(graph, "merge_common")
    assert ops(graph) == {"Split": 1}


def test_declines_two_outputs_of_the_model():
    graph = graph_of("g (float[3] x) => (float[3] y, float[3] z) { y = Neg(x) z = Neg(x) }")
    outcome = apply(graph, "merge_common")
    assert reasons(outcome, "merge_common") == {"two outputs of the model need a name each"}
    assert ops(graph) == {"Neg": 2}
