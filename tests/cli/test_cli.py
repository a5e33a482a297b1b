import os
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
        ["--size", "seq=99999999999999999999"],
        ["--size", "seq=2147483647", "batch=2147483647"],
        ["--input", f"X={'[' * 300}{']' * 300}"],
        ["--backend", "none"],
    ],
)
def test_wrong_arguments(path, arguments, capsys):
    assert main(["run", path, *arguments]) == 1
    err = capsys.readouterr().err
    assert err.startswith("webrnn: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["run", "--seed", "-1"], ["run", "--threads", "x"], ["profile", "--seed", "x"]])
def test_numbers_that_are_none(path, arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main([arguments[0], path, *arguments[1:]])
    assert ended.value.code == 2
    assert repr(arguments[-1]) in capsys.readouterr().err


def test_nothing_slow_is_imported_before_an_interrupt_is_caught():
    code = "import sys, webrnn.cli; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_an_interrupt_while_modules_are_imported(monkeypatch):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr("webrnn.cli.import_module", interrupted)
    assert main(["run", "m.onnx"]) == 130


def test_letters_that_a_terminal_lacks(path, tmp_path):
    words = [sys.executable, "-m", "webrnn.cli", "info", path]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "40"}
    done = subprocess.run(words, capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"?" in done.stdout


def test_a_closed_stdout(path, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["info", path]) == 0


@pytest.mark.parametrize("options", [["export"], ["export", "-o"], ["plan", "--output"], ["quantize", "-o"]])
def test_a_model_is_not_written_over(options, tmp_path, capsys):
    file = tmp_path / "model.rnn"
    file.write_bytes(recurrent("GRU").SerializeToString())
    before = file.read_bytes()
    assert main([options[0], str(file), *options[1:], *[str(file)] * (len(options) - 1)]) == 1
    assert "is the model itself" in capsys.readouterr().err
    assert file.read_bytes() == before


def test_a_reader_that_stops_early_is_no_error(path):
    command = [sys.executable, "-m", "webrnn.cli", "info", path]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 0
