"""What a run may use: the same verdict on every backend, a typed error, and a stream that goes on afterwards."""

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.backends import BACKENDS, INSIDE_PYODIDE, KERNELS, MAIN
from tests.engine.loop_models import nested
from tests.engine.stream_models import CARRY, HIDDEN, feed, stateful
from tests.onnx.models import bools, floats, graph, initializer, integers, model
from webrnn import InferenceSession, LimitError, Limits
from webrnn.engine.limits import Budget

MANY = 2**31 - 1
ANY = 2**62
X = {"x": np.float32([0])}


def verdict(data, backend, feeds, **limits):
    """The results of a run, or the limit and the loop that end it."""
    try:
        return [array.tolist() for array in InferenceSession(data, backend, limits=Limits(**limits)).run(None, feeds)]
    except LimitError as error:
        return error.limit, error.node.rpartition("/")[2]


def start(op):
    """A state of `stateful`, for two streams."""
    return np.zeros((2, HIDDEN) if op == "Scan" else (1, 2, HIDDEN), np.float32)


@pytest.mark.parametrize(
    "wrong",
    [
        {"loop_steps": 0}, {"run_steps": -1}, {"loop_steps": 1.5}, {"run_steps": True}, {"trace_bytes": "1"},
        {"seconds": 0}, {"seconds": float("nan")}, {"seconds": float("inf")}, {"seconds": "1"}, {"loop_steps": None},
    ],
)  # fmt: skip
def test_limits_that_are_none(wrong):
    with pytest.raises(webrnn.OptionError, match=next(iter(wrong))):
        Limits(**wrong)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("fed", [(), (0,), (0, 1)])
def test_nested_loops_of_many_steps(backend, fed):
    data = nested([MANY, MANY], fed)
    feeds = X | {f"n{i}": np.int64(MANY) for i in fed}
    assert verdict(data, backend, feeds) == ("loop_steps", "loop0")
    assert verdict(data, backend, feeds, loop_steps=ANY) == ("run_steps", "loop0")
    assert verdict(data, backend, feeds, loop_steps=ANY, run_steps=ANY, seconds=0.05)[0] == "seconds"
    data = nested([1000, MANY], [i for i in fed if i == 1])
    feeds.pop("n0", None)
    assert verdict(data, backend, feeds, loop_steps=ANY, run_steps=5000) == ("run_steps", "loop1")


@pytest.mark.parametrize("backend", BACKENDS)
def test_loops_that_only_a_condition_ends(backend):
    data = nested([MANY, MANY], ends_at=20.0)
    assert verdict(data, backend, X, loop_steps=ANY, run_steps=ANY, seconds=0.05)[0] == "seconds"
    data = nested([3, MANY], ends_at=20.0)  # 20 steps, then one in each
    assert verdict(data, backend, X, loop_steps=20) == [[22.0]]
    assert verdict(data, backend, X, loop_steps=19) == ("loop_steps", "loop1")
    assert verdict(data, backend, X, run_steps=25) == [[22.0]]
    assert verdict(data, backend, X, run_steps=24) == ("run_steps", "loop1")
    assert verdict(data, backend, X, run_steps=2) == ("run_steps", "loop0")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("fed", [(), (0,), (1,), (0, 1)])
def test_the_last_step_that_is_allowed(backend, fed):
    data, feeds = nested([3, 4], fed), X | {f"n{i}": np.int64(3 + i) for i in fed}
    assert verdict(data, backend, feeds, loop_steps=4, run_steps=15, seconds=60) == [[12.0]]
    assert verdict(data, backend, feeds, run_steps=14) == ("run_steps", "loop1")
    assert verdict(data, backend, feeds, loop_steps=3) == ("loop_steps", "loop1")


@pytest.mark.parametrize("backend", BACKENDS)
def test_more_steps_than_a_size_can_be(backend):
    assert verdict(nested([10**18]), backend, X) == ("loop_steps", "loop0")
    assert verdict(nested([2, 10**18]), backend, X, loop_steps=ANY) == ("run_steps", "loop1")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_loop_that_is_not_entered_is_not_charged(backend):
    data = nested([0, MANY])
    assert verdict(data, backend, X, run_steps=1) == [[0.0]]


WAYS = [(MAIN, "fused_sequences"), *((backend, "") for backend in BACKENDS), ("numpy", "scan_buffers")]


@pytest.mark.parametrize(("backend", "off"), WAYS)
@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM", "Scan"])
def test_sequences(op, backend, off):
    """Fused ones take many steps in one instruction, long ones in chunks."""
    data, disable = stateful(op).SerializeToString(), [off] if off else []
    plain = InferenceSession(data, backend, disable)
    for steps in (3, 61):
        feeds = {"x": feed(steps, 2)} | dict.fromkeys(CARRY[op], start(op))
        exact = InferenceSession(data, backend, disable, limits=Limits(loop_steps=steps, run_steps=steps, seconds=60))
        for result, want in zip(exact.run(None, feeds), plain.run(None, feeds), strict=True):
            np.testing.assert_array_equal(result, want)
        for name in ("loop_steps", "run_steps"):
            with pytest.raises(LimitError, match=rf"webrnn.Limits\({name}=...\) allows more") as caught:
                InferenceSession(data, backend, disable, limits=Limits(**{name: steps - 1})).run(None, feeds)
            assert caught.value.limit == name
            assert caught.value.node


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("op", ["GRU", "LSTM", "Scan"])
def test_the_vm_counts_what_numpy_counts(op, backend):
    session = InferenceSession(stateful(op).SerializeToString(), backend)
    plain = InferenceSession(stateful(op).SerializeToString(), "numpy")
    for steps in (0, 5, 100):
        arguments = [feed(steps, 2), *(start(op) for _ in CARRY[op])]
        budget = Budget(Limits())
        plain._program.run(arguments, budget)
        session._program.run(arguments)
        assert session._program.recent.steps_taken == budget.limits.run_steps - budget.steps_left == steps


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_stream_is_as_it_was_and_goes_on(backend):
    data = stateful("GRU").SerializeToString()
    session = InferenceSession(data, backend, limits=Limits(loop_steps=30))
    other = InferenceSession(data, backend).stream(CARRY["GRU"])
    stream = session.stream(CARRY["GRU"])
    for steps in (3, 100, 5, 31, 5):
        x, before = feed(steps, 1), stream.state
        if steps > 30:
            with pytest.raises(LimitError):
                stream.step({"x": x})
            for name, array in stream.state.items():
                np.testing.assert_array_equal(array, before[name])
        else:
            np.testing.assert_array_equal(stream.step({"x": x})[0], other.step({"x": x})[0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_pool_is_as_it_was_and_goes_on(backend):
    data = stateful("GRU", batch=1).SerializeToString()
    pool = InferenceSession(data, backend, limits=Limits(loop_steps=30)).pool(4, carry=CARRY["GRU"])
    stream = InferenceSession(data, backend).stream(CARRY["GRU"])
    handle = pool.open()
    for steps in (3, 31, 5):
        x = feed(steps, 1)
        if steps > 30:
            with pytest.raises(LimitError):
                _tick(pool, handle, x)
        else:
            (result,) = _tick(pool, handle, x)
            np.testing.assert_allclose(result, stream.step({"x": x})[0], atol=1e-6)


def _tick(pool, handle, x):
    pool.submit(handle, {"x": x})
    return pool.tick()[handle]


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_budget_for_plans_and_what_numpy_runs_between_them(backend):
    """Det has no instruction: there is a plan before it and one behind it."""
    first, last = (
        helper.make_node("Loop", ["n", "", before], [after], body=_adding(name), name=name)
        for name, before, after in (("first", "x", "middle"), ("last", "same", "y"))
    )
    between = [
        helper.make_node("Reshape", ["middle", "square"], ["matrix"]),
        helper.make_node("Det", ["matrix"], ["determinant"]),
        helper.make_node("Reshape", ["determinant", "flat"], ["same"]),
    ]
    arrays = [("n", np.int64(5)), ("one", np.float32([1])), ("square", np.int64([1, 1])), ("flat", np.int64([1]))]
    data = model(
        [first, *between, last],
        [floats("x", [1])],
        [floats("y", [1])],
        [initializer(name, array) for name, array in arrays],
    ).SerializeToString()
    assert verdict(data, backend, X, run_steps=10, seconds=60) == [[10.0]]
    assert verdict(data, backend, X, run_steps=9) == ("run_steps", "last")
    assert verdict(data, backend, X, run_steps=5) == ("run_steps", "last")
    assert verdict(data, backend, X, run_steps=4) == ("run_steps", "first")


def _adding(name):
    nodes = [
        helper.make_node("Add", [f"{name}_before", "one"], [f"{name}_after"]),
        helper.make_node("Identity", [f"{name}_go"], [f"{name}_go_on"]),
    ]
    inputs = [integers(f"{name}_i", []), bools(f"{name}_go", []), floats(f"{name}_before", [1])]
    return graph(nodes, inputs, [bools(f"{name}_go_on", []), floats(f"{name}_after", [1])])


@pytest.mark.parametrize("backend", KERNELS)
def test_a_plan_file_has_the_limits_of_who_loads_it(tmp_path, backend):
    files = [tmp_path / name for name in ("strict.rnn", "lax.rnn")]
    for file, limits in zip(files, (Limits(loop_steps=2, run_steps=2), Limits(loop_steps=ANY)), strict=True):
        InferenceSession(nested([3, 4], [0], ends_at=100.0), MAIN, limits=limits).export(file)
    assert files[0].read_bytes() == files[1].read_bytes()
    feeds = X | {"n0": np.int64(3)}
    assert verdict(files[0].read_bytes(), backend, feeds) == [[12.0]]
    assert verdict(files[0].read_bytes(), backend, feeds, run_steps=14) == ("run_steps", "loop1")
    assert verdict(files[0].read_bytes(), backend, feeds, loop_steps=3) == ("loop_steps", "loop1")


@pytest.mark.parametrize("backend", KERNELS)
def test_runs_after_one_that_was_ended(backend):
    session = InferenceSession(nested([MANY, 2], [0]), backend, limits=Limits(run_steps=30))
    for n in (3, 11, 3, MANY, 10):
        feeds = X | {"n0": np.int64(n)}
        if n > 10:
            with pytest.raises(LimitError):
                session.run(None, feeds)
        else:
            assert session.run(None, feeds)[0] == 2 * n


@pytest.mark.skipif(INSIDE_PYODIDE, reason="wasmtime")
def test_the_clock_without_the_native_library(monkeypatch):
    from webrnn.engine.kernels import wasm

    def missing(folder):
        raise webrnn.BackendError("not built")

    monkeypatch.setattr(wasm, "_library", missing)
    limits = {"loop_steps": ANY, "run_steps": ANY, "seconds": 0.05}
    assert verdict(nested([MANY, MANY]), "wasm:simd", X, **limits)[0] == "seconds"
