"""If, Loop, Scan and functions, against onnxruntime."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import webrnn
from tests.backends import BACKENDS
from tests.onnx.models import bools, floats, graph, initializer, integers, model, model_of
from webrnn.ir import is_scan
from webrnn.ir.check import check
from webrnn.onnx.reader import read_model

onnxruntime.set_default_logger_severity(4)


def agree(proto, feeds):
    data = proto.SerializeToString()
    session = webrnn.InferenceSession(data, backend="numpy")
    check(session.graph)
    results = session.run(None, feeds)
    for ours, theirs in zip(results, onnxruntime.InferenceSession(data).run(None, feeds), strict=True):
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    return session, results


def loop_model(trip_count, condition):
    """s <- s + k, while the sum of s is below a bound; k is taken from outside."""
    body = graph(
        [
            helper.make_node("Add", ["s", "k"], ["s_next"]),
            helper.make_node("ReduceSum", ["s_next"], ["total"], keepdims=0),
            helper.make_node("Less", ["total", "bound"], ["go_on"]),
            helper.make_node("Mul", ["s_next", "s_next"], ["square"]),
        ],
        [integers("i", []), bools("go", []), floats("s", [2])],
        [bools("go_on", []), floats("s_next", [2]), floats("square", [2])],
    )
    inputs = ["n" if trip_count else "", "c" if condition else "", "s0"]
    node = helper.make_node("Loop", inputs, ["last", "squares"], body=body, name="loop")
    used = [integers("n", [])] * trip_count + [bools("c", [])] * condition
    outputs = [floats("last", [2]), floats("squares", [None, 2])]
    return model([node], [floats("s0", [2]), floats("k", [2]), *used], outputs, [initializer("bound", np.float32(9))])


@pytest.mark.parametrize(
    ("n", "c"), [(3, None), (100, None), (0, None), (None, True), (5, True), (5, False), (None, False)]
)
def test_loop(n, c):
    feeds = {"s0": np.float32([0, 1]), "k": np.float32([1, 2])}
    feeds |= {} if n is None else {"n": np.array(n)}
    feeds |= {} if c is None else {"c": np.array(c)}
    proto = loop_model(n is not None, c is not None)
    agree(proto, feeds)
    assert [is_scan(node) for node in read_model(proto.SerializeToString()).nodes] == [True]


def scan_model_and_feeds(steps, directions, axes):
    body = graph(
        [
            helper.make_node("Add", ["s", "a"], ["t"]),
            helper.make_node("Mul", ["t", "b"], ["u"]),
            helper.make_node("Add", ["t", "w"], ["v"]),
        ],
        [floats("s", [3, 2]), floats("a", [3, 2]), floats("b", [3, 2])],
        [floats("t", [3, 2]), floats("u", [3, 2]), floats("v", [3, 2])],
    )
    node = helper.make_node(
        "Scan",
        ["s0", "xs", "ys"],
        ["last", "us", "vs"],
        body=body,
        num_scan_inputs=2,
        scan_input_axes=axes[0],
        scan_input_directions=directions[0],
        scan_output_axes=axes[1],
        scan_output_directions=directions[1],
    )
    shapes = [tuple(np.insert([3, 2], axis % 3, steps)) for axis in axes[0]]
    rng = np.random.default_rng(1)
    feeds = {"s0": rng.normal(size=(3, 2)), "w": rng.normal(size=2)}
    feeds |= {name: rng.normal(size=shape) for name, shape in zip(["xs", "ys"], shapes, strict=True)}
    feeds = {name: array.astype(np.float32) for name, array in feeds.items()}
    inputs = [floats(name, array.shape) for name, array in feeds.items()]
    return model([node], inputs, [floats(name, None) for name in ("last", "us", "vs")]), feeds


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("directions", [([0, 0], [0, 0]), ([1, 0], [0, 1])])
@pytest.mark.parametrize("axes", [([0, 1], [0, 1]), ([-3, -1], [1, -1])])
def test_scan(steps, directions, axes):
    agree(*scan_model_and_feeds(steps, directions, axes))


@pytest.mark.parametrize(("axes", "shapes"), [([0, 1], [(0, 3, 2), (3, 0, 2)]), ([1, -1], [(3, 0, 2), (3, 2, 0)])])
def test_scan_of_no_steps(axes, shapes):
    """onnxruntime divides by zero here."""
    proto, feeds = scan_model_and_feeds(0, ([1, 0], [0, 1]), (axes, axes))
    last, *traces = webrnn.InferenceSession(proto.SerializeToString(), backend="numpy").run(None, feeds)
    np.testing.assert_array_equal(last, feeds["s0"])
    assert [trace.shape for trace in traces] == shapes
    assert all(trace.dtype == np.float32 for trace in traces)


@pytest.mark.parametrize("lengths", [None, [3, 1]])
@pytest.mark.parametrize("direction", [0, 1])
def test_scan_of_opset_8(lengths, direction):
    body = graph(
        [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Mul", ["t", "k"], ["u"])],
        [floats("s", [2]), floats("e", [2])],
        [floats("t", [2]), floats("u", [2])],
    )
    node = helper.make_node(
        "Scan",
        ["" if lengths is None else "lens", "s0", "xs"],
        ["last", "us"],
        body=body,
        num_scan_inputs=1,
        directions=[direction],
    )
    feeds = {
        "s0": np.ones((2, 2), np.float32),
        "xs": np.arange(12, dtype=np.float32).reshape(2, 3, 2),
        "k": np.float32([2, 3]),
    }
    inputs = [floats(name, array.shape) for name, array in feeds.items()]
    if lengths is not None:
        feeds["lens"] = np.array(lengths)
        inputs.append(integers("lens", [2]))
    agree(model([node], inputs, [floats("last", None), floats("us", None)], opset=8), feeds)


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("inner", [False, True])
def test_nested_ifs_take_values_from_outside(outer, inner):
    x_squared = graph([helper.make_node("Mul", ["x", "x"], ["a"])], [], [floats("a", [2])])
    weighted = graph([helper.make_node("Mul", ["x", "w"], ["b"])], [], [floats("b", [2])])
    choice = helper.make_node("If", ["inner"], ["n"], then_branch=x_squared, else_branch=weighted)
    chosen = graph([choice], [], [floats("n", [2])])
    constant = graph([helper.make_node("Identity", ["w"], ["d"])], [], [floats("d", [2])])
    node = helper.make_node("If", ["outer"], ["y"], then_branch=chosen, else_branch=constant)
    inputs = [floats("x", [2]), bools("outer", []), bools("inner", [])]
    proto = model([node], inputs, [floats("y", [2])], [initializer("w", np.float32([5, 6]))])
    agree(proto, {"x": np.float32([2, 3]), "outer": np.array(outer), "inner": np.array(inner)})


def test_functions_are_inlined():
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    scale = helper.make_node("LeakyRelu", ["a"], ["t"])
    scale.attribute.append(helper.make_attribute("alpha", 0.0))
    scale.attribute[0].ClearField("f")
    scale.attribute[0].ref_attr_name = "slope"
    inner = helper.make_function(
        "mine", "Leaky", ["a"], ["b"], [scale, helper.make_node("Neg", ["t"], ["b"])], opsets, ["slope"]
    )
    twice = helper.make_function(
        "mine",
        "Twice",
        ["p"],
        ["q"],
        [
            helper.make_node("Leaky", ["p"], ["t"], domain="mine", slope=0.5),
            helper.make_node("Leaky", ["t"], ["q"], domain="mine", slope=0.25),
        ],
        opsets,
    )
    call = helper.make_node("Twice", ["x"], ["y"], domain="mine", name="call")
    main = graph([call], [floats("x", [2])], [floats("y", [2])])
    proto = helper.make_model(main, functions=[inner, twice], opset_imports=opsets, ir_version=8)
    agree(proto, {"x": np.float32([-2, 3])})
    read = read_model(proto.SerializeToString())
    assert [node.op for node in read.nodes] == ["LeakyRelu", "Neg", "LeakyRelu", "Neg", "Identity"]


def test_unused_foreign_domain():
    proto = model_of(graph([helper.make_node("Relu", ["x"], ["y"])], [floats("x", [1])], [floats("y", [1])]))
    proto.opset_import.append(helper.make_opsetid("com.example", 99))
    agree(proto, {"x": np.float32([1])})


@pytest.mark.parametrize("backend", BACKENDS)
def test_trace_of_no_steps_whose_body_would_fail(backend):
    """Its shape follows from the sizes of what the body reads: the numbers would divide by zero."""
    body = graph(
        [helper.make_node("Div", ["x", "z"], ["seen"]), helper.make_node("Identity", ["go"], ["on"])],
        [integers("i", []), bools("go", [])],
        [bools("on", []), integers("seen", None)],
    )
    node = helper.make_node("Loop", ["n", ""], ["y"], body=body)
    proto = model(
        [node], [integers("x", ["k"]), integers("z", ["k"])], [integers("y", None)], [initializer("n", np.int64(0))]
    )
    opened = webrnn.InferenceSession(proto.SerializeToString(), backend=backend)
    (y,) = opened.run(None, {"x": np.int64([1, 2, 3]), "z": np.int64([0, 0, 0])})
    assert (y.shape, y.dtype) == ((0, 3), np.int64)
