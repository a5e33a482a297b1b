import numpy as np

from tests.passes.differential import apply, assert_keeps_results, ops, reasons
from webrnn.ir import DType, GraphBuilder, Scan, Symbol


def loop(batch, with_state=False):
    """x [batch, time] -> tanh of each row, and perhaps their sum."""
    b = GraphBuilder("g")
    x = b.input("x", DType.FLOAT, (batch, Symbol("time")))
    inner = GraphBuilder("row", b)
    row = inner.value("row", DType.FLOAT, (Symbol("time"),))
    scan = Scan(inner.graph, name="rows")
    scan.add_sequence(x, row)
    scan.add_trace(inner.op("Tanh", row), b.value("y"))
    b.graph.outputs.append(scan.traces[0].whole)
    if with_state:
        total = inner.value("total", DType.FLOAT, ())
        after = inner.op("Add", total, inner.op("ReduceSum", row, keepdims=0))
        scan.add_state(b.constant(np.float32(0)), total, after, b.value("sum"))
        b.graph.outputs.append(scan.states[0].final)
    b.add(scan.to_node())
    return b.graph


X = np.array([[0.5, -1.0, 2.0]], np.float32)


def test_a_map_over_a_batch_of_one():
    graph = loop(1)
    assert_keeps_results(graph, [X], "inline_maps")
    apply(graph, "infer_shapes", "inline_maps")
    assert "Scan" not in ops(graph)
    assert ops(graph)["Tanh"] == 1


def test_a_batch_of_any_size_stays():
    graph = loop(Symbol("batch"))
    apply(graph, "infer_shapes", "inline_maps")
    assert ops(graph) == {"Scan": 1, "Tanh": 1}


def test_declines_states():
    outcome = apply(loop(1, with_state=True), "infer_shapes", "inline_maps")
    assert reasons(outcome, "inline_maps") == {"it has states"}
