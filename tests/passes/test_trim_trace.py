import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, ops, reasons
from tests.passes.scans import ScanBuilder, scan_in
from webrnn.engine.executor.executor import Executor
from webrnn.errors import Error
from webrnn.ir import DType, TraceSpec
from webrnn.passes import run_passes


def traced(spec, read, of_state=False, n_steps=None):
    """A loop whose trace `read` reads: a function of the builder and the trace."""
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    if n_steps is not None:
        s.scan.sequences[0].whole.shape = (n_steps, 3)
    after = s.body.op("Tanh", s.body.op("Add", x, h))
    graph = s.finish([after], traces=[(after if of_state else s.body.op("Neg", after), spec)], read=lambda name: False)
    (whole,) = graph.outputs
    made = read(s.b, whole)
    graph.outputs = list(made) if isinstance(made, tuple) else [made]
    return graph


def gather(index, axis=0):
    return lambda b, whole: b.op("Gather", whole, b.constant(np.array(index)), axis=axis)


def cut(start, end, axis=0, step=1):
    return lambda b, whole: b.op("Slice", whole, *(b.ints(number) for number in (start, end, axis, step)))


END = 2**63 - 1
READERS = {
    "last": (TraceSpec(), gather(-1), 1),
    "last, as a list": (TraceSpec(), gather([-1]), 1),
    "last two": (TraceSpec(), gather([-1, -2]), 2),
    "second last": (TraceSpec(), gather(-2), 2),
    "Slice": (TraceSpec(), cut(-2, END), 2),
    "Slice that ends before the end": (TraceSpec(), cut(-3, -1), 3),
    "every second": (TraceSpec(), cut(-3, END, step=2), 3),
    "other axis": (TraceSpec(1), gather(-1, 1), 1),
    "negative axis": (TraceSpec(-1), gather(-1, -1), 1),
    "reversed": (TraceSpec(reverse=True), gather(0), 1),
    "reversed, two": (TraceSpec(reverse=True), gather([1, 0]), 2),
    "reversed Slice": (TraceSpec(reverse=True), cut(1, 3), 3),
    "two readers": (TraceSpec(), lambda b, whole: (gather(-1)(b, whole), cut(-2, END)(b, whole)), 2),
    "trimmed already": (TraceSpec(keep=3), gather(-2), 2),
    "transposed": (TraceSpec(), lambda b, w: gather(-1, 1)(b, b.op("Transpose", w, perm=[1, 0])), 1),
    "unsqueezed": (TraceSpec(1), lambda b, w: gather(-1, 2)(b, b.op("Unsqueeze", w, b.ints(0))), 1),
    "squeezed": (
        TraceSpec(),
        lambda b, w: gather(-1)(b, b.op("Squeeze", b.op("Unsqueeze", w, b.ints(1)), b.ints(1))),
        1,
    ),
    "squeezed in front": (
        TraceSpec(),
        lambda b, w: gather(-1)(b, b.op("Squeeze", b.op("Unsqueeze", w, b.ints(0)), b.ints(0))),
        1,
    ),
    "other axis cut": (TraceSpec(), lambda b, w: gather(-1)(b, cut(1, 2, axis=1)(b, w)), 1),
}


@pytest.mark.parametrize("steps", [3, 7])
@pytest.mark.parametrize("name", READERS)
def test_only_the_last_steps_are_kept(name, steps):
    spec, read, keep = READERS[name]
    graph = traced(spec, read)
    assert_keeps_results(graph, [floats(steps, 3), floats(3)], "trim_trace")
    apply(graph, "trim_trace")
    assert scan_in(graph).traces[0].spec == TraceSpec(spec.axis, spec.reverse, keep)


@pytest.mark.parametrize("steps", [0, 1])
@pytest.mark.parametrize("name", [name for name in READERS if "Slice" in name or name == "every second"])
def test_slices_of_few_steps(name, steps):
    spec, read, _ = READERS[name]
    assert_keeps_results(traced(spec, read), [floats(steps, 3), floats(3)], "trim_trace")


@pytest.mark.parametrize("of_state", [False, True])
@pytest.mark.parametrize(
    ("reverse", "read"),
    [
        (False, gather(6)),
        (False, gather([6, 5])),
        (False, cut(5, 7)),
        (False, cut(5, 6)),
        (False, cut(-2, 99)),
        (True, gather(-7)),
        (True, cut(-7, -6)),
    ],
)
def test_indices_from_the_front_where_the_number_of_steps_is_known(reverse, read, of_state):
    graph = traced(TraceSpec(reverse=reverse), read, of_state, n_steps=7)
    assert_keeps_results(graph, [floats(7, 3), floats(3)], "trim_trace")
    assert apply(graph, "trim_trace").rewrites["trim_trace"] == 1


def test_an_index_from_the_front_of_a_named_size():
    def read(b, whole):
        length = b.op("Gather", b.op("Shape", b.graph.inputs[0]), b.constant(np.array(0, np.int64)))
        return b.op("Gather", whole, b.op("Sub", length, b.constant(np.array(1, np.int64))))

    graph = traced(TraceSpec(), read, of_state=True)
    assert_keeps_results(graph, [floats(4, 3), floats(3)], "trim_trace")
    apply(graph, "trim_trace", "remove_dead")
    assert ops(graph)["Gather"] == 0
    assert not scan_in(graph).traces


@pytest.mark.parametrize("name", ["last", "last, as a list", "other axis", "reversed", "transposed", "unsqueezed"])
def test_the_last_value_of_a_state_is_its_final(name):
    spec, read, _ = READERS[name]
    graph = traced(spec, read, of_state=True)
    assert_keeps_results(graph, [floats(4, 3), floats(3)], "trim_trace")
    apply(graph, "trim_trace")
    scan = scan_in(graph)
    assert not scan.traces
    assert scan.states[0].final is not None
    assert ops(graph)["Gather"] == 0


def test_the_pipeline_leaves_nothing_but_the_final():
    graph = traced(TraceSpec(), gather(-1), of_state=True)
    run_passes(graph)
    assert [node.op for node in graph.nodes] == ["Scan"]


def test_the_last_of_no_steps_is_an_error_that_goes():
    graph = traced(TraceSpec(), gather(-1), of_state=True)
    arguments = [floats(0, 3), floats(3)]
    with pytest.raises(Error):
        Executor(graph).run(arguments)
    apply(graph, "trim_trace")
    np.testing.assert_array_equal(Executor(graph).run(arguments)[0], arguments[1])


def test_a_last_layer_reads_its_final():
    """What an exporter writes for `gru(x)[0][:, -1]`."""
    text = """g (float[2, n, 3] x, float[1, 6, 3] w, float[1, 6, 2] r) => (float[2, 2] y)
        <int64[1] one = {1}, int64 last = {-1}> {
        t = Transpose<perm = [1, 0, 2]>(x)
        all, h = GRU<hidden_size = 2>(t, w, r)
        squeezed = Squeeze(all, one)
        batch_first = Transpose<perm = [1, 0, 2]>(squeezed)
        y = Gather<axis = 1>(batch_first, last)
    }"""
    graph = graph_of(text)
    before = graph.copy()
    run_passes(graph, check=True)
    assert not scan_in(graph).traces
    arguments = [floats(2, 4, 3), floats(1, 6, 3), floats(1, 6, 2)]
    np.testing.assert_allclose(Executor(graph).run(arguments)[0], Executor(before).run(arguments)[0], rtol=1e-6)


def declines(graph, *arguments):
    outcome = assert_keeps_results(graph, list(arguments), "trim_trace")
    return outcome.rewrites["trim_trace"], reasons(outcome, "trim_trace")


def test_declines_the_final_where_there_may_be_no_step():
    graph = traced(TraceSpec(), cut(-1, END), of_state=True)
    for steps in (0, 1, 3):
        assert declines(graph, floats(steps, 3), floats(3)) == (1, {"it may take no step"})
    apply(graph, "trim_trace")
    assert scan_in(graph).traces[0].spec.keep == 1


def test_declines_a_trace_without_a_rank():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    bias = s.invariant("bias", s.b.input("bias", DType.FLOAT, None))
    after = s.body.op("Add", s.body.op("Add", x, h), bias)
    graph = s.finish([h], traces=[after], read=lambda name: False)
    graph.outputs = [gather(-1)(s.b, graph.outputs[0])]
    assert declines(graph, floats(4, 3), floats(3), floats(3)) == (0, {"its rank is not known"})


def test_declines_a_trace_that_is_longer_than_the_loop():
    graph = traced(TraceSpec(length=6), gather(-1), of_state=True)
    assert declines(graph, floats(4, 3), floats(3)) == (0, {"it is longer than the loop"})


READ_ALL = {
    "the model's output": lambda b, w: (w, gather(-1)(b, w)),
    "first": gather(0),
    "index from the front of an unknown length": gather(3),
    "from the second on": cut(1, END),
    "but the last": cut(0, -1),
    "another axis": gather(-1, 1),
    "all, backwards": cut(-1, -END, step=-1),
    "a sum": lambda b, w: (b.op("ReduceSum", w, b.ints(0)), gather(-1)(b, w)),
    "an index that is an input": lambda b, w: b.op("Gather", w, b.input("index", DType.INT64, ())),
    "an index that is the trace": lambda b, w: b.op("Gather", b.constant(floats(3)), b.op("Cast", w, to=7)),
    "as often as a computed number": lambda b, w: b.op("Expand", gather(-1)(b, w), b.op("Shape", w)),
}


@pytest.mark.parametrize("name", READ_ALL)
def test_what_is_read_as_a_whole_stays(name):
    graph = traced(TraceSpec(), READ_ALL[name])
    arguments = [floats(4, 3), floats(3), *([np.array(-1, np.int64)] if "input" in name else [])]
    assert declines(graph, *arguments) == (0, set())


def test_reversed_traces_are_not_read_at_their_end():
    assert declines(traced(TraceSpec(reverse=True), gather(-1)), floats(4, 3), floats(3)) == (0, set())


def test_as_many_steps_as_there_are_are_not_trimmed():
    graph = traced(TraceSpec(), cut(-5, END), n_steps=4)
    assert declines(graph, floats(4, 3), floats(3)) == (0, set())
