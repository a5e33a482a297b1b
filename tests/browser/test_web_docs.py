"""The code in docs/web.md runs as it stands."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

import webrnn
from tests.models.fetch import model_path
from web_demo.packaging import npm_package
from webrnn.cli import main

from . import webrnn_cases
from .conftest import served

PAGE = Path(__file__).parents[2] / "docs" / "web.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(), re.DOTALL)


def block(start: str) -> str:
    """The block of code that starts so."""
    (found,) = [text for _, text in BLOCKS if text.startswith(start)]
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("web_docs")
    npm_package.write(folder / "webrnn")
    policy = re.search(r"`Content-Security-Policy: ([^`]+)`", PAGE.read_text())
    assert policy
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy[1]}"><link rel="icon" href="data:,">'
    (folder / "index.html").write_text(head)
    return folder


def test_export_and_run(site: Path, browser: Browser, tmp_path: Path, monkeypatch, capsys) -> None:
    (command,) = [text for kind, text in BLOCKS if kind == "sh" and "--fixed" in text]
    printed = re.search(r"```\n(inputs\n.*?)```", PAGE.read_text(), re.DOTALL)
    assert printed
    monkeypatch.chdir(tmp_path)
    shutil.copy(model_path("silero_v6"), tmp_path / "silero_vad.onnx")
    assert main(command.split()[1:]) == 0
    assert capsys.readouterr().out == printed[1]

    shutil.copy(tmp_path / "model.rnn", site)
    script = block('import { Model } from "./webrnn/webrnn.js";\n\nconst model = await Model.load("model')
    (site / "run.js").write_text(f"const bar = {{ value: 0 }};\n{script}\nexport {{ bar, output }};\n")
    page = browser.new_page()
    with served(site) as address:
        page.goto(address)
        progress, output = page.evaluate("import('/run.js').then(({ bar, output }) => [bar.value, Array.from(output)])")
    page.close()
    assert progress == 1
    stream = webrnn.InferenceSession(tmp_path / "model.rnn", backend="wasm:relaxed").stream()
    assert output == stream.step({"input": np.zeros((1, 576), np.float32)})[0].ravel().tolist()


@pytest.mark.parametrize(
    ("start", "handles"),
    [
        ('import { Model } from "./webrnn/webrnn.js";\n\nconst model = await Model.load("pool', 2),
        ("import { WorkerPool } from", 1),
    ],
    ids=["pool", "workers"],
)
def test_many_streams(start: str, handles: int, site: Path, browser: Browser) -> None:
    proto = webrnn_cases.recurrent("GRU", np.random.default_rng(2), steps=1, batch=1)
    session = webrnn.InferenceSession(proto.SerializeToString(), backend="wasm:relaxed")
    session.export(site / "pool.rnn", carry={"h": "y_h"}, pool=True)
    (site / "many.js").write_text(block(start) + "export { pool, results };\n")
    page = browser.new_page()
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    with served(site) as address:
        page.goto(address)
        found = page.evaluate(
            """import('/many.js').then(({ pool, results }) => {
                pool.dispose();
                return [...results.values()].map(({ y }) => Array.from(y));
            })"""
        )
    page.close()
    frames = [np.full((1, 1, 12), handle + 1, np.float32) for handle in range(handles)]
    assert found == [session.stream({"h": "y_h"}).step({"x": frame})[0].ravel().tolist() for frame in frames]
    assert messages == []


def test_a_model_in_a_worker(site: Path, browser: Browser) -> None:
    proto = webrnn_cases.recurrent("GRU", np.random.default_rng(2), steps=1, batch=1)
    session = webrnn.InferenceSession(proto.SerializeToString(), backend="wasm:relaxed")
    session.export(site / "pool.rnn", carry={"h": "y_h"}, pool=True)
    (site / "apart.js").write_text(block("import { ModelWorker } from") + "export { y, state };\n")
    page = browser.new_page()
    with served(site) as address:
        page.goto(address)
        found = page.evaluate(
            "import('/apart.js').then(({ y, state }) => [y, state.h].map((array) => Array.from(array)))"
        )
    page.close()
    expected = session.stream({"h": "y_h"}).step({"x": np.ones((1, 1, 12), np.float32)})[0].ravel().tolist()
    assert found == [expected, expected]


def test_audio_worklet(site: Path, browser: Browser) -> None:
    rng = np.random.default_rng(2)
    proto = webrnn_cases.recurrent("GRU", rng, steps=1, batch=1, size=128, hidden=128)
    webrnn.InferenceSession(proto.SerializeToString()).export(site / "model.rnn", carry={"h": "y_h"})
    (site / "processor.js").write_text(block("// processor.js\n"))
    (site / "worklet.js").write_text(
        'import { supportedVariants } from "./webrnn/webrnn.js";\n'
        "const context = new OfflineAudioContext(1, 384, 48000);\n"
        + block("// page\n")
        + "const source = new ConstantSourceNode(context, { offset: 0.5 });\n"
        "source.connect(node).connect(context.destination);\n"
        "source.start();\n"
        "export const sound = Array.from((await context.startRendering()).getChannelData(0));\n"
    )
    page = browser.new_page()
    with served(site) as address:
        page.goto(address)
        sound = page.evaluate("import('/worklet.js').then(({ sound }) => sound)")
    page.close()
    stream = webrnn.InferenceSession(site / "model.rnn", backend="wasm:relaxed").stream()
    frame = np.full((1, 1, 128), 0.5, np.float32)
    assert sound == np.concatenate([stream.step({"x": frame})[0].ravel() for _ in range(3)]).tolist()


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", PAGE.read_text()):
        assert (PAGE.parent / target.partition("#")[0]).exists(), target
