import subprocess
import sys

import numpy as np
import pytest

from tests.onnx.models import recurrent
from webrnn.cli import main


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "m.onnx"
    file.write_bytes(recurrent("LSTM").SerializeToString())
    return str(file)


def test_info(path, capsys):
    assert main(["info", path, "--graph"]) == 0
    text = capsys.readouterr().out
    for expected in ("X     tensor(float)  [3, 2, 4]", "inside  cell  h, c", "webrnn.Scan", "float32", "state h:"):
        assert expected in text


def test_run_with_random_input(path, capsys, tmp_path):
    assert main(["run", path, "--output-dir", str(tmp_path / "out")]) == 0
    assert "Y_h   float32  [1, 2, 5]" in capsys.readouterr().out
    assert np.load(tmp_path / "out" / "Y.npy").shape == (3, 1, 2, 5)


def test_run_with_given_input(path, tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.zeros((3, 2, 4), np.float32))
    assert main(["run", path, "--input", f"X={tmp_path / 'x.npy'}"]) == 0
    np.save(tmp_path / "x.npy", np.zeros((3, 2), np.float32))
    assert main(["run", path, "--input", f"X={tmp_path / 'x.npy'}"]) == 1
    assert "ShapeError: input 'X'" in capsys.readouterr().err


def test_run_with_limits(path, capsys):
    assert main(["run", path, "--steps", "3", "--seconds", "60"]) == 0
    assert main(["run", path, "--steps", "2"]) == 1
    assert "LimitError: node 'cell'" in capsys.readouterr().err


def test_run_with_threads(path, capsys):
    assert main(["run", path, "--backend", "native", "--threads", "2"]) == 0
    assert main(["run", path, "--threads", "auto"]) == 0
    assert main(["run", path, "--backend", "numpy", "--threads", "2"]) == 1
    assert "only the backend native" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--steps", "0"],
        ["--threads", "0"],
        ["--seconds", "nan"],
        ["--input", "X"],
        ["--input", "X=none.npy"],
        ["--size", "n=many"],
        ["--backend", "none"],
    ],
)
def test_wrong_arguments(path, arguments, capsys):
    assert main(["run", path, *arguments]) == 1
    assert capsys.readouterr().err.startswith("webrnn: ")


def test_a_reader_that_stops_early_is_no_error(path):
    command = [sys.executable, "-m", "webrnn.cli", "info", path]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 0
