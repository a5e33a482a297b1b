"""The code in README.md runs as it stands, from top to bottom, on a model that is made here."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import webrnn
from pyodide_pkg import distribution
from tests.browser.node import node
from tests.build import writing
from tests.onnx.models import floats, initializer, model
from webrnn.cli import main
from webrnn.web.folders import write_host

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SIZE = 256
QUICK = {"bench": ["--seconds", "0.01", "--rounds", "1", "--backend", "native,wasm:relaxed"]}


def blocks(language: str) -> list[str]:
    return [text for of, text in BLOCKS if of == language]


def gru(steps: int | str, batch: int | str) -> bytes:
    """x, h_in -> y, h_out."""
    rng = np.random.default_rng(7)
    shapes = {"W": (1, 3 * SIZE, SIZE), "R": (1, 3 * SIZE, SIZE), "B": (1, 6 * SIZE)}
    weights = [initializer(name, rng.normal(0, 0.1, shape).astype(np.float32)) for name, shape in shapes.items()]
    operands = ["x", "W", "R", "B", "", "h_in"]
    cell = helper.make_node("GRU", operands, ["y", "h_out"], hidden_size=SIZE, linear_before_reset=1)
    inputs = [floats("x", [steps, batch, SIZE]), floats("h_in", [1, batch, SIZE])]
    outputs = [floats("y", [steps, 1, batch, SIZE]), floats("h_out", [1, batch, SIZE])]
    return model([cell], inputs, outputs, weights).SerializeToString()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.onnx").write_bytes(gru("steps", "batch"))
    np.save(tmp_path / "frame.npy", np.zeros((1, 1, SIZE), np.float32))
    (tmp_path / "frames").mkdir()
    np.save(tmp_path / "frames" / "0.npy", np.zeros((3, 1, SIZE), np.float32))
    weights = {**writing.gru(40, 16), "out.weight": (1, 16), "out.bias": (1,)}
    (tmp_path / "weights.safetensors").write_bytes(writing.safetensors(weights))
    return tmp_path


def test_python(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = blocks("python")
    assert len(texts) == 3
    names: dict = {}
    for text in texts:
        exec(compile(text, "README.md", "exec"), names)
    printed = re.findall(r"print\(.*\)  # (\[.*)", "".join(texts))
    assert printed == [capsys.readouterr().out.splitlines()[-1]]
    assert (folder / "model.rnn").exists()


@pytest.mark.parametrize("line", [line for text in blocks("sh") for line in text.splitlines()])
def test_commands(folder: Path, line: str) -> None:
    program, name, *rest = shlex.split(line, comments=True)
    assert program == "webrnn"
    assert main([name, *rest, *QUICK.get(name, [])]) == 0


def test_make_has_the_targets() -> None:
    (text,) = [text for text in blocks("") if text.startswith("make ")]
    rules = (ROOT / "Makefile").read_text()
    for line in text.splitlines():
        assert f"\n{line.split()[1]}:" in rules


def test_javascript(folder: Path) -> None:
    text = blocks("js")[0]
    session = webrnn.InferenceSession(gru(1, 1), backend="wasm:relaxed")
    session.export("model.rnn", carry="auto")
    write_host(folder / "host")
    (folder / "package.json").write_text('{"type": "module"}')
    frame = "const frame = new Float32Array(256).fill(0.5);\n"
    imported, rest = text.replace('"webrnn"', '"./host/webrnn.js"').split("\n", 1)
    (folder / "run.js").write_text(f"{imported}\n{frame}{rest}\nconsole.log(JSON.stringify([...y]));\n")
    expected = session.stream().step({"x": np.full((1, 1, SIZE), 0.5, np.float32)})[0].ravel()
    np.testing.assert_allclose(json.loads(node("run.js")), expected, rtol=1e-6)


def test_pyodide(folder: Path) -> None:
    pyodide = distribution.ensure()
    (folder / "model.onnx").write_bytes(gru(1, 1))
    start = (
        'import { readFile } from "node:fs/promises";\n'
        f'import {{ loadPyodide }} from "{(pyodide / "pyodide.mjs").as_uri()}";\n'
        f'const pyodide = await loadPyodide({{ indexURL: "{pyodide}" }});\n'
        'pyodide.FS.writeFile("model.onnx", await readFile("model.onnx"));\n'
        "const frame = new Float32Array(256).fill(0.5), y = new Float32Array(256);\n"
    )
    (folder / "run.mjs").write_text(f"{start}{blocks('js')[1]}\nconsole.log(JSON.stringify([...y]));\n")
    stream = webrnn.InferenceSession("model.onnx", backend="wasm:relaxed").stream()
    expected = stream.step({"x": np.full((1, 1, SIZE), 0.5, np.float32)})[0].ravel()
    np.testing.assert_allclose(json.loads(node("run.mjs").splitlines()[-1]), expected, rtol=1e-6)


PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        file, _, heading = target.partition("#")
        if not file.startswith("https://"):
            linked = page.parent / file if file else page
            assert linked.exists(), target
            if heading:
                headings = re.findall(r"^#+ (.+)$", linked.read_text(), re.MULTILINE)
                assert heading in {re.sub(r"[^\w\- ]", "", text).lower().replace(" ", "-") for text in headings}, target
