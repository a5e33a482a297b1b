import json
import os
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest

from tests.corpora.models import double, gru, total, write_arrays
from webrnn.audio import write_wav
from webrnn.cli import main
from webrnn.corpora import read


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "double.onnx").write_bytes(double())
    (tmp_path / "total.onnx").write_bytes(total())
    (tmp_path / "gru.onnx").write_bytes(gru())
    return tmp_path


def run(*arguments):
    return main(["map", *arguments, "-o", "out", "--processes", "0"])


def test_files_of_a_folder(place, capsys):
    write_arrays(place / "items", 5)
    assert run("gru.onnx", "items") == 0
    assert "5 items in out: 5 results, none bad; 5 of them now" in capsys.readouterr().out
    assert [result["y"].shape for result in read("out")] == [(8, 1, 1, 16)] * 5
    assert run("gru.onnx", "items", "--quiet") == 0
    assert capsys.readouterr().out == ""


def test_bad_items_are_told_by_the_exit_code(place, capsys):
    write_arrays(place / "items", 2)
    (place / "items/bad.npy").touch()
    assert run("gru.onnx", "items") == 3
    assert "2 results, 1 bad (out/failed.jsonl)" in capsys.readouterr().out
    assert json.loads((place / "out/failed.jsonl").read_text())["item"] == "items/bad.npy"
    np.save(place / "items/bad.npy", np.zeros((2, 1, 4), np.float32))
    assert run("gru.onnx", "items") == 3
    assert run("gru.onnx", "items", "--retry-failed") == 0
    assert [result.name for result in read("out")] == ["items/00000.npy", "items/00001.npy", "items/bad.npy"]


def test_streams_of_wav_files(place):
    for number, rate in enumerate((8000, 8000, 16000)):
        write_wav(place / f"{number}.wav", np.full(5, 0.5, np.float32), rate)
    how = ("--stream", "--frame", "2", "--carry", "sum_in=sum_out", "--time", "x=1", "--join", "0")
    assert run("total.onnx", "0.wav", "1.wav", "2.wav", *how, "--rate", "8000") == 3
    assert [result["mean"].tolist() for result in read("out")] == [[0.5, 1, 1.25]] * 2
    assert "its sample rate is 16000, not 8000" in (place / "out/failed.jsonl").read_text()
    assert run("total.onnx", "*.wav", *how, "--rate", "any", "--remainder", "drop", "--restart") == 0
    assert [result["mean"].tolist() for result in read("out")] == [[0.5, 1]] * 3


def test_internal_states(place):
    write_arrays(place / "items", 3)
    assert run("gru.onnx", "items") == 0
    whole = [result["y"].tobytes() for result in read("out")]
    assert run("gru.onnx", "items", "--stream", "--carry", "internal", "--frame", "3", "--restart") == 0
    assert [result["y"].tobytes() for result in read("out")] == whole


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rate", "fast"], "--rate fast: it is a number or any"),
        (["--join", "x", "--stream"], "--join x: it is a number or overlap"),
        (["--carry", "state", "--stream"], "--carry state: it is INPUT=OUTPUT, auto or internal"),
        (["--frame", "3"], "frame= is for streams"),
        (["--columns", "x"], "not of the form NAME=VALUE"),
        (["--dask", "tcp://127.0.0.1:1"], "with dask= the cluster has its workers"),
        (["--fixed", "sr=1"], "sr"),
    ],
)
def test_wrong_arguments(place, arguments, said, capsys):
    np.save(place / "a.npy", np.float32([1]))
    assert run("double.onnx", "a.npy", *arguments) == 1
    assert said in capsys.readouterr().err


def test_other_results_are_refused(place, capsys):
    np.save(place / "a.npy", np.float32([1]))
    assert run("double.onnx", "a.npy") == 0
    assert run("total.onnx", "a.npy") == 1
    assert "CorpusError: out has results of another run: model was" in capsys.readouterr().err


def test_ctrl_c_says_how_to_go_on(place):
    write_arrays(place / "items", 300, steps=2000)
    (place / "gru.onnx").write_bytes(gru(128))
    command = [sys.executable, "-m", "webrnn.cli", "map", "gru.onnx", "items", "-o", "out", "--outputs", "h"]
    # A shell starts what is in the background with the signal ignored, and whoever is started there inherits that.
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen([*command, "--processes", "1"], stderr=subprocess.PIPE, text=True, preexec_fn=heard)
    while process.poll() is None and not (os.path.exists("out/index.jsonl") and os.path.getsize("out/index.jsonl")):
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    assert process.returncode == 130
    assert "What is done is kept; this goes on:\n  webrnn map gru.onnx items -o out --outputs h" in said
    assert "Traceback" not in said
    assert 0 < len(read("out")) < 300
