import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, ops, reasons

GONE = {
    "Identity": "b = Identity(a)",
    "Cast": "b = Cast<to = 1>(a)",
    "CastLike": "b = CastLike(a, x)",
    "Transpose": "b = Transpose<perm = [0, 1]>(a)",
    "Reshape": "b = Reshape(a, s)",
    "Expand": "b = Expand(a, ones)",
    "Slice": "b = Slice(a, zero, far, zero)",
    "Pad": "b = Pad(a, pads)",
    "Tile": "b = Tile(a, ones)",
    "Concat": "b = Concat<axis = 0>(a)",
    "Max": "b = Max(a)",
    "Split": "b = Split<num_outputs = 1>(a)",
}
STAYS = {
    "Cast": "b = Cast<to = 11>(a) c = Cast<to = 1>(b)",
    "Transpose": "c = Transpose<perm = [1, 0]>(a)",
    "Slice": "c = Slice(a, last, far_back, zero, back)",
    "Pad": "b = Pad(a, shift) c = Identity(b)",
    "Tile": "c = Tile(a, twice)",
}
CONSTANTS = """<int64[2] s = {-1, 3}, int64[1] zero = {0}, int64[1] far = {9223372036854775807},
    int64[4] pads = {0, 0, 0, 0}, int64[4] shift = {1, 0, -1, 0}, int64[2] ones = {1, 1}, int64[2] twice = {2, 1},
    int64[1] last = {-1}, int64[1] far_back = {-9223372036854775807}, int64[1] back = {-1}>"""


@pytest.mark.parametrize("op", GONE)
def test_goes(op):
    graph = graph_of(f"g (float[n, 3] x) => (float[n, 3] y) {CONSTANTS} {{ a = Exp(x) {GONE[op]} y = Neg(b) }}")
    assert_keeps_results(graph, [floats(2, 3)], "remove_identities")
    assert apply(graph, "remove_identities").rewrites["remove_identities"] == 1
    assert ops(graph) == {"Exp": 1, "Neg": 1}


@pytest.mark.parametrize("op", STAYS)
def test_stays(op):
    graph = graph_of(f"g (float[3, 3] x) => (float[a, b] y) {CONSTANTS} {{ a = Exp(x) {STAYS[op]} y = Neg(c) }}")
    assert_keeps_results(graph, [floats(3, 3)], "remove_identities")
    apply(graph, "remove_identities")
    assert op in ops(graph)


def test_an_output_keeps_its_name():
    graph = graph_of("g (float[3] x) => (float[3] y) { a = Exp(x) y = Identity(a) }")
    apply(graph, "remove_identities")
    assert ops(graph) == {"Exp": 1}
    assert graph.outputs[0].name == "y"


@pytest.mark.parametrize(
    "text",
    [
        "g (float[3] x) => (float[3] y) { y = Identity(x) }",
        "g (float[3] x) => (float[3] a, float[3] y) { a = Exp(x) y = Identity(a) }",
    ],
)
def test_declines_where_a_name_would_be_lost(text):
    graph = graph_of(text)
    outcome = assert_keeps_results(graph, [floats(3)], "remove_identities")
    assert reasons(outcome, "remove_identities") == {"the model's output needs a name of its own"}


def test_two_outputs_of_one_value_keep_both_names():
    graph = graph_of("g (float[3] x) => (float[3] y, float[3] z) { a = Exp(x) y = Identity(a) z = Identity(a) }")
    assert_keeps_results(graph, [floats(3)], "remove_identities")
    apply(graph, "remove_identities")
    assert ops(graph) == {"Exp": 1, "Identity": 1}


@pytest.mark.parametrize(("perm", "goes"), [([1, 0, 2, 3], True), ([1, 0, 3, 2], False), ([0, 2, 1, 3], False)])
def test_a_transpose_of_axes_of_size_one(perm, goes):
    text = "g (float[1, 1, 2, 2] x) => (float[a, b, c, d] y) { a = Exp(x) b = Transpose<perm = %s>(a) y = Neg(b) }"
    graph = graph_of(text % perm)
    outcome = assert_keeps_results(graph, [floats(1, 1, 2, 2)], "remove_identities")
    assert outcome.rewrites["remove_identities"] == goes


@pytest.mark.parametrize("op", ["Expand", "Reshape"])
def test_stays_where_a_run_may_refuse_its_numbers(op):
    graph = graph_of(f"g (float[3, 4] x, int64[2] s) => (float[3, 4] y) {{ a = Exp(x) b = {op}(a, s) y = Neg(b) }}")
    apply(graph, "remove_identities")
    assert op in ops(graph)
