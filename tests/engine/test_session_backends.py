"""One model on every backend: the same results, the same errors, results that belong to the caller."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import webrnn
from tests.backends import BACKENDS, KERNELS, MAIN
from tests.engine.stream_models import CARRY, HIDDEN, INPUTS, feed, growing, lookup, stateful
from tests.models.fetch import model_path
from tests.onnx.models import floats, initializer, model


def session(proto, backend, **options):
    return webrnn.InferenceSession(proto.SerializeToString(), backend=backend, **options)


def feeds_of(s, steps, batch, seed=0):
    """x and states of zeros."""
    shapes = {item.name: [{"batch": batch, "steps": steps}.get(d, d) for d in item.shape] for item in s.get_inputs()}
    return {name: feed(steps, batch, seed) if name == "x" else np.zeros(shapes[name], np.float32) for name in shapes}


def bits(arrays):
    return [(a.dtype, a.shape, a.tobytes()) for a in arrays]


@pytest.mark.parametrize("op", CARRY)
def test_all_backends_agree(op):
    sessions = {backend: session(stateful(op), backend) for backend in BACKENDS}
    for steps, batch in [(1, 1), (9, 1), (9, 3), (2, 3), (1, 1), (0, 2)]:
        feeds = feeds_of(sessions["numpy"], steps, batch, seed=steps)
        results = {backend: s.run(None, feeds) for backend, s in sessions.items()}
        assert all(bits(results[backend]) == bits(results[MAIN]) for backend in KERNELS)
        for ours, theirs in zip(results[MAIN], results["numpy"], strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_another_shape_is_as_if_it_were_the_first(backend):
    used = session(stateful("LSTM"), backend)
    for steps, batch in [(3, 2), (1, 1), (7, 4), (3, 2), (1, 5)]:
        feeds = feeds_of(used, steps, batch, seed=batch)
        assert bits(used.run(None, feeds)) == bits(session(stateful("LSTM"), backend).run(None, feeds))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("steps", [1, 3000])
def test_results_are_the_callers(steps, backend):
    s = session(stateful("RNN"), backend)
    feeds = feeds_of(s, steps, 1)
    first = s.run(None, feeds)
    kept = bits(first)
    second = s.run(None, feeds)
    for array in second:
        array[...] = 9
    assert bits(first) == kept
    assert bits(s.run(None, feeds)) == kept
    assert all(array.flags.writeable and array.flags.c_contiguous for array in first)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("steps", [2, 3000])
def test_feeds_are_not_changed(steps, backend):
    s = session(stateful("GRU"), backend)
    feeds = feeds_of(s, steps, 2)
    kept = {name: array.copy() for name, array in feeds.items()}
    for array in feeds.values():
        array.flags.writeable = False
    s.run(None, feeds)
    s.run(None, feeds)
    assert all((feeds[name] == kept[name]).all() for name in feeds)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("steps", [6, 6000])
def test_strided_feeds(steps, backend):
    s = session(stateful("GRU"), backend)
    feeds = feeds_of(s, steps, 2)
    expected = bits(s.run(None, {**feeds, "x": feeds["x"][::2].copy()}))
    assert bits(s.run(None, {**feeds, "x": feeds["x"][::2]})) == expected
    assert bits(s.run(None, {**feeds, "x": np.asfortranarray(feeds["x"][::2])})) == expected
    raw = np.zeros(feeds["x"][::2].nbytes + 1, np.uint8)
    unaligned = raw[1:].view(np.float32).reshape(feeds["x"][::2].shape)
    unaligned[...] = feeds["x"][::2]
    assert bits(s.run(None, {**feeds, "x": unaligned})) == expected


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("has_run", [False, True])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None}, "input 'x'"),
        ({"z": feed(1, 1)}, "no input 'z'"),
        ({"x": feed(2, 1).astype(np.float64)}, "input 'x' is float64"),
        ({"x": feed(2, 1)[0]}, r"input 'x' has shape \(1, 4\)"),
        ({"x": feed(2, 1)[:, :, :3]}, "axis 2 is 3, not 4"),
        ({"x": feed(2, 3)}, "axis 1 is 1, not 3|axis 1 is 3, not 1"),
    ],
)
def test_wrong_feeds(change, message, has_run, backend):
    s = session(stateful("GRU"), backend)
    feeds = feeds_of(s, 2, 1)
    expected = bits(s.run(None, feeds)) if has_run else None
    with pytest.raises(webrnn.ShapeError, match=message):
        s.run(None, {**feeds, **change})
    with pytest.raises(webrnn.ShapeError, match="'h_in' is missing"):
        s.run(None, {"x": feeds["x"]})
    assert expected in (None, bits(s.run(None, feeds)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_when_it_runs_is_not_the_end(backend):
    s = session(lookup(), backend)
    zeros = np.zeros((1, 3), np.float32)
    expected = bits(s.run(None, {"index": np.int64([2]), "sum_in": zeros}))
    for bad in (4, -5, 2**40, -(2**62)):
        with pytest.raises(webrnn.ShapeError, match="pick"):
            s.run(None, {"index": np.int64([bad]), "sum_in": zeros})
    assert bits(s.run(None, {"index": np.int64([2]), "sum_in": zeros})) == expected


@pytest.mark.parametrize("backend", BACKENDS)
def test_some_outputs_in_any_order(backend):
    s = session(stateful("LSTM"), backend)
    feeds = feeds_of(s, 4, 2)
    y, h, c = s.run(None, feeds)
    assert bits(s.run(["c_out", "y"], feeds)) == bits([c, y])
    assert bits(s.run(["h_out", "h_out"], feeds)) == bits([h, h])
    assert bits(s.run([], feeds)) == bits([y, h, c])


@pytest.mark.parametrize("backend", BACKENDS)
def test_ops_without_instructions_run_in_numpy(backend):
    """The VM has no strings."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Cast", ["r"], ["text"], to=TensorProto.STRING, name="write"),
        helper.make_node("Cast", ["text"], ["read"], to=TensorProto.FLOAT, name="read"),
        helper.make_node("Neg", ["read"], ["z"]),
        helper.make_node("Exp", ["x"], ["y"]),
    ]
    proto = model(nodes, [floats("x", ["n"])], [floats("z", ["n"]), floats("y", ["n"])])
    s = session(proto, backend)
    for n in (4, 7, 4):
        x = np.where(np.arange(n) % 2, -1, 1).astype(np.float32)
        z, y = s.run(None, {"x": x})
        np.testing.assert_array_equal(z, -np.maximum(x, 0))
        np.testing.assert_allclose(y, np.exp(x), rtol=1e-6)
    if backend != "numpy":
        assert "in numpy: Cast write" in s.report()
        assert "Exp" not in s.report()


@pytest.mark.parametrize("backend", BACKENDS)
def test_sizes_that_grow(backend):
    s = session(growing(), backend)
    past = np.zeros((0, 2), np.float32)
    for n in range(1, 6):
        total, past = s.run(None, {"x": np.ones((1, 2), np.float32), "past_in": past})
        assert (float(total), past.shape) == (2 * n, (n, 2))


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("op", CARRY)
def test_plan_files(op, backend, tmp_path):
    s = session(stateful(op), backend)
    s.export(tmp_path / "m.rnn")
    loaded = webrnn.InferenceSession(tmp_path / "m.rnn", backend=backend)
    assert [item.name for item in loaded.get_inputs()] == [item.name for item in s.get_inputs()]
    assert [item.shape for item in loaded.get_inputs()] == [item.shape for item in s.get_inputs()]
    for steps, batch in [(5, 1), (2, 3)]:
        feeds = feeds_of(s, steps, batch)
        assert bits(loaded.run(None, feeds)) == bits(s.run(None, feeds))
    with pytest.raises(webrnn.ShapeError, match="'x'"):
        loaded.run(None, {**feeds_of(s, 2, 1), "x": feed(2, 1)[:, :, :2]})


def test_plans_go_from_one_backend_to_another(tmp_path):
    session(stateful("GRU"), MAIN).export(tmp_path / "m.rnn")
    feeds = feeds_of(session(stateful("GRU"), "numpy"), 6, 2)
    first, *others = (webrnn.InferenceSession(tmp_path / "m.rnn", backend=backend) for backend in (*KERNELS, MAIN))
    assert all(bits(first.run(None, feeds)) == bits(other.run(None, feeds)) for other in others)


def test_numpy_neither_makes_nor_runs_plans(tmp_path):
    with pytest.raises(webrnn.PlanError, match="makes no plans"):
        session(stateful("GRU"), "numpy").export(tmp_path / "m.rnn")
    session(stateful("GRU"), MAIN).export(tmp_path / "m.rnn")
    with pytest.raises(webrnn.Error, match="not in numpy"):
        webrnn.InferenceSession(tmp_path / "m.rnn", backend="numpy")


@pytest.mark.parametrize("backend", KERNELS)
def test_reports(backend):
    s = session(stateful("GRU"), backend)
    s.run(None, feeds_of(s, 3, 1))
    assert f"backend {backend}" in s.report()
    assert "a plan for all sizes" in s.report()
    assert "arena" in s.report()


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_pass_can_be_switched_off(backend):
    plain = session(stateful("LSTM"), backend, disable=["all"])
    optimized = session(stateful("LSTM"), backend)
    feeds = feeds_of(plain, 12, 2)
    for a, b in zip(plain.run(None, feeds), optimized.run(None, feeds), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("name", ["riann", "dtln_1", "dtln_2"])
def test_kernels_have_the_same_bits(name):
    sessions = [webrnn.InferenceSession(model_path(name), backend=backend) for backend in KERNELS]
    rng = np.random.default_rng(1)
    for steps in (1, 3):
        feeds = {
            item.name: rng.standard_normal([d if isinstance(d, int) else steps for d in item.shape]).astype(np.float32)
            for item in sessions[0].get_inputs()
        }
        assert len({str(bits(s.run(None, feeds))) for s in sessions}) == 1


def test_wide_and_empty_inputs():
    proto = model(
        [helper.make_node("MatMul", ["x", "W"], ["y"])],
        [floats("x", ["n", INPUTS])],
        [floats("y", ["n", HIDDEN])],
        [initializer("W", np.ones((INPUTS, HIDDEN), np.float32))],
    )
    sessions = [session(proto, backend) for backend in BACKENDS]
    for n in (0, 1, 5000, 0, 3):
        for s in sessions:
            (y,) = s.run(None, {"x": np.ones((n, INPUTS), np.float32)})
            np.testing.assert_array_equal(y, np.full((n, HIDDEN), INPUTS))


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_op_that_nothing_implements_is_refused_when_the_model_is_opened(backend):
    nodes = [
        helper.make_node("Unheard", ["x"], ["z"], name="odd", domain="of.mine"),
        helper.make_node("Add", ["x", "z"], ["y"]),
    ]
    with pytest.raises(webrnn.UnsupportedOp, match=r"odd.*of\.mine:Unheard"):
        session(model(nodes, [floats("x", ["n"])], [floats("y", ["n"])]), backend)
