"""The snippets of docs/pyodide.md, taken out of the page and run in Chromium, against one server and no other."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import webrnn
from pyodide_pkg import core, distribution
from tests.browser.conftest import browser  # noqa: F401
from tests.engine.stream_models import stateful
from tests.pyodide_pkg.plain_server import serving

DOCS = core.ROOT / "docs" / "pyodide.md"
PATIENCE = 120_000


def snippets() -> dict[str, str]:
    """By the file name in the comment of their first line."""
    blocks = re.findall(r"^```\w+\n(?:<!-- |// |# )(\S+\.\w+)(?: -->)?\n(.*?)^```$", DOCS.read_text(), re.M | re.S)
    return dict(blocks)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for name, text in snippets().items():
        (folder / name).write_text(text)
    (folder / "model.onnx").write_bytes(stateful("GRU", steps=1, batch=1).SerializeToString())
    (folder / "empty.html").write_text("<!doctype html><title>empty</title>")
    (folder / "pyodide").mkdir()
    for file in distribution.ensure().iterdir():
        os.link(file, folder / "pyodide" / file.name)
    return folder


@pytest.fixture(scope="module")
def expected(site: Path) -> float:
    """The sum of y after the three frames of the snippets."""
    stream = webrnn.InferenceSession(str(site / "model.onnx")).stream()
    for frame in np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 1, 1, 4):
        (y,) = stream.step({"x": frame})
    return float(y.sum())


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:  # noqa: F811
    """A page whose requests to other servers fail the test."""
    context = browser.new_context()
    page = context.new_page()
    hosts: set[str | None] = set()
    context.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
    yield page
    context.close()
    assert hosts <= {"127.0.0.1", None}


def test_snippets_are_found() -> None:
    names = {"page.html", "worker.js", "with_worker.html", "notebook.py", "with_pyscript.html", "offline.js"}
    assert set(snippets()) == names


def test_names_in_the_docs_are_those_of_the_files(site: Path) -> None:
    wheels = set(re.findall(r"\b\w+-[\d.]+-\w+-\w+-\w+\.whl", DOCS.read_text()))
    assert wheels == {file.name for file in (site / "pyodide").glob("*.whl")}


def test_page(site: Path, page: Page, expected: float) -> None:
    with serving(site) as address:
        page.goto(f"{address}/page.html")
        text = f"pyodide: y has the shape (1, 1, 1, 5), its sum is {expected:.6f}"
        expect(page.locator("#output")).to_have_text(text, timeout=PATIENCE)


def test_worker(site: Path, page: Page, expected: float) -> None:
    with serving(site) as address:
        page.goto(f"{address}/with_worker.html")
        pattern = re.compile(r"sum of y: (-?[\d.]+)")
        expect(page.locator("#output")).to_have_text(pattern, timeout=PATIENCE)
        found = pattern.fullmatch(page.locator("#output").inner_text())
        assert found
        assert float(found[1]) == pytest.approx(expected, abs=2e-6)


def test_notebook_offline_and_damaged_wheel(site: Path, page: Page, tmp_path: Path) -> None:
    """One Pyodide for three things: micropip, a service worker after which the server is not needed, and a hash."""
    damaged = tmp_path / "damaged"
    shutil.copytree(site / "pyodide", damaged)
    wheel = next(damaged.glob("webrnn-*.whl"))
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    load = """async ({ folder, code, address, packages }) => {
      const { loadPyodide } = await import(`./${folder}/pyodide.mjs`);
      const pyodide = await loadPyodide();
      const said = [];
      await pyodide.loadPackage(packages, { errorCallback: (text) => said.push(text) });
      pyodide.globals.set("address", address);
      const model = await (await fetch("model.onnx")).arrayBuffer();
      pyodide.FS.writeFile("model.onnx", new Uint8Array(model));
      await pyodide.runPythonAsync(code).catch((error) => said.push(error.message));
      return said;
    }"""
    with serving(site) as address:
        page.goto(f"{address}/empty.html")
        page.evaluate("navigator.serviceWorker.register('offline.js').then(() => navigator.serviceWorker.ready)")
        page.wait_for_function("navigator.serviceWorker.controller !== null")
        notebook = {
            "folder": "pyodide",
            "code": snippets()["notebook.py"],
            "address": f"{address}/pyodide",
            "packages": ["micropip"],
        }
        page.reload()
        assert page.evaluate(load, notebook) == []
    page.reload()
    assert page.evaluate(load, notebook) == []
    shutil.copytree(damaged, site / "damaged")
    with serving(site) as address:
        page.goto(f"{address}/empty.html")
        said = page.evaluate(load, {**notebook, "folder": "damaged", "code": "import webrnn", "packages": ["webrnn"]})
        assert said[:2] == ["The following error occurred while loading webrnn:", "Failed to fetch"]
        assert "No module named 'webrnn'" in said[2]
