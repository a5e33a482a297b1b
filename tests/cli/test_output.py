"""What all commands have in common: JSON, the width of a terminal, files that are no models, exit codes."""

import json
import subprocess
import sys

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.onnx.models import floats, initializer, model, recurrent
from webrnn.cli import main
from webrnn.cli.output import to_json

QUICK = {
    "run": [],
    "info": [],
    "optimize": [],
    "plan": [],
    "export": [],
    "profile": ["--steps", "1"],
    "quantize": ["--no-timing"],
    "bench": ["--backend", "numpy", "--seconds", "0", "--rounds", "1"],
}
"""Commands that take a model, and how they are quick."""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "m.onnx"
    file.write_bytes(recurrent("GRU").SerializeToString())
    return str(file)


@pytest.mark.parametrize(
    ("command", "place"), [*((command, "behind") for command in QUICK), ("run", "in front"), ("run", "in a file")]
)
def test_json_alone_on_stdout(command, place, path, tmp_path, capsys):
    file = tmp_path / "out.json"
    words = {
        "behind": [path, *QUICK[command], "--json"],
        "in front": [*QUICK[command], "--json", path],
        "in a file": [path, *QUICK[command], "--json", str(file)],
    }[place]
    assert main([command, *words]) == 0
    out = capsys.readouterr().out
    if place == "in a file":
        assert not out.startswith("{")
        out = file.read_text()
    assert isinstance(json.loads(out), dict)
    assert (tmp_path / "m.onnx").read_bytes() == recurrent("GRU").SerializeToString()


def test_json_has_no_nan():
    found = {"a": float("nan"), "b": [np.float32(1), np.inf], "c": np.int64(3), "d": {1: "x"}}
    assert json.loads(to_json(found)) == {"a": None, "b": [1.0, None], "c": 3, "d": {"1": "x"}}


@pytest.mark.parametrize("command", QUICK)
def test_names_that_the_model_does_not_have(command, path, capsys):
    for option, value in (("--size", "nosuch=3"), ("--shape", "nosuch=1x2")):
        assert main([command, path, *QUICK[command], "--json", option, value]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("webrnn: OptionError: ")
        assert captured.err.count("\n") == 1
        assert "nosuch" in captured.err


FILES = {
    "text.txt": (b"hello\nworld\n", "text file"),
    "empty.onnx": (b"", "empty"),
    "page.onnx": (b"\n<!DOCTYPE html><html></html>", "HTML page"),
    "pointer.onnx": (b"version https://git-lfs.example/spec/v1\noid sha256:0\nsize 3\n", "git lfs pull"),
    "archive.onnx": (b"PK\x03\x04" + bytes(100), "zip"),
    "plan.rnn": (None, ""),
    "cut.onnx": (None, "cut off"),
    "cut.rnn": (b"WRNN" + bytes(8), "header of a plan"),
    "other.json": (b'{"a": 1}', "no model that is known"),
    "broken.json": (b'{"a": ', ""),
    "noise.onnx": (bytes(range(128, 256)) * 4, "no ONNX model"),
}


@pytest.mark.parametrize("command", QUICK)
@pytest.mark.parametrize("name", [*FILES, "missing.onnx", "folder"])
def test_files_that_are_no_models(command, name, path, tmp_path, capsys):
    content, message = FILES.get(name, (b"", "folder" if name == "folder" else "no file"))
    if name == "folder":
        (tmp_path / name).mkdir()
    elif name == "plan.rnn":
        webrnn.InferenceSession(path).export(tmp_path / name)
        if command not in ("optimize", "quantize"):  # the others take plans
            return
        message = "plan"
    elif name == "cut.onnx":
        (tmp_path / name).write_bytes(recurrent("GRU").SerializeToString()[:-100])
    elif name != "missing.onnx":
        (tmp_path / name).write_bytes(content)
    if name == "cut.rnn" and command in ("optimize", "quantize"):
        message = "plan"
    assert main([command, str(tmp_path / name), *QUICK[command]]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("webrnn: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err


@pytest.mark.parametrize("columns", [None, "80", "60", "nonsense"])
@pytest.mark.parametrize("command", ["info", "run", "export"])
def test_lines_fit_the_terminal(command, columns, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS") if columns is None else monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.chdir(tmp_path)
    long = "/model/encoder/layers.0/self_attn/out_projection"
    node = helper.make_node("MatMul", [f"{long}/input", "w"], [f"{long}/output"], name=f"{long}/MatMul")
    given = floats(f"{long}/input", [f"{long}_batch", 4])
    weights = [initializer("w", np.ones((4, 4), np.float32))]
    proto = model([node], [given], [floats(f"{long}/output", None)], weights)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    assert main([command, "m.onnx"]) == 0
    lines = capsys.readouterr().out.splitlines()
    most = 60 if columns == "60" else 80
    assert all(len(line) <= most for line in lines if "--size" not in line and len(line.split()) > 1)
    assert any("…" in line for line in lines)


def test_unsupported_ops_are_told_by_node(tmp_path, capsys):
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Nothing", ["a"], ["y"], name="odd", domain="my")]
    (tmp_path / "m.onnx").write_bytes(model(nodes, [floats("x", ["n"])], [floats("y", ["n"])]).SerializeToString())
    assert main(["info", str(tmp_path / "m.onnx")]) == 0
    out = capsys.readouterr().out
    assert "not supported\n  node  op          why\n  odd   my.Nothing  webrnn has no such op" in out
    assert main(["info", str(tmp_path / "m.onnx"), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["unsupported"]
    assert (row["node"], row["op"]) == ("odd", "my.Nothing")


def test_version_and_usage(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"webrnn {webrnn.__version__}\n"
    with pytest.raises(SystemExit) as ended:
        main(["run"])
    assert ended.value.code == 2


def test_an_error_of_the_system_is_no_traceback(path, tmp_path):
    target = tmp_path / "file"
    target.write_text("")
    command = [sys.executable, "-m", "webrnn.cli", "run", path, "--output-dir", str(target / "inside")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("webrnn: ")
    assert done.stderr.count("\n") == 1
