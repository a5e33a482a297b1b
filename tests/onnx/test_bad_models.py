"""Hand-made wrong models and inputs: each raises an error of webrnn's that says where."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import webrnn
from tests.backends import BACKENDS, MAIN
from tests.onnx.models import bools, floats, graph, initializer, integers, model, model_of, recurrent
from webrnn import net
from webrnn.onnx.wire import MAX_DEPTH
from webrnn.plan.lowering import rule
from webrnn.reference import sizes

X = np.zeros((3, 2, 4), np.float32)


def session(proto, backend="numpy", **options):
    return webrnn.InferenceSession(proto.SerializeToString(), backend=backend, **options)


def relu(source, target, name):
    return helper.make_node("Relu", [source], [target], name=name)


def test_cycle():
    nodes = [relu("b", "a", "first"), relu("a", "b", "second"), relu("x", "y", "third")]
    with pytest.raises(webrnn.ModelError, match=r"'first'.*own result"):
        session(model(nodes, [floats("x", [1])], [floats("y", [1])]))


def test_a_cycle_beside_a_node_without_outputs():
    nodes = [relu("x", "y", "first"), helper.make_node("Abs", ["y"], []), helper.make_node("Add", ["y", "m"], ["y"])]
    with pytest.raises(webrnn.ModelError):
        session(model(nodes, [floats("x", [2])], [floats("y", [2])]))


def test_nodes_out_of_order_are_sorted():
    nodes = [relu("a", "y", "second"), relu("x", "a", "first")]
    (y,) = session(model(nodes, [floats("x", [1])], [floats("y", [1])])).run(None, {"x": np.float32([-1])})
    assert y == [0]


def test_missing_value():
    with pytest.raises(webrnn.ModelError, match=r"'only' \(Relu\).*no value 'nowhere'"):
        session(model([relu("nowhere", "y", "only")], [floats("x", [1])], [floats("y", [1])]))


def test_missing_output():
    with pytest.raises(webrnn.ModelError, match="no value 'z'"):
        session(model([relu("x", "y", "only")], [floats("x", [1])], [floats("z", [1])]))


def test_value_defined_twice():
    with pytest.raises(webrnn.ModelError, match=r"'two'.*'y' is defined twice"):
        session(model([relu("x", "y", "one"), relu("x", "y", "two")], [floats("x", [1])], [floats("y", [1])]))


@pytest.mark.parametrize("op", ["OptionalGetElement", "Identity", "SequenceInsert", "SequenceErase", "SplitToSequence"])
def test_nodes_without_inputs_beside_sequences(op):
    nodes = [helper.make_node("SequenceEmpty", [], ["s"]), helper.make_node(op, [], ["t"], name="only")]
    for backend in BACKENDS:
        with pytest.raises(webrnn.ModelError, match=r"'only' \("):
            session(model([*nodes, relu("t", "y", "last")], [], [floats("y", None)]), backend).run(None, {})


def test_missing_required_input():
    node = helper.make_node("Add", ["x"], ["y"], name="sum")
    with pytest.raises(webrnn.ModelError, match="'sum'"):
        session(model([node], [floats("x", [1])], [floats("y", [1])])).run(None, {"x": np.float32([1])})


def test_operands_of_different_types():
    node = helper.make_node("Add", ["x", "n"], ["y"], name="sum")
    with pytest.raises(webrnn.Error, match="'sum'"):
        session(model([node], [floats("x", [1]), integers("n", [1])], [floats("y", [1])])).run(
            None, {"x": np.float32([1]), "n": np.int64([1])}
        )


def test_unknown_op():
    node = helper.make_node("Frobnicate", ["x"], ["y"], name="odd")
    with pytest.raises(webrnn.UnsupportedOp, match=r"'odd' \(Frobnicate\)"):
        session(model([node], [floats("x", [1])], [floats("y", [1])]))


def test_unknown_op_in_a_loop_raises_when_the_model_is_opened():
    odd = helper.make_node("Frobnicate", ["s"], ["s_next"], name="odd")
    body = graph(
        [odd], [integers("i", []), bools("go", []), floats("s", [1])], [bools("go", []), floats("s_next", [1])]
    )
    loop = helper.make_node("Loop", ["n", "", "x"], ["y"], body=body, name="loop")
    with pytest.raises(webrnn.UnsupportedOp, match=r"'loop/odd' \(Frobnicate\)"):
        session(model([loop], [integers("n", []), floats("x", [1])], [floats("y", [1])]))


def test_unknown_op_in_a_branch_raises_when_the_branch_is_taken():
    then_branch = graph([relu("x", "a", "usual")], [], [floats("a", [1])])
    odd = helper.make_node("Frobnicate", ["x"], ["b"], name="odd")
    else_branch = graph([odd], [], [floats("b", [1])])
    node = helper.make_node("If", ["c"], ["y"], then_branch=then_branch, else_branch=else_branch, name="choice")
    s = session(model([node], [bools("c", []), floats("x", [1])], [floats("y", [1])]))
    assert s.run(None, {"c": np.array(True), "x": np.float32([-1])}) == [0]
    with pytest.raises(webrnn.UnsupportedOp, match=r"'choice/odd' \(Frobnicate\)"):
        s.run(None, {"c": np.array(False), "x": np.float32([-1])})


def test_unknown_attribute():
    node = helper.make_node("Relu", ["x"], ["y"], name="odd", sharpness=2)
    with pytest.raises(webrnn.UnsupportedOp, match="'sharpness'"):
        session(model([node], [floats("x", [1])], [floats("y", [1])])).run(None, {"x": np.float32([1])})


def test_negative_dimension_of_an_input():
    with pytest.raises(webrnn.ModelError, match="'x' has an axis of size -3"):
        session(model([relu("x", "y", "only")], [floats("x", [-3])], [floats("y", [1])]))


@pytest.mark.parametrize("dims", [[-1], [2**62, 2**62], [1 << 40]])
def test_impossible_tensor(dims):
    tensor = TensorProto(dims=dims, data_type=TensorProto.FLOAT, name="w", raw_data=b"\0" * 8)
    node = helper.make_node("Add", ["x", "w"], ["y"], name="sum")
    with pytest.raises(webrnn.ModelError, match="'w'"):
        session(model([node], [floats("x", [1])], [floats("y", None)], [tensor]))


@pytest.mark.parametrize("op", ["ConstantOfShape", "Expand", "Tile", "Range", "Pad", "OneHot"])
def test_enormous_results_are_refused(op):
    huge = np.array([1 << 20, 1 << 20], np.int64)
    x = initializer("x", np.ones((1, 1), np.float32))
    operands = {
        "ConstantOfShape": {"n": huge},
        "Expand": {"x": None, "n": huge},
        "Tile": {"x": None, "n": huge},
        "Range": {"a": np.int64(0), "b": np.int64(1 << 40), "c": np.int64(1)},
        "Pad": {"x": None, "n": np.array([0, 0, 1 << 20, 1 << 20], np.int64)},
        "OneHot": {"i": np.zeros(1 << 10, np.int64), "n": np.int64(1 << 40), "v": np.float32([0, 1])},
    }[op]
    initializers = [x if array is None else initializer(name, array) for name, array in operands.items()]
    node = helper.make_node(op, list(operands), ["y"], name="large")
    with pytest.raises(webrnn.ShapeError, match="'large'"):
        session(model([node], [], [floats("y", None)], initializers)).run(None, {})


def test_enormous_broadcast_is_refused():
    operands = [
        initializer("a", np.ones((1 << 17, 1), np.float32)),
        initializer("b", np.ones((1, 1 << 17), np.float32)),
    ]
    node = helper.make_node("Add", ["a", "b"], ["y"], name="large")
    with pytest.raises(webrnn.ShapeError, match="'large'"):
        session(model([node], [], [floats("y", None)], operands)).run(None, {})


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("lengths", [[2, 4], [-1, 3], [2]])
@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_sequence_lens_out_of_range(op, lengths, backend):
    proto = recurrent(op)
    proto.graph.node[0].input.append("lens")
    proto.graph.input.append(helper.make_tensor_value_info("lens", TensorProto.INT32, [None]))
    with pytest.raises(webrnn.ShapeError, match=r"'cell'.*(sequence_lens|out of range)"):
        session(proto, backend).run(None, {"X": X, "lens": np.array(lengths, np.int32)})


@pytest.mark.parametrize("disable", [[], ["all"]])
def test_states_for_another_batch(disable):
    proto = recurrent("GRU")
    proto.graph.node[0].input.extend(["", "h"])
    proto.graph.input.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, [1, None, 5]))
    s = session(proto, disable=disable)
    assert s.run(None, {"X": X, "h": np.zeros((1, 2, 5), np.float32)})[1].shape == (1, 2, 5)
    with pytest.raises(webrnn.ShapeError, match=r"'cell'.*initial_h has shape \(1, 1, 5\), its axis 1 needs to be 2"):
        s.run(None, {"X": X, "h": np.zeros((1, 1, 5), np.float32)})
    proto.graph.input[-1].CopyFrom(helper.make_tensor_value_info("h", TensorProto.FLOAT, [1, 3, 5]))
    with pytest.raises(webrnn.ModelError, match=r"initial_h is \[1, 3, 5\], it needs to be \[1, 2, 5\]"):
        session(proto)


@pytest.mark.parametrize(
    ("weight", "shape"),
    [("W", (1, 19, 4)), ("W", (2, 20, 4)), ("R", (1, 20, 4)), ("R", (20, 5)), ("B", (1, 39)), ("B", (1, 20))],
)
def test_wrong_weight_shapes(weight, shape):
    with pytest.raises(webrnn.ModelError, match=f"'cell'.*{weight}"):
        session(recurrent("LSTM", weight_shapes={weight: shape}))


def test_weights_for_another_input_size():
    for disable in ([], ["all"]):
        with pytest.raises(webrnn.ShapeError, match=r"'cell/from_x'.*A \[.*4\] and B \[6, 20\] differ"):
            session(recurrent("LSTM", weight_shapes={"W": (1, 20, 6)}), disable=disable).run(None, {"X": X})


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_open_input_size_is_asked_for_also_where_there_are_no_steps(backend):
    proto = recurrent("LSTM")
    for axis, name in ((0, "t"), (2, "n")):
        proto.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    made = webrnn.InferenceSession(proto.SerializeToString(), backend=backend)
    made.run(None, {"X": X[:0]})
    with pytest.raises(webrnn.ShapeError, match="X has shape"):
        made.run(None, {"X": np.zeros((0, 2, 9), np.float32)})


def test_wrong_shape_of_weights_that_are_computed():
    proto = recurrent("GRU", weight_shapes={"W": (1, 14, 4)})
    proto.graph.node[0].input[1] = "V"
    proto.graph.node.insert(0, relu("W", "V", "weights"))
    with pytest.raises(webrnn.ShapeError, match="W has shape"):
        session(proto).run(None, {"X": X})


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("activations", ["Sigmoid", "Tanh"]),
        ("activations", ["Sigmoid", "Tanh", "Cosine"]),
        ("direction", "sideways"),
        ("layout", 2),
        ("clip", "tight"),
        ("temperature", 1.0),
    ],
)
def test_wrong_recurrent_attributes(attribute, value):
    with pytest.raises(webrnn.Error, match=f"'cell' .LSTM., attribute '{attribute}'"):
        session(recurrent("LSTM", **{attribute: value}))


@pytest.mark.parametrize("hidden", [0, -5, 1 << 40])
def test_impossible_hidden_size(hidden):
    proto = recurrent("GRU")
    next(item for item in proto.graph.node[0].attribute if item.name == "hidden_size").i = hidden
    with pytest.raises(webrnn.ModelError, match="'cell'"):
        session(proto)


def never_ending_loop():
    body = graph(
        [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Identity", ["s"], ["s_next"])],
        [integers("i", []), bools("go", []), floats("s", [1])],
        [bools("go_on", []), floats("s_next", [1])],
    )
    return model(
        [helper.make_node("Loop", ["", "", "x"], ["y"], body=body, name="forever")],
        [floats("x", [1])],
        [floats("y", [1])],
    )


def test_loop_that_never_ends():
    with pytest.raises(webrnn.ModelError, match=r"'forever'.*did not end within 50 steps"):
        session(never_ending_loop(), limits=webrnn.Limits(loop_steps=50)).run(None, {"x": np.float32([1])})


def nested_ifs(depth):
    innermost = graph([helper.make_node("Identity", ["x"], ["y0"])], [], [floats("y0", [1])])
    for level in range(1, depth):
        same = graph([helper.make_node("Identity", ["x"], [f"z{level}"])], [], [floats(f"z{level}", [1])])
        node = helper.make_node("If", ["c"], [f"y{level}"], then_branch=innermost, else_branch=same, name=f"if{level}")
        innermost = graph([node], [], [floats(f"y{level}", [1])])
    node = helper.make_node("If", ["c"], ["y"], then_branch=innermost, else_branch=innermost, name="outer")
    return graph([node], [floats("x", [1]), bools("c", [])], [floats("y", [1])])


def _field(number, payload):
    length, encoded = len(payload), bytearray()
    while True:
        encoded.append(length & 0x7F | (0x80 if length > 0x7F else 0))
        length >>= 7
        if not length:
            return bytes([number << 3 | 2]) + bytes(encoded) + payload


def test_graphs_nested_500_deep():
    nested = b""
    for _ in range(500):
        nested = _field(1, _field(4, b"If") + _field(5, _field(1, b"then_branch") + _field(6, nested)))
    with pytest.raises(webrnn.ModelError, match=f"more than {MAX_DEPTH} deep"):
        webrnn.InferenceSession(_field(7, nested))


def test_graphs_nested_as_deep_as_protobuf_allows():
    proto = model_of(nested_ifs(6))
    (y,) = session(proto).run(None, {"x": np.float32([3]), "c": np.array(True)})
    assert y == [3]


def test_functions_that_call_themselves():
    inner = helper.make_node("Again", ["a"], ["b"], domain="mine")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    function = helper.make_function("mine", "Again", ["a"], ["b"], [inner], opsets)
    call = helper.make_node("Again", ["x"], ["y"], domain="mine", name="call")
    main = graph([call], [floats("x", [1])], [floats("y", [1])])
    proto = helper.make_model(main, functions=[function], opset_imports=opsets, ir_version=8)
    with pytest.raises(webrnn.ModelError, match="does it call itself"):
        session(proto)


def test_four_gigabytes_claimed_by_a_small_file():
    data = bytes([7 << 3 | 2, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F]) + bytes(1000)
    with pytest.raises(webrnn.ModelError, match="claims 4294967295 bytes, 1000 remain"):
        webrnn.InferenceSession(data)


@pytest.mark.parametrize("data", [b"", b"\x08", b"hello, this is no model", bytes(100)])
def test_not_a_model(data):
    with pytest.raises(webrnn.ModelError):
        webrnn.InferenceSession(data)


@pytest.mark.parametrize("opset", [29, 1000])
def test_opset_out_of_range(opset):
    with pytest.raises(webrnn.UnsupportedOp, match=f"opset {opset}"):
        session(model([relu("x", "y", "only")], [floats("x", [1])], [floats("y", [1])], opset=opset))


def test_file_that_is_not_there(tmp_path):
    with pytest.raises(webrnn.ModelError, match="cannot read"):
        webrnn.InferenceSession(tmp_path / "none.onnx")


@pytest.mark.parametrize("path", ["a\0b", "m" * 5000])
def test_path_that_cannot_be(path):
    with pytest.raises(webrnn.ModelError, match="cannot read"):
        webrnn.InferenceSession(path)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("steps", [10**18, 2**31, 2**63 - 1])
def test_loop_of_more_steps_than_a_plan_can_count(steps, backend):
    body = graph(
        [helper.make_node("Tanh", ["s"], ["t"]), helper.make_node("Identity", ["go"], ["on"])],
        [integers("i", []), bools("go", []), floats("s", [2])],
        [bools("on", []), floats("t", [2])],
    )
    node = helper.make_node("Loop", ["n", "", "x"], ["y"], body=body, name="long")
    data = model([node], [floats("x", [2])], [floats("y", None)], [initializer("n", np.int64(steps))])
    with pytest.raises(webrnn.Error, match="did not end within 1000 steps"):
        session(data, backend, limits=webrnn.Limits(loop_steps=1000)).run(None, {"x": np.float32([1, 2])})


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_size_that_is_squared_again_and_again(backend):
    nodes = [helper.make_node("Shape", ["x"], ["s0"])]
    nodes += [helper.make_node("Mul", [f"s{i}", f"s{i}"], [f"s{i + 1}"]) for i in range(60)]
    nodes.append(helper.make_node("Reshape", ["x", "s60"], ["y"]))
    opened = session(model(nodes, [floats("x", ["n"])], [floats("y", None)]), backend=backend)
    np.testing.assert_array_equal(opened.run(None, {"x": np.float32([3])})[0], [3])
    with pytest.raises(webrnn.ShapeError):
        opened.run(None, {"x": np.float32([1, 2, 3])})


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("op", ["Concat", "Add", "Where", "MatMul", "Gather"])
def test_results_beyond_the_limit_are_refused(op, backend, small_tensors):
    row, column = np.ones((1, 3000), np.float32), np.ones((3000, 1), np.float32)
    operands = {
        "Concat": [np.ones((1000, 1000), np.float32)] * 3,
        "Add": [row, column],
        "Where": [np.bool_(True), row, column],
        "MatMul": [column, row],
        "Gather": [row, np.zeros(3000, np.int64)],
    }[op]
    feeds = {f"x{i}": np.asarray(operand) for i, operand in enumerate(operands)}
    kinds = {"f": floats, "i": integers, "b": bools}
    inputs = [kinds[x.dtype.kind](name, list(x.shape)) for name, x in feeds.items()]
    node = helper.make_node(op, list(feeds), ["y"], name="large", **({"axis": 0} if op == "Concat" else {}))
    with pytest.raises(webrnn.ShapeError, match=r"large'.*the limit is"):
        session(model([node], inputs, [floats("y", None)]), backend=backend).run(None, feeds)


@pytest.fixture
def small_tensors():
    previous = sizes.set_max_bytes(1 << 23)
    yield
    sizes.set_max_bytes(previous)


@pytest.mark.parametrize("backend", BACKENDS)
def test_axes_that_are_wrong_only_when_it_runs(backend):
    node = helper.make_node("Squeeze", ["x", "axes"], ["y"], name="narrow")
    opened = session(model([node], [floats("x", [1]), integers("axes", [1])], [floats("y", None)]), backend)
    assert opened.run(None, {"x": np.float32([3]), "axes": np.int64([0])})[0].shape == ()
    with pytest.raises(webrnn.ShapeError, match="'narrow'"):
        opened.run(None, {"x": np.float32([3]), "axes": np.int64([1])})


@pytest.mark.parametrize("op", ["Softmax", "Upsample", "Dropout", "Clip", "Squeeze"])
def test_more_results_than_an_older_op_has(op):
    node = helper.make_node(op, ["x"], ["a", "b", "c"], name="many")
    with pytest.raises(webrnn.Error):
        session(model([node], [floats("x", [1, 2])], [floats("a", None), floats("c", None)], opset=9)).run(
            None, {"x": np.float32([[1, 2]])}
        )


def test_a_branch_does_not_see_what_its_node_makes():
    inside = graph([helper.make_node("Neg", ["y"], ["z"])], [], [floats("z", None)])
    other = graph([helper.make_node("Neg", ["x"], ["z"])], [], [floats("z", None)])
    node = helper.make_node("If", ["c"], ["y"], then_branch=inside, else_branch=other, name="choose")
    with pytest.raises(webrnn.ModelError, match="'choose'"):
        session(model([node], [floats("x", [1]), bools("c", [])], [floats("y", None)]))


@pytest.mark.parametrize("is_strict", [True, False])
def test_a_mistake_in_a_lowering_leaves_the_node_to_numpy(is_strict, monkeypatch):
    def fails(lowering, node):
        raise IndexError("nobody foresaw this")

    monkeypatch.setitem(rule.functions, ("", "Softmax"), fails)
    monkeypatch.setattr(net, "strict", is_strict)
    data = model([helper.make_node("Softmax", ["x"], ["y"])], [floats("x", [1, 2])], [floats("y", None)])
    if is_strict:
        with pytest.raises(IndexError):
            session(data, backend=MAIN)
        return
    net.caught.clear()
    (y,) = session(data, backend=MAIN).run(None, {"x": np.float32([[0, 0]])})
    np.testing.assert_array_equal(y, [[0.5, 0.5]])
    assert sum(net.caught.values()) == 3  # for all sizes, for these, and when its parts are made


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_index_out_of_range_whose_result_is_only_measured(backend):
    nodes = [helper.make_node("Gather", ["x", "i"], ["y"], name="pick"), helper.make_node("Shape", ["y"], ["z"])]
    opened = session(model(nodes, [floats("x", [3, 2]), integers("i", ["k"])], [integers("z", None)]), backend)
    x = np.zeros((3, 2), np.float32)
    assert opened.run(None, {"x": x, "i": np.int64([2, 0, 1, 1])})[0].tolist() == [4, 2]
    with pytest.raises(webrnn.ShapeError, match="'pick'"):
        opened.run(None, {"x": x, "i": np.int64([3])})


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("batch", ["n", 0])
def test_reshape_of_an_empty_batch(backend, batch):
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["r"]), helper.make_node("Relu", ["r"], ["y"])]
    shape = initializer("shape", np.array([0, -1], np.int64))
    opened = session(model(nodes, [floats("x", [batch, 2, 3])], [floats("y", None)], [shape]), backend)
    assert opened.run(None, {"x": np.zeros((0, 2, 3), np.float32)})[0].shape == (0, 6)
