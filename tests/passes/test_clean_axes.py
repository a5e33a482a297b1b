import pytest

from tests.passes.differential import apply, assert_keeps_results, floats, ops, reasons
from tests.passes.scans import ScanBuilder, scan_in
from webrnn.ir import Symbol, TraceSpec
from webrnn.passes import run_passes

STEPS = pytest.mark.parametrize("steps", [0, 1, 4])


def recurrence(there, back, shape, x_shape=(3,), more=None, read=True):
    """h = back(tanh(x + there(h))), traced; `more` adds reads of the state."""
    s = ScanBuilder()
    x = s.sequence("x")
    s.scan.sequences[0].whole.shape = (None, *x_shape)
    h = s.state("h")
    s._states[0][0].shape = shape
    made = s.body.op("Tanh", s.body.op("Add", x, there(s.body, h)))
    if more is not None:
        made = more(s, h, made)
    after = back(s.body, made)
    return s.finish([after], traces=[(after, TraceSpec())], read=lambda name: read)


def squeeze(*axes):
    return lambda b, value: b.op("Squeeze", value, b.ints(*axes))


def unsqueeze(*axes):
    return lambda b, value: b.op("Unsqueeze", value, b.ints(*axes))


def transpose(*perm):
    return lambda b, value: b.op("Transpose", value, **({"perm": list(perm)} if perm else {}))


def reshape(*sizes):
    return lambda b, value: b.op("Reshape", value, b.ints(*sizes))


def as_it_is(b, value):
    return value


CASES = {
    "unit axis": (squeeze(0), unsqueeze(0), (1, 3), (3,)),
    "unit axes": (squeeze(-1, 0), unsqueeze(0, 2), (1, 3, 1), (3,)),
    "added axis": (unsqueeze(0), squeeze(0), (3,), (1, 3)),
    "transpose": (transpose(1, 0), transpose(1, 0), (2, 3), (3, 2)),
    "transpose without an order": (transpose(), transpose(), (2, 3), (3, 2)),
    "three axes": (transpose(1, 2, 0), transpose(2, 0, 1), (2, 3, 4), (3, 4, 2)),
    "reshape": (reshape(3, 2), reshape(2, 3), (2, 3), (3, 2)),
    "reshape and unsqueeze": (reshape(-1), unsqueeze(0), (1, 3), (3,)),
}


@STEPS
@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_a_state_is_rearranged_outside(name, steps, read):
    there, back, shape, x_shape = CASES[name]
    graph = recurrence(there, back, shape, x_shape, read=read)
    arguments = [floats(steps, *x_shape), floats(*shape)]
    assert_keeps_results(graph, arguments, "clean_axes")
    assert apply(graph, "clean_axes").rewrites["clean_axes"] == 1
    assert_keeps_results(graph, arguments, "clean_axes", "sink_outputs")
    apply(graph, "clean_axes", "sink_outputs")
    scan = scan_in(graph)
    assert ops(scan.body) == {"Add": 1, "Tanh": 1}
    (trace,) = scan.traces
    assert trace.element is scan.states[0].body_out


def test_all_readers_move():
    def more(s, h, made):
        return s.body.op("Mul", made, s.body.op("Squeeze", h, s.body.ints(-2)))

    graph = recurrence(squeeze(0), unsqueeze(0), (1, 3), more=more)
    assert_keeps_results(graph, [floats(4, 3), floats(1, 3)], "clean_axes")
    apply(graph, "clean_axes")
    assert ops(scan_in(graph).body)["Squeeze"] == 0


def test_two_ops_in_a_row_leave():
    def there(b, value):
        return b.op("Transpose", b.op("Squeeze", value, b.ints(0)), perm=[1, 0])

    def back(b, value):
        return b.op("Unsqueeze", b.op("Transpose", value, perm=[1, 0]), b.ints(0))

    graph = recurrence(there, back, (1, 2, 3), (3, 2))
    assert_keeps_results(graph, [floats(4, 3, 2), floats(1, 2, 3)], "clean_axes")
    run_passes(graph, check=True)
    assert not {"Squeeze", "Unsqueeze", "Transpose"} & ops(scan_in(graph).body).keys()


def test_a_state_of_a_named_size():
    graph = recurrence(squeeze(0), unsqueeze(0), (1, Symbol("n")), (Symbol("n"),))
    arguments = [floats(4, 3), floats(1, 3)]
    assert assert_keeps_results(graph, arguments, "clean_axes").rewrites["clean_axes"] == 1


def declines(graph, *arguments):
    outcome = assert_keeps_results(graph, list(arguments), "clean_axes")
    assert outcome.rewrites["clean_axes"] == 0
    return reasons(outcome, "clean_axes")


def test_declines_a_state_that_is_also_read_as_it_is():
    def more(s, h, made):
        return s.body.op("Mul", made, s.body.op("ReduceSum", h, keepdims=0))

    graph = recurrence(squeeze(0), unsqueeze(0), (1, 3), more=more)
    assert declines(graph, floats(4, 3), floats(1, 3)) == {"state h: it is also read as it is"}


def test_declines_a_state_that_is_traced():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    s._states[0][0].shape = (1, 3)
    after = unsqueeze(0)(s.body, s.body.op("Add", x, squeeze(0)(s.body, h)))
    graph = s.finish([after], traces=[h])
    assert declines(graph, floats(4, 3), floats(1, 3)) == {"state h: it is also read as it is"}


def test_declines_different_ways():
    def more(s, h, made):
        return s.body.op("Mul", made, s.body.op("ReduceSum", transpose()(s.body, h), keepdims=0))

    graph = recurrence(squeeze(0), unsqueeze(0), (1, 3), more=more)
    assert declines(graph, floats(4, 3), floats(1, 3)) == {"state h: it is not always rearranged in the same way"}


@pytest.mark.parametrize(
    ("there", "back", "shape", "x_shape"),
    [
        (transpose(1, 0), as_it_is, (3, 3), (3, 3)),
        (transpose(1, 0), reshape(2, 3), (2, 3), (3, 2)),
        (transpose(1, 2, 0), transpose(1, 2, 0), (3, 3, 3), (3, 3, 3)),
    ],
)
def test_declines_what_is_not_put_back(there, back, shape, x_shape):
    graph = recurrence(there, back, shape, x_shape)
    found = declines(graph, floats(4, *x_shape), floats(*shape))
    assert found == {"state h: its next value is not rearranged back"}


def test_declines_a_state_that_is_only_turned_around():
    s = ScanBuilder()
    s.sequence("x")
    h = s.state("h")
    s._states[0][0].shape = (3, 3)
    graph = s.finish([transpose(1, 0)(s.body, h)])
    found = declines(graph, floats(3, 3), floats(3, 3))
    assert found == {"state h: its next value is not rearranged back"}


def test_declines_unknown_shapes():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    s._states[0][0].shape = None
    graph = s.finish([unsqueeze(0)(s.body, s.body.op("Add", x, squeeze(0)(s.body, h)))])
    assert declines(graph, floats(4, 3), floats(1, 3)) == {"state h: its shape is not known"}


def test_declines_what_is_not_constant():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    s._states[0][0].shape = (3, 1)
    made = s.body.op("Add", x, squeeze(1)(s.body, h))
    shape = s.body.op("Concat", s.body.op("Shape", made), s.body.ints(1), axis=0)
    graph = s.finish([s.body.op("Reshape", made, shape)])
    assert declines(graph, floats(4, 3), floats(3, 1)) == {"state h: how it is rearranged is not constant"}


def test_a_state_that_nothing_rearranges():
    s = ScanBuilder()
    x, h = s.sequence("x"), s.state("h")
    outcome = apply(s.finish([s.body.op("Add", x, h)]), "clean_axes")
    assert not outcome.declines
    assert outcome.rewrites["clean_axes"] == 0
