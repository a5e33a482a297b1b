import numpy as np
import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, ops, reasons
from tests.passes.scans import ScanBuilder
from webrnn.ir import DType, GraphBuilder, Scan, Symbol, TraceSpec, is_scan
from webrnn.passes import run_passes


class Siblings(ScanBuilder):
    """Several Scans in one graph: `next_scan` starts another one."""

    def __init__(self):
        super().__init__()
        self.outputs = []

    def next_scan(self, states=(), traces=()):
        self.finish(states, traces)
        self.outputs += self.b.graph.outputs
        self.body = GraphBuilder("body", self.b)
        self.scan = Scan(self.body.graph, name=f"scan{len(self.outputs)}")
        self._states = []

    def graph(self):
        self.b.graph.outputs = self.outputs
        return self.b.graph


def add_average(s, name, whole=None, **sequence):
    """A running average."""
    x, h = s.sequence(name, whole=whole, **sequence), s.state(f"{name}_mean")
    after = s.body.op("Add", s.body.op("Mul", h, s.body.constant(np.float32(0.9))), x)
    s.next_scan([after], [(after, TraceSpec(reverse=sequence.get("reverse", False)))])


def scans(graph):
    return [Scan.of(node) for node in graph.nodes if is_scan(node)]


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_siblings_become_one(steps):
    s = Siblings()
    add_average(s, "x")
    add_average(s, "y", reverse=True)
    add_average(s, "z", axis=1)
    graph = s.graph()
    arguments = [floats(steps, 3), floats(3), floats(steps, 3), floats(3), floats(3, steps), floats(3)]
    assert_keeps_results(graph, arguments, "merge_scans")
    assert apply(graph, "merge_scans").rewrites["merge_scans"] == 2
    (scan,) = scans(graph)
    assert (len(scan.states), len(scan.sequences), len(scan.traces)) == (3, 3, 3)
    body = scan.body
    names = [value.name for value in (*body.inputs, *body.constants, *body.producers())]
    assert len(set(names)) == len(names)


def test_one_that_comes_after_readers_of_the_other():
    s = Siblings()
    add_average(s, "x")
    positive = s.b.op("Exp", s.outputs[-1])
    rest = s.b.op("Neg", s.b.graph.inputs[0])
    add_average(s, "y", whole=rest)
    s.outputs.append(positive)
    graph = s.graph()
    assert_keeps_results(graph, [floats(4, 3), floats(3), floats(3)], "merge_scans")
    apply(graph, "merge_scans")
    assert ops(graph)["Scan"] == 1


@pytest.mark.parametrize("order", [1, -1])
def test_which_are_merged_does_not_depend_on_the_order_of_nodes(order):
    """Of three, of which the last needs the first, the first two are one."""
    s = Siblings()
    add_average(s, "x")
    first = s.outputs[-1]
    add_average(s, "y")
    add_average(s, "z", whole=first)
    graph = s.graph()
    graph.nodes[:2] = graph.nodes[:2][::order]
    assert_keeps_results(graph, [floats(4, 3), floats(3), floats(4, 3), floats(3), floats(3)], "merge_scans")
    apply(graph, "merge_scans")
    assert [len(scan.states) for scan in scans(graph)] == [2, 1]


def counted(s, count, name):
    """A loop that adds up its step numbers."""
    s.scan.n_steps, s.scan.iteration = count, s.body.value("i")
    h = s.state(name)
    after = s.body.op("Add", h, s.body.op("Cast", s.scan.iteration, to=int(DType.FLOAT)))
    s.next_scan([after])


@pytest.mark.parametrize("count", [0, 5])
def test_loops_with_one_count(count):
    s = Siblings()
    number = s.b.input("count", DType.INT64, ())
    counted(s, number, "a")
    counted(s, number, "b")
    graph = s.graph()
    assert_keeps_results(graph, [np.array(count), floats(3), floats(3)], "merge_scans")
    apply(graph, "merge_scans")
    assert ops(graph)["Scan"] == 1


def test_a_count_and_a_sequence_of_equal_length():
    s = Siblings()
    counted(s, s.b.constant(np.array(4, np.int64)), "a")
    add_average(s, "x")
    s.b.graph.inputs[1].shape = (4, 3)
    graph = s.graph()
    assert_keeps_results(graph, [floats(3), floats(4, 3), floats(3)], "merge_scans")
    apply(graph, "merge_scans")
    (scan,) = scans(graph)
    assert scan.n_steps is None


def test_the_result_stands_still():
    s = Siblings()
    add_average(s, "x")
    add_average(s, "y", whole=s.b.graph.inputs[0])
    graph = s.graph()
    run_passes(graph, check=True)
    assert ops(graph)["Scan"] == 1
    assert not sum(run_passes(graph).rewrites.values())


def declines(s, *arguments):
    graph = s.graph()
    outcome = assert_keeps_results(graph, list(arguments), "merge_scans")
    assert outcome.rewrites["merge_scans"] == 0
    return reasons(outcome, "merge_scans")


def test_loops_that_need_each_other_stay():
    s = Siblings()
    add_average(s, "x")
    add_average(s, "y", whole=s.outputs[-1])
    assert declines(s, floats(4, 3), floats(3), floats(3)) == set()


def test_different_lengths_stay():
    s = Siblings()
    add_average(s, "x")
    add_average(s, "y")
    s.b.graph.inputs[2].shape = (Symbol("others"), 3)
    assert declines(s, floats(4, 3), floats(3), floats(5, 3), floats(3)) == set()


def test_declines_a_condition():
    s = Siblings()
    add_average(s, "x")
    h, x = s.state("h"), s.sequence("z")
    s.scan.body_cond = s.body.op("Less", s.body.op("ReduceSum", x, keepdims=0), s.body.constant(np.float32(9)))
    s.next_scan([s.body.op("Add", h, x)])
    assert declines(s, floats(4, 3), floats(3), floats(3), floats(4, 3)) == {"it may end early"}


def test_declines_unknown_lengths():
    s = Siblings()
    add_average(s, "x")
    start = s.b.input("start", DType.INT64, (1,))
    rest = s.b.op("Slice", s.b.graph.inputs[0], start, s.b.ints(99), s.b.ints(0))
    add_average(s, "y", whole=rest)
    found = declines(s, floats(4, 3), floats(3), np.int64([2]), floats(3))
    assert found == {"the number of its steps is not known"}


def test_declines_a_count_apart_from_the_sequences():
    s = Siblings()
    add_average(s, "x")
    s.scan.n_steps = s.b.constant(np.array(2, np.int64))
    add_average(s, "y")
    found = declines(s, floats(4, 3), floats(3), floats(5, 3), floats(3))
    assert found == {"the number of its steps is given apart from its sequences"}


def test_declines_a_single_step():
    s = Siblings()
    for index, name in enumerate("xy"):
        add_average(s, name)
        s.b.graph.inputs[2 * index].shape = (1, 3)
    assert declines(s, floats(1, 3), floats(3), floats(1, 3), floats(3)) == {"it takes one step"}


def test_declines_cells():
    s = Siblings()
    add_average(s, "x")
    y, h = s.sequence("y"), s.state("h")
    s.next_scan([s.body.op("Tanh", s.body.op("Add", s.body.op("MatMul", h, s.body.constant(floats(3, 3))), y))])
    found = declines(s, floats(4, 3), floats(3), floats(4, 3), floats(3))
    assert found == {"its matrix product outweighs the loop around it"}


def test_declines_what_could_fail_without_a_step():
    s = Siblings()
    add_average(s, "x")
    index, h = s.sequence("index", whole=s.b.input("index", DType.INT64, (Symbol("steps"),))), s.state("h")
    picked = s.body.op("Gather", s.body.constant(floats(0, 3)), index)
    after = s.body.op("Add", h, picked)
    s.next_scan([after])
    found = declines(s, floats(0, 3), floats(3), np.zeros(0, np.int64), floats(3))
    assert found == {"a step could fail where the loop takes none"}
