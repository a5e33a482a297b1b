import numpy as np
import pytest

from tests.models.fetch import model_path
from tests.passes.differential import apply, assert_keeps_results, assert_same_results, floats, graph_of, ops, reasons
from tests.passes.scans import ScanBuilder
from webrnn.ir import DType, GraphBuilder, State, StateSpec, Symbol, TraceSpec
from webrnn.onnx.reader import read_model
from webrnn.passes import run_passes

NAME = "inline_single_step"


def accumulator(length=1, n_steps=None, axis=0, reverse=False, trace=None, read=True):
    """h' = tanh(x + h); its final and a trace are outputs."""
    s = ScanBuilder()
    shape = [3]
    shape.insert(axis, length)
    whole = s.b.input("x", DType.FLOAT, tuple(shape))
    x, h = s.sequence("x", axis, reverse, whole), s.state("h")
    after = s.body.op("Tanh", s.body.op("Add", x, h))
    if n_steps is not None:
        s.scan.n_steps = s.b.constant(np.array(n_steps))
    other = s.body.op("Mul", after, after)
    graph = s.finish([after], [(other, trace or TraceSpec())], read=lambda name: read)
    return s, graph


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("trace", [TraceSpec(), TraceSpec(axis=1), TraceSpec(axis=-1, reverse=True), TraceSpec(keep=1)])
def test_a_sequence_of_one_element(axis, reverse, trace):
    _, graph = accumulator(axis=axis, reverse=reverse, trace=trace)
    x = floats(3).reshape([1, 3] if axis == 0 else [3, 1])
    outcome = assert_keeps_results(graph, [x, floats(3)], NAME)
    assert outcome.rewrites[NAME] == 1
    apply(graph, NAME)
    assert ops(graph) == {"Squeeze": 1, "Add": 1, "Tanh": 1, "Mul": 1, "Identity": 1, "Unsqueeze": 1}


@pytest.mark.parametrize("reverse", [False, True])
def test_one_step_on_a_longer_sequence(reverse):
    _, graph = accumulator(length=4, n_steps=1, reverse=reverse)
    assert_keeps_results(graph, [floats(4, 3), floats(3)], NAME)
    apply(graph, NAME)
    assert ops(graph)["Scan"] == 0
    assert ops(graph)["Gather"] == 1


@pytest.mark.parametrize(("length", "n_steps"), [(2, None), (4, 0), (0, None), ("n", None)])
def test_other_numbers_of_steps_stay(length, n_steps):
    _, graph = accumulator(length=Symbol(length) if isinstance(length, str) else length, n_steps=n_steps)
    assert apply(graph, NAME, semantics="stream").rewrites[NAME] == 0


def test_a_condition_stays():
    s = ScanBuilder()
    x, h = s.sequence("x", whole=s.b.input("x", DType.FLOAT, (1, 3))), s.state("h")
    s.scan.body_cond = s.body.constant(np.array(True))
    graph = s.finish([s.body.op("Add", x, h)])
    assert apply(graph, NAME, semantics="stream").rewrites[NAME] == 0


def test_counter_invariants_and_states_that_change_places():
    s = ScanBuilder()
    x, h, g = s.sequence("x", whole=s.b.input("x", DType.FLOAT, (1, 3))), s.state("h"), s.state("g")
    scale = s.invariant("scale")
    s.scan.iteration = s.body.value("i")
    count = s.body.op("Cast", s.scan.iteration, to=1)
    made = s.body.op("Add", s.body.op("Mul", x, scale), count)
    graph = s.finish([g, h], [made, scale])
    assert_keeps_results(graph, [floats(1, 3), floats(3), floats(3, seed=1), floats(3, seed=2)], NAME)
    apply(graph, NAME)
    assert "Scan" not in ops(graph)


def test_taps():
    b = GraphBuilder("main")
    init, x = b.input("init", DType.FLOAT, (3, 2)), b.input("x", DType.FLOAT, (1, 2))
    s = ScanBuilder()
    s.b, s.scan.body.name = b, "body"
    element = s.sequence("x", whole=x)
    older, newer = s.body.value("older"), s.body.value("newer")
    after = s.body.op("Sub", s.body.op("Add", older, newer), element)
    final = b.value("final")
    s.scan.states.append(State(StateSpec((-3, -1)), init, [older, newer], after, final))
    graph = s.finish()
    assert_keeps_results(graph, [floats(3, 2), floats(1, 2)], NAME)
    apply(graph, NAME)
    assert "Scan" not in ops(graph)


def test_without_states_it_need_not_be_the_outermost_graph():
    s = ScanBuilder()
    rows = s.sequence("x")
    inner = ScanBuilder()
    element = inner.body.value("e")
    inner.b = s.body
    one = s.body.op("Unsqueeze", rows, s.body.ints(0))
    inner.scan.add_sequence(one, element)
    trace = s.body.value("trace")
    inner.scan.add_trace(inner.body.op("Relu", element), trace)
    s.body.add(inner.scan.to_node())
    h = s.state("h")
    graph = s.finish([s.body.op("Add", h, s.body.op("Squeeze", trace, s.body.ints(0)))])
    assert_keeps_results(graph, [floats(4, 3), floats(3)], NAME)
    apply(graph, NAME)
    assert ops(graph)["Scan"] == 1


def with_state_inside(semantics):
    s = ScanBuilder()
    rows, h = s.sequence("x"), s.state("h")
    inner = ScanBuilder()
    inner.b = s.body
    element, state = inner.body.value("e"), inner.body.value("s")
    inner.scan.add_sequence(s.body.op("Unsqueeze", rows, s.body.ints(0)), element)
    final = s.body.value("final")
    inner.scan.add_state(h, state, inner.body.op("Add", element, state), final)
    s.body.add(inner.scan.to_node())
    graph = s.finish([final])
    assert_keeps_results(graph, [floats(4, 3), floats(3)], NAME)
    outcome = apply(graph, NAME, semantics=semantics)
    return ops(graph)["Scan"], reasons(outcome, NAME)


@pytest.mark.parametrize("semantics", ["run", "stream"])
def test_a_loop_with_states_in_a_loop(semantics):
    assert with_state_inside(semantics) == (1, set())


def test_declines_a_loop_with_states_in_a_branch_unless_it_streams():
    text = """g (float[1, 3] x, float[3] h, bool c) => (float[3] y) {
        y = If(c) <
            then_branch = yes () => (float[3] t) {
                t = Scan<num_scan_inputs = 1, body = b (float[3] s, float[3] e) => (float[3] n) { n = Add(s, e) }>(h, x)
            },
            else_branch = no () => (float[3] u) { u = Identity(h) }
        >
    }"""
    graph = graph_of(text)
    assert reasons(apply(graph, NAME), NAME) == {"it has states and is inside a branch"}
    assert ops(graph)["Scan"] == 1
    assert not reasons(apply(graph, NAME, semantics="stream"), NAME)
    assert ops(graph)["Scan"] == 0


def test_declines_a_state_that_no_output_holds():
    _, graph = accumulator(read=False)
    outcome = apply(graph, NAME)
    assert reasons(outcome, NAME) == {"the last value of state h is in no output of the model"}
    apply(graph, NAME, semantics="stream")
    assert "Scan" not in ops(graph)


def test_a_value_computed_from_a_state_does_not_hold_it():
    s, graph = accumulator()
    graph.outputs = [s.b.op("Tanh", graph.outputs[0])]
    assert apply(graph, NAME).rewrites[NAME] == 0


def test_an_output_may_hold_a_state_rearranged():
    s, graph = accumulator()
    flat = s.b.op("Reshape", s.b.op("Concat", *graph.outputs[:1] * 2, axis=0), s.b.ints(-1))
    graph.outputs = [flat]
    assert apply(graph, NAME).rewrites[NAME] == 1


def test_a_trace_of_the_state_holds_its_last_value():
    s = ScanBuilder()
    x, h = s.sequence("x", whole=s.b.input("x", DType.FLOAT, (1, 3))), s.state("h")
    after = s.body.op("Add", x, h)
    graph = s.finish([after], [after], read=lambda name: False)
    assert apply(graph, NAME).rewrites[NAME] == 1


def two_grus():
    """df_dec of DeepFilterNet3 in small: GRU, GRU, Linear, and only its result is an output."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    size = 4
    nodes, weights = [], []
    source = "x"
    for index in range(2):
        for name, shape in (("W", (1, 3 * size, size)), ("R", (1, 3 * size, size)), ("B", (1, 6 * size))):
            weights.append(numpy_helper.from_array(floats(*shape, seed=index) * 0.3, f"{name}{index}"))
        operands = [source, f"W{index}", f"R{index}", f"B{index}"]
        nodes.append(helper.make_node("GRU", operands, [f"y{index}"], hidden_size=size, linear_before_reset=1))
        nodes.append(helper.make_node("Squeeze", [f"y{index}", "one"], [f"s{index}"]))
        source = f"s{index}"
    weights += [numpy_helper.from_array(np.int64([1]), "one"), numpy_helper.from_array(floats(size, 2), "fc")]
    nodes.append(helper.make_node("MatMul", [source, "fc"], ["coefficients"]))
    types = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1, n])
        for name, n in (("x", size), ("coefficients", 2))
    ]
    graph = helper.make_graph(nodes, "df_dec", types[:1], types[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    return read_model(model.SerializeToString())


@pytest.mark.parametrize(("semantics", "loops"), [("run", 2), ("stream", 0)])
def test_two_grus_and_a_projection(semantics, loops):
    before = two_grus()
    after = before.copy()
    run_passes(after, semantics=semantics, check=True)
    assert ops(after)["Scan"] == loops
    assert_same_results(before, after, [floats(1, 1, 4)], bits=False)


def test_dtln_1_inlines():
    graph = read_model(model_path("dtln_1").read_bytes())
    run_passes(graph)
    assert "Scan" not in ops(graph)
