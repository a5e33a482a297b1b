"""An export runs its plan once before it says that it is done."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import webrnn
from tests.backends import KERNELS, MAIN
from tests.engine.stream_models import CARRY, hidden_state, stateful
from tests.models.fetch import model_path
from tests.onnx.models import bools, floats, graph, initializer, integers, model
from webrnn.cli import main
from webrnn.engine import exporting
from webrnn.engine.export_trial import _try
from webrnn.ir import DType, Symbol, Value


def session(proto, backend=MAIN):
    return webrnn.InferenceSession(proto.SerializeToString(), backend=backend)


def ints(name, *values):
    return initializer(name, np.array(values, np.int64))


X = [Value("x", DType.FLOAT, (Symbol("n"), 3))]


def trial(plan_takes, model_takes):
    """What is said of a plan and a model that take these numbers of rows."""

    def by_plan(arguments):
        if len(arguments[0]) not in plan_takes:
            raise webrnn.PlanError("a size is negative", node="cut")
        return [arguments]

    return _try(X, None, by_plan, lambda arguments: [arguments], lambda arguments: len(arguments[0]) in model_takes)


@pytest.mark.parametrize("carry", [None, "auto"])
@pytest.mark.parametrize("name", ["silero_v6", "silero_v6_op15", "silero_v6_op18_ifless"])
def test_a_plan_for_all_sizes_takes_the_documented_inputs(name, carry, tmp_path):
    s = webrnn.InferenceSession(model_path(name))
    oracle = webrnn.InferenceSession(model_path(name), backend="numpy")
    s.export(tmp_path / "m.rnn", carry=carry)
    loaded = webrnn.InferenceSession(tmp_path / "m.rnn")
    both = ((16000, 576), (8000, 288)) if name != "silero_v6_op15" else ((16000, 576),)
    for rate, samples in both:
        rng = np.random.default_rng(rate)
        feeds = {
            "input": rng.normal(0, 0.1, (1, samples)).astype(np.float32),
            "state": np.zeros((2, 1, 128), np.float32),
            "sr": np.array(rate),
        }
        for found, wanted in zip(loaded.run(None, feeds), oracle.run(None, feeds), strict=True):
            np.testing.assert_allclose(found, wanted, atol=2e-5)


@pytest.mark.parametrize("proto", [stateful("GRU"), stateful("LSTM"), stateful("Scan")])
def test_a_plan_of_which_there_is_nothing_to_say(proto, tmp_path):
    s = session(proto)
    assert s.export(tmp_path / "m.rnn") == []
    assert s.export(tmp_path / "m.rnn", carry="auto") == []
    assert session(hidden_state("GRU")).export(tmp_path / "m.rnn", carry="internal") == []
    assert webrnn.InferenceSession(tmp_path / "m.rnn", backend=MAIN).export(tmp_path / "again.rnn") == []


def test_sizes_for_which_the_plan_does_not_hold_are_said():
    (said,) = trial({2}, {1, 2})
    assert said == "the plan does not take x: [1, 3] (node 'cut': a size is negative), which the model takes"
    assert trial({2}, {2}) == []


def test_a_plan_that_holds_for_nothing_that_was_tried_is_refused():
    with pytest.raises(webrnn.PlanError, match=r"does not hold for what the model takes, as x: \[1, 3\].*give shapes="):
        trial(set(), {1, 2})


def test_a_model_that_takes_nothing_that_was_tried(tmp_path, capsys):
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Reshape", ["places", "shape"], ["y"]),
    ]
    proto = model(nodes, [floats("x", ["n"])], [integers("y", None)], [ints("shape", 7, 5)])
    (said,) = session(proto).export(tmp_path / "m.rnn")
    assert said.startswith("the plan was not tried: inputs that were made up are refused")
    loaded = webrnn.InferenceSession(tmp_path / "m.rnn", backend=MAIN)
    assert loaded.run(None, {"x": np.ones(35, np.float32)})[0].shape == (7, 5)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    assert main(["export", str(tmp_path / "m.onnx")]) == 0
    assert "Note: the plan was not tried" in capsys.readouterr().out
    assert session(proto).export(tmp_path / "m.rnn", shapes={"x": (35,)}) == []


def test_a_model_that_takes_no_random_numbers(tmp_path):
    """They would be numbers of rows that there are not."""
    nodes = [
        helper.make_node("Mul", ["x", "far"], ["scaled"]),
        helper.make_node("Cast", ["scaled"], ["rows"], to=TensorProto.INT64),
        helper.make_node("Gather", ["table", "rows"], ["y"]),
    ]
    table = initializer("table", np.arange(6, dtype=np.float32).reshape(3, 2))
    constants = [table, initializer("far", np.float32([1e6]))]
    assert session(model(nodes, [floats("x", ["n"])], [floats("y", None)], constants)).export(tmp_path / "m.rnn") == []


def test_a_plan_that_gives_other_results_is_refused(tmp_path, monkeypatch):
    encode_again = exporting.encode_again

    def damaging(file, *arguments, **options):
        data = bytearray(encode_again(file, *arguments, **options))
        header = file.header
        weights = np.frombuffer(data, np.float32, header["data_bytes"] // 4, header["data_offset"])
        weights[...] = 0.5
        return bytes(data)

    monkeypatch.setattr(exporting, "encode_again", damaging)
    for carry in (None, "auto"):
        with pytest.raises(webrnn.PlanError, match="gives other results than the session"):
            session(stateful("GRU")).export(tmp_path / "m.rnn", carry=carry)
    assert not (tmp_path / "m.rnn").exists()


def branches():
    """Each branch takes other lengths: x[0:4] as [2, 2] and back, or one of them alone."""
    then = graph(
        [
            helper.make_node("Reshape", ["x", "four"], ["a"]),
            helper.make_node("ReduceSum", ["a"], ["then_y"], keepdims=0),
        ],
        [],
        [floats("then_y", None)],
        [ints("four", 2, 2)],
    )
    other = graph(
        [
            helper.make_node("Reshape", ["x", "six"], ["a"]),
            helper.make_node("ReduceMax", ["a"], ["other_y"], keepdims=0),
        ],
        [],
        [floats("other_y", None)],
        [ints("six", 3, 2)],
    )
    nodes = [helper.make_node("If", ["flag"], ["y"], name="choice", then_branch=then, else_branch=other)]
    return model(nodes, [floats("x", ["n"]), bools("flag", [])], [floats("y", None)])


@pytest.mark.parametrize("backend", KERNELS)
def test_what_one_branch_asks_of_sizes_the_other_does_not(backend, tmp_path):
    s = session(branches(), backend)
    s.export(tmp_path / "m.rnn")
    four, six = np.arange(4, dtype=np.float32), np.arange(6, dtype=np.float32)
    yes, no = np.array(True), np.array(False)
    for runs in (s, webrnn.InferenceSession(tmp_path / "m.rnn", backend=backend)):
        assert runs.run(None, {"x": four, "flag": yes}) == [6]
        with pytest.raises(webrnn.Error):
            runs.run(None, {"x": four, "flag": no})
        assert runs.run(None, {"x": six, "flag": no}) == [5]
        with pytest.raises(webrnn.Error):
            runs.run(None, {"x": six, "flag": yes})
        assert runs.run(None, {"x": four, "flag": yes}) == [6]


def test_carries_of_all_cells_are_tried(tmp_path):
    for op, carry in CARRY.items():
        assert session(stateful(op)).export(tmp_path / "m.rnn", carry=carry) == []


def test_a_plan_that_reaches_a_limit_is_said_to(tmp_path):
    body = graph(
        [helper.make_node("Tanh", ["h"], ["h_next"]), helper.make_node("Identity", ["go"], ["go_on"])],
        [integers("i", []), bools("go", []), floats("h", None)],
        [bools("go_on", []), floats("h_next", None)],
    )
    node = helper.make_node("Loop", ["count", "", "x"], ["y"], name="long", body=body)
    proto = model([node], [floats("x", ["n"])], [floats("y", None)], [initializer("count", np.array(10**9))])
    (said,) = session(proto).export(tmp_path / "m.rnn")
    assert said.startswith("the plan was not run to its end: node 'long'")
