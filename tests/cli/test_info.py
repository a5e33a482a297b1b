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
    assert all(line in error for line in lines[1:])


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
