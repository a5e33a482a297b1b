"""`webrnn profile`."""

import json

import numpy as np
import pytest

from tests.plan.recurrent_models import recurrent
from webrnn.cli import main

FIGURES = {"name", "calls", "us", "share", "flops", "bytes", "gflops", "gbytes"}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "gru.onnx"
    path.write_bytes(recurrent("GRU", 8, 6, ["Y"]))
    return path


def test_what_it_prints(model, capsys):
    assert main(["profile", str(model), "--backend", "native", "--steps", "2", "--size", "time=50"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0].startswith("gru.onnx on native:")
    assert lines[2].startswith("unprofiled")
    assert "readings of the clock" in out
    assert "of the profiled time" in out
    titles = ["by category", "by node", "in the order of the program, what is inside included"]
    assert [line for line in lines if line in titles] == titles
    for what in ("matrix", "cell", "gru_sequence", "products", "cells", "GFLOP/s", "GB/s"):
        assert what in out


@pytest.mark.parametrize("backend", ["native", "wasm", "wasm:simd", "wasm:scalar", "numpy"])
def test_json(model, backend, tmp_path, capsys):
    file = tmp_path / "profile.json"
    options = ["--backend", backend, "--steps", "1", "--size", "time=50", "batch=2", "--json", str(file)]
    assert main(["profile", str(model), *options]) == 0
    assert "by category" in capsys.readouterr().out
    data = json.loads(file.read_text())
    assert data["format"] == 1
    assert data["backend"].startswith(backend)
    for name in ("unprofiled_us", "plain_us", "profiled_us", "overhead", "clock_us", "laps", "accounted"):
        assert isinstance(data[name], float), name
    assert data["runs"] == 1
    assert data["rounds"] >= 3
    assert data["tree"]["us"] == pytest.approx(sum(row["us"] for row in data["categories"]))
    assert data["tree"]["us"] == pytest.approx(sum(row["us"] for row in data["nodes"]))
    assert sum(row["share"] for row in data["categories"]) == pytest.approx(1)
    assert all(row.keys() == FIGURES for row in data["categories"])
    assert all(row.keys() == FIGURES | {"contains"} for row in data["nodes"])
    _check_tree(data["tree"])


def _check_tree(entry):
    assert entry["us"] == pytest.approx(entry["self_us"] + sum(child["us"] for child in entry.get("children", [])))
    for child in entry.get("children", []):
        _check_tree(child)


def test_json_alone(model, capsys):
    assert main(["profile", str(model), "--steps", "1", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == "gru.onnx"


def test_html(model, tmp_path, capsys):
    file = tmp_path / "flame.html"
    assert main(["profile", str(model), "--steps", "1", "--html", str(file)]) == 0
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_small_entries_are_left_out_unless_all_is_asked_for(model, capsys):
    lines = []
    for options in ([], ["--all"]):
        assert main(["profile", str(model), "--steps", "1", "--size", "time=500", *options]) == 0
        lines.append(capsys.readouterr().out.splitlines())
    assert not any(" small ones" in line for line in lines[1])
    assert len(lines[1]) >= len(lines[0])


def test_a_stream(tmp_path, capsys):
    from webrnn.bench.models import streaming_gru

    path = tmp_path / "gru.onnx"
    path.write_bytes(streaming_gru(6, 8))
    for carry in ("auto", "h_in=h_out"):
        assert main(["profile", str(path), "--stream", "--carry", carry, "--steps", "1", "--json", "-"]) == 0
        data = json.loads(capsys.readouterr().out)
        assert {row["name"]: row["calls"] for row in data["categories"]}["cell"] == 1


def test_given_inputs(model, tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.ones((7, 2, 6), np.float32))
    assert main(["profile", str(model), "--steps", "1", "--json", "-", "--input", f"x={tmp_path / 'x.npy'}"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {row["name"]: row["calls"] for row in data["categories"]}["cell"] == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--steps", "0"], "--steps is at least 1"),
        (["--size", "tempo=3"], "no size 'tempo'; it has time, batch"),
        (["--size", "time"], "not of the form NAME=VALUE"),
        (["--backend", "cuda"], "'cuda' is not one of"),
        (["--backend", "native:pentium"], "cannot run native:pentium"),
        (["--input", "z=missing.npy"], "cannot read 'missing.npy'"),
        (["--stream", "--carry", "a=b"], "no input 'a'|'a'"),
    ],
)
def test_bad_options(model, options, message, capsys):
    import re

    assert main(["profile", str(model), *options]) == 1
    assert re.search(message, capsys.readouterr().err)


def test_a_file_that_is_not_there(capsys):
    assert main(["profile", "missing.onnx"]) == 1
    assert "missing.onnx" in capsys.readouterr().err
