"""The packed package in what people build with: each bundler as it comes, with no option for webrnn, in Chromium.

What a page does is in bundlers/app; each is compared with the same files on a plain page. Next, 300 MB to install, runs
in `make bundlers` only.
"""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser

import webrnn
from pyodide_pkg import core
from web_demo.packaging import npm_package

from . import webrnn_cases
from .bundlers import APP, HERE, installed
from .conftest import served

BUILDERS = ("vite", "webpack", "esbuild", "esbuild_iife", "rollup")
NAMES = ("webrnn", "webrnn/audio", "webrnn/worker", "webrnn/worker_pool")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is in the tarball, unpacked."""
    folder = tmp_path_factory.mktemp("npm")
    with tarfile.open(npm_package.pack(npm_package.write(folder / "written"))) as archive:
        archive.extractall(folder, filter="data")
    return folder / "package"


def project_in(folder: Path, package: Path) -> Path:
    """An application with the package installed."""
    shutil.copytree(APP, folder)
    shutil.copytree(package, folder / "node_modules" / "webrnn")
    (folder / "package.json").write_text('{"private": true, "type": "module", "dependencies": {"webrnn": "*"}}')
    (folder / "public").mkdir()
    shutil.copy(package / "plans" / "dtln_int8.rnn", folder / "public")
    proto = webrnn_cases.recurrent("GRU", np.random.default_rng(5), steps=1, batch=1)
    session = webrnn.InferenceSession(proto.SerializeToString())
    session.export(folder / "public" / "gru.rnn", carry={"h": "y_h"})
    return folder


@pytest.fixture(scope="module")
def project(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project_in(tmp_path_factory.mktemp("bundlers") / "project", package)


def found_at(browser: Browser, address: str) -> Any:
    """What the application finds, without a message in the console."""
    page = browser.new_page()
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(address)
    page.wait_for_function("window.found", timeout=60_000)
    found = page.evaluate("window.found")
    page.close()
    assert [text for text in messages if not text.startswith("[vite]")] == []
    return found


@pytest.fixture(scope="module")
def plain(project: Path, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The application as it is, on a page that finds the package by its folder."""
    site = tmp_path_factory.mktemp("plain") / "site"
    shutil.copytree(project / "public", site)
    shutil.copytree(project / "node_modules" / "webrnn", site / "webrnn")
    shutil.copy(project / "index.html", site)
    main = (project / "main.js").read_text()
    for name in reversed(NAMES):
        file = name.removeprefix("webrnn/") + ".js"
        main = main.replace(f'from "{name}"', f'from "./webrnn/{file}"')
    (site / "main.js").write_text(main)
    with served(site) as address:
        return found_at(browser, address)


def test_a_plain_page(plain: Any, project: Path) -> None:
    stream = webrnn.InferenceSession(project / "public" / "gru.rnn", backend="wasm:relaxed").stream()
    expected = stream.step({"x": np.ones((1, 1, 12), np.float32)})[0].ravel().tolist()
    model, worker, pool, audio = plain
    assert model["y"] == worker["y"] == pool["y"] == expected
    assert model["error"] == worker["error"] == ["ShapeError", True, "no input 'X'; there is 'x'"]
    assert pool["error"][:2] == ["ShapeError", True]
    assert audio["own"] == audio["packaged"]
    assert 0 < max(map(abs, audio["own"])) < 1


def command(bundler: str, project: Path, output: Path | None = None) -> list[str]:
    script = installed() / "build.mjs"
    return [core.node(), str(script), bundler, str(project), *([str(output)] if output else [])]


@pytest.mark.parametrize("bundler", BUILDERS)
def test_built(bundler: str, project: Path, plain: Any, browser: Browser, tmp_path: Path) -> None:
    output = tmp_path / "site"
    subprocess.run(command(bundler, project, output), check=True, timeout=120)
    if bundler != "vite":
        shutil.copytree(project / "public", output, dirs_exist_ok=True)
        shutil.copy(project / "index.html", output)
    with served(output) as address:
        assert found_at(browser, address) == plain


def test_a_denoised_microphone_in_a_site_built_by_vite(project: Path, browser: Browser, tmp_path: Path) -> None:
    output = tmp_path / "site"
    subprocess.run(command("vite", project, output), check=True, timeout=120)
    context = browser.new_context(permissions=["microphone"])
    page = context.new_page()
    with served(output) as address:
        page.goto(address)
        page.wait_for_function("window.microphone")
        assert page.evaluate("microphone()") == ["audio", "live", True]
    context.close()


@contextmanager
def developed(project: Path) -> Iterator[str]:
    process = subprocess.Popen(command("vite_dev", project), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(timeout=30)


def test_developed_with_vite(project: Path, plain: Any, browser: Browser) -> None:
    with developed(project) as address:
        assert found_at(browser, address) == plain


def test_a_bundler_that_copies_no_files_is_explained(project: Path, browser: Browser, tmp_path: Path) -> None:
    output = tmp_path / "site"
    subprocess.run(command("esbuild", project, output), check=True, timeout=120)
    shutil.copytree(project / "public", output, dirs_exist_ok=True)
    shutil.copy(project / "index.html", output)
    for file in (*output.glob("*.wasm"), output / "worker_thread.js"):
        file.unlink()
    page = browser.new_page()
    with served(output) as address:
        page.goto(address)
        message = page.evaluate("found.catch((error) => error.message)")
    page.close()
    assert "could not be loaded" in message
    assert "npx webrnn-files" in message


@pytest.mark.exhaustive
@pytest.mark.parametrize("flags", [(), ("--webpack",)], ids=["turbopack", "webpack"])
def test_next(package: Path, project: Path, plain: Any, browser: Browser, flags: tuple[str, ...]) -> None:
    folder = installed(HERE / "next")
    shutil.rmtree(folder / "node_modules" / "webrnn", ignore_errors=True)
    shutil.copytree(package, folder / "node_modules" / "webrnn")
    shutil.copytree(HERE / "next" / "app", folder / "app", dirs_exist_ok=True)
    shutil.copy(project / "main.js", folder / "app")
    shutil.copytree(project / "public", folder / "public", dirs_exist_ok=True)
    built = [core.node(), "node_modules/next/dist/bin/next", "build", *flags]
    subprocess.run(built, cwd=folder, check=True, timeout=600, env={**os.environ, "NEXT_TELEMETRY_DISABLED": "1"})
    page = (folder / "out" / "index.html").read_text()
    (folder / "out" / "index.html").write_text(page.replace("<head>", '<head><link rel="icon" href="data:,">', 1))
    with served_plainly(folder / "out") as address:
        assert found_at(browser, address) == plain


@contextmanager
def served_plainly(folder: Path) -> Iterator[str]:
    """Without a policy: Next's pages have scripts in them."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
