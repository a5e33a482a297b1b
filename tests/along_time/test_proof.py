"""Which axis is time, which loops are carried, and what is said of models that are refused."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import webrnn
from tests.engine.stream_models import hidden_state
from tests.models.fetch import model_path
from tests.onnx.models import floats, graph, initializer, integers, model
from webrnn.along_time import streamed
from webrnn.onnx.reader import read_model

from .pieces import NEEDS_MORE, RECURRENT, WIDTH, Builder, build, cell, early_exit, over_features, recurrent

RNG = np.random.default_rng(0)


def session(proto, **options):
    return webrnn.InferenceSession(proto.SerializeToString(), **{"backend": "numpy", **options})


def refusal(proto):
    with pytest.raises(webrnn.ModelError) as raised:
        session(proto).stream(carry="internal")
    return raised.value


def noise(*shape):
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def one_output(b, value, **outputs):
    b.nodes.append(helper.make_node("Identity", [value], ["y"]))
    return b.model({"y": None, **outputs})


@pytest.mark.parametrize(
    ("piece", "node", "reason"),
    [
        ("next_frame_by_counter", "own_loop", "uses the number of frames"),
        ("backwards_by_hand", "own_loop", "runs backwards in time"),
        ("go_backwards", "lstm_layer_reverse", "runs backwards in time"),
        ("flipped_lstm", "flip", "turns the sequence round in time"),
        ("bidirectional", "gru_layer_reverse", "runs backwards in time"),
    ],
)
def test_what_is_said_of_a_node_that_needs_more(piece, node, reason):
    said = refusal(build([NEEDS_MORE[piece], RECURRENT["gru"]], np.random.default_rng(0)))
    assert said.node == node
    assert reason in said.message
    assert "run whole sequences, or export the model with its state as inputs and outputs" in said.message


@pytest.mark.parametrize("use", ["stream", "pool", "export"])
def test_pools_and_export_refuse_the_same(use, tmp_path):
    s = webrnn.InferenceSession(build([NEEDS_MORE["bidirectional"], RECURRENT["gru"]], RNG).SerializeToString())
    uses = {
        "stream": lambda: s.stream(carry="internal"),
        "pool": lambda: s.pool(carry="internal"),
        "export": lambda: s.export(tmp_path / "m.rnn", carry="internal"),
    }
    with pytest.raises(webrnn.ModelError, match=r"node 'gru_layer_reverse'.*backwards"):
        uses[use]()
    assert not (tmp_path / "m.rnn").exists()


def test_a_loop_that_may_end_early_is_refused():
    assert "a condition decides when it ends" in refusal(build([early_exit], RNG)).message


def keras_loop(writes_by_index, first=0, step=1, fewer=0, most=2**31 - 1, frame_of="n", start=0, has_count=False):
    """A `while i < time` of Keras: weights and the counter are states, frames are picked and written by the counter."""
    b = Builder(np.random.default_rng(3), batch=1)
    x = b.input("x", ["time", 1, WIDTH])
    count = b.op("Squeeze", b.size(x, 0), b.ints(0))
    end = b.op("Sub", count, b.scalar(fewer)) if fewer else count
    one, weights = b.scalar(step), b.weights(WIDTH, WIDTH)
    nodes = [
        helper.make_node("Sub", ["n", b.scalar(1)], ["before"]),
        helper.make_node("Gather", [x, frame_of], ["frame"], axis=0),
        helper.make_node("MatMul", ["h", "w"], ["product"]),
        helper.make_node("Add", ["frame", "product"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["h_next"]),
        helper.make_node("Add", ["n", one], ["n_next"]),
        helper.make_node("Identity", ["w"], ["w_next"]),
        helper.make_node("Less", ["n_next", end], ["go_on"]),
    ]
    ins = [integers("i", []), helper.make_tensor_value_info("go", TensorProto.BOOL, [])]
    ins += [integers("n", []), floats("w", None), floats("h", None)]
    outs = [
        helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
        integers("n_next", []),
        floats("w_next", None),
    ]
    outs += [floats("h_next", None)]
    inits = [b.scalar(first), weights, b.constant(np.zeros((1, WIDTH), np.float32))]
    if writes_by_index:
        nodes += [
            helper.make_node("Reshape", ["n", b.ints(1, 1)], ["place"]),
            helper.make_node("Unsqueeze", ["h_next", b.ints(0)], ["row"]),
            helper.make_node("ScatterND", ["results", "place", "row"], ["results_next"]),
        ]
        value = helper.make_tensor("value", TensorProto.FLOAT, [1], [start])
        inits.append(b.op("ConstantOfShape", b.op("Shape", x), value=value))
        ins, outs = [*ins, floats("results", None)], [*outs, floats("results_next", None)]
    else:
        nodes.append(helper.make_node("Identity", ["h_next"], ["y_t"]))
        outs.append(floats("y_t", None))
    body = graph(nodes, ins, outs)
    go = b.op("Less", b.scalar(first), end)
    results = b.op("Loop", b.scalar(most), go, *inits, n_outputs=4, name="while_loop", body=body)
    proto = one_output(b, results[3])
    if has_count:
        proto.graph.output.append(integers(results[0], []))
    return proto


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("lengths", [[1] * 7, [3, 4], [2, 0, 5]])
@pytest.mark.parametrize("writes_by_index", [False, True])
def test_loops_with_a_counter_and_weights_as_states_walk_over_frames(writes_by_index, lengths, backend):
    s, frames = session(keras_loop(writes_by_index), backend=backend), noise(7, 1, WIDTH)
    stream = s.stream(carry="internal")
    assert list(stream.carry) == ["while_loop.h"]
    parts = [stream.step({"x": chunk})[0] for chunk in np.split(frames, np.cumsum(lengths)[:-1])]
    np.testing.assert_array_equal(np.concatenate(parts), s.run(None, {"x": frames})[0])


def test_a_counter_that_is_an_output_counts_all_frames_so_far():
    s, frames = session(keras_loop(True, start=7, has_count=True)), noise(7, 1, WIDTH)
    stream = s.stream(carry="internal")
    for start, end in ((0, 1), (1, 4), (4, 7)):
        y, count = stream.step({"x": frames[start:end]})
        whole, whole_count = s.run(None, {"x": frames[:end]})
        np.testing.assert_array_equal(y, whole[start:])
        assert count == whole_count == end


@pytest.mark.parametrize("writes_by_index", [False, True])
@pytest.mark.parametrize(
    "other",
    [{"first": 1}, {"step": 2}, {"fewer": 1}, {"most": 4}, {"frame_of": "before"}],
    ids=lambda other: next(iter(other)),
)
def test_counters_that_leave_frames_out_are_refused_by_name(other, writes_by_index):
    proto = keras_loop(writes_by_index, **other)
    assert len(session(proto).run(None, {"x": noise(5, 1, WIDTH)})[0])
    assert refusal(proto).node == "while_loop"


def test_a_loop_inside_frames_is_not_carried():
    b = Builder(RNG)
    x = b.input("x", ["batch", "time", WIDTH])
    proto = one_output(b, recurrent(b, over_features(b, x), "GRU"))
    stream = session(proto).stream(carry="internal")
    assert len(stream.carry) == 1


def test_a_loop_inside_frames_alone():
    """Only the axis that it walks could be time; the other one, which is open, is what the caller means."""
    b = Builder(RNG)
    x = b.input("x", ["time", WIDTH, 1])
    y = cell(b, b.op("Transpose", x, perm=[1, 0, 2]), inputs=1)
    said = refusal(one_output(b, y))
    assert said.node == "gru_layer"
    assert "which of them is time is not clear" in said.message


def two_ways(*sizes):
    b = Builder(RNG)
    x = b.input("x", [*sizes, WIDTH])
    first = b.op("Squeeze", cell(b, x, "GRU"), b.ints(1))
    second = b.op("Transpose", first, perm=[1, 0, 2])
    return one_output(b, b.op("Squeeze", cell(b, second, "LSTM"), b.ints(1)))


def test_loops_along_two_axes_are_refused_by_name():
    said = refusal(two_ways("m", "n"))
    assert "'gru_layer' along axis 0 and 'lstm_layer' along axis 1" in said.message


def test_the_open_axis_is_time():
    s = session(two_ways("frames", 4))
    x = noise(6, 4, WIDTH)
    stream = s.stream(carry="internal")
    assert list(stream.carry) == ["gru_layer.h"]
    parts = [stream.step({"x": x[start : start + 2]})[0] for start in (0, 2, 4)]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), s.run(None, {"x": x})[0], atol=1e-6)


def test_frames_of_a_fixed_number():
    """Steps of 4 frames, one after the other, are one sequence."""
    proto = build([RECURRENT["lstm"]], np.random.default_rng(1))
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 4
    open_proto = build([RECURRENT["lstm"]], np.random.default_rng(1))
    x = noise(2, 8, WIDTH)
    stream = session(proto).stream(carry="internal")
    parts = [stream.step({"x": x[:, start : start + 4]})[0] for start in (0, 4)]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), session(open_proto).run(None, {"x": x})[0], atol=1e-6)


def test_positions_of_a_fixed_number_of_frames_are_refused():
    b = Builder(RNG, batch=1)
    x = b.input("x", [1, 4, WIDTH])
    added = b.op("Add", x, b.weights(1, 4, WIDTH), name="positions")
    assert refusal(one_output(b, recurrent(b, added))).node == "positions"


def test_a_constant_that_is_the_same_for_all_frames():
    b = Builder(RNG, batch=1)
    x = b.input("x", [1, 4, WIDTH])
    added = b.op("Add", x, b.constant(np.full((1, 4, WIDTH), 0.5, np.float32)))
    session(one_output(b, recurrent(b, added))).stream(carry="internal")


@pytest.mark.parametrize("take", ["final", "gather", "slice", "gather_of_count"])
def test_what_comes_after_the_last_frame(take):
    """It is that of the whole sequence up to here, after each step."""
    b = Builder(RNG)
    x = b.input("x", ["time", "batch", WIDTH])
    rows = 3 * WIDTH
    operands = [b.weights(1, rows, WIDTH), b.weights(1, rows, WIDTH), b.weights(1, 2 * rows)]
    y, final = b.op("GRU", x, *operands, n_outputs=2, hidden_size=WIDTH)
    number = b.op("Sub", b.op("Squeeze", b.size(y, 0), b.ints(0)), b.scalar(1))
    last = {
        "final": lambda: final,
        "gather": lambda: b.op("Gather", y, b.scalar(-1), axis=0),
        "slice": lambda: b.op("Slice", y, b.ints(-1), b.ints(2**63 - 1), b.ints(0)),
        "gather_of_count": lambda: b.op("Gather", y, number, axis=0),
    }[take]()
    proto = one_output(b, b.op("Softmax", b.op("MatMul", last, b.weights(WIDTH, 3)), axis=-1))
    s, frames = session(proto), noise(6, 2, WIDTH)
    stream = s.stream(carry="internal")
    for start in (0, 2, 4):
        (result,) = stream.step({"x": frames[start : start + 2]})
        np.testing.assert_allclose(result, s.run(None, {"x": frames[: start + 2]})[0], atol=1e-6)


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceMax"])
def test_all_frames_at_the_end_are_refused(op):
    b = Builder(RNG)
    x = b.input("x", ["batch", "time", WIDTH])
    y = b.op(op, recurrent(b, x), b.ints(1), name="over_time", keepdims=0)
    said = refusal(one_output(b, y))
    assert (said.node, said.op) == ("over_time", op)


def test_the_last_two_frames_are_refused():
    b = Builder(RNG)
    y = recurrent(b, b.input("x", ["batch", "time", WIDTH]))
    assert "takes frames out" in refusal(one_output(b, b.op("Slice", y, b.ints(-2), b.ints(99), b.ints(1)))).message


def test_the_number_of_frames_is_no_output():
    b = Builder(RNG)
    y = recurrent(b, b.input("x", ["batch", "time", WIDTH]))
    b.nodes.append(helper.make_node("Shape", [y], ["sizes"], name="counting"))
    proto = one_output(b, y)
    proto.graph.output.append(integers("sizes", None))
    assert refusal(proto).node == "counting"


def test_frames_and_streams_in_one_axis_are_no_output():
    b = Builder(RNG)
    y = recurrent(b, b.input("x", ["batch", "time", WIDTH]))
    said = refusal(one_output(b, b.op("Reshape", y, b.ints(-1, WIDTH))))
    assert "counts frames and others together" in said.message


def test_a_state_that_starts_from_what_is_fed():
    b = Builder(RNG)
    x, start = b.input("x", ["time", "batch", WIDTH]), b.input("start", [1, "batch", WIDTH])
    rows = 3 * WIDTH
    operands = [b.weights(1, rows, WIDTH), b.weights(1, rows, WIDTH), b.weights(1, 2 * rows)]
    y, _ = b.op("GRU", x, *operands, "", start, n_outputs=2, name="started", hidden_size=WIDTH)
    y = cell(b, b.op("Squeeze", y, b.ints(1)))
    s = session(one_output(b, y), backend="native")
    feeds = {"x": noise(9, 2, WIDTH), "start": noise(1, 2, WIDTH)}
    (whole,) = s.run(None, feeds)
    stream = s.stream(carry="internal")
    parts = [stream.step({**feeds, "x": feeds["x"][at : at + 3]})[0] for at in range(0, 9, 3)]
    assert np.array_equal(np.concatenate(parts), whole)


def test_lengths_of_sequences_are_refused():
    b = Builder(RNG)
    x = b.input("x", ["time", 2, WIDTH])
    rows = 3 * WIDTH
    operands = [b.weights(1, rows, WIDTH), b.weights(1, rows, WIDTH), b.weights(1, 2 * rows)]
    lengths = b.constant(np.array([3, 2], np.int32))
    y, _ = b.op("GRU", x, *operands, lengths, n_outputs=2, name="masked", hidden_size=WIDTH)
    assert "sequence_lens" in refusal(one_output(b, y)).message


def test_lengths_that_are_all_frames():
    b = Builder(RNG)
    x = b.input("x", ["time", 1, WIDTH])
    rows = 3 * WIDTH
    operands = [b.weights(1, rows, WIDTH), b.weights(1, rows, WIDTH), b.weights(1, 2 * rows)]
    lengths = b.op("Cast", b.size(x, 0), to=TensorProto.INT32)
    y, _ = b.op("GRU", x, *operands, lengths, n_outputs=2, name="masked", hidden_size=WIDTH)
    s, frames = session(one_output(b, y)), noise(4, 1, WIDTH)
    stream = s.stream(carry="internal")
    parts = [stream.step({"x": frames[start : start + 1]})[0] for start in range(4)]
    np.testing.assert_allclose(np.concatenate(parts), s.run(None, {"x": frames})[0], atol=1e-6)


def test_a_loop_in_a_branch_is_refused():
    weights = [initializer(n, noise(*s)) for n, s in {"W": (1, 15, 4), "R": (1, 15, 5), "B": (1, 30)}.items()]
    runs = helper.make_node("GRU", ["x", "W", "R", "B"], ["branch_y"], name="inside", hidden_size=5)
    then = graph([runs], [], [floats("branch_y", None)])
    other = helper.make_node("GRU", ["x2", "W", "R", "B"], ["other_y"], hidden_size=5)
    double = helper.make_node("Add", ["x", "x"], ["x2"])
    otherwise = graph([double, other], [], [floats("other_y", None)])
    nodes = [
        helper.make_node("If", ["flag"], ["z"], name="choice", then_branch=then, else_branch=otherwise),
        helper.make_node("GRU", ["x", "W", "R", "B"], ["y"], name="outside", hidden_size=5),
        helper.make_node("Add", ["y", "z"], ["both"]),
    ]
    inputs = [floats("x", ["time", "batch", 4]), helper.make_tensor_value_info("flag", TensorProto.BOOL, [])]
    said = refusal(model(nodes, inputs, [floats("both", None)], weights))
    assert said.node == "choice"
    assert "'inside'" in said.message


def test_a_real_model():
    found = streamed(read_model(model_path("nsnet2_16k")))
    assert found.timing.inputs == {"input": 1}
    assert (found.timing.stride, found.timing.delay, found.timing.end) == (1, 0, None)
    assert len(found.step.pairs) == 2


def test_names_of_axes():
    found = streamed(read_model(hidden_state("LSTM", with_final=True).SerializeToString()))
    assert found.timing.inputs == {"x": 0}


@pytest.mark.parametrize("op", ["Expand", "Add", "Concat"])
def test_sizes_that_are_written_down_are_no_sizes_of_a_stream(op):
    """A model for three frames: with more of them it would be another one."""
    b = Builder(RNG)
    x = b.input("x", [3, WIDTH])
    ones = b.constant(np.ones((3, WIDTH), np.float32))
    made = b.op("Expand", x, b.ints(3, WIDTH), name="fixed") if op == "Expand" else None
    made = made or b.op(op, x, ones, name="fixed", **({"axis": 1} if op == "Concat" else {}))
    with pytest.raises(webrnn.ModelError, match="node 'fixed'"):
        session(one_output(b, made)).stream(carry="internal", time={"x": 0})
