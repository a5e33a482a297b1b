"""`webrnn info` says whether a model becomes a plan, and `webrnn export` fails with the same list."""

import pytest
from onnx.parser import parse_model

from tests.onnx.models import recurrent
from tests.passes.sequence_models import STAY
from webrnn.cli import main

TWO_OBSTACLES = (
    """g (string[n] s, float[n] x) => (y, z, t) { y = StringConcat(s, s) z = Relu(x) t = StringConcat(y, s) }"""
)
NEEDS_SHAPES = """g (float[n] x) => (y) { four = Constant<value=int64[1] {4}>() n = Shape(x) m = Sub(n, four)
    k = Div(m, four) one = Constant<value=float[1] {1.0}>() r = Expand(one, k) y = Tanh(r) }"""


def written(tmp_path, text):
    file = tmp_path / "m.onnx"
    proto = parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}') if isinstance(text, str) else text
    file.write_bytes(proto.SerializeToString())
    return str(file)


def plan_of(capsys):
    return capsys.readouterr().out.split("\n\n")[-1].strip()


def test_a_plan(tmp_path, capsys):
    assert main(["info", written(tmp_path, recurrent("GRU"))]) == 0
    assert plan_of(capsys) == "a plan"
    assert main(["info", written(tmp_path, "g (float[n] x) => (y) { y = Relu(x) }")]) == 0
    assert plan_of(capsys) == "a plan for all sizes"


def test_all_nodes_that_keep_it_back(tmp_path, capsys):
    path = written(tmp_path, TWO_OBSTACLES)
    assert main(["info", path]) == 0
    lines = plan_of(capsys).splitlines()
    assert lines[0] == "no plan:"
    assert lines[1:] == [
        "  s is a tensor of string",
        "  StringConcat -> y: it takes a tensor of string, s",
        "  StringConcat -> t: it takes a tensor of string, s",
    ]
    assert "--shape" not in lines[-1]
    assert main(["export", path]) == 1
    error = capsys.readouterr().err
    assert all(line.strip() in error for line in lines[1:])


def test_what_a_loop_carries(tmp_path, capsys):
    assert main(["info", written(tmp_path, STAY["of_changing_shape"][0])]) == 0
    assert "the loop carries a sequence, s; the shape of what it inserts may change" in plan_of(capsys)


@pytest.mark.parametrize(("shape", "expected"), [("8", "a plan for these shapes"), (None, None)])
def test_given_shapes(tmp_path, capsys, shape, expected):
    path = written(tmp_path, NEEDS_SHAPES)
    if shape is not None:
        assert main(["info", path, "--shape", f"x={shape}"]) == 0
        assert plan_of(capsys) == expected
    else:
        assert main(["info", path]) == 0
        assert plan_of(capsys).splitlines()[0] in ("no plan for all sizes:", "a plan for all sizes")


SMOOTH = """g (float[1, 1, time] x) => (y) { k = Constant<value=float[1, 1, 5] {1.0, 1.0, 1.0, 1.0, 1.0}>()
    y = Conv<pads=[2, 2], strides=[2]>(x, k) }"""
FIXED = SMOOTH.replace("time", "64")


def test_how_it_runs_by_frames(tmp_path, capsys):
    assert main(["info", written(tmp_path, SMOOTH)]) == 0
    said = capsys.readouterr().out
    assert "a step takes a multiple of 2 frames, results are 2 frames behind, a flush feeds 2 frames" in said
    assert "states, " in said
    path = written(tmp_path, FIXED)
    assert main(["info", path]) == 0
    assert "not by frames: " in capsys.readouterr().out
    assert main(["info", path, "--time", "x=2"]) == 0
    assert "results are 2 frames behind" in capsys.readouterr().out
    assert main(["info", path, "--time", "x=two"]) == 1
    assert "'two' is not an axis" in capsys.readouterr().err


def test_an_export_by_frames_says_it(tmp_path, capsys):
    path = written(tmp_path, FIXED)
    plan = str(tmp_path / "m.rnn")
    assert main(["export", path, "-o", plan, "--carry", "internal", "--time", "x=2"]) == 0
    line = "a step takes a multiple of 2 frames, results are 2 frames behind, a flush feeds 2 frames"
    assert line in capsys.readouterr().out
    for command in ("info", "plan"):
        assert main([command, plan]) == 0
        assert line in capsys.readouterr().out
    assert main(["export", path, "-o", plan, "--carry", "auto", "--time", "x=2"]) == 1
