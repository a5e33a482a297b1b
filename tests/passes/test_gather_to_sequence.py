import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, graph_of, ops, reasons
from tests.passes.scans import ScanBuilder, scan_in
from webrnn.engine.executor.executor import Executor
from webrnn.errors import Error
from webrnn.ir import DType, Symbol, TraceSpec
from webrnn.passes import run_passes


def loop(n_steps, index=None, axis=0, table=None):
    """acc = tanh(acc + table[index(i)]), in a loop of n_steps: a number or a function of the builder."""
    s = ScanBuilder()
    s.scan.n_steps = s.b.constant(np.int64(n_steps)) if isinstance(n_steps, int) else n_steps(s.b)
    s.scan.iteration = i = s.body.value("i")
    shape = [3]
    shape.insert(axis, 4)
    if table is None:
        source = s.invariant("table", s.b.input("table", DType.FLOAT, tuple(shape)))
    else:
        source = s.body.constant(table)
    acc = s.state("acc")
    picked = s.body.op("Gather", source, index(s.body, i) if index else i, axis=axis)
    after = s.body.op("Tanh", s.body.op("Add", acc, picked))
    if index is not None and picked_has_axis(index):
        after = s.body.op("Squeeze", after, s.body.ints(axis))
    return s, s.finish([after], traces=[after])


def picked_has_axis(index):
    return getattr(index, "has_axis", False)


def with_axis(index):
    index.has_axis = True
    return index


def input_count(b):
    return b.input("count", DType.INT64, ())


@pytest.mark.parametrize("axis", [0, 1])
def test_a_tensor_that_is_picked_from_is_a_sequence(axis):
    _, graph = loop(4, axis=axis)
    arguments = [floats(4, 3) if axis == 0 else floats(3, 4), floats(3)]
    assert_keeps_results(graph, arguments, "gather_to_sequence")
    assert apply(graph, "gather_to_sequence").rewrites["gather_to_sequence"] == 1
    scan = scan_in(graph)
    assert len(scan.sequences) == 1
    assert ops(scan.body)["Gather"] == 0
    assert ops(graph)["Slice"] == 0


INDICES = {
    "cast": lambda b, i: b.op("Cast", i, to=int(DType.INT32)),
    "reshaped to a scalar": lambda b, i: b.op("Squeeze", b.op("Unsqueeze", i, b.ints(0)), b.ints(0)),
    "with an axis": with_axis(lambda b, i: b.op("Unsqueeze", i, b.ints(0))),
    "with an axis by Reshape": with_axis(lambda b, i: b.op("Reshape", i, b.ints(-1))),
    "from the end": lambda b, i: b.op("Sub", b.constant(np.int64(3)), i),
}


@pytest.mark.parametrize("name", INDICES)
def test_ways_to_write_the_index(name):
    _, graph = loop(4, INDICES[name])
    assert_keeps_results(graph, [floats(4, 3), floats(3)], "gather_to_sequence")
    apply(graph, "gather_to_sequence")
    (sequence,) = scan_in(graph).sequences
    assert sequence.spec.reverse == (name == "from the end")


@pytest.mark.parametrize("n_steps", [0, 1, 3])
@pytest.mark.parametrize("index", [None, lambda b, i: b.op("Sub", b.constant(np.int64(2)), i)])
def test_a_longer_tensor_is_cut(n_steps, index):
    _, graph = loop(n_steps, index)
    assert_keeps_results(graph, [floats(4, 3), floats(3)], "gather_to_sequence", "drop_step_counts")
    apply(graph, "gather_to_sequence")
    if index is None or n_steps == 3:
        assert ops(graph)["Slice"] == 1


@pytest.mark.parametrize("count", [-2, 0, 3, 4])
def test_a_count_that_is_not_known_stays(count):
    _, graph = loop(input_count)
    arguments = [np.int64(count), floats(4, 3), floats(3)]
    assert_keeps_results(graph, arguments, "gather_to_sequence", "drop_step_counts")
    outcome = apply(graph, "gather_to_sequence", "drop_step_counts")
    scan = scan_in(graph)
    assert len(scan.sequences) == 1
    assert scan.n_steps is not None
    assert reasons(outcome, "drop_step_counts") == {
        "it is not known whether it takes as many steps as its sequences have"
    }


def test_a_tensor_that_is_too_short_stays_an_error():
    _, graph = loop(input_count)
    arguments = [np.int64(5), floats(4, 3), floats(3)]
    with pytest.raises(Error):
        Executor(graph).run(arguments)
    apply(graph, "gather_to_sequence", "drop_step_counts")
    with pytest.raises(Error):
        Executor(graph).run(arguments)


def test_named_lengths():
    text = """g (float[n, 3] x, float[3] h0) => (float[3] h, float[n, 3] y) <int64 zero = {0}, bool yes = {1}> {
        shape = Shape(x)
        count = Gather(shape, zero)
        h, y = Loop(count, yes, h0) <body = b (int64 i, bool go, float[3] h_in)
                => (bool go_on, float[3] h_out, float[3] e) {
            go_on = Identity(go)
            element = Gather(x, i)
            h_out = Add(h_in, element)
            e = Identity(h_out)
        }>
    }"""
    graph = graph_of(text)
    before = graph.copy()
    run_passes(graph, check=True)
    assert [node.op for node in graph.nodes] == ["Scan"]
    arguments = [floats(5, 3), floats(3)]
    for want, result in zip(Executor(before).run(arguments), Executor(graph).run(arguments), strict=True):
        np.testing.assert_array_equal(want, result)


def test_a_constant_of_the_body():
    _, graph = loop(4, table=floats(6, 3))
    assert_keeps_results(graph, [floats(3)], "gather_to_sequence")
    apply(graph, "gather_to_sequence")
    assert len(scan_in(graph).sequences) == 1


def accumulating_loop(steps):
    """The loop of the peers' benchmark: acc = 0.9 * acc + x[i], all of them traced."""
    return graph_of(
        f"g (float[{steps}, 1, 8] x, float[1, 8] acc0) => (float[{steps}, 1, 8] y, float[1, 8] acc_n) "
        f"<int64 count = {{{steps}}}, bool yes = {{1}}>"
        """{
        acc_n, y = Loop(count, yes, acc0) <body = accum (int64 i, bool cond_in, float[1, 8] acc_in)
                => (bool cond_out, float[1, 8] acc_out, float[1, 8] y_t) <float decay = {0.9}> {
            cond_out = Identity(cond_in)
            x_t = Gather<axis = 0>(x, i)
            d = Mul(acc_in, decay)
            acc_out = Add(d, x_t)
            y_t = Identity(acc_out)
        }>
    }"""
    )


def test_a_loop_that_accumulates_is_a_plain_scan():
    graph = accumulating_loop(6)
    before = graph.copy()
    run_passes(graph, check=True)
    scan = scan_in(graph)
    assert [node.op for node in graph.nodes] == ["Scan"]
    assert (len(scan.sequences), len(scan.states), len(scan.traces), len(scan.invariants)) == (1, 1, 1, 0)
    assert (scan.n_steps, scan.cond, scan.body_cond, scan.iteration) == (None, None, None, None)
    assert {"Mul": 1, "Add": 1}.items() <= ops(scan.body).items()
    assert len(scan.body.nodes) <= 2
    arguments = [floats(6, 1, 8), floats(1, 8)]
    for want, result in zip(Executor(before).run(arguments), Executor(graph).run(arguments), strict=True):
        np.testing.assert_array_equal(want, result)


def declines(graph, *arguments):
    outcome = assert_keeps_results(graph, list(arguments), "gather_to_sequence")
    assert outcome.rewrites["gather_to_sequence"] == 0
    return reasons(outcome, "gather_to_sequence")


def with_sequence(length):
    s = ScanBuilder()
    x = s.sequence("x")
    s.scan.sequences[0].whole.shape = (length, 3)
    s.scan.iteration = i = s.body.value("i")
    table = s.invariant("table", shape=(4, 3))
    made = s.body.op("Add", x, s.body.op("Gather", table, i))
    return s.finish(traces=[made])


def test_a_table_beside_a_sequence():
    graph = with_sequence(3)
    assert_keeps_results(graph, [floats(3, 3), floats(4, 3)], "gather_to_sequence")
    apply(graph, "gather_to_sequence")
    assert len(scan_in(graph).sequences) == 2


def test_declines_what_may_be_of_another_length():
    found = declines(with_sequence(Symbol("n")), floats(3, 3), floats(4, 3))
    assert found == {"it is not known to be as long as the loop's sequences"}


def test_declines_a_loop_that_may_end_before():
    s, graph = loop(9)
    s.scan.body_cond = s.body.op("Less", s.scan.iteration, s.body.constant(np.int64(2)))
    graph.nodes[-1] = s.scan.to_node()
    assert declines(graph, floats(4, 3), floats(3)) == {"the loop may end before an index is beyond the axis"}


def test_declines_where_only_a_condition_ends_the_loop():
    s, graph = loop(9)
    s.scan.n_steps = None
    s.scan.body_cond = s.body.op("Less", s.scan.iteration, s.body.constant(np.int64(2)))
    graph.nodes[-1] = s.scan.to_node()
    assert declines(graph, floats(4, 3), floats(3)) == {"nothing bounds the number of steps"}


@pytest.mark.parametrize(
    "index",
    [
        lambda b, i: b.op("Add", i, b.constant(np.int64(1))),
        lambda b, i: b.op("Add", b.op("Mul", i, b.constant(np.int64(1))), b.constant(np.int64(2))),
        lambda b, i: b.op("Sub", b.constant(np.int64(2)), i),
        lambda b, i: b.op("Sub", b.constant(np.int64(3)), i),
    ],
)
def test_places_that_are_a_known_number_apart(index):
    _, graph = loop(2, index)
    assert_keeps_results(graph, [floats(4, 3), floats(3)], "gather_to_sequence")
    apply(graph, "gather_to_sequence")
    assert "Gather" not in ops(graph)
    assert ops(graph)["Slice"] >= 1


def test_a_slice_of_one_place():
    s = ScanBuilder()
    s.scan.n_steps = s.b.constant(np.int64(3))
    s.scan.iteration = i = s.body.value("i")
    start = s.body.op("Unsqueeze", i, s.body.ints(0))
    end = s.body.op("Add", start, s.body.ints(1))
    made = s.body.op("Slice", s.invariant("table", shape=(2, 4, 3)), start, end, s.body.ints(1))
    graph = s.finish(traces=[made])
    assert_keeps_results(graph, [floats(2, 4, 3)], "gather_to_sequence")
    apply(graph, "gather_to_sequence")
    (sequence,) = scan_in(graph).sequences
    assert sequence.spec.axis == 1


@pytest.mark.parametrize(
    "index",
    [
        lambda b, i: b.op("Sub", i, b.constant(np.int64(1))),
        lambda b, i: b.op("Mul", i, b.constant(np.int64(2))),
        lambda b, i: b.op("Sub", b.constant(np.int64(0)), i),
        lambda b, i: b.op("Cast", b.op("Cast", i, to=int(DType.BOOL)), to=int(DType.INT64)),
    ],
)
def test_other_indices_stay(index):
    assert declines(loop(2, index)[1], floats(4, 3), floats(3)) == set()


def test_the_trace_of_a_reversed_loop():
    s = ScanBuilder()
    s.scan.n_steps = s.b.constant(np.int64(4))
    s.scan.iteration = s.body.value("i")
    index = s.body.op("Sub", s.body.constant(np.int64(3)), s.scan.iteration)
    made = s.body.op("Gather", s.invariant("table", shape=(4, 3)), index)
    graph = s.finish(traces=[(made, TraceSpec(1, True))])
    assert_keeps_results(graph, [floats(4, 3)], "gather_to_sequence", "drop_step_counts", "hoist_sequences")
    run_passes(graph)
    assert [node.op for node in graph.nodes] == ["Transpose"]
