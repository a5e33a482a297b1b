"""A Scan read from a node and written back is the same; every kind of operand runs as described."""

import numpy as np
import pytest

from webrnn.engine.executor.executor import Executor
from webrnn.errors import ShapeError
from webrnn.ir import (
    DType,
    GraphBuilder,
    Invariant,
    Scan,
    SequenceInput,
    SequenceSpec,
    State,
    StateSpec,
    Trace,
    TraceSpec,
)
from webrnn.ir.check import check
from webrnn.ir.text import to_text


def fibonacci(**trace):
    """A state with two taps, a scale that does not change, and a trace."""
    b = GraphBuilder("fibonacci")
    start, n, scale = (
        b.input("start", DType.INT64, (2,)),
        b.input("n", DType.INT64, ()),
        b.input("scale", DType.INT64, ()),
    )
    body = GraphBuilder("step", b)
    older, newer = body.value("older"), body.value("newer")
    total = body.op("Add", older, newer, name="total")
    scaled = body.op("Mul", total, body.capture(scale), name="scaled")
    scan = Scan(body.graph, n_steps=n, name="scan")
    last, history = b.value("last"), b.value("history")
    scan.states.append(State(StateSpec(taps=(-2, -1)), start, [older, newer], total, last))
    scan.traces.append(Trace(TraceSpec(**trace), scaled, history))
    scan.invariants.extend(Invariant(*pair) for pair in body.captured_inputs())
    b.add(scan.to_node())
    b.graph.outputs = [last, history]
    return b.graph


def run(graph, *arguments):
    return Executor(graph).run([np.int64(argument) for argument in arguments])


def test_several_taps():
    last, history = run(fibonacci(), [0, 1], 5, 10)
    np.testing.assert_array_equal(last, [5, 8])
    np.testing.assert_array_equal(history, [10, 20, 30, 50, 80])


def test_trimmed_trace_keeps_the_last_steps():
    _, history = run(fibonacci(keep=2), [0, 1], 5, 1)
    np.testing.assert_array_equal(history, [5, 8])


@pytest.mark.parametrize(("steps", "reverse"), [(0, False), (2, False), (2, True), (5, True)])
def test_a_trace_that_is_longer_than_the_loop_ends_in_zeros(steps, reverse):
    _, history = run(fibonacci(length=5, reverse=reverse), [0, 1], steps, 1)
    numbers = [1, 2, 3, 5, 8][:steps]
    np.testing.assert_array_equal(history, [*(numbers[::-1] if reverse else numbers), *[0] * (5 - steps)])


def test_more_steps_than_a_trace_has_elements():
    with pytest.raises(ShapeError, match="6 steps for an output of length 5"):
        run(fibonacci(length=5), [0, 1], 6, 1)


def test_no_steps():
    last, history = run(fibonacci(), [3, 4], 0, 1)
    np.testing.assert_array_equal(last, [3, 4])
    assert history.shape == (0,)
    assert history.dtype == np.int64


def test_sequences_with_axes_and_directions():
    b = GraphBuilder("reversal")
    x = b.input("x", DType.FLOAT, (2, 3))
    body = GraphBuilder("step", b)
    element = body.value("e")
    doubled = body.op("Add", element, element)
    scan = Scan(body.graph)
    scan.sequences.append(SequenceInput(SequenceSpec(axis=1, reverse=True), x, element))
    traces = [b.value("as_read"), b.value("as_stored")]
    scan.traces.append(Trace(TraceSpec(axis=-1), doubled, traces[0]))
    scan.traces.append(Trace(TraceSpec(axis=1, reverse=True), doubled, traces[1]))
    b.add(scan.to_node())
    b.graph.outputs = traces
    check(b.graph)
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    as_read, as_stored = Executor(b.graph).run([array])
    np.testing.assert_array_equal(as_read, 2 * array[:, ::-1])
    np.testing.assert_array_equal(as_stored, 2 * array)


def test_there_and_back():
    graph = fibonacci(keep=3)
    (node,) = graph.nodes
    scan = Scan.of(node)
    assert scan.is_trimmed
    assert [value.name for value in scan.states[0].body_in] == ["older", "newer"]
    again = scan.to_node()
    assert again.inputs == node.inputs
    assert again.outputs == node.outputs
    assert again.attrs["spec"] == node.attrs["spec"]


def test_traces_of_a_state_and_trimming():
    graph = fibonacci()
    scan = Scan.of(graph.nodes[0])
    (state,) = scan.states
    assert list(scan.trace_of(state)) == []
    scan.trim(scan.traces[0], 2)
    graph.nodes[0] = scan.to_node()
    assert len(run(graph, [0, 1], 5, 1)[1]) == 2


def test_text_of_a_padded_trace():
    assert "trace scaled -> history padded to 5" in to_text(fibonacci(length=5))


def test_text():
    assert to_text(fibonacci(keep=2)) == (
        "graph fibonacci(start: int64[2], n: int64[], scale: int64[]) -> last, history\n"
        "  last, history = scan(n_steps=n)\n"
        "    state older, newer: start -> total -> last taps (-2, -1)\n"
        "    invariant scale: scale\n"
        "    trace scaled -> history last 2\n"
        "    body step(older, newer, scale: int64[]) -> total, scaled\n"
        "      total = Add(older, newer)\n"
        "      scaled = Mul(total, scale)"
    )


def test_copy_is_independent():
    graph = fibonacci()
    copy = graph.copy()
    check(copy)
    assert to_text(copy) == to_text(graph)
    copy.nodes[0].attrs["body"].nodes.clear()
    check(graph)
