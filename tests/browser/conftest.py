"""The demo page as `make demo` puts it together, served, and a headless Chromium."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from webrnn.demo import site
from webrnn.web import pyodide_source
from webrnn.web.folders import page_folder, write_host
from webrnn.web.server import in_background, serve

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-device-for-media-stream",
]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page and the wasm modules."""
    folder = tmp_path_factory.mktemp("web") / "demo"
    site.write_page(folder)
    return folder


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What runs plans and audio, with the page's policy, for pages of the tests' own."""
    return host_site(tmp_path_factory.mktemp("web") / "host")


def host_site(folder: Path) -> Path:
    write_host(folder)
    shutil.copy(page_folder() / "index.html", folder)
    return folder


@pytest.fixture(scope="session")
def full_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of it: models, timings, Pyodide."""
    folder = tmp_path_factory.mktemp("web") / "full"
    said: list[str] = []
    site.write(folder, site.Sources(pyodide=pyodide_source.ensure, rounds=2), said.append)
    assert not [line for line in said if "goes without" in line], said
    return folder


def served(folder: Path) -> AbstractContextManager[str]:
    """The address at which `folder` is served meanwhile."""
    return in_background(serve(folder, port=0))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Ended with each module: as long as Playwright runs, its thread can run no other event loop."""
    if not Path(CHROMIUM).exists():
        if os.geteuid() == 0 and shutil.which("apt-get"):
            pytest.fail(f"no {CHROMIUM}, though `make setup` could have installed it here")
        pytest.skip(f"no {CHROMIUM}, and it cannot be installed without root and apt-get: set CHROMIUM to its path")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()
