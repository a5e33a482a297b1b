"""Operations counted before a run: by node, in loops, and where sizes are open."""

from webrnn.ir import DType, GraphBuilder, Scan, Symbol
from webrnn.profile.graph_flops import flops


def test_products_and_convolutions():
    b = GraphBuilder("g")
    x = b.input("x", DType.FLOAT, (2, 4, 10))
    w = b.input("w", DType.FLOAT, (6, 2, 3))
    y = b.op("Conv", x, w, group=2, pads=[1, 1])
    b.graph.outputs.append(b.op("MatMul", y, b.input("v", DType.FLOAT, (10, 5))))
    assert flops(b.graph) == 2 * (2 * 6 * 10) * (2 * 3) + 2 * (2 * 6 * 5) * 10


def test_loops_count_their_steps():
    b = GraphBuilder("g")
    x, w = b.input("x", DType.FLOAT, (7, 1, 3)), b.input("w", DType.FLOAT, (3, 3))
    inner = GraphBuilder("body", b)
    element = inner.input("element", DType.FLOAT, (1, 3))
    made = inner.op("MatMul", element, inner.capture(w))
    scan = Scan(inner.graph)
    scan.add_sequence(x, element)
    scan.add_trace(made, b.value("y"))
    scan.add_captures(inner)
    b.add(scan.to_node())
    assert flops(b.graph) == 7 * 2 * 3 * 3


def test_open_sizes_are_not_counted():
    b = GraphBuilder("g")
    x = b.input("x", DType.FLOAT, (Symbol("n"), 3))
    b.op("MatMul", x, b.input("w", DType.FLOAT, (3, 3)))
    assert flops(b.graph) is None
