"""Pools of models whose streams run one after the other, and why they do."""

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.backends import BACKENDS, KERNELS, MAIN
from tests.engine.stream_models import (
    counter,
    feed,
    growing,
    session,
    stateful,
)
from tests.engine.streams.pool_oracle import Oracle
from tests.onnx.models import bools, floats, graph, initializer, model


def mixing(op):
    """y is x without its mean over streams, or of each sequence turned around among them."""
    if op == "mean":
        nodes = [
            helper.make_node("ReduceMean", ["x"], ["m"], axes=[0], keepdims=1),
            helper.make_node("Sub", ["x", "m"], ["y"]),
        ]
    else:
        nodes = [
            helper.make_node("Transpose", ["x"], ["turned"], perm=[1, 0]),
            helper.make_node("Shape", ["x"], ["shape"]),
            helper.make_node("Reshape", ["turned", "shape"], ["y"]),
        ]
    nodes.append(helper.make_node("Add", ["h_in", "y"], ["h_out"]))
    shapes = [["batch", 3]] * 2
    return model(
        nodes,
        [floats(name, shape) for name, shape in zip(("x", "h_in"), shapes, strict=True)],
        [floats(name, shape) for name, shape in zip(("y", "h_out"), shapes, strict=True)],
    )


def deciding():
    """An If on the first element."""
    branch = [
        graph([helper.make_node(op, ["x"], [f"{op}_y"])], [], [floats(f"{op}_y", ["batch", 3])])
        for op in ("Neg", "Abs")
    ]
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Greater", ["most", "zero"], ["is_loud"]),
        helper.make_node("If", ["is_loud"], ["y"], then_branch=branch[0], else_branch=branch[1]),
        helper.make_node("Add", ["h_in", "y"], ["h_out"]),
    ]
    names = [floats(name, ["batch", 3]) for name in ("x", "h_in", "y", "h_out")]
    return model(nodes, names[:2], names[2:], [initializer("zero", np.float32(0))])


def doubling():
    """A loop that ends when the largest of all is large enough."""
    body = graph(
        [
            helper.make_node("Add", ["v", "v"], ["w"]),
            helper.make_node("ReduceMax", ["w"], ["most"], keepdims=0),
            helper.make_node("Less", ["most", "limit"], ["again"]),
        ],
        [floats("i", []), bools("c", []), floats("v", ["batch", 3])],
        [bools("again", []), floats("w", ["batch", 3])],
    )
    body.input[0].type.tensor_type.elem_type = 7
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("Add", ["a", "one"], ["start"]),
        helper.make_node("Loop", ["trips", ""], ["y"], body=body),
        helper.make_node("Add", ["h_in", "y"], ["h_out"]),
    ]
    nodes[2].input.append("start")
    names = [floats(name, ["batch", 3]) for name in ("x", "h_in", "y", "h_out")]
    constants = [
        initializer("one", np.float32(1)),
        initializer("limit", np.float32(50)),
        initializer("trips", np.array(20, np.int64)),
    ]
    return model(nodes, names[:2], names[2:], constants)


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize(
    ("proto", "reason"),
    [
        (mixing("mean"), "do not give what they give alone"),
        (mixing("turn"), "do not give what they give alone"),
        (deciding(), "decided for all streams at once"),
        (doubling(), "decided for all streams at once"),
    ],
)
def test_streams_that_depend_on_each_other_run_alone(proto, reason, backend):
    both = Oracle(session(proto, backend), max_streams=4)
    handles = [both.open() for _ in range(3)]
    rng = np.random.default_rng(2)
    for tick in range(4):
        both.tick({h: {"x": rng.standard_normal((1, 3)).astype(np.float32)} for h in handles[: 1 + tick]})
        both.check_states()
    assert not both.pool.batched
    assert reason in both.pool.reason


def test_states_are_kept_when_streams_part():
    """One row for each stream is fine, three are not: what was carried together goes on alone."""
    both = Oracle(session(_turning_rows()), max_streams=4)
    handles = [both.open() for _ in range(3)]
    rng = np.random.default_rng(2)
    for rows in (1, 1, 3, 1, 3):
        both.tick({h: {"x": rng.standard_normal((rows, 1, 2)).astype(np.float32)} for h in handles})
        both.check_states()
        assert both.pool.batched == (rows == 1 and both.pool.reason == "")
    assert not both.pool.batched


def _turning_rows():
    """[steps, batch, 2] is read as [batch, steps, 2]; the state adds up the rows."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "order"], ["turned"], axis=0),
        helper.make_node("Reshape", ["x", "turned"], ["rows"]),
        helper.make_node("ReduceSum", ["rows", "one"], ["sum"], keepdims=0),
        helper.make_node("Add", ["h_in", "sum"], ["h_out"]),
        helper.make_node("Neg", ["h_out"], ["y"]),
    ]
    return model(
        nodes,
        [floats("x", ["steps", "batch", 2]), floats("h_in", ["batch", 2])],
        [floats("y", ["batch", 2]), floats("h_out", ["batch", 2])],
        [initializer("order", np.int64([1, 0, 2])), initializer("one", np.int64([1]))],
    )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("proto", "carry", "x"),
    [
        (counter(), {"count_in": "count_out", "sum_in": "sum_out"}, np.ones((1, 2), np.float32)),
        (growing(), {"past_in": "past_out"}, np.ones((1, 2), np.float32)),
    ],
)
def test_other_states(proto, carry, x, backend):
    both = Oracle(session(proto, backend), carry, max_streams=3)
    handles = [both.open() for _ in range(3)]
    for tick in range(5):
        both.tick({handle: {"x": x * handle} for handle in handles[: 1 + tick]})
        both.check_states()


def test_a_shape_for_one_stream_takes_many():
    """As exporters of fixed sizes write it: Reshape to [1, 4] and back."""
    nodes = [
        helper.make_node("Reshape", ["x", "flat"], ["rows"]),
        helper.make_node("Add", ["rows", "h_in"], ["h_out"]),
        helper.make_node("Reshape", ["h_out", "full"], ["y"]),
    ]
    proto = model(
        nodes,
        [floats("x", [1, 1, 4]), floats("h_in", [1, 4])],
        [floats("y", [1, 1, 4]), floats("h_out", [1, 4])],
        [initializer("flat", np.int64([1, 4])), initializer("full", np.int64([1, 1, 4]))],
    )
    both = Oracle(session(proto), max_streams=4)
    handles = [both.open() for _ in range(3)]
    for tick in range(3):
        both.tick({handle: {"x": feed(1, 1, tick + handle)} for handle in handles})
        both.check_states()
    assert both.pool.batched


def test_numpy_says_why_streams_run_alone():
    pool = session(stateful("GRU"), "numpy").pool(2)
    assert not pool.batched
    assert pool.reason == "there is no plan that takes any number of streams"


def test_plan_files_say_why_streams_run_alone(tmp_path):
    s = session(stateful("GRU"))
    s.export(tmp_path / "m.rnn")
    both = Oracle(webrnn.InferenceSession(tmp_path / "m.rnn", backend=MAIN), max_streams=3)
    handles = [both.open() for _ in range(3)]
    for tick in range(3):
        both.tick({handle: {"x": feed(1, 1, tick + handle)} for handle in handles})
        both.check_states()
    assert both.pool.reason == "the plan was exported for one stream: export(..., pool=True) makes one for many"


def test_pools_of_a_session_share_its_weights():
    s = session(stateful("GRU"))
    assert s.pool(2)._batched is s.pool(3)._batched
