import json
from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from onnx.parser import parse_model

import webrnn
from tests.engine.stream_models import hidden_state, stateful
from tests.models.fetch import model_path
from tests.onnx.models import floats, model
from webrnn.cli import main
from webrnn.ir import DType, GraphBuilder
from webrnn.plan.file import PlanFile
from webrnn.tables import bytes_text


def saved(tmp_path, proto, name="m.onnx"):
    file = tmp_path / name
    file.write_bytes(proto.SerializeToString())
    return str(file)


def test_states_and_about(tmp_path, capsys):
    about = tmp_path / "about.json"
    about.write_text(json.dumps({"labels": ["yes", "no"]}))
    path, plan = saved(tmp_path, stateful("LSTM")), tmp_path / "out.rnn"
    assert main(["export", path, "-o", str(plan), "--carry", "auto", "--about", str(about)]) == 0
    out = capsys.readouterr().out
    assert "  x     f32   [steps, batch, 4]" in out
    assert "  c_in   c_out        f32   [1, batch, 5]  zeros" in out
    assert '{"labels": ["yes", "no"]}' in out
    assert f"{plan}: " in out
    assert "found states\n  h_in -> h_out  by name: *_in -> *_out\n" in out
    assert "No state is carried" not in out
    session = webrnn.InferenceSession(plan)
    assert session.stream().carry == {"h_in": "h_out", "c_in": "c_out"}
    assert session.about == {"labels": ["yes", "no"]}


def test_what_other_commands_say_of_the_file(tmp_path, capsys):
    (tmp_path / "about.json").write_text('{"a": 1}')
    path = saved(tmp_path, stateful("GRU"))
    assert main(["export", path, "--carry", "auto", "--about", str(tmp_path / "about.json")]) == 0
    printed = capsys.readouterr().out
    assert main(["info", str(tmp_path / "m.rnn")]) == 0
    sections, _, size = capsys.readouterr().out.rpartition("\n\n")
    sections, _, guesses = sections.partition("\n\nguesses\n")
    assert printed.startswith(sections)
    assert "open sizes\n  size   number  why\n  steps" in guesses
    assert printed.endswith(f"\n\n{size}")
    assert size.startswith(f"{tmp_path / 'm.rnn'}: ")
    assert main(["plan", str(tmp_path / "m.rnn")]) == 0
    out = capsys.readouterr().out
    assert 'states\n  input  from output  starts from\n  h_in   h_out        zeros\n\nabout\n  {"a": 1}\n\ncode' in out


def test_half_floats_are_mentioned(tmp_path, capsys):
    graph = GraphBuilder("g")
    x = graph.input("x", DType.FLOAT, (1,))
    graph.graph.outputs = [graph.op("Mul", x, graph.constant(np.ones(1000, np.float32)))]
    file = tmp_path / "half.rnn"
    webrnn.InferenceSession(graph.graph).export(file)
    assert main(["info", str(file)]) == 0
    sizes = bytes_text(file.stat().st_size), bytes_text(len(PlanFile(file.read_bytes()).data))
    assert "{}: {} with half floats, {} when loaded\n".format(file, *sizes) in capsys.readouterr().out
    assert main(["plan", str(file), "--output", str(tmp_path / "again.rnn")]) == 0
    assert f" bytes, {file.stat().st_size:,} in the file, which has half floats\n" in capsys.readouterr().out
    assert (tmp_path / "again.rnn").read_bytes() == file.read_bytes()


def test_pairs(tmp_path, capsys):
    path = saved(tmp_path, stateful("LSTM"))
    assert main(["export", path, "--carry", "h_in=c_out", "c_in=h_out"]) == 0
    assert webrnn.InferenceSession(tmp_path / "m.rnn").stream().carry == {"h_in": "c_out", "c_in": "h_out"}


def test_a_partial_finding_writes_nothing(tmp_path, capsys):
    proto = stateful("LSTM")
    del proto.graph.output[2:]
    assert main(["export", saved(tmp_path, proto), "--carry", "auto"]) != 0
    assert "c_in looks like a state, and no output is left for it" in (error := capsys.readouterr().err)
    assert "--carry h_in=h_out" in error
    assert not (tmp_path / "m.rnn").exists()
    assert main(["info", str(tmp_path / "m.onnx")]) == 0
    out = capsys.readouterr().out
    assert "between runs  h_in  h_out  by name: *_in -> *_out" in out
    assert "not sure\n  c_in looks like a state" in out
    assert main(["export", str(tmp_path / "m.onnx")]) == 0
    assert "h_in=h_out looks like one: --carry h_in=h_out ..." in capsys.readouterr().out


def test_without_states_a_hint_names_them(tmp_path, capsys):
    assert main(["export", saved(tmp_path, stateful("GRU"))]) == 0
    assert "h_in=h_out looks like one: --carry auto" in capsys.readouterr().out
    assert main(["export", saved(tmp_path, hidden_state("GRU"))]) == 0
    assert "looks like one" not in capsys.readouterr().out


def test_hidden_states(tmp_path, capsys):
    assert main(["export", saved(tmp_path, hidden_state("GRU")), "--carry", "internal"]) == 0
    assert "cell.h  cell.h.next" in capsys.readouterr().out


def test_fixed_inputs(tmp_path, capsys):
    plan = tmp_path / "s.rnn"
    assert (
        main(["export", str(model_path("silero_v6")), "-o", str(plan), "--fixed", "sr=16000", "--carry", "auto"]) == 0
    )
    out = capsys.readouterr().out
    assert "sr" not in out.split("outputs")[0]
    stream = webrnn.InferenceSession(plan).stream()
    assert list(stream.carry) == ["state"]
    assert 0 <= stream.step({"input": np.zeros((1, 576), np.float32)})[0].item() <= 1


def test_a_model_that_needs_shapes(tmp_path, capsys):
    node = helper.make_node("Flatten", ["x"], ["y"])
    reshape = helper.make_node("Squeeze", ["y"], ["z"])
    path = saved(tmp_path, model([node, reshape], [floats("x", ["n", "m", 2])], [floats("z", None)], []))
    assert main(["export", path]) == 0
    out = capsys.readouterr().out
    assert "Note: there is no plan for all sizes; this one is for --size n=1 m=" in out
    assert main(["export", path, "--size", "n=1", "m=3"]) == 0
    assert "x     f32   [1, 3, 2]" in capsys.readouterr().out
    assert main(["export", path, "--shape", "x=1,3,2"]) == 0
    assert "x     f32   [1, 3, 2]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--carry", "h_in"], "--carry takes INPUT=OUTPUT"),
        (["--carry", "auto", "h_in=h_out"], "--carry takes INPUT=OUTPUT"),
        (["--carry", "h=h_out"], "the model has no input 'h'"),
        (["--carry", "internal", "--time", "q=0"], "the model has no input 'q'"),
        (["--shape", "x=1,many"], "is not a shape, such as 1x512"),
        (["--shape", "q=1"], "the model has no input 'q'"),
        (["--shape", "x=2x1x5"], "input 'x' cannot be 2x1x5: the model declares [steps, batch, 4]"),
        (["--size", "step=2"], "the model has no size 'step': did you mean 'steps'? It has steps, batch"),
        (["--time", "x=0"], "--time is for streams by frames: --carry internal"),
        (["--carry", "h_in=h_oot"], "the model has no output 'h_oot': did you mean 'h_out'?"),
        (["--pool"], "--pool is for streams: say what they carry"),
        (["--about", "missing.json"], "cannot read 'missing.json'"),
        (["-o", "no/such/folder/m.rnn"], "cannot write"),
        (["--fixed", "h_im=1"], "the model has no input 'h_im': did you mean 'h_in'?"),
    ],
)
def test_wrong_options(options, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["export", saved(tmp_path, stateful("GRU")), *options]) == 1
    err = capsys.readouterr().err
    assert err.startswith("webrnn: ")
    assert message in err
    assert list(tmp_path.glob("*.rnn")) == []


def test_a_plan_for_pools(tmp_path, capsys):
    path, plan = saved(tmp_path, stateful("GRU")), tmp_path / "m.rnn"
    assert main(["export", path, "--carry", "auto", "--pool"]) == 0
    assert "any number of streams in one run, counted by streams" in capsys.readouterr().out
    for command in ("info", "plan"):
        assert main([command, str(plan)]) == 0
        assert "any number of streams in one run, counted by streams" in capsys.readouterr().out
    assert webrnn.InferenceSession(plan).pool().batched


def test_about_that_is_no_object(tmp_path, capsys):
    (tmp_path / "a.json").write_text("[1]")
    assert main(["export", saved(tmp_path, stateful("GRU")), "--about", str(tmp_path / "a.json")]) == 1
    assert "holds no JSON object" in capsys.readouterr().err


def test_what_has_no_plan_is_an_error(tmp_path, capsys):
    text = '<ir_version: 8, opset_import: ["": 20]> g (string[n] x) => (y) { y = StringConcat(x, x) }'
    assert main(["export", saved(tmp_path, parse_model(text))]) == 1
    assert "PlanError" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "missing.onnx")]) == 1


def test_a_rate_that_has_to_be_fixed_is_named(tmp_path, capsys):
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[t, 9] x, int64 sr) => (float[t, 4] y)
    <int64 bands = {4}, int64 length = {16}, float low = {0}, float high = {4000}>
    { m = MelWeightMatrix(bands, length, sr, low, high) y = MatMul(x, m) }"""
    path = saved(tmp_path, parse_model(text))
    assert main(["export", path]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.endswith("; there is one with --fixed sr=16000\n")
    assert main(["export", path, "--fixed", "sr=16000"]) == 0


def test_no_shape_is_asked_for_where_none_helps(tmp_path, capsys):
    text = '<ir_version: 8, opset_import: ["": 17]> g (seq(float[n]) x) => (y) { y = ConcatFromSequence<axis = 0>(x) }'
    assert main(["export", saved(tmp_path, parse_model(text))]) == 1
    err = capsys.readouterr().err
    assert "it takes a sequence, x" in err
    assert "shape=" not in err
    assert "give" not in err


def test_a_plan_for_the_full_module_is_noted(tmp_path, capsys):
    common, rare = helper.make_node("Tanh", ["x"], ["y"]), helper.make_node("Det", ["x"], ["y"])
    assert main(["export", saved(tmp_path, model([common], [floats("x", [3, 3])], [floats("y", [3, 3])]))]) == 0
    assert "full wasm module" not in capsys.readouterr().out
    assert main(["export", saved(tmp_path, model([rare], [floats("x", [3, 3])], [floats("y", [])]))]) == 0
    assert "Note: pages load the full wasm module for it; not in the core module: det, f64\n" in capsys.readouterr().out


def test_a_plan_for_an_unfused_module_is_noted(tmp_path, capsys):
    graph = GraphBuilder("g")
    x = graph.input("x", DType.FLOAT, (1, 32))
    graph.graph.outputs = [graph.op("MatMul", x, graph.constant(np.full((32, 32), 0.1, np.float32)))]
    webrnn.InferenceSession(graph.graph, weights="int8").export(tmp_path / "m.rnn")
    assert main(["export", str(tmp_path / "m.rnn"), "-o", str(tmp_path / "n.rnn")]) == 0
    assert (
        "Note: pages load the simd module for it; not in the relaxed module: same_bits, small_rows\n"
        in capsys.readouterr().out
    )


AMP = Path(__file__).parents[1] / "formats" / "recorded" / "wavenet.nam"


@pytest.mark.parametrize("carry", [[], ["--carry", "auto"], ["--carry", "internal"]])
def test_an_amp_is_a_stream_for_audio(tmp_path, capsys, carry):
    plan = tmp_path / "amp.rnn"
    assert main(["export", str(AMP), "-o", str(plan), "--hop", "64", *carry]) == 0
    out = capsys.readouterr().out
    assert "No state is carried" not in out
    assert "found states" not in out
    audio = webrnn.InferenceSession(plan).about["audio"]
    assert audio == {"kind": "filter", "sample_rate": 48000, "frame": 64, "hop": 64, "input": "x", "output": "y"}
    assert webrnn.InferenceSession(plan).about["architecture"] == "WaveNet"


def test_a_hop_is_for_amps(tmp_path, capsys):
    assert main(["export", saved(tmp_path, stateful("GRU")), "--carry", "auto", "--hop", "64"]) != 0
    assert "--hop is for amps" in capsys.readouterr().err
    assert main(["export", str(AMP), "-o", str(tmp_path / "amp.rnn"), "--hop", "0"]) != 0
    assert "1 to 65536 samples" in capsys.readouterr().err
