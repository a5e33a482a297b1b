import json
import xml.etree.ElementTree as xml

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.engine.stream_models import stateful
from tests.onnx.models import floats, initializer, integers, model
from tests.quantize.models import layers
from webrnn.cli import main


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "m.onnx"
    file.write_bytes(layers(64, 64, 64, 4, spread=10.0).SerializeToString())
    return str(file)


def quantize(*arguments):
    return main(["quantize", *map(str, arguments), "--no-timing"])


def test_what_it_prints(path, capsys):
    assert main(["quantize", path]) == 0
    out = capsys.readouterr().out
    assert "  node    op      weights  float32  form  becomes  error alone  why not smaller\n" in out
    assert "  layer0  Linear  4,096    16.4 KB  int8  4.1 KB   0.00" in out
    assert (
        "  layer2  Linear  256      1.0 KB   f32   1.0 KB   0            it has 256 weights, fewer than 1024\n" in out
    )
    assert "weights   33.8 KB become 9.2 KB: 0.27\n" in out
    assert "all together, on 3 runs of random inputs\n  y: " in out
    assert "the largest difference from float32 in an output, relative to the largest magnitude" in out
    assert "µs for a run: " in out
    assert out.endswith("\n--weights int8\n")


def test_keep_and_a_bound(path, capsys):
    assert quantize(path, "--keep", "layer0", "--max-error", 0.02) == 0
    out = capsys.readouterr().out
    assert "layer0  Linear  4,096    16.4 KB  f32    16.4 KB  0            asked for" in out
    assert "layer1  Linear  4,096    16.4 KB  int16  8.2 KB" in out
    assert "for the error" in out
    assert "--weights layer0=f32" in out


def test_the_plan_has_the_forms_that_were_found(path, tmp_path, capsys):
    plan, figures = tmp_path / "small.rnn", tmp_path / "figures.json"
    assert quantize(path, "--max-error", 0.01, "-o", plan, "--json", figures) == 0
    assert f"{plan}: " in capsys.readouterr().out
    found = json.loads(figures.read_text())
    assert found["error"] <= 0.01
    assert {node["form"] for node in found["nodes"]} == {"int8", "int16", "f32"}
    x = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    expected = webrnn.InferenceSession(path, weights=found["weights"]).run(None, {"x": x})
    assert webrnn.InferenceSession(plan).run(None, {"x": x})[0].tobytes() == expected[0].tobytes()


def test_a_stream(tmp_path, capsys):
    path, plan = tmp_path / "m.onnx", tmp_path / "m.rnn"
    path.write_bytes(stateful("LSTM", hidden=32).SerializeToString())
    assert quantize(path) == 0
    assert "Note: h_in=h_out, c_in=c_out looks like a state; --carry auto tries streams" in capsys.readouterr().out
    assert main(["quantize", str(path), "--carry", "auto", "--steps", "5", "-o", str(plan)]) == 0
    out = capsys.readouterr().out
    assert "all together, on 5 steps of a stream of random inputs" in out
    assert "µs for a step: " in out
    assert "looks like a state" not in out
    assert webrnn.InferenceSession(plan).stream().carry == {"h_in": "h_out", "c_in": "c_out"}


def test_the_picture(path, tmp_path, capsys):
    file = tmp_path / "error.svg"
    assert quantize(path, "--plot", file) == 0
    root = xml.parse(file).getroot()
    name = "{http://www.w3.org/2000/svg}"
    said = [title.text for title in root.iter(f"{name}title")]
    for form in ("int8", "int16", "f16", "f32", "chosen"):
        assert len([text for text in said if text.startswith(f"{form}: ")]) == 1
    assert len([text for text in said if text.startswith("mixed: ")]) == 5
    (line,) = root.iter(f"{name}polyline")
    places = [tuple(map(float, place.split(","))) for place in line.get("points").split()]
    assert [x for x, _ in places] == sorted(x for x, _ in places), "from the smallest to float32"
    assert places[0][1] < places[-1][1], "and from the largest error to none"


def test_given_inputs_and_json_alone(path, tmp_path, capsys):
    np.savez(tmp_path / "x.npz", x=np.ones((2, 64), np.float32))
    assert quantize(path, "--inputs", tmp_path / "x.npz", "--json", "-") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["inputs"] == "1 run of given inputs"
    assert found["time"] is None


def test_sizes_that_were_guessed_are_named(tmp_path, capsys):
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Cast", ["places"], ["c"], to=1),
        helper.make_node("Reshape", ["c", "shape"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["y"]),
    ]
    weights = [initializer("w", np.ones((64, 64), np.float32)), initializer("shape", np.int64([2, 64]))]
    proto = model(nodes, [floats("x", ["n"])], [floats("y", None)], weights)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    assert quantize(tmp_path / "m.onnx") == 1
    assert "(sizes were guessed, try others: --size n=" in capsys.readouterr().err
    assert quantize(tmp_path / "m.onnx", "--size", "n=128") == 0


def test_indices_are_drawn(tmp_path, capsys):
    nodes = [helper.make_node("Gather", ["table", "words"], ["y"])]
    table = initializer("table", np.ones((64, 64), np.float32))
    proto = model(nodes, [integers("words", [3])], [floats("y", [3, 64])], [table])
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    assert quantize(tmp_path / "m.onnx") == 0
    assert "but zeros" not in capsys.readouterr().out
    np.savez(tmp_path / "x.npz", words=np.int64([0, 1, 2]))
    assert quantize(tmp_path / "m.onnx", "--inputs", tmp_path / "x.npz") == 0
    assert "but zeros" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--weights", "int3"], "weights are 'int3', they can be f32, f16, int16, int8"),
        (["--keep", "layer7"], "there is no node 'layer7' with weights; there are layer0, layer1, layer2"),
        (["--weights", "layer7=f16"], "there is no node 'layer7' with weights"),
        (["--max-error", "-1"], "the largest error is a number from 0 on"),
        (["--inputs", "none.npz"], "is no .npz file of arrays"),
        (["--size", "n=many"], "'many' is not a size"),
        (["--steps", "3"], "is for streams"),
        (["--carry", "x"], "--carry takes INPUT=OUTPUT"),
        (["--carry", "z=y"], "the model has no input 'z'"),
        (["-o", "no/such/folder/m.rnn"], "cannot write 'no/such/folder/m.rnn'"),
        (["--plot", "no/such/folder/m.svg"], "cannot write 'no/such/folder/m.svg'"),
        (["--backend", "abacus"], "abacus"),
    ],
)
def test_wrong_options(options, message, path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert quantize(path, *options) == 1
    err = capsys.readouterr().err
    assert err.startswith("webrnn: ")
    assert message in err
    assert list(tmp_path.glob("*.rnn")) == []


def test_a_plan_is_no_model(path, tmp_path, capsys):
    assert main(["export", path]) == 0
    assert quantize(tmp_path / "m.rnn") == 1
    assert "weights are made small when a plan is exported, not when it is loaded" in capsys.readouterr().err
