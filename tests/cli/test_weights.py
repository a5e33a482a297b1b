"""--weights and --keep, of the commands that have them."""

import json

import numpy as np
import pytest

import webrnn
from tests.engine.stream_models import stateful
from webrnn.cli import main


@pytest.fixture
def path(tmp_path):
    """An LSTM whose recurrent weights are enough to be made small, those of its input are not."""
    file = tmp_path / "m.onnx"
    file.write_bytes(stateful("LSTM", hidden=32).SerializeToString())
    return str(file)


STAYS = "Linear cell/from_x stays float32: it has 512 weights, fewer than 1024"


@pytest.mark.parametrize(("form", "most"), [("f16", 0.8), ("int16", 0.8), ("int8", 0.65)])
def test_export_writes_the_plan_of_a_session_with_such_weights(path, form, most, tmp_path, capsys):
    assert main(["export", path, "--carry", "auto"]) == 0
    plain = (tmp_path / "m.rnn").stat().st_size
    capsys.readouterr()
    assert main(["export", path, "--carry", "auto", "--weights", form]) == 0
    out = capsys.readouterr().out
    assert f"small weights: 1 of 2 nodes ({form}), 18,432 bytes became" in out
    assert STAYS in out
    assert (tmp_path / "m.rnn").stat().st_size < most * plain
    streams = [
        webrnn.InferenceSession(tmp_path / "m.rnn").stream(),
        webrnn.InferenceSession(path, weights=form).stream(),
    ]
    for x in np.random.default_rng(0).standard_normal((5, 1, 1, 4)).astype(np.float32):
        ours, expected = (stream.step({"x": x}) for stream in streams)
        assert [array.tobytes() for array in ours] == [array.tobytes() for array in expected]


def test_a_form_for_one_node(path, capsys):
    assert main(["info", path, "--weights", "cell=f16"]) == 0
    assert "cell/from_h  Linear  f16   16.4 KB  8.2 KB" in capsys.readouterr().out
    assert main(["info", path, "--weights", "int8", "--keep", "cell/from_h"]) == 0
    assert "cell/from_h  Linear  f32   16.4 KB  16.4 KB  asked for" in capsys.readouterr().out
    assert main(["info", path]) == 0
    assert "small weights" not in capsys.readouterr().out


def test_run(path, tmp_path, capsys):
    results = {}
    for form in ("f32", "int8"):
        assert main(["run", path, "--size", "steps=9", "--weights", form, "--output-dir", str(tmp_path / form)]) == 0
        results[form] = np.load(tmp_path / form / "y.npy")
    assert 0 < np.abs(results["int8"] - results["f32"]).max() < 0.02
    assert (
        main(["run", path, "--size", "steps=9", "--weights", "int8", "--keep", "cell", "--output-dir", str(tmp_path)])
        == 0
    )
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), results["f32"], atol=1e-6)  # multiply-adds are not fused


def test_plan(path, capsys):
    assert main(["plan", path]) == 0
    plain = capsys.readouterr().out
    assert main(["plan", path, "--weights", "int8"]) == 0
    assert capsys.readouterr().out != plain
    assert main(["plan", path, "--weights", "int8", "--keep", "cell"]) == 0
    kept = capsys.readouterr().out
    assert "same_bits" in kept
    assert "small_" not in kept


def test_profile(path, tmp_path, capsys):
    assert main(["profile", path, "--size", "steps=9", "--weights", "int8", "--steps", "1"]) == 0
    assert "cell" in capsys.readouterr().out


def test_bench_times_each_form_beside_float32(tmp_path, capsys):
    file = tmp_path / "times.json"
    forms = ["--weights", "f16", "--weights", "int8"]
    arguments = ["--backend", "native", *forms, "--seconds", "0.01", "--rounds", "1", "--json", str(file)]
    assert main(["bench", "gru_128_t1", *arguments]) == 0
    (model,) = json.loads(file.read_text())["models"]
    assert [result["runner"] for result in model["results"]] == ["native", "native f16", "native int8"]
    assert all(result["median_us"] > 0 for result in model["results"])


@pytest.mark.parametrize("command", ["export", "info", "plan", "profile", "run"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--weights", "int4"], "weights are 'int4', they can be f32, f16, int16, int8"),
        (["--weights", "cell=small"], "weights of cell are 'small', they can be"),
        (["--weights", "int8", "--weights", "f16"], "--weights has one form, not int8 and f16"),
        (["--weights", "int8", "--keep", "cells"], "there is no node 'cells' with weights; there are"),
        (["--keep", "cells"], "there is no node 'cells' with weights; there are"),
    ],
)
def test_wrong_options(path, command, options, message, tmp_path, capsys):
    assert main([command, path, *options]) == 1
    assert f"webrnn: OptionError: {message}" in capsys.readouterr().err
    assert list(tmp_path.glob("*.rnn")) == []


@pytest.mark.parametrize("command", ["export", "info", "plan", "run", "profile"])
def test_weights_of_a_plan_are_what_they_are(command, path, tmp_path, capsys):
    assert main(["export", path]) == 0
    assert main([command, str(tmp_path / "m.rnn"), "--weights", "int8"]) == 1
    assert "weights are made small when a plan is exported, not when it is loaded" in capsys.readouterr().err


def test_bench_with_a_wrong_form(capsys):
    assert main(["bench", "gru_128", "--weights", "int9"]) == 1
    assert "weights are 'int9'" in capsys.readouterr().err
