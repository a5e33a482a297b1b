"""The code and the commands in docs/small-weights.md run as they stand."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.quantize.models import layers
from webrnn.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "small-weights.md").read_text()


@pytest.fixture(autouse=True)
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    proto = layers(64, 64, 64, names=("body", "head"))
    Path("model.onnx").write_bytes(proto.SerializeToString())
    np.savez("in.npz", x=np.ones((3, 64), np.float32))


def test_python():
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 2
    names: dict = {}
    for block in blocks:
        exec(compile(block, "small-weights.md", "exec"), names)
    assert names["found"].error <= 0.01
    assert Path("model.rnn").exists()


def commands():
    lines = "".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)).splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("webrnn ")]


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_commands(command, capsys):
    if "--carry" in command:  # the model has no state that it could find
        command[command.index("auto")] = "x=y"
    assert main(command) == 0
