import pytest

from tests.onnx.models import recurrent
from tests.passes.differential import BY_NAME, apply, graph_of
from webrnn.ir import DType, GraphBuilder, Symbol
from webrnn.onnx.reader import read_model
from webrnn.report import measure
from webrnn.report.flops import flops
from webrnn.shapes.infer import infer
from webrnn.shapes.rules.registry import rule


def cost(text):
    graph = graph_of(text)
    facts = infer(graph)
    return sum(flops(node, facts) for node in graph.nodes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g (float[2, 3] x) => (float[a, b] y) { y = Tanh(x) }", 6),
        ("g (float[2, 3] x, float[3] z) => (float[a, b] y) { y = Add(x, z) }", 6),
        ("g (float[2, 3] x, float[3] z) => (float[a, b] y) { y = Sum(x, z, x) }", 12),
        ("g (float[2, 3] x) => (float[a, b] y) { y = Transpose(x) }", 0),
        ("g (float[5, 2, 3] x, float[3, 4] z) => (float[a, b, c] y) { y = MatMul(x, z) }", 2 * 5 * 2 * 4 * 3),
        ("g (float[3, 2] x, float[3, 4] z, float[4] c) => (float[a, b] y) { y = Gemm<transA = 1>(x, z, c) }", 56),
        ("g (float[1, 4, 10] x, float[6, 2, 3] w) => (float[a, b, c] y) { y = Conv<group = 2>(x, w) }", 2 * 6 * 8 * 6),
        ("g (float[1, 4, 10] x, float[4, 2, 3] w) => (float[a, b, c] y) { y = ConvTranspose(x, w) }", 2 * 40 * 6),
        ("g (float[1, 2, 9] x) => (float[a, b, c] y) { y = MaxPool<kernel_shape = [3], strides = [3]>(x) }", 18),
        ("g (float[4, 5] x) => (float[a, b] y) { y = ReduceSum(x) }", 20),
        ("g (float[n, 5] x, float[5, 2] w) => (float[a, b] y) { y = MatMul(x, w) }", 20 * Symbol("n")),
        ('g (float[2, 3] x, float[3, 4] z) => (float[a] y) { y = Einsum<equation = "ij,jk->ik">(x, z) }', 48),
    ],
)
def test_by_hand(text, expected):
    assert cost(text) == expected


def test_unknown_sizes_and_ops_are_not_counted():
    graph = graph_of("g (float[a, b] x, float[c] z) => (float[d] y, int64[e] i) { s = Add(x, z) y, i = Unique(s) }")
    found = measure(graph)
    assert found.outside.flops == 0
    assert found.outside.uncounted == {"Add": 1, "Unique": 1}


def test_every_op_whose_shape_is_known_has_an_estimate():
    missing = []
    for domain, op in rule.names():
        b = GraphBuilder("g")
        x = b.input("x", DType.FLOAT, (1, 1, 1, 1))
        b.op(op, x, x, x, x)
        node = b.graph.nodes[0]
        node.domain = domain
        node.attrs = {"kernel_shape": [1, 1], "equation": "abcd,abcd,abcd,abcd->abcd"}
        node.attrs |= {"activations": ["tanh"] * 3, "params": [float("inf"), *[0.0] * 6], "couple": False}
        facts = infer(b.graph)
        facts.set(node.outputs[0], facts.of(x))
        if flops(node, facts) is None:
            missing.append(op)
    assert missing == []


@pytest.mark.parametrize("name", [name for name in BY_NAME if name.startswith("fuse_")])
@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("options", [{}, {"clip": 0.5}], ids=["plain", "clip"])
def test_fused_ops_cost_what_they_stand_for(name, op, options):
    graph = read_model(recurrent(op, **options).SerializeToString())
    before = measure(graph)
    apply(graph, name)
    after = measure(graph)
    assert before.outside.flops + before.inside.flops == after.outside.flops + after.inside.flops
    assert not after.inside.uncounted


def test_loops_of_unknown_length_count_one_step():
    graph = graph_of(
        """g (int64 n, bool go, float[1, 3] x, float[3, 3] w) => (float[a, b] y) {
            y = Loop(n, go, x) <body = b (int64 i, bool go0, float[1, 3] h0) => (bool go_on, float[1, 3] h) {
                go_on = Identity(go0)
                h = MatMul(h0, w)
            }>
        }"""
    )
    found = measure(graph)
    assert (found.inside.flops, found.inside.per_step) == (0, 18)


def test_steps_multiply():
    graph = read_model(recurrent("RNN").SerializeToString())
    three = measure(graph).inside.flops
    for value in graph.inputs:
        value.shape = (Symbol("steps"), *value.shape[1:])
    assert three % 3 == 0
    assert measure(graph).inside.flops == Symbol("steps") * (three // 3)
    assert measure(graph, sizes={"steps": 3}).inside.flops == three


def test_of_an_if_the_costlier_branch():
    found = measure(
        graph_of(
            """g (bool c, float[4, 4] x) => (float[a, b] y) {
                y = If(c) <
                    then_branch = yes () => (float[a, b] t) { t = MatMul(x, x) },
                    else_branch = no () => (float[a, b] e) { e = Tanh(x) }
                >
            }"""
        )
    )
    assert found.outside.flops == 2 * 4 * 4 * 4
    assert found.ops == {"If": 1, "MatMul": 1, "Tanh": 1}
    assert (found.ifs, found.nodes, found.loops) == (1, 3, 0)
