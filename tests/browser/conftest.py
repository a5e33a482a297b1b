"""The demo as `make demo` prepares it, served, and a headless Chromium."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from web_demo import prepare
from web_demo.serve import serve

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("web") / "demo"
    prepare.write(folder)
    return folder


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which `folder` is served meanwhile."""
    with serve(folder, port=0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.address
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not Path(CHROMIUM).exists():
        if os.geteuid() == 0 and shutil.which("apt-get"):
            pytest.fail(f"no {CHROMIUM}, though `make setup` could have installed it here")
        pytest.skip(f"no {CHROMIUM}, and it cannot be installed without root and apt-get: set CHROMIUM to its path")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()
