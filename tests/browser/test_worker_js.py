"""A model in a worker of its own, in Node and in a headless Chromium."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

import webrnn

from . import webrnn_cases
from .conftest import served
from .node import node

HERE = Path(__file__).parent
PAGE_SCRIPTS = ("webrnn_cases.mjs", "worker_cases.mjs", "worker_page.mjs")
CASES = ("gru", "gru_stream", "lstm_symbolic", "loop", "picked", "types", "every_type", "determinants", "small_gru")


@pytest.fixture(scope="module")
def site(host: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(shutil.copytree(host, tmp_path_factory.mktemp("worker") / "site"))
    shutil.copytree(host, folder / "files")
    cases = [case for case in webrnn_cases.all_cases() if case.name in CASES]
    webrnn_cases.write(folder / "cases", cases)
    proto = webrnn_cases.recurrent("GRU", np.random.default_rng(5), steps=1, batch=1)
    session = webrnn.InferenceSession(proto.SerializeToString())
    session.export(folder / "cases" / "stream.rnn", carry={"h": "y_h"}, about={"name": "gru"})
    (folder / "empty.html").write_text('<link rel="icon" href="data:,">')
    (folder / "package.json").write_text('{"type": "module"}')
    for file in PAGE_SCRIPTS:
        text = (HERE / file).read_text().replace(".mjs", ".js")
        (folder / file).with_suffix(".js").write_text(text)
    return folder


def test_in_node(site: Path) -> None:
    assert "# fail 0" in node("--test-reporter=tap", str(HERE / "worker.test.mjs"), f"{site.as_uri()}/")


@pytest.mark.parametrize("test", ["results", "streams", "misuse", "otherModules", "elsewhere"])
def test_in_chromium(site: Path, browser: Browser, test: str) -> None:
    page = browser.new_page()
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    with served(site) as address:
        page.goto(f"{address}empty.html")
        found = page.evaluate(f"import('/worker_page.js').then((tests) => tests.{test}())")
    page.close()
    assert found == []
    assert [text for text in messages if "404" not in text] == []
