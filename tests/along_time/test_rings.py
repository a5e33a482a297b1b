"""Long histories of streams: what a frame costs does not grow with them, and a failed step changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import webrnn
from tests.along_time.tcn import tcn
from webrnn.along_time.rings import is_ring, order_of, slots_of
from webrnn.errors import ModelError
from webrnn.plan.decode import decode

DILATIONS = (1, 2, 4, 8, 16, 32, 64, 128)


def frames(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def streamed(stream, x, axis, cuts):
    parts = np.split(x, np.cumsum(cuts)[:-1], axis)
    return np.concatenate([stream.step({"x": part})[0] for part in parts], axis)


def cuts_of(total, *each):
    found = []
    while sum(found) < total:
        found.append(min(each[len(found) % len(each)], total - sum(found)))
    return found


@pytest.mark.parametrize("backend", ["native", "wasm:relaxed"])
@pytest.mark.parametrize("group", [1, 4, 16])
@pytest.mark.parametrize("batch", [1, 3])
def test_a_stack_of_convolutions(backend, group, batch):
    session = webrnn.InferenceSession(tcn(16, (1, 3, 8, 40), group=group).SerializeToString(), backend=backend)
    x = frames(np.random.default_rng(0), batch, 16, 150)
    (whole,) = session.run(None, {"x": x})
    for each in ((1,), (2,), (7,), (150,), (1, 1, 5, 1, 90, 2, 1)):
        np.testing.assert_array_equal(streamed(session.stream(carry="internal"), x, 2, cuts_of(150, *each)), whole)


def conv2d(op, time, dilation, stride, **attrs):
    """x[n, 4, ...] with time on axis 2 or 3."""
    kernel, strides, dilations = [2, 3], [1, 2], [1, 1]
    place = time - 2
    kernel[place], strides[place], dilations[place] = 4, stride, dilation
    pads = [0, 0, 0, 0]
    pads[place] = 3 * dilation + 1 - stride
    steps = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads, **attrs}
    weights = numpy_helper.from_array(frames(np.random.default_rng(5), 6, 4, *kernel), "w")
    sizes: list[str | int] = ["n", 4, 7, 7]
    sizes[time] = "t"
    is_conv = op == "Conv"
    node = helper.make_node(op, ["x", "w"] if is_conv else ["x"], ["y"], "node", **steps)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)
    graph = helper.make_graph([node], "g", [x], [y], [weights] if is_conv else [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


@pytest.mark.parametrize("time", [2, 3])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(("op", "attrs"), [("Conv", {}), ("MaxPool", {}), ("AveragePool", {"count_include_pad": 1})])
def test_windows_along_either_axis(op, attrs, time, stride):
    model = conv2d(op, time, 6, stride, **attrs)
    session = webrnn.InferenceSession(model.SerializeToString())
    sizes = [2, 4, 7, 7]
    sizes[time] = 60
    x = frames(np.random.default_rng(1), *sizes)
    (whole,) = session.run(None, {"x": x})
    for each in (stride, 4 * stride, 60):
        stream = session.stream(carry="internal", time={"x": time})
        found = streamed(stream, x, time, cuts_of(60, each))
        found = np.concatenate([found, stream.flush()[0]], time) if stream.delay else found
        np.testing.assert_array_equal(found, whole)


def test_branches_that_are_late_by_different_times():
    """What is not convolved waits in a ring for what is."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[20, 20], dilations=[20]),
        helper.make_node("Add", ["x", "c"], ["y"]),
    ]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4, "t"]) for name in "xy"]
    weights = numpy_helper.from_array(frames(np.random.default_rng(2), 4, 4, 3), "w")
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = webrnn.InferenceSession(model.SerializeToString())
    x = frames(np.random.default_rng(3), 2, 4, 70)
    (whole,) = session.run(None, {"x": x})
    for each in (1, 3, 70):
        stream = session.stream(carry="internal")
        found = streamed(stream, x, 2, cuts_of(70, each))
        np.testing.assert_array_equal(np.concatenate([found, stream.flush()[0]], 2), whole)
        assert stream.delay == 20


def code_of(dilations, tmp_path, channels=8):
    webrnn.InferenceSession(tcn(channels, dilations).SerializeToString()).export(tmp_path / "m.rnn", carry="internal")
    return decode((tmp_path / "m.rnn").read_bytes())


def test_a_frame_takes_as_many_instructions_whatever_the_dilation(tmp_path):
    def names(dilation):
        return [instruction.name for instruction in code_of((dilation,) * 3, tmp_path).code]

    assert names(4) == names(64) == names(500)
    assert names(64).count("ring") == 3
    assert names(64).count("copy") <= 1  # of the input, whose channels are not the last


@pytest.mark.parametrize("batch", [1, 2])
def test_rings_stay_in_one_place(batch):
    """So that a step copies the rows of its windows and its own: nothing that grows with the dilation."""
    session = webrnn.InferenceSession(tcn(8, DILATIONS).SerializeToString())
    stream = session.stream(carry="internal")
    for n, in_place in ((1, 6), (4, 1), (5, 0), (1, 6)):
        stream.step({"x": np.zeros((batch, 8, n), np.float32)})
        carrier, _ = stream._now
        places = zip(carrier.states(0), carrier.states(1), strict=True)
        assert sum(first is second for first, second in places) == in_place


def test_states_are_as_large_as_the_histories():
    stream = webrnn.InferenceSession(tcn(64, DILATIONS).SerializeToString()).stream(carry="internal")
    stream.step({"x": np.zeros((1, 64, 1), np.float32)})
    histories = sum(2 * dilation for dilation in DILATIONS) * 64 * 4
    assert histories <= sum(state.nbytes for state in stream.state.values()) <= 1.05 * histories
    carrier, _ = stream._now
    places = {id(place): place.nbytes for at in (0, 1) for place in carrier.states(at)}
    assert sum(places.values()) <= 1.05 * histories


def test_a_step_that_fails_changes_nothing():
    model = tcn(8, (1, 8, 64)).SerializeToString()
    session = webrnn.InferenceSession(model)
    x = frames(np.random.default_rng(4), 1, 8, 200)
    (whole,) = session.run(None, {"x": x})
    stream = session.stream(carry="internal", check_finite=True)
    for at in range(200):
        for n in (1, 2) if at % 50 < 3 else (1,):
            with pytest.raises(ModelError, match="not finite"):
                stream.step({"x": np.full((1, 8, n), np.nan, np.float32)})
        np.testing.assert_array_equal(stream.step({"x": x[:, :, at : at + 1]})[0], whole[:, :, at : at + 1])


def test_saved_and_forked_streams_go_on():
    session = webrnn.InferenceSession(tcn(8, (1, 8, 64)).SerializeToString())
    x = frames(np.random.default_rng(6), 1, 8, 300)
    (whole,) = session.run(None, {"x": x})
    stream = session.stream(carry="internal")
    streamed(stream, x[:, :, :150], 2, cuts_of(150, 1))
    saved, fork, loaded = stream.state, stream.fork(), session.stream(carry="internal")
    streamed(stream, x[:, :, 150:160], 2, cuts_of(10, 1))
    loaded.load(saved)
    for one, start in ((stream, 160), (fork, 150), (loaded, 150)):
        found = streamed(one, x[:, :, start:], 2, cuts_of(300 - start, 1, 3, 1))
        np.testing.assert_array_equal(found, whole[:, :, start:])


def test_a_pool_of_streams_of_different_ages():
    session = webrnn.InferenceSession(tcn(8, (1, 8, 64)).SerializeToString())
    x = frames(np.random.default_rng(7), 3, 8, 160)
    wholes = [session.run(None, {"x": x[i : i + 1]})[0] for i in range(3)]
    pool = session.pool(max_streams=3, carry="internal")
    handles: list[int] = []
    ages: list[int] = []
    for tick in range(160):
        if tick in (0, 7, 90):
            handles.append(pool.open())
            ages.append(0)
        for i, handle in enumerate(handles):
            pool.submit(handle, {"x": x[i : i + 1, :, ages[i] : ages[i] + 1]})
        results = pool.tick()
        for i, handle in enumerate(handles):
            np.testing.assert_array_equal(results[handle][0], wholes[i][:, :, ages[i] : ages[i] + 1])
            ages[i] += 1
    assert pool.batched


@pytest.mark.parametrize("rate", [1, 2, 3, 16])
@pytest.mark.parametrize("history", [1, 7, 8, 24, 127, 128, 256, 1000])
def test_slots(history, rate):
    slots = slots_of(history, rate)
    assert slots - history in (0, *range(rate, history // 8 + 1, rate))
    assert is_ring(history, rate, 3) == (8 * rate <= history)
    assert not is_ring(history, rate, 1)


def test_orders():
    assert order_of(3, 2) == (0, 2, 1)
    assert order_of(4, 2) == (0, 2, 3, 1)
    assert order_of(4, 3) == (0, 3, 2, 1)
    assert order_of(3, 1) == (0, 1, 2)
    assert order_of(3, 0) == (1, 0, 2)
    assert order_of(2, 1) == (0, 1)
    assert order_of(2, 0) == (1, 0)
