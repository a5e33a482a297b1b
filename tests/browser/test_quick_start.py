"""README's quick start, as pasted: its commands in a shell, its page in Chromium, beside the same model in Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

import webrnn
from tests.models.fetch import CACHE, Unavailable, model_path, speech_path
from tests.pyodide_pkg.plain_server import serving
from webrnn.audio import read_wav, write_wav
from webrnn.web import __main__ as web

README = (Path(__file__).parents[2] / "README.md").read_text()


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", README, re.M | re.S)
    return str(found)


def test_it_runs_as_pasted(browser: Browser, tmp_path: Path) -> None:
    try:
        model_path("silero_v6")
        samples, rate = read_wav(speech_path())
    except Unavailable as error:
        pytest.skip(str(error))
    *commands, last = block("bash").splitlines()
    assert last == "python -m http.server"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "WEBRNN_MODELS": str(CACHE)}
    subprocess.run(["bash", "-e", "-c", "\n".join(commands)], cwd=tmp_path, env=environment, check=True)
    (tmp_path / "index.html").write_text(block("html"))
    assert rate == 16000
    write_wav(tmp_path / "some.wav", samples[: 20 * rate], rate)

    page = browser.new_page()
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.route("**/favicon.ico", lambda route: route.fulfill(status=204))
    with serving(tmp_path) as address:
        page.goto(f"{address}/")
        page.wait_for_load_state("networkidle")
        page.get_by_label("A recording").set_input_files(tmp_path / "some.wav")
        expect(page.locator("output")).to_have_text(re.compile(r"^\d+% is speech$"))
        told = page.locator("output").inner_text()
    page.close()
    assert messages == []

    stream = webrnn.InferenceSession(tmp_path / "silero.rnn", backend="wasm:relaxed").stream()
    heard, _ = read_wav(tmp_path / "some.wav")
    padded = np.concatenate([np.zeros(64, np.float32), heard.ravel()])
    frames = range(0, heard.size - 511, 512)
    spoken = sum(512 for at in frames if stream.step({"input": padded[None, at : at + 576]})[0].item() > 0.5)
    assert told == f"{round(100 * spoken / heard.size)}% is speech"
    assert 10 < 100 * spoken / heard.size < 100


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert web.main([str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err.startswith("error: ")
