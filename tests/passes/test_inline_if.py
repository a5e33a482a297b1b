import numpy as np

from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, ops, reasons

IF = """y = If(c) <
    then_branch = yes () => (float[3] t) { a = Exp(x) t = Neg(a) },
    else_branch = no () => (float[3] e) { e = Identity(x) }
>"""


def test_a_constant_condition():
    for number, expected in ((1, {"Exp": 1, "Neg": 1}), (0, {"Identity": 1})):
        graph = graph_of(f"g (float[3] x) => (float[3] y) <bool c = {{{number}}}> {{ {IF} }}")
        assert_keeps_results(graph, [floats(3)], "inline_if")
        assert apply(graph, "inline_if").rewrites["inline_if"] == 1
        assert ops(graph) == expected
        assert graph.outputs[0].name == "y"


def test_a_condition_on_a_static_size():
    graph = graph_of(
        f"""g (float[3] x) => (float[3] y) <int64[1] three = {{3}}> {{
            sizes = Shape(x)
            c = Equal(sizes, three)
            {IF}
        }}"""
    )
    assert_keeps_results(graph, [floats(3)], "inline_if")
    apply(graph, "inline_if", "remove_dead")
    assert ops(graph) == {"Exp": 1, "Neg": 1}


def test_an_if_in_the_branch_that_is_taken():
    graph = graph_of(
        """g (float[3] x) => (float[3] y) <bool c = {1}> {
            y = If(c) <
                then_branch = yes () => (float[3] t) {
                    t = If(c) <
                        then_branch = inner_yes () => (float[3] u) { u = Exp(x) },
                        else_branch = inner_no () => (float[3] v) { v = Abs(x) }
                    >
                },
                else_branch = no () => (float[3] e) { e = Neg(x) }
            >
        }"""
    )
    assert_keeps_results(graph, [floats(3)], "inline_if")
    apply(graph, "inline_if")
    assert ops(graph) == {"Exp": 1}


def test_a_branch_that_hands_on_an_input_keeps_the_name_of_the_output():
    graph = graph_of(f"g (float[3] x) => (float[3] y) <bool c = {{0}}> {{ {IF} }}")
    graph.nodes[0].attrs["else_branch"].outputs = graph.nodes[0].attrs["else_branch"].inputs[:1]
    graph.nodes[0].attrs["else_branch"].nodes = []
    assert_keeps_results(graph, [floats(3)], "inline_if")


def test_declines_a_condition_that_is_fed():
    graph = graph_of(f"g (bool c, float[3] x) => (float[3] y) {{ {IF} }}")
    outcome = assert_keeps_results(graph, [np.array(True), floats(3)], "inline_if")
    assert reasons(outcome, "inline_if") == {"its condition is only known when the graph runs"}
