from tests.onnx.models import recurrent
from webrnn.cli import main
from webrnn.plan.file import PlanFile


def saved(tmp_path, data, name="m.onnx"):
    file = tmp_path / name
    file.write_bytes(data)
    return str(file)


def test_a_model(tmp_path, capsys):
    path = saved(tmp_path, recurrent("LSTM").SerializeToString())
    assert main(["plan", path]) == 0
    out = capsys.readouterr().out
    assert out.startswith("plan version ")
    assert "\n  lstm_sequence xw=" in out
    assert main(["plan", path, "--loops"]) == 0
    assert "\n  loop " in capsys.readouterr().out


def test_a_plan_file_prints_as_its_model_does(tmp_path, capsys):
    path, plan = saved(tmp_path, recurrent("LSTM").SerializeToString()), tmp_path / "m.rnn"
    assert main(["plan", path, "--output", str(plan)]) == 0
    out = capsys.readouterr().out
    assert main(["plan", str(plan)]) == 0
    assert capsys.readouterr().out == out


def test_sizes(tmp_path, capsys):
    from onnx.parser import parse_model

    model = parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[n, m] x) => (float[n, m] y) { y = Softmax(x) }'
    )
    path, plan = saved(tmp_path, model.SerializeToString()), tmp_path / "m.rnn"
    assert main(["plan", path, "--sizes", "n=10", "m=3", "--output", str(plan)]) == 0
    out = capsys.readouterr().out
    assert "for n=10, m=3" in out
    assert "x     f32   [10, 3]" in out
    assert PlanFile(plan.read_bytes()).symbols == ["n", "m"]
    assert main(["plan", str(plan), "--size", "n=10"]) == 0
    assert "for n=10, m=200" in capsys.readouterr().out
    for options, message in (
        (["--size", "k=10"], "the model has no size 'k'; it has n, m"),
        (["--fixed", "x=1"], "inputs are fixed when a plan is exported"),
    ):
        assert main(["plan", str(plan), *options]) == 1
        assert message in capsys.readouterr().err


def test_sizes_that_it_does_not_take(tmp_path, capsys):
    from onnx.parser import parse_model

    text = '<ir_version: 8, opset_import: ["": 17]> g (float[n] x) => (y) <int64[2] s = {-1, 8}> { y = Reshape(x, s) }'
    assert main(["plan", saved(tmp_path, parse_model(text).SerializeToString()), "--size", "n=9"]) == 1
    assert "it takes no n=9: try other sizes" in capsys.readouterr().err


def test_what_has_no_plan_and_damaged_files_are_errors(tmp_path, capsys):
    from onnx.parser import parse_model

    text = '<ir_version: 8, opset_import: ["": 20]> g (string[n] x) => (y) { y = StringConcat(x, x) }'
    path = saved(tmp_path, parse_model(text).SerializeToString())
    assert main(["plan", path]) == 1
    err = capsys.readouterr().err
    assert "PlanError" in err
    assert "StringConcat -> y: it takes a tensor of string, x" in err
    assert "--sizes" not in err
    assert main(["plan", saved(tmp_path, b"WRNN" + bytes(30), "bad.rnn")]) == 1
    assert "shorter than the header" in capsys.readouterr().err
