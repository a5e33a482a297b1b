"""Ring on every build against numpy and against plain arrays; what is refused; whose memory may be shared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.backends import MAIN
from tests.plan.harness import check_graph, graph_of, plan_of, value_type
from webrnn.engine.kernels import loading as kernels
from webrnn.engine.programs.plan_program import PlanProgram
from webrnn.engine.session import InferenceSession
from webrnn.errors import Error, PlanError
from webrnn.ir import WEBRNN, GraphBuilder, Node
from webrnn.plan.encode import compile_graph, encode_again
from webrnn.plan.file import PlanFile
from webrnn.reference.rings import ring

BUILD = kernels.load(MAIN)


def turned(b, *operands, axis=1, rate=1, history=4, **steps):
    outputs = [b.value("next"), b.value("windows")]
    attrs = {"axis": axis, "rate": rate, "history": history, **steps}
    b.add(Node("Ring", list(operands), outputs, attrs, "ring", WEBRNN))
    return outputs


def ring_graph(kept="f n 6 3", rows="f n t 3", position="i 1", **attrs):
    return graph_of(lambda b, *operands: turned(b, *operands, **attrs), kept, rows, position)


def operands(rng, kept, rows, position):
    return [
        rng.standard_normal(kept).astype(np.float32),
        rng.standard_normal(rows).astype(np.float32),
        np.asarray(position, np.int64),
    ]


POSITIONS = [0, 1, 5, 6, 2**40 + 1, -1, -(2**40)]


@pytest.mark.parametrize(
    "steps",
    [
        {"kernel": 3, "dilation": 2},
        {"kernel": 2, "dilation": 1},
        {"kernel": 2, "dilation": 3, "stride": 2},
        {"more": 4},
        {"more": 1},
        {},
        {"stride": 2},
    ],
)
@pytest.mark.parametrize("rate", [1, 2])
def test_ring(steps, rate):
    graph = ring_graph(rate=rate, **steps)
    rng = np.random.default_rng(0)
    runs = [
        operands(rng, (n, 6, 3), (n, frames, 3), [position])
        for n, frames in ((2, 2), (1, 4), (3, 14), (0, 2))
        for position in POSITIONS
    ]
    check_graph(graph, *runs)


@pytest.mark.parametrize("kind", ["f", "i", "j", "b", "d", "h", "c", "w"])
def test_a_ring_of_any_type(kind):
    check_graph(ring_graph(f"{kind} n 6 3", f"{kind} n t 3", kernel=3, dilation=2), sizes=({"n": 2, "t": 1},))


@pytest.mark.parametrize(
    ("axis", "kept", "rows"), [(1, (2, 6), (2, 3)), (2, (2, 5, 6), (2, 5, 1)), (2, (2, 1, 6, 3), (2, 1, 2, 3))]
)
@pytest.mark.parametrize("position", [[7], [7, 3]])
def test_each_sequence_may_have_its_own_position(axis, kept, rows, position):
    texts = ["f " + " ".join(map(str, shape)) for shape in (kept, rows)]
    graph = ring_graph(*texts, f"i {len(position)}", axis=axis, kernel=3, dilation=2)
    check_graph(graph, operands(np.random.default_rng(1), kept, rows, position))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 9), st.integers(0, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 3),
    st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 2**16),
)  # fmt: skip
def test_windows_are_those_of_the_whole_sequence(history, room, kernel, dilation, stride, strides, seed):
    """Steps of any length: the windows of all of them are the windows of all frames."""
    history = max(history, (kernel - 1) * dilation - stride + 1)
    slots = max(history + room, 1)
    steps = {"kernel": kernel, "dilation": dilation, "stride": stride}
    rng = np.random.default_rng(seed)
    frames = rng.standard_normal((2, stride * sum(strides), 2)).astype(np.float32)
    graph = ring_graph(f"f 2 {slots} 2", "f 2 t 2", rate=stride, history=history, **steps)
    program = PlanProgram(plan_of(graph), BUILD)
    kept, position, found = np.zeros((2, slots, 2), np.float32), 0, []
    for n in strides:
        rows = frames[:, position * stride : (position + n) * stride]
        kept, windows = program.run([kept, rows, np.array([position])])
        position += n
        found.append(windows)
    padded = np.concatenate([np.zeros((2, history, 2), np.float32), frames], 1)
    starts = np.arange(sum(strides)) * stride
    wanted = padded[:, (starts[:, None] + np.arange(kernel) * dilation).reshape(-1)]
    np.testing.assert_array_equal(np.concatenate(found, 1), wanted)
    last = np.arange(max(frames.shape[1] - slots, 0), frames.shape[1])
    np.testing.assert_array_equal(kept[:, last % slots], frames[:, last])


BAD = [
    {"kept": "f 2 3 3"},  # no room for the history
    {"kept": "f 2 6 4"},
    {"kept": "f 3 6 3"},
    {"kept": "f 2 6 3 1"},
    {"kept": "d 2 6 3"},
    {"position": "i 3"},
    {"position": "i 1 1"},
    {"position": "j 1"},
    {"axis": 0},
    {"axis": 3},
    {"kernel": 0},
    {"dilation": 0, "kernel": 2},
    {"stride": 0},
    {"history": -1},
    {"rate": -1},
    {"more": -3},
    {"kernel": 6},  # beyond the last frame
    {"kernel": 3, "dilation": 3},
    {"more": 5},
]


@pytest.mark.parametrize("bad", BAD, ids=str)
@pytest.mark.parametrize("backend", [MAIN, "numpy"])
def test_what_does_not_fit_is_refused(bad, backend):
    graph = ring_graph(**{"kept": "f 2 6 3", "rows": "f 2 2 3", **bad})
    feeds = {v.name: np.zeros([int(str(d)) for d in v.shape], v.dtype.array_type) for v in graph.inputs}
    with pytest.raises(Error, match="ring"):
        InferenceSession(graph, backend=backend).run(None, feeds)


def test_sizes_that_do_not_fit_are_refused_when_they_are_bound():
    program = PlanProgram(plan_of(ring_graph("f n 6 3", "f m t 3")), BUILD)
    with pytest.raises(PlanError, match="ring"):
        program.bind(((2, 6, 3), (3, 1, 3), (1,)))


# --- whose memory may be shared --------------------------------------------------------------------------------------


def written_over(graph):
    return [port.over for port in PlanFile(compile_graph(graph)).outputs]


def test_a_ring_may_be_written_where_it_is():
    (over, other) = written_over(ring_graph())
    assert over is not None
    assert over[0] == 0
    assert other is None


def test_a_ring_that_is_read_elsewhere_may_not():
    def build(b, kept, rows, position):
        return [*turned(b, kept, rows, position), b.op("Neg", kept)]

    assert set(written_over(graph_of(build, "f n 6 3", "f n t 3", "i 1"))) == {None}


def test_a_ring_that_is_read_again_may_not():
    def build(b, kept, rows, position):
        following, windows = turned(b, kept, rows, position)
        return [following, windows, b.op("Neg", following)]

    assert set(written_over(graph_of(build, "f n 6 3", "f n t 3", "i 1"))) == {None}


def test_a_ring_that_is_computed_may_not():
    b = GraphBuilder("main")
    values = [b.input(f"x{i}", *value_type(text)) for i, text in enumerate(("f n 6 3", "f n t 3", "i 1"))]
    b.graph.outputs = turned(b, b.op("Neg", values[0]), *values[1:])
    assert set(written_over(b.graph)) == {None}


@pytest.mark.parametrize(("frames", "is_kept"), [(1, True), (2, True), (3, False)])
def test_it_is_if_its_new_frames_take_the_place_of_none_that_is_needed(frames, is_kept):
    """What a failed step leaves is as good as what was there: the same step from it gives the same."""
    program = PlanProgram(plan_of(ring_graph(kernel=3, dilation=2)), BUILD)
    kept, rows, position = operands(np.random.default_rng(2), (1, 6, 3), (1, frames, 3), [9])
    program.bind((kept.shape, rows.shape, (1,)))
    assert program.in_place([(0, 0)]) == ([(0, 0)] if is_kept else [])
    assert (program.outputs[0] is program.inputs[0]) == is_kept
    wanted = ring(kept, rows, position, axis=1, rate=1, history=4, kernel=3, dilation=2)
    for place, array in zip(program.inputs, (kept, rows, position), strict=True):
        place[...] = array
    for _ in range(2):
        program.execute()
        for got, want in zip(program.outputs, wanted, strict=True):
            np.testing.assert_array_equal(got, want)


def test_other_pairs_are_not():
    program = PlanProgram(plan_of(ring_graph()), BUILD)
    program.bind(((1, 6, 3), (1, 1, 3), (1,)))
    assert program.in_place([(1, 0), (0, 1), (2, 0)]) == []


@pytest.mark.parametrize("over", [3, [], [0], [0, 1, 2], ["0", 1], [9, 0], [0, 999], [-1, 0], {}, [0.0, 1], True])
def test_damaged_marks_are_refused(over):
    file = PlanFile(plan_of(ring_graph()))
    file.meta["outputs"][0]["over"] = over
    with pytest.raises(PlanError, match="damaged"):
        PlanFile(encode_again(file, None, None))
