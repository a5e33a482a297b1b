from tests.onnx.models import recurrent
from tests.passes.differential import graph_of
from tests.passes.plain_cells import written_plainly
from tests.passes.scans import ScanBuilder
from webrnn.ir import Symbol, TraceSpec
from webrnn.onnx.reader import read_model
from webrnn.passes import run_passes
from webrnn.report.memory import peak_memory
from webrnn.shapes.infer import infer


def peak(graph, **sizes):
    return peak_memory(graph, infer(graph), sizes)


def test_a_result_lives_until_its_last_reader():
    graph = graph_of(
        """g (float[100] x) => (float[a] y) {
            a = Concat<axis = 0>(x, x)
            b = Concat<axis = 0>(a, a)
            y = ReduceSum(b)
        }"""
    )
    found = peak(graph)
    assert (found.bytes, found.where, found.unknown) == (4 * (200 + 400), "-> b", 0)


def test_elementwise_in_place():
    one = "g (float[100] x) => (float[a] y) { a = Exp(x) b = Tanh(a) y = Neg(b) }"
    two = "g (float[100] x) => (float[a] y) { a = Exp(x) b = Tanh(a) y = Add(a, b) }"
    assert peak(graph_of(one)).bytes == 400
    assert peak(graph_of(two)).bytes == 800


def test_reshapes_are_free_and_keep_their_operand_alive():
    text = """g (float[100] x) => (float[a, b] y) <int64[2] s = {{10, 10}}> {{
        a = Exp(x) r = Reshape(a, s) {between} y = Neg(r) }}"""
    assert peak(graph_of(text.format(between=""))).bytes == 400
    assert peak(graph_of(text.format(between="unused = Sin(a)"))).bytes == 800


def test_sizes_by_name():
    graph = graph_of("g (float[n, 4] x) => (float[a, b] y) { y = Transpose(x) }")
    assert peak(graph).bytes == 16 * Symbol("n")
    assert peak(graph, n=10).bytes == 160


def test_unknown_sizes_are_counted():
    graph = graph_of("g (float[n] x, float[m] z) => (float[a] y) { s = Add(x, z) y = Neg(s) }")
    assert peak(graph).unknown == 2


def loop(updates_in_place=True, keep=None, traced=True):
    s = ScanBuilder(size=100)
    x, h = s.sequence("x"), s.state("h")
    after = s.body.op("Add", h, x)
    if not updates_in_place:
        after = s.body.op("Add", after, s.body.op("Neg", h))
    traces = [(after, TraceSpec(keep=keep))] if traced else []
    return s.finish(states=[after], traces=traces, read=lambda name: not traced)


def test_a_state_in_place():
    assert peak(loop(traced=False), steps=50).bytes == 400
    assert peak(loop(traced=False, updates_in_place=False), steps=50).bytes == 800


def test_a_trimmed_trace_does_not_grow_with_the_steps():
    whole, trimmed = loop(), loop(keep=2)
    assert peak(whole).bytes == 400 * Symbol("steps") + 400
    found = peak_memory(trimmed, infer(trimmed), {"steps": 50})
    assert found.unknown == 0
    assert found.bytes == 400 * 2 + 400


def test_the_memory_of_a_recurrent_op_of_which_only_the_last_state_is_read():
    proto = recurrent("GRU")
    del proto.graph.output[0]
    with written_plainly():
        graph = read_model(proto.SerializeToString())
    graph.inputs[0].shape = (Symbol("steps"), *graph.inputs[0].shape[1:])
    before = peak(graph, steps=1000)
    run_passes(graph, disable=["hoist_sequences"])
    after = peak(graph, steps=1000)
    assert before.bytes > 1000 * 4 * 10
    assert after.bytes < 1000
