"""The code in docs/training.md runs as it stands, from top to bottom, and so does its example."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import webrnn
from tests.browser.node import node
from tests.training.models import classifier
from webrnn.web.folders import write_host

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "training.md").read_text()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    onnx.save(classifier(), "classifier.onnx")
    return tmp_path


def test_the_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 3
    names: dict = {}
    for block in blocks:
        exec(compile(block, "training.md", "exec"), names)
    printed = re.findall(r"print\(.*\) +# (.*)", "".join(blocks))
    assert capsys.readouterr().out.splitlines() == printed
    assert names["scores"].shape == (16, 3)
    (script,) = re.findall(r"```js\n(.*?)```", PAGE, re.DOTALL)
    write_host(folder / "webrnn")
    (folder / "page.mjs").write_text(f"{script}\nconsole.log(JSON.stringify([loss[0], scores.length]));\n")
    loss, count = re.fullmatch(r"\[([\d.e-]+),(\d+)\]\n", node("page.mjs")).groups()  # type: ignore[union-attr]
    x = np.zeros((4, 20, 2), np.float32)
    assert float(loss) == names["trainer"].step({"x": x, "target": np.array([0, 1, 2, 0])})
    assert int(count) == 12
    edited = webrnn.InferenceSession("edited.onnx").run(None, {"x": x})[0]
    assert not np.array_equal(edited, webrnn.InferenceSession("classifier.onnx").run(None, {"x": x})[0])


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target


def test_the_example(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "train_gestures.py"), "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    share = re.search(r"told apart: ([\d.]+)%", done.stdout)
    assert share
    assert float(share[1]) > 95
    assert (tmp_path / "learn.rnn").exists()
    assert (tmp_path / "learned.rnn").exists()
