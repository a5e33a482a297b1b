"""Trainers: the task beside PyTorch step for step, states, files, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import webrnn
from tests.backends import BACKENDS, INSIDE_PYODIDE, KERNELS, MAIN
from tests.onnx.models import floats, initializer, recurrent
from tests.onnx.models import model as build
from tests.training import models
from tests.training.cases import RECORDED, TASK_OPTIONS, TASK_RATES, TASK_STEPS, task_batch
from webrnn.ir import DType, GraphBuilder, Value
from webrnn.training import Adam, Ctc, Sgd
from webrnn.training.trainer import Trainer

TORCH = np.load(RECORDED / "torch.npz")
N_STEPS = 30 if INSIDE_PYODIDE else TASK_STEPS


def task_trainer(kind: str, model: Any, backend: str) -> Trainer:
    optimizer = {"sgd": Sgd, "adam": Adam}[kind](**TASK_OPTIONS[kind])
    return webrnn.trainer(model, "cross_entropy", optimizer, lr=TASK_RATES[kind], backend=backend)


def losses_of(trainer: Trainer, n_steps: int, first: int = 0) -> np.ndarray:
    found = []
    for number in range(first, first + n_steps):
        x, target = task_batch(number)
        found.append(trainer.step({"x": x, "target": target}))
    return np.array(found, np.float32)


@pytest.mark.parametrize("kind", TASK_RATES)
def test_the_task_as_in_pytorch_step_for_step(kind: str) -> None:
    """Within 1e-3 in each step; the ends of all fused builds are the same bits."""
    model = models.classifier().SerializeToString()
    trainers = [task_trainer(kind, model, backend) for backend in KERNELS]
    losses = [losses_of(trainer, N_STEPS) for trainer in trainers]
    np.testing.assert_allclose(losses[0], TORCH[f"task.{kind}.losses"][:N_STEPS], rtol=0, atol=1e-3)
    assert losses[0][-1] < losses[0][0] or INSIDE_PYODIDE
    states = [trainer.state for trainer in trainers]
    for other in states[1:]:
        assert all(np.array_equal(states[0][name], other[name]) for name in states[0])
    assert "numpy" not in trainers[0].report()
    if N_STEPS == TASK_STEPS:
        for name, array in models.torch_weights(trainers[0].parameters()).items():
            np.testing.assert_allclose(array, TORCH[f"task.{kind}.{name}"], rtol=0, atol=1e-2)


def test_a_net_that_was_built_learns_the_same() -> None:
    trainer = task_trainer("adam", models.built_classifier(), MAIN)
    np.testing.assert_allclose(losses_of(trainer, 30), TORCH["task.adam.losses"][:30], rtol=0, atol=1e-4)
    assert sorted(trainer.parameters()) == ["gru_B_1", "gru_B_2", "gru_RT", "gru_WT", "out_B", "out_WT"]
    with pytest.raises(webrnn.OptionError, match="not from an ONNX file"):
        trainer.save_onnx("model.onnx")


@pytest.mark.parametrize("backend", BACKENDS)
def test_predictions_follow_the_parameters(backend: str) -> None:
    trainer = webrnn.trainer(models.linear(), "mse", "adam", lr=0.05, backend=backend)
    x = np.random.default_rng(1).standard_normal((8, 3)).astype(np.float32)
    target = x[:, :2] * 2 + 1
    first = trainer.step({"x": x, "target": target})
    for _ in range(300):
        loss = trainer.step({"x": x, "target": target})
    assert loss < first / 100
    (y,) = trainer.predict({"x": x})
    np.testing.assert_allclose(np.mean((y - target) ** 2), loss, rtol=0.2)
    parameters = trainer.parameters()
    np.testing.assert_allclose(y, x @ parameters["W"] + parameters["b"], rtol=1e-5, atol=1e-5)


def test_snapshots_go_on_where_they_were() -> None:
    model = models.classifier().SerializeToString()
    first, second = (task_trainer("adam", model, MAIN) for _ in range(2))
    losses_of(first, 5)
    second.load(first.state)
    assert np.array_equal(losses_of(first, 5, 5), losses_of(second, 5, 5))
    first.reset()
    assert all(np.array_equal(first.parameters()[name], array) for name, array in first._step.starts.items())
    assert np.array_equal(losses_of(first, 5), losses_of(task_trainer("adam", model, MAIN), 5))


def test_some_parameters_are_loaded() -> None:
    trainer = webrnn.trainer(models.linear(), "mse")
    before = trainer.state
    trainer.load({"b": np.float32([5, 6])})
    assert np.array_equal(trainer.parameters()["b"], [5, 6])
    assert np.array_equal(trainer.parameters()["W"], before["W"])
    with pytest.raises(webrnn.OptionError, match="no parameter or state 'c'; there are 'W', 'b'"):
        trainer.load({"c": np.float32([1])})
    with pytest.raises(webrnn.ShapeError):
        trainer.load({"b": np.float32([1, 2, 3])})
    assert np.array_equal(trainer.parameters()["b"], [5, 6])


def test_the_onnx_file_has_what_was_learned(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(models.classifier(), path)
    trainer = task_trainer("adam", path, MAIN)
    losses_of(trainer, 10)
    trainer.save_onnx(tmp_path / "learned.onnx")
    onnx.checker.check_model(str(tmp_path / "learned.onnx"))
    x, _ = task_batch(0)
    (expected,) = trainer.predict({"x": x})
    (found,) = webrnn.InferenceSession(tmp_path / "learned.onnx").run(None, {"x": x})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    again = webrnn.trainer(tmp_path / "learned.onnx", "cross_entropy")
    assert all(np.array_equal(again.parameters()[name], array) for name, array in trainer.parameters().items())
    if not INSIDE_PYODIDE:
        onnxruntime = pytest.importorskip("onnxruntime")
        (theirs,) = onnxruntime.InferenceSession(tmp_path / "learned.onnx").run(None, {"x": x})
        np.testing.assert_allclose(found, theirs, rtol=1e-4, atol=1e-5)


def test_an_exported_plan_learns_the_same_bits(tmp_path: Path) -> None:
    trainer = task_trainer("adam", models.classifier().SerializeToString(), MAIN)
    losses_of(trainer, 3)
    assert trainer.export(tmp_path / "learn.rnn", predict=tmp_path / "predict.rnn") == []
    session = webrnn.InferenceSession(tmp_path / "learn.rnn", backend=MAIN)
    assert session.about["trainer"]["parameters"] == list(trainer.parameters())
    stream = session.stream()
    rate = np.float32(session.about["trainer"]["lr"])
    for number in range(3, 8):
        x, target = task_batch(number)
        assert stream.step({"x": x, "target": target, "lr": rate}) == [trainer.step({"x": x, "target": target})]
    state = trainer.state
    assert state.keys() == stream.state.keys()
    assert all(np.array_equal(state[name], array) for name, array in stream.state.items())
    predictor = webrnn.InferenceSession(tmp_path / "predict.rnn", backend=MAIN).stream()
    predictor.load({name: stream.state[name] for name in trainer.parameters()})
    (scores,) = predictor.step({"x": x})
    assert np.array_equal(scores, trainer.predict({"x": x})[0])


def test_sizes_may_change_from_step_to_step() -> None:
    trainer = task_trainer("sgd", models.classifier().SerializeToString(), MAIN)
    x, target = task_batch(0)
    for batch, time in ((16, 20), (1, 1), (3, 7)):
        assert np.isfinite(trainer.step({"x": x[:batch, :time], "target": target[:batch]}))


def test_only_some_weights_learn() -> None:
    model = models.classifier().SerializeToString()
    trainer = webrnn.trainer(model, "cross_entropy", wrt=["V", "[c]"])
    before = trainer.parameters()
    assert list(before) == ["V", "c"]
    losses_of(trainer, 2)
    assert not np.array_equal(trainer.parameters()["V"], before["V"])
    weights = {
        name: onnx.numpy_helper.to_array(one) for one in models.classifier().graph.initializer for name in [one.name]
    }
    saved = {
        one.name: onnx.numpy_helper.to_array(one) for one in onnx.load_from_string(trainer.onnx()).graph.initializer
    }
    assert all(np.array_equal(saved[name], weights[name]) for name in ("W", "R", "B", "axes"))
    assert np.array_equal(saved["c"], trainer.parameters()["c"])


def test_a_rate_of_zero_changes_nothing() -> None:
    trainer = webrnn.trainer(models.linear(), "mse", lr=0.1)
    feeds = {"x": np.ones((2, 3), np.float32), "target": np.zeros((2, 2), np.float32)}
    first = trainer.step(feeds, lr=0)
    assert trainer.step(feeds) == first
    assert trainer.step(feeds) < first


def test_masks_leave_frames_out() -> None:
    """What stands where the mask is 0 does not matter."""
    model = recurrent("GRU", steps=4, batch=2)
    results = []
    for rest in (0, 7):
        trainer = webrnn.trainer(model.SerializeToString(), "mse", prediction="Y", mask=True, lr=0.1)
        (dtype, shape) = trainer.inputs["mask"]
        assert dtype is DType.FLOAT
        assert shape == (4, 1, 2)
        target = np.ones((4, 1, 2, 5), np.float32)
        mask = np.ones((4, 1, 2), np.float32)
        mask[3], target[3] = 0, rest
        x = np.random.default_rng(0).standard_normal((4, 2, 4)).astype(np.float32)
        results.append([trainer.step({"X": x, "target": target, "mask": mask}) for _ in range(3)])
    assert results[0] == results[1]
    assert results[0][2] < results[0][0]


def test_ctc_learns_an_alignment() -> None:
    trainer = webrnn.trainer(models.tagger(), Ctc(), "adam", lr=0.05)
    feeds = {
        "x": np.random.default_rng(2).standard_normal((8, 2, 3)).astype(np.float32),
        "target": np.array([[1, 2, 2], [3, 0, 0]]),
        "input_lengths": np.array([8, 6]),
        "target_lengths": np.array([3, 1]),
    }
    losses = [trainer.step(feeds) for _ in range(80)]
    assert losses[-1] < losses[0] / 10
    assert "numpy" not in trainer.report()


def test_a_loss_of_the_model_itself_and_one_of_a_function() -> None:
    def mine(b: GraphBuilder, prediction: Value, target: Value) -> Value:
        return b.op("ReduceMean", b.op("Abs", b.op("Sub", prediction, target)), keepdims=0)

    trainer = webrnn.trainer(models.linear(), mine, lr=0.05)
    feeds = {"x": np.ones((2, 3), np.float32), "target": np.zeros((2, 2), np.float32)}
    losses = [trainer.step(feeds) for _ in range(3)]
    assert losses[0] > losses[1] > losses[2]
    from onnx.parser import parse_model

    with_loss = parse_model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[n] x, float[n] t) => (float loss) <float[1] w = {1}> {
            y = Mul(x, w) d = Sub(y, t) loss = ReduceSumSquare <keepdims = 0> (d)
        }""")
    trainer = webrnn.trainer(with_loss.SerializeToString(), "loss", lr=0.1)
    feeds = {"x": np.float32([1, 2]), "t": np.float32([3, 6])}
    losses = [trainer.step(feeds) for _ in range(20)]
    assert losses[0] == 20
    assert losses[-1] < 1e-6
    np.testing.assert_allclose(trainer.parameters()["w"], [3], rtol=1e-4)


def test_names_that_losses_have() -> None:
    """A value inside gives way to an input of the loss; an input of the model does not."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["target"]),
        helper.make_node("Relu", ["target"], ["mask"]),
    ]
    weights = [initializer("w", np.ones((2, 1), np.float32))]
    proto = build(nodes, [floats("x", ["n", 2])], [floats("mask", ["n", 1])], weights).SerializeToString()
    learner = webrnn.trainer(proto, "mse", mask=True)
    ones = np.ones((3, 1), np.float32)
    assert learner.step({"x": np.ones((3, 2), np.float32), "target": ones, "mask": ones[:, 0]}) == 1
    proto = build(
        [helper.make_node("MatMul", ["mask", "w"], ["y"])], [floats("mask", ["n", 2])], [floats("y", ["n", 1])], weights
    ).SerializeToString()
    with pytest.raises(webrnn.OptionError, match="the model has an input 'mask', which the loss has, too"):
        webrnn.trainer(proto, "mse", mask=True)


def test_a_seed_draws_weights_anew() -> None:
    model = models.linear(64, 32)
    plain, one, same, other = (webrnn.trainer(model, "mse", seed=seed).parameters() for seed in (None, 1, 1, 2))
    assert np.array_equal(one["W"], same["W"])
    assert not np.array_equal(one["W"], other["W"])
    assert not np.array_equal(one["W"], plain["W"])
    assert abs(one["W"].std() / plain["W"].std() - 1) < 0.05
    assert np.array_equal(one["b"], plain["b"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "loss='hinge': it is one of 'mse', 'cross_entropy', 'ctc'"),
        ({"optimizer": "lion"}, "optimizer='lion'"),
        ({"seed": 1.5}, "seed=1.5: it is a whole number"),
        ({"seed": -1}, "seed=-1: it is a whole number"),
        ({"wrt": ["V"]}, "no float constant 'V'; it has 'W', 'b'"),
        ({"wrt": "W"}, r"wrt is a list of names: wrt=\['W'\]"),
        ({"wrt": []}, "no weights to train"),
        ({"lr": "fast"}, "lr='fast'"),
        ({"lr": -1}, "lr=-1"),
        ({"clip_norm": 0}, "clip_norm=0"),
        ({"prediction": "z"}, "prediction='z': the model has 'y'"),
        ({"loss": Ctc(), "mask": True}, "mask is not for"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(webrnn.OptionError, match=message):
        webrnn.trainer(models.linear(), **{"loss": "mse", **options})


def test_models_that_are_refused(tmp_path: Path) -> None:
    webrnn.InferenceSession(models.linear()).export(tmp_path / "model.rnn")
    with pytest.raises(webrnn.PlanError, match="this is a plan"):
        webrnn.trainer(tmp_path / "model.rnn", "mse")
    with pytest.raises(webrnn.OptionError, match="several outputs: prediction= says"):
        webrnn.trainer(recurrent("GRU").SerializeToString(), "mse")


def test_feeds_that_are_refused_change_nothing() -> None:
    trainer = webrnn.trainer(models.classifier().SerializeToString(), "cross_entropy", lr=0.1)
    x, target = task_batch(0)
    trainer.step({"x": x, "target": target})
    before = trainer.state
    for feeds in (
        {"x": x},
        {"x": x, "target": target + 3},
        {"x": x, "target": target, "lr": 1.0},
        {"x": x, "target": x},
    ):
        with pytest.raises(webrnn.Error):
            trainer.step(feeds)
    with pytest.raises(webrnn.ShapeError, match="'target' has numbers"):
        trainer.step({"x": x, "target": target.astype(np.int64) + 2**40})
    assert all(np.array_equal(before[name], array) for name, array in trainer.state.items())


def test_statistics_and_settings_do_not_learn() -> None:
    """Of a BatchNormalization the scale and the bias learn, mean and variance stay."""
    from onnx.parser import parse_model

    model = parse_model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[b, 2, t] x) => (float[b, 2, t] y)
        <float[2] s = {1, 1}, float[2] c = {0, 0}, float[2] m = {0, 1}, float[2] v = {1, 2}> {
            y = BatchNormalization(x, s, c, m, v)
        }""").SerializeToString()
    assert list(webrnn.trainer(model, "mse").parameters()) == ["s", "c"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_targets_of_other_sizes_are_not_repeated(backend: str) -> None:
    """The prediction of a convolution is two frames shorter: no input can say that, so a step does."""
    net = webrnn.build.torch({"conv.weight": np.ones((4, 2, 3), np.float32)})
    net.output("y", net.conv1d("conv", net.input("x", ("batch", 2, "time"))))
    trainer = webrnn.trainer(net, "mse", backend=backend)
    x = np.ones((2, 2, 9), np.float32)
    assert trainer.step({"x": x, "target": np.full((2, 4, 7), 6, np.float32)}) == 0
    for length in (1, 6, 9):
        with pytest.raises(webrnn.Error):
            trainer.step({"x": x, "target": np.full((2, 4, length), 6, np.float32)})


def test_truncated_and_frugal_steps() -> None:
    """Over at least as many steps as there are nothing changes; checkpoints change nothing but the last bits."""
    model = models.classifier().SerializeToString()
    x, target = task_batch(0)
    losses = {}
    for options in ({}, {"truncate": 20}, {"truncate": 4}, {"every": 5}):
        trainer = webrnn.trainer(model, "cross_entropy", lr=0.5, **options)  # type: ignore[arg-type]
        losses[str(options)] = [trainer.step({"x": x, "target": target}) for _ in range(5)]
    full, same, short, frugal = losses.values()
    np.testing.assert_allclose(same, full, rtol=1e-5)
    np.testing.assert_allclose(frugal, full, rtol=1e-5)
    assert abs(short[-1] - full[-1]) > 1e-4
