"""The Python host of plans: what it hands to the VM, whatever the metadata say, and that nothing runs half bound."""

from __future__ import annotations

import warnings
from threading import Thread

import numpy as np
import pytest

import webrnn
from tests.backends import KERNELS
from tests.engine.stream_models import feed, stateful
from tests.plan.handmade import I64, Handmade
from webrnn.engine.kernels import loading as kernels
from webrnn.engine.programs import plan_program
from webrnn.engine.programs.plan_program import DIRECT_BYTES, PlanProgram
from webrnn.plan.opcodes import MAX_RANK
from webrnn.plan.operations import OPERATION_CODES
from webrnn.plan.verify import verify

N = DIRECT_BYTES // 4
MORE = 50 * N


def run(data, backend, feeds=None):
    return webrnn.InferenceSession(data, backend=backend).run(None, feeds or {})


def copying(n_in, n_out=None, port_in=None, port_out=None):
    """y = x, where the plan's tensors and the metadata may differ in size."""
    plan = Handmade()
    x, y = plan.external([n_in]), plan.external([n_out or n_in], written=True)
    plan.emit("copy", x, y)
    plan.input("x", [port_in or n_in], 0)
    plan.output("y", [port_out or n_in], 1)
    return plan


@pytest.mark.parametrize("backend", KERNELS)
def test_large_arrays_that_must_not_be_written_or_have_gaps(backend):
    plan = copying(N)
    session = webrnn.InferenceSession(plan.data(), backend=backend)
    x = np.arange(N, dtype=np.float32)
    (wide,) = np.broadcast_arrays(x, np.zeros((1, 1), np.float32))[:1]  # numpy warns who asks whether to write it
    read_only = x.copy()
    read_only.flags.writeable = False
    odd = np.zeros(4 * N + 1, np.uint8)[1:].view(np.float32)
    odd[:] = x
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for array in (x, wide[0], read_only, np.repeat(x, 2)[::2], odd, x[::-1][::-1]):
            for _ in range(2):
                assert np.array_equal(session.run(None, {"x": array})[0], x)


# --- memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("n", [MORE, N + 1, N])
def test_a_plan_that_writes_more_than_the_output_has(n, backend):
    plan = Handmade()
    plan.fill(plan.external([n], written=True), 3.0)
    plan.output("y", [N], 0)
    (y,) = run(plan.data(), backend)
    assert y.shape == (N,)
    assert (y == 3).all()


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("n", [MORE, N + 1])
def test_a_plan_that_reads_more_than_the_input_has(n, backend):
    """What is behind the input is zeros, not what lies behind an array of the caller's."""
    data = copying(n, port_in=N).data()
    (y,) = run(data, backend, {"x": np.full(2 * N, 7, np.float32)[:N]})
    assert (y[:N] == 7).all()
    assert not y[N:].any()


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("n", [8, N])
def test_what_a_plan_does_not_write_is_zero(n, backend):
    plan = Handmade()
    plan.fill(plan.external([1], written=True), 3.0)
    plan.output("y", [n], 0)
    session = webrnn.InferenceSession(plan.data(), backend=backend)
    for _ in range(3):
        junk = np.full(n, 9, np.float32)
        del junk
        (y,) = session.run(None, {})
        assert y[0] == 3
        assert not y[1:].any()


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("n", [4, N])
def test_an_output_that_is_listed_twice(n, backend):
    plan = copying(n)
    plan.output("y", [n], 1)
    x = np.arange(n, dtype=np.float32)
    session = webrnn.InferenceSession(plan.data(), backend=backend)
    for _ in range(2):
        first, second = session.run(None, {"x": x})
        assert first is not second
        assert not np.shares_memory(first, second)
        np.testing.assert_array_equal(first, x)
        np.testing.assert_array_equal(second, x)
    (only,) = session.run(["y"], {"x": x})
    np.testing.assert_array_equal(only, x)


@pytest.mark.parametrize("backend", [*KERNELS, "numpy"])
def test_a_model_whose_output_is_listed_twice(backend):
    from onnx.parser import parse_model

    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        twice (float[{N}] x) => (float[{N}] y, float[{N}] x, float[{N}] y, float[{N}] x) {{ y = Neg(x) }}"""
    )
    x = np.arange(N, dtype=np.float32)
    results = webrnn.InferenceSession(model.SerializeToString(), backend=backend).run(None, {"x": x})
    for result, expected in zip(results, (-x, x, -x, x), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("backend", KERNELS)
def test_outputs_that_share_memory(backend):
    """Of different sizes: each is what is there."""
    plan = copying(2 * N)
    plan.output("half", [N], 1)
    y, half = run(plan.data(), backend, {"x": np.arange(2 * N, dtype=np.float32)})
    np.testing.assert_array_equal(half, y[:N])


@pytest.mark.parametrize("backend", KERNELS)
def test_a_read_only_feed_without_alignment_or_order(backend):
    data = copying(N).data()
    x = np.arange(N, dtype=np.float32)
    unaligned = np.frombuffer(b"\1" + x.tobytes(), np.uint8)[1:].view(np.float32)
    for each in (unaligned, np.repeat(x, 2)[::2], np.broadcast_to(np.float32(2), (N,))):
        (y,) = run(data, backend, {"x": each})
        np.testing.assert_array_equal(y, each)


def _written_input():
    plan = Handmade()
    plan.fill(plan.external([N], written=True), 3.0)
    plan.input("x", [N], 0)
    plan.output("y", [N], 1)
    return plan


def _input_written_through_another_buffer():
    plan = copying(N)
    plan.fill(plan.external([N], written=True, external=0), 3.0)
    return plan


def _two_inputs_in_one_place():
    plan = copying(N)
    plan.input("z", [N], 0)
    return plan


def _input_and_output_in_one_place():
    plan = copying(N)
    plan.output("z", [N], 0)
    return plan


def _two_names(which):
    plan = copying(N)
    getattr(plan, which)("x" if which == "input" else "y", [N + 1], 2)
    return plan


def _late_input():
    plan = copying(4)
    plan.inputs.append({"name": "z", "dtype": "f32", "shape": ["late"], "sizes": [plan.late()], "external": 2})
    return plan


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (_written_input(), "'x' is written"),
        (_input_written_through_another_buffer(), "'x' is written"),
        (_two_inputs_in_one_place(), "'z' is not its own"),
        (_input_and_output_in_one_place(), "'x' is not its own"),
        (_two_names("input"), "two inputs have the same name"),
        (_two_names("output"), "two outputs have the same name"),
        (_late_input(), "'z' are damaged"),
    ],
)
def test_plans_that_share_what_they_must_not_are_refused(plan, message):
    plan.n_externals = max(plan.n_externals, 3)
    with pytest.raises(webrnn.PlanError, match=message):
        webrnn.InferenceSession(plan.data(), backend="native")
    with pytest.raises(webrnn.PlanError, match=message):
        verify(plan.data())


@pytest.mark.parametrize("count", [4_000_000, 5, -1])
def test_more_externals_than_inputs_and_outputs_use(count):
    with pytest.raises(webrnn.PlanError):
        webrnn.InferenceSession(copying(4).data(externals=count), backend="native")


@pytest.mark.parametrize("count", [-1, 10**6])
def test_a_table_of_buffers_that_is_not_there(count):
    with pytest.raises(webrnn.PlanError, match="buffers does not fit"):
        webrnn.InferenceSession(copying(4).data(buffers=count), backend="native")


def test_many_externals_are_bound_in_one_go():
    """A number of operations that grows with the square of the file would take minutes here."""
    plan, n = Handmade(), 6000
    for index in range(n):
        plan.buffers.append((2, 0, plan.number(1), index % n | (1 << 30)))
        plan.n_externals = index + 1
    plan.outputs = [plan.port(f"y{index}", [1], index) for index in range(n)]
    assert len(run(plan.data(), "native")) == n


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize(("size", "message"), [(5000, "is larger than its place"), (-1, "would be of shape")])
def test_a_late_size_that_cannot_be(backend, size, message):
    plan = Handmade()
    number = plan.external([1], I64, written=True)
    late = plan.late()
    plan.emit("sizes", number, plan.number(size))
    plan.emit("let", late, number, -9)
    plan.outputs = [{"name": "y", "dtype": "i64", "shape": ["late"], "sizes": [late], "external": 0}]
    with pytest.raises(webrnn.PlanError, match=message):
        run(plan.data(), backend)


def growing(place: int, n_arena: int = 1) -> Handmade:
    """y = 7, 7, 7, 7; before that `n` sevens are written: to slots of the arena, or to where y is (place 2)."""
    plan = Handmade()
    n, y = plan.external([1], I64), plan.external([4], written=True)
    plan.input("n", [1], 0, "i64")
    plan.output("y", [4], 1)
    late = plan.late()
    plan.emit("let", late, n, 0)
    for slot in range(n_arena):
        plan.fill(plan.late_tensor(late, place, 1 if place == 2 else slot), 7.0, checked=True)
    plan.fill(y, 7.0)
    return plan


def count(n):
    return {"n": np.array([n], np.int64)}


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("place", [1, 2], ids=["arena", "output"])
@pytest.mark.parametrize("reruns", [0, 1000])
def test_a_run_after_one_whose_memory_could_not_grow(backend, place, reruns, monkeypatch):
    """No run begins with less memory than the tables ask for, and what was too large is asked for no more."""
    program = PlanProgram(growing(place).data(), kernels.load(backend))
    monkeypatch.setattr(plan_program, "MOST_RERUNS", reruns)
    if reruns:
        monkeypatch.setattr(plan_program, "max_bytes", lambda: 2**16)
    for _ in range(2):
        (y,) = program.run([count(5)["n"]])
        np.testing.assert_array_equal(y, np.full(4, 7))
        with pytest.raises(webrnn.Error, match="the limit is 65536" if reruns else "more memory is needed"):
            program.run([count(100_000)["n"]])
        tables, function = program._tables.address, program.kernels.function
        assert function("plan_arena_bytes")(tables) <= program.arena_bytes
        assert function("plan_external_bytes")(tables, 1) <= program._places[1].nbytes


@pytest.mark.parametrize("backend", KERNELS)
def test_a_run_after_one_that_asked_for_more_memory_than_there_can_be(backend):
    """Two buffers of 1.6 GB: one behind the other they are too much. The one between them stays where it was."""
    plan = growing(1, n_arena=2)
    plan.fill(plan._tensor(1, 0, 2, [4]), 1.0)
    program = PlanProgram(plan.data(), kernels.load(backend))
    for _ in range(2):
        (y,) = program.run([count(5)["n"]])
        np.testing.assert_array_equal(y, np.full(4, 7))
        with pytest.raises(webrnn.PlanError, match="the memory is too small"):
            program.run([count(400_000_000)["n"]])
        assert program.kernels.function("plan_arena_bytes")(program._tables.address) <= program.arena_bytes


@pytest.mark.parametrize("backend", KERNELS)
def test_an_output_whose_place_grows_while_running(backend):
    """Its metadata know its size, its buffer does not: it is found where it is then, in runs and in streams."""
    plan = growing(2)
    plan.input("h", [4], 2)
    plan.emit("copy", plan.external([4], external=2), plan.external([4], written=True, external=3))
    plan.output("next", [4], 3)
    session = webrnn.InferenceSession(plan.data(), backend=backend)
    h = np.arange(4, dtype=np.float32)
    stream = session.stream(carry={"h": "next"})
    stream.load({"h": h})
    for n in (1, 2000, 3, 100_000, 100_000, 0):
        y, after = session.run(None, {**count(n), "h": h})
        np.testing.assert_array_equal(y, np.full(4, 7))
        np.testing.assert_array_equal(after, h)
        (y,) = stream.step(count(n))
        np.testing.assert_array_equal(y, np.full(4, 7))
        np.testing.assert_array_equal(stream.state["h"], h)


@pytest.mark.parametrize("shape", [[2**31 - 1, 0, 2**31 - 1, 2**31 - 1], [0, 2**31 - 1, 2**31 - 1], [2**20, 2**20]])
def test_sizes_that_no_array_has(shape):
    plan = copying(4)
    plan.output("huge", shape, 2)
    with pytest.raises(webrnn.PlanError, match="would be of shape"):
        run(plan.data(), "native", {"x": np.zeros(4, np.float32)})


def test_states_are_of_the_sizes_that_the_plan_asks_for():
    """A state for whose next value the plan wants more memory than for itself does not change places with it."""
    plan = copying(2)
    plan.fill(plan.external([MORE], written=True, external=1), 5.0)
    session = webrnn.InferenceSession(plan.data(states=[{"input": "x", "output": "y"}]), backend="native")
    stream = session.stream()
    for _ in range(3):
        assert stream.step({}) == []
        np.testing.assert_array_equal(stream.state["x"], [5, 5])


@pytest.mark.parametrize("backend", KERNELS)
def test_a_state_that_is_also_listed_as_another_output(backend):
    plan = Handmade()
    x, y = plan.external([4]), plan.external([4], written=True)
    one = plan.arena([4])
    plan.fill(one, 1.0)
    add = OPERATION_CODES["add"]
    plan.emit("expression", 2, 1, 0, 1, x, one, y, 2, add, 2, 0, 1, 0, 0, 0)
    plan.input("x", [4], 0)
    plan.output("y", [4], 1)
    plan.output("also", [4], 1)
    stream = webrnn.InferenceSession(plan.data(), backend=backend).stream(carry={"x": "y"})
    for step in range(1, 5):
        (also,) = stream.step({})
        np.testing.assert_array_equal(also, np.full(4, step))
        np.testing.assert_array_equal(stream.state["x"], np.full(4, step))


# --- nothing runs half bound -----------------------------------------------------------------------------------------


def small():
    plan = Handmade()
    plan.inputs.append(plan.port("x", ["n"], 0))
    n = plan.symbol("n")
    plan.buffers += [(2, 0, n, 0), (2, 0, n, 1 | 1 << 30)]
    for buffer in (0, 1):
        rest = [0] * (MAX_RANK - 1)
        plan.tensors.append([buffer, 0, 1, plan.number(0), n, *rest, plan.number(1), *rest])
    plan.emit("copy", 0, 1)
    plan.outputs.append(plan.port("y", ["n"], 1))
    plan.n_externals = 2
    # n <= 10
    plan.size_rows += [(0, -1, 0), (3, n, len(plan.size_rows)), (0, 10, 0)]
    plan.size_rows.append((2, len(plan.size_rows) - 2, len(plan.size_rows) - 1))
    plan.emit("require", len(plan.size_rows) - 1)
    return plan.data()


@pytest.mark.parametrize("backend", KERNELS)
def test_a_run_without_feeds_before_any_other(backend):
    session = webrnn.InferenceSession(small(), backend=backend)
    with pytest.raises(webrnn.ShapeError, match="'x' is missing"):
        session.run(None, {})


@pytest.mark.parametrize("backend", KERNELS)
def test_a_plan_without_inputs(backend):
    plan = Handmade()
    plan.fill(plan.external([3], written=True), 2.0)
    plan.output("y", [3], 0)
    session = webrnn.InferenceSession(plan.data(), backend=backend)
    for _ in range(3):
        np.testing.assert_array_equal(session.run(None, {})[0], [2, 2, 2])


@pytest.mark.parametrize("backend", KERNELS)
def test_a_run_after_a_size_that_was_refused(backend):
    session = webrnn.InferenceSession(small(), backend=backend)
    good = {"x": np.arange(5, dtype=np.float32)}
    for _ in range(2):
        np.testing.assert_array_equal(session.run(None, good)[0], good["x"])
        with pytest.raises(webrnn.PlanError):
            session.run(None, {"x": np.zeros(11, np.float32)})
        with pytest.raises(webrnn.ShapeError):
            session.run(None, {})
        np.testing.assert_array_equal(session.run(None, good)[0], good["x"])


@pytest.mark.parametrize("backend", KERNELS)
def test_nothing_of_a_program_runs_unless_it_is_bound(backend):
    program = PlanProgram(small(), kernels.load(backend))
    works = (program.execute, lambda: program.repeat(1), lambda: program.swapped([(0, 0)]), program.results)
    others = (lambda: program.inputs, lambda: program.outputs)

    def refuses_all():
        assert program.run_same({}) is None
        assert program.run_same({"x": np.zeros(5, np.float32)}) is None
        for work in (*works, *others):
            with pytest.raises(webrnn.PlanError, match="not bound"):
                work()

    refuses_all()
    for _ in range(2):
        program.bind(((5,),))
        for work in works:
            work()
        with pytest.raises(webrnn.PlanError):
            program.bind(((11,),))
        refuses_all()


@pytest.mark.parametrize("backend", KERNELS)
def test_places_of_a_binding_that_is_over_are_not_used(backend):
    program = PlanProgram(small(), kernels.load(backend))
    program.bind(((5,),))
    swap = program.swapped([(0, 0)])
    program.execute(swap)
    program.bind(((6,),))
    with pytest.raises(webrnn.PlanError, match="not bound"):
        program.execute(swap)


@pytest.mark.parametrize("backend", KERNELS)
def test_a_stream_after_a_size_that_was_refused(backend):
    s = webrnn.InferenceSession(stateful("GRU", hidden=8).SerializeToString(), backend=backend)
    expected, stream = s.stream(), s.stream()
    for step in range(4):
        want = expected.step({"x": feed(2, 1, step)})
        with pytest.raises(webrnn.Error):
            stream.step({"x": np.zeros((2, 1, 4096), np.float32)})
        (got,) = stream.step({"x": feed(2, 1, step)})
        np.testing.assert_array_equal(got, want[0])


@pytest.mark.parametrize("backend", KERNELS)
def test_one_thread_runs_while_another_binds(backend):
    session = webrnn.InferenceSession(small(), backend=backend)
    wrong = []

    def work(sizes):
        for n in sizes:
            x = np.full(n, n, np.float32)
            try:
                if session.run(None, {"x": x})[0].tobytes() != x.tobytes():
                    wrong.append(n)
            except webrnn.PlanError:
                if n <= 10:
                    wrong.append(n)

    threads = [Thread(target=work, args=(sizes,)) for sizes in ([5] * 300, [3, 11, 4] * 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
