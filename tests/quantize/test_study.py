"""`quantize`: errors of nodes and of all together, and the search."""

import numpy as np
import pytest

import webrnn
from tests.engine.stream_models import hidden_state, stateful
from tests.quantize.models import layers
from webrnn.quantize import quantize

SIZES = (64, 64, 64, 64, 64)


@pytest.fixture(scope="module")
def data():
    return layers(*SIZES, spread=3.0).SerializeToString()


def test_errors_are_those_of_sessions(data):
    found = quantize(data, "int8", seed=3)
    plain = webrnn.InferenceSession(data)
    feeds = found.trial.runs

    def error(weights):
        small = webrnn.InferenceSession(data, weights=weights)
        pairs = [(small.run(None, each)[0], plain.run(None, each)[0]) for each in feeds]
        return max(float(np.abs(a.astype(np.float64) - b).max() / np.abs(b).max()) for a, b in pairs)

    assert [row.unit.name for row in found.rows] == ["layer0", "layer1", "layer2", "layer3"]
    assert all(row.form == "int8" for row in found.rows)
    for row in found.rows:
        assert row.error == error({row.unit.name: "int8"}) > 0
    assert found.error == error("int8")
    assert found.weights == {"*": "int8"}
    assert found.weight_bytes * 4 == found.plain_bytes == 4 * 64 * 64 * 4


@pytest.mark.parametrize("most", [1.0, 0.02, 0.004, 0.001, 1e-5, 0.0])
def test_the_error_of_all_together_keeps_to_the_bound(data, most):
    found = quantize(data, max_error=most)
    assert found.error <= most
    report = webrnn.InferenceSession(data, weights=found.weights).weight_report
    forms = {row.unit.name: row.form for row in found.rows}
    assert (dict.fromkeys(forms, "f32") if report is None else {row.name: row.form for row in report.rows}) == forms


def test_a_larger_bound_gives_smaller_weights(data):
    sizes = [quantize(data, max_error=most).weight_bytes for most in (1.0, 0.02, 0.004, 0.001, 1e-5, 0.0)]
    assert sizes == sorted(sizes)
    assert sizes[0] == 4 * 64 * 64
    assert sizes[-1] == 4 * 4 * 64 * 64


def test_no_node_can_be_smaller_by_itself(data):
    """What the last round of the search ensures."""
    most = 0.05
    found = quantize(data, max_error=most)
    forms = {row.unit.name: row.form for row in found.rows}
    smaller = {"int16": "int8", "f32": "int16"}
    assert len(set(forms.values())) > 1, "a bound that needs mixed forms"
    plain = webrnn.InferenceSession(data)
    for name, form in forms.items():
        if form in smaller:
            session = webrnn.InferenceSession(data, weights={**forms, name: smaller[form]})
            errors = [
                np.abs(a - b).max() / np.abs(b).max()
                for feeds in found.trial.runs
                for a, b in zip(session.run(None, feeds), plain.run(None, feeds), strict=True)
            ]
            assert max(errors) > most


def test_named_nodes_keep_their_form(data):
    found = quantize(data, {"*": "int8", "layer1": "int16"}, keep=["layer2"], max_error=1.0)
    assert [row.form for row in found.rows] == ["int8", "int16", "f32", "int8"]
    assert [row.reason for row in found.rows] == ["", "", "asked for", ""]
    assert found.weights == {"*": "int8", "layer1": "int16", "layer2": "f32"}


def test_weights_are_the_smallest_form_that_is_tried(data):
    assert {row.form for row in quantize(data, "int16", max_error=1.0).rows} == {"int16"}
    assert {row.form for row in quantize(data, "f16", max_error=1.0).rows} == {"f16"}


def test_what_cannot_be_small_says_why():
    found = quantize(layers(64, 64, 4).SerializeToString())
    small, kept = found.rows
    assert (small.form, small.reason) == ("int8", "")
    assert (kept.form, kept.error) == ("f32", 0.0)
    assert kept.reason == "it has 256 weights, fewer than 1024"
    assert found.weights == {"*": "int8"}


def test_a_node_that_takes_no_integers_may_take_half_floats():
    """Of a product of few results for each row the integers do not pay."""
    found = quantize(layers(64, 64, 600, 4, 64).SerializeToString(), max_error=1.0)
    assert [row.form for row in found.rows] == ["int8", "int8", "f16", "f32"]
    assert found.weights == {"*": "int8", "layer2": "f16"}
    assert found.rows[2].reason == "it has 4 results for each row, fewer than 8"


def test_nodes_with_similar_names():
    names = ("a", "a/b", "b", "c/a/b")
    found = quantize(layers(*SIZES, spread=3.0, names=names).SerializeToString(), max_error=0.05)
    forms = {row.unit.name: row.form for row in found.rows}
    assert len(set(forms.values())) > 1
    session = webrnn.InferenceSession(
        layers(*SIZES, spread=3.0, names=names).SerializeToString(), weights=found.weights
    )
    assert {row.name: row.form for row in session.weight_report.rows} == forms


@pytest.mark.parametrize("op", ["GRU", "LSTM", "RNN"])
def test_streams(op):
    found = quantize(stateful(op, hidden=32).SerializeToString(), carry="auto", steps=7)
    assert found.trial.about == "7 steps of a stream of random inputs"
    assert [name for name, _ in found.differences] == ["y"]
    assert found.error > 0


def test_a_stream_that_is_fed_nothing():
    """Its only input is its state; its output is that, too."""
    found = quantize(layers(64, 64).SerializeToString(), carry={"x": "y"}, steps=5)
    assert found.differences == []
    assert found.error == 0


def test_hidden_states_and_sequences():
    model = hidden_state("LSTM", hidden=32).SerializeToString()
    assert quantize(model).trial.runs[0]["x"].shape == (200, 1, 4)
    assert quantize(model, sizes={"steps": 9}).trial.runs[0]["x"].shape == (9, 1, 4)
    assert 0 < quantize(model, carry="internal", steps=5).error < 0.05


def test_inputs_of_files(data, tmp_path):
    rng = np.random.default_rng(0)
    for index, n in enumerate((2, 5)):
        np.savez(tmp_path / f"{index}.npz", x=rng.standard_normal((n, 64)).astype(np.float32))
    found = quantize(data, inputs=[tmp_path / "0.npz", tmp_path / "1.npz"])
    assert found.trial.about == "2 runs of given inputs"
    assert [feeds["x"].shape[0] for feeds in found.trial.runs] == [2, 5]


def test_steps_of_files(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.ones((6, 1, 1, 4), np.float32))
    found = quantize(stateful("LSTM", hidden=32).SerializeToString(), carry="auto", inputs=[tmp_path / "x.npz"])
    assert found.trial.about == "6 steps of given inputs"


def test_progress(data):
    seen = []
    quantize(data, max_error=0.004, progress=lambda what, done, total: seen.append((what, done, total)))
    assert [done for _, done, _ in seen] == list(range(1, len(seen) + 1))
    assert all(done <= total for _, done, total in seen)
    assert "layer0 alone, int8" in [what for what, _, _ in seen]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "int4"}, "weights are 'int4'"),
        ({"keep": ["layer9"]}, "there is no node 'layer9' with weights; there are layer0"),
        ({"keep": "layer1"}, "keep is a list of names"),
        ({"max_error": -1.0}, "the largest error is a number from 0 on, not -1.0"),
        ({"max_error": float("nan")}, "not nan"),
        ({"steps": 5}, "is for streams"),
        ({"carry": {"x": "y"}, "steps": 0}, "1 or more"),
        ({"inputs": ["missing.npz"]}, "is no .npz file of arrays"),
    ],
)
def test_wrong_options(data, options, message):
    with pytest.raises(webrnn.OptionError, match=message):
        quantize(data, **options)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"z": np.zeros(3)}, "there is no 'x' in the file"),
        ({"x": np.float32(1)}, "an axis of steps in front"),
    ],
)
def test_files_that_are_no_steps_of_a_stream(arrays, message, tmp_path):
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(webrnn.Error, match=message):
        quantize(stateful("GRU", hidden=32).SerializeToString(), carry="auto", inputs=[tmp_path / "x.npz"])


def test_of_many_nodes_those_are_named_that_are_called_alike():
    data = layers(*[8] * 14).SerializeToString()
    with pytest.raises(webrnn.OptionError, match=r"no node 'layer1x' with weights; there are .*layer1, .*, 3 more$"):
        quantize(data, keep=["layer1x"])
    with pytest.raises(webrnn.OptionError, match=r"no node 'layer1x' with weights; there are .*layer1, .*, 3 more$"):
        webrnn.InferenceSession(data, weights="int8", keep=["layer1x"])


def test_a_model_without_weights():
    found = quantize(layers(4, 4).SerializeToString())
    assert found.error == 0
    assert [row.reason for row in found.rows] == ["it has 16 weights, fewer than 1024"]
    assert "0" in str(found)
