"""Nodes in graphs: in loops, in branches, without readers, of sizes that come with the feeds."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.backends import BACKENDS, KERNELS
from tests.onnx.models import bools, floats, graph, initializer, integers, model
from webrnn.checks.check import Check
from webrnn.ir import Symbol
from webrnn.shapes.facts import Fact

node = helper.make_node


def session(nodes, inputs, outputs, initializers=(), backend="numpy"):
    return webrnn.InferenceSession(model(nodes, inputs, outputs, initializers).SerializeToString(), backend=backend)


X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_node_that_nobody_reads_is_refused(backend):
    nodes = [node("Transpose", ["x"], ["unread"], name="bad", perm=[0]), node("Relu", ["x"], ["y"])]
    with pytest.raises(webrnn.ShapeError, match=r"'bad' \(Transpose\), attribute 'perm'"):
        session(nodes, [floats("x", [2, 3])], [floats("y", None)], backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_node_of_constants_is_refused(backend):
    nodes = [node("Expand", ["c", "shape"], ["e"], name="bad"), node("Add", ["x", "e"], ["y"])]
    constants = [initializer("c", X), initializer("shape", np.int64([2, 4]))]
    with pytest.raises(webrnn.ShapeError, match=r"'bad' \(Expand\)"):
        session(nodes, [floats("x", [2, 3])], [floats("y", None)], constants, backend)


def loop_over(body_nodes, shape):
    """A Scan over the first axis of x whose body is x_t -> y_t."""
    body = graph(body_nodes, [floats("x_t", shape)], [floats("y_t", None)])
    return node("Scan", ["x"], ["y"], name="loop", num_scan_inputs=1, body=body)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_node_of_a_loop_is_refused_when_the_model_is_opened(backend):
    loop = loop_over([node("Softmax", ["x_t"], ["y_t"], name="bad", axis=1)], [3])
    with pytest.raises(webrnn.ShapeError, match=r"'loop/bad' \(Softmax\), attribute 'axis'"):
        session([loop], [floats("x", ["n", 3])], [floats("y", None)], backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_size_is_refused_in_a_loop_that_takes_steps(backend):
    loop = loop_over([node("MatMul", ["x_t", "w"], ["y_t"], name="product")], ["k"])
    s = session([loop], [floats("x", ["n", "k"])], [floats("y", None)], [initializer("w", X)], backend)
    assert s.run(None, {"x": np.ones((4, 2), np.float32)})[0].shape == (4, 3)
    with pytest.raises(webrnn.ShapeError, match=r"'loop/product' \(MatMul\)"):
        s.run(None, {"x": np.ones((4, 3), np.float32)})
    assert s.run(None, {"x": np.ones((4, 2), np.float32)})[0].shape == (4, 3)


@pytest.mark.parametrize("attribute", ["scan_input_directions", "scan_output_directions"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_directions_of_a_loop(backend, attribute):
    loop = loop_over([node("Relu", ["x_t"], ["y_t"])], [3])
    loop.attribute.append(helper.make_attribute(attribute, [2]))
    with pytest.raises(webrnn.ModelError, match=f"'loop'.*'{attribute}'"):
        session([loop], [floats("x", ["n", 3])], [floats("y", None)], backend=backend)


@pytest.mark.parametrize("attribute", ["scan_input_axes", "scan_output_axes"])
@pytest.mark.parametrize("axis", [2, -3])
@pytest.mark.parametrize("backend", BACKENDS)
def test_axes_of_a_loop(backend, axis, attribute):
    loop = loop_over([node("Relu", ["x_t"], ["y_t"])], [3])
    loop.attribute.append(helper.make_attribute(attribute, [axis]))
    with pytest.raises(webrnn.ShapeError, match="'loop'"):
        session([loop], [floats("x", ["n", 3])], [floats("y", None)], backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_sequences_of_different_lengths(backend):
    body = graph([node("Add", ["a_t", "b_t"], ["y_t"])], [floats("a_t", [3]), floats("b_t", [3])], [floats("y_t", [3])])
    loop = node("Scan", ["a", "b"], ["y"], name="loop", num_scan_inputs=2, body=body)
    s = session([loop], [floats("a", ["n", 3]), floats("b", ["m", 3])], [floats("y", None)], backend=backend)
    assert s.run(None, {"a": X, "b": X})[0].shape == (2, 3)
    with pytest.raises(webrnn.ShapeError, match=r"'loop'.*different lengths"):
        s.run(None, {"a": X, "b": X[:1]})


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_branch_is_refused_when_it_is_taken(backend):
    good = graph([node("Relu", ["x"], ["a"])], [], [floats("a", None)])
    bad = graph([node("Transpose", ["x"], ["b"], name="bad", perm=[0])], [], [floats("b", None)])
    choice = node("If", ["c"], ["y"], then_branch=good, else_branch=bad, name="choice")
    s = session([choice], [bools("c", []), floats("x", [2, 3])], [floats("y", None)], backend=backend)
    np.testing.assert_array_equal(s.run(None, {"c": np.array(True), "x": X})[0], X)
    with pytest.raises(webrnn.ShapeError, match=r"'choice/bad' \(Transpose\)"):
        s.run(None, {"c": np.array(False), "x": X})


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_condition_is_one_bool(backend):
    branch = [graph([node("Relu", ["x"], [name])], [], [floats(name, None)]) for name in "ab"]
    choice = node("If", ["c"], ["y"], then_branch=branch[0], else_branch=branch[1], name="choice")
    for condition, error in ((integers("c", []), webrnn.ModelError), (bools("c", [2]), webrnn.ShapeError)):
        with pytest.raises(error, match="'choice'"):
            session([choice], [condition, floats("x", [2, 3])], [floats("y", None)], backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_divisor_that_is_zero_only_in_some_runs(backend):
    s = session(
        [node("Div", ["a", "b"], ["y"], name="ratio")], [integers("a", [2]), integers("b", [2])], [integers("y", None)],
        backend=backend,
    )  # fmt: skip
    for _ in range(2):
        (y,) = s.run(None, {"a": np.int64([7, -7]), "b": np.int64([2, 2])})
        np.testing.assert_array_equal(y, [3, -3])
        with pytest.raises(webrnn.ModelError, match=r"'ratio'.*division by zero"):
            s.run(None, {"a": np.int64([7, -7]), "b": np.int64([2, 0])})


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_stream_refuses_a_size_and_goes_on(backend):
    nodes = [node("MatMul", ["x", "w"], ["h"], name="product"), node("Add", ["h", "s"], ["s_next"])]
    inputs = [floats("x", [1, "k"]), floats("s", [1, 3])]
    s = session(nodes, inputs, [floats("s_next", None)], [initializer("w", X)], backend)
    stream = s.stream({"s": "s_next"})
    stream.step({"x": np.float32([[1, 0]])})
    with pytest.raises(webrnn.Error, match="product"):
        stream.step({"x": np.float32([[1, 0, 0]])})
    stream.step({"x": np.float32([[1, 0]])})
    np.testing.assert_array_equal(stream.state["s"], 2 * X[:1])


@pytest.mark.parametrize("backend", KERNELS)
def test_a_plan_refuses_what_its_model_refuses(backend, tmp_path):
    nodes = [node("Reshape", ["x", "shape"], ["y"], name="halves")]
    s = session(nodes, [floats("x", ["n"])], [floats("y", None)], [initializer("shape", np.int64([-1, 2]))], backend)
    with pytest.raises(webrnn.ShapeError, match="'halves'"):
        s.run(None, {"x": np.ones(5, np.float32)})
    if s._program.plan is None:
        return
    s.export(tmp_path / "plan.rnn")
    plan = webrnn.InferenceSession(str(tmp_path / "plan.rnn"), backend=backend)
    assert plan.run(None, {"x": np.ones(4, np.float32)})[0].shape == (2, 2)
    with pytest.raises(webrnn.Error):
        plan.run(None, {"x": np.ones(5, np.float32)})


def test_what_is_not_known_is_not_required():
    n = Symbol("n")
    c = Check("MatMul", {}, [Fact(shape=(2, None)), Fact(shape=(n, 3))], 1)
    c.equal(None, 3, "")
    c.at_least(None, 3, "")
    c.at_least(n + 1, 1, "")
    c.equal(n, n, "")
    assert c.conditions == []


def test_what_cannot_hold_is_refused_at_once():
    n = Symbol("n")
    c = Check("Any", {}, [], 1)
    for refuse in (lambda: c.equal(n + 2, n, "differ"), lambda: c.at_least(-n - 1, 0, "negative")):
        with pytest.raises(webrnn.ShapeError):
            refuse()
    c.equal(2 * n, 4, "differ")
    (condition,) = c.conditions
    condition.require({"n": 2})
    with pytest.raises(webrnn.ShapeError, match="differ"):
        condition.require({"n": 3})


@pytest.mark.parametrize("backend", BACKENDS)
def test_both_branches_hold_to_the_same_size(backend):
    branches = [
        graph([node("MatMul", ["x", "w"], ["z"], name=name), node(op, ["z"], [name])], [], [floats(name, None)])
        for name, op in (("a", "Relu"), ("b", "Neg"))
    ]
    choice = node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1], name="choice")
    inputs = [bools("c", []), floats("x", [1, "k"])]
    s = session([choice], inputs, [floats("y", None)], [initializer("w", X)], backend)
    for taken, name in ((True, "a"), (False, "b")):
        assert s.run(None, {"c": np.array(taken), "x": np.ones((1, 2), np.float32)})[0].shape == (1, 3)
        with pytest.raises(webrnn.ShapeError, match=f"'choice/{name}'"):
            s.run(None, {"c": np.array(taken), "x": np.ones((1, 3), np.float32)})


@pytest.mark.parametrize("backend", BACKENDS)
def test_operands_of_open_sizes_of_a_node_that_nobody_reads(backend):
    nodes = [node("Add", ["x", "z"], ["unread"], name="bad"), node("Relu", ["z"], ["y"])]
    made = session(nodes, [floats("x", [2, "n"]), floats("z", [3])], [floats("y", None)], backend=backend)
    for n in (1, 3):
        made.run(None, {"x": np.zeros((2, n), np.float32), "z": X[0]})
    with pytest.raises(webrnn.ShapeError, match=r"'bad' \(Add\)"):
        made.run(None, {"x": np.zeros((2, 4), np.float32), "z": X[0]})


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_node_of_which_only_the_shape_is_read_is_refused_where_only_a_run_can_tell(backend):
    nodes = [node("Attention", ["q", "k", "k"], ["a"], name="bad"), node("Shape", ["a"], ["y"])]
    inputs = [floats("q", ["n", 3, 4, 8]), floats("k", [2, 3, 6, 8])]
    made = session(nodes, inputs, [integers("y", [4])], backend=backend)
    k = np.ones((2, 3, 6, 8), np.float32)
    assert made.run(None, {"q": k[:, :, :4], "k": k})[0].tolist() == [2, 3, 4, 8]
    with pytest.raises(webrnn.ShapeError, match=r"'bad' \(Attention\)"):
        made.run(None, {"q": np.ones((5, 3, 4, 8), np.float32), "k": k})


@pytest.mark.parametrize("backend", BACKENDS)
def test_strings_of_which_only_the_shape_is_read(backend):
    casts = [node("Cast", ["x"], ["s"], to=8), node("Cast", ["s"], ["b"], name="bad", to=9)]
    nodes = [*casts, node("Shape", ["b"], ["y"])]
    with pytest.raises(webrnn.UnsupportedOp, match=r"'bad' \(Cast\): a string cannot be cast to bool"):
        session(nodes, [floats("x", ["n"])], [integers("y", [1])], backend=backend)


@pytest.mark.parametrize("shape", [[2, -1], [1, 2], [3, 3]])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_shape_that_a_run_brings(backend, shape):
    nodes = [node("Expand", ["x", "shape"], ["e"], name="bad"), node("Relu", ["e"], ["y"])]
    made = session(nodes, [floats("x", [2, 3]), integers("shape", [2])], [floats("y", [2, 3])], backend=backend)
    assert made.run(None, {"x": X, "shape": np.int64([1, 3])})[0].shape == (2, 3)
    with pytest.raises(webrnn.ShapeError, match="'bad'"):
        made.run(None, {"x": X, "shape": np.int64(shape)})


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_state_that_changes_its_type(backend):
    body = graph(
        [node("Cast", ["h"], ["wide"], to=1), node("Add", ["wide", "x"], ["next"]), node("Identity", ["go"], ["on"])],
        [integers("i", []), bools("go", []), integers("h", [2, 3])],
        [bools("on", []), floats("next", [2, 3])],
    )
    loop = node("Loop", ["n", "", "h0"], ["last"], name="loop", body=body)
    constants = [initializer("h0", np.zeros((2, 3), np.int64)), initializer("n", np.int64(1))]
    with pytest.raises(webrnn.ModelError, match="the state h is of int64 at first, of float after a step"):
        session([loop], [floats("x", [2, 3])], [floats("last", None)], constants, backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_size_of_zero_in_a_target_stands_for_another_size(backend):
    nodes = [
        node("Shape", ["x"], ["n"], end=1),
        node("Concat", ["six", "n"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["y"], name="bad"),
    ]
    constants = [initializer("six", np.int64([6]))]
    made = session(nodes, [floats("x", ["n", 6])], [floats("y", None)], constants, backend)
    assert made.run(None, {"x": np.zeros((2, 6), np.float32)})[0].shape == (6, 2)
    with pytest.raises(webrnn.ShapeError, match=r"'bad' \(Reshape\)"):
        made.run(None, {"x": np.zeros((0, 6), np.float32)})


@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_may_be_expanded_far(backend):
    nodes = [node("Expand", ["x", "shape"], ["e"]), node("Relu", ["e"], ["y"])]
    made = session(
        nodes,
        [floats("x", ["n", 1])],
        [floats("y", None)],
        [initializer("shape", np.int64([2, 1, 2**31 - 1]))],
        backend,
    )
    assert made.run(None, {"x": np.zeros((0, 1), np.float32)})[0].shape == (2, 0, 2**31 - 1)
    with pytest.raises(webrnn.ShapeError, match="would need"):
        made.run(None, {"x": np.zeros((1, 1), np.float32)})


def reshaping(first, second):
    """Shape of x, reshaped to its number of rows and six, in one order or the other."""
    constants = [initializer("z", np.int64([0])), initializer("six", np.int64([6]))]
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "z"], ["rows"]),
        node("Concat", [first, second], ["c"], axis=0),
        node("Reshape", ["x", "c"], ["r"]),
    ]
    return nodes, constants


def shape_of_result(nodes, constants, shape, backend, read="r"):
    nodes = [*nodes, node("Shape", [read], ["y"])]
    opened = session(nodes, [floats("x", ["n", "m"])], [integers("y", [None])], constants, backend)
    return opened.run(None, {"x": np.zeros(shape, np.float32)})[0].tolist()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_reshape_of_which_only_the_shape_is_read(backend):
    parts = reshaping("rows", "six")
    assert shape_of_result(*parts, (3, 6), backend) == [3, 6]
    for shape in ((3, 5), (1, 7), (4, 3)):
        with pytest.raises(webrnn.ShapeError, match="cannot be reshaped"):
            shape_of_result(*parts, shape, backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_open_size_that_is_zero_copies_an_axis(backend):
    parts = reshaping("six", "rows")
    assert shape_of_result(*parts, (2, 6), backend) == [6, 2]
    assert shape_of_result(*parts, (0, 0), backend) == [6, 0]
    for shape in ((2, 5), (0, 5)):
        with pytest.raises(webrnn.ShapeError, match=r"cannot be reshaped|do not fit"):
            shape_of_result(*parts, shape, backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_size_in_a_loop_that_turns_out_to_take_all_its_steps(backend):
    nodes, constants = reshaping("rows", "six")
    body = graph(
        [*nodes, node("Identity", ["go"], ["on"])],
        [integers("i", []), bools("go", [])],
        [bools("on", []), floats("r", None)],
    )
    looped = [node("Loop", ["steps", ""], ["all"], body=body)]
    constants = [*constants, initializer("steps", np.array(3, np.int64))]
    assert shape_of_result(looped, constants, (2, 6), backend, "all") == [3, 2, 6]
    with pytest.raises(webrnn.ShapeError, match="cannot be reshaped"):
        shape_of_result(looped, constants, (2, 5), backend, "all")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_rank_that_only_a_run_knows(backend):
    """The shape of the result is known without it."""
    nodes = [node("Gemm", ["x", "w", "c"], ["p"], transA=1, transB=1), node("Shape", ["p"], ["y"])]
    inputs = [floats("x", [2, 3]), floats("w", None), floats("c", [3])]
    opened = session(nodes, inputs, [integers("y", [2])], backend=backend)
    feeds = {"x": np.zeros((2, 3), np.float32), "c": np.zeros(3, np.float32)}
    for _ in range(2):
        assert opened.run(None, {**feeds, "w": np.zeros((3, 2), np.float32)})[0].tolist() == [3, 3]
        for shape in ((), (3,), (3, 3)):
            with pytest.raises(webrnn.ShapeError):
                opened.run(None, {**feeds, "w": np.zeros(shape, np.float32)})


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sequence_is_no_tensor(backend):
    nodes = [node("SequenceConstruct", ["x", "x"], ["s"]), node("Mul", ["s", "i"], ["y"], name="bad")]
    with pytest.raises(webrnn.ModelError, match=r"'bad' \(Mul\): input 0 is a sequence"):
        session(nodes, [floats("x", [2])], [floats("y", None)], [initializer("i", np.int64(1))], backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sequence_that_comes_out_of_a_branch_is_no_tensor(backend):
    branches = {
        name: graph(
            [node("SequenceConstruct", ["x", "x"], [name])], [], [helper.make_tensor_sequence_value_info(name, 1, None)]
        )
        for name in ("a", "b")
    }
    nodes = [
        node("If", ["go"], ["s"], then_branch=branches["a"], else_branch=branches["b"]),
        node("Mul", ["s", "x"], ["y"], name="bad"),
    ]
    with pytest.raises(webrnn.ModelError, match=r"'bad' \(Mul\): input 0 is a sequence"):
        session(nodes, [bools("go", []), floats("x", [2])], [floats("y", None)], backend=backend)
