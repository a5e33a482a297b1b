"""The tests inside Pyodide in a module worker of a headless Chromium."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pyodide_pkg import distribution
from webrnn.web.server import in_background

from . import bundle
from .results import Results

PAGE = "<!doctype html><title>tests inside Pyodide</title>"
START = """tests => new Promise((resolve) => {
  const worker = new Worker("worker.mjs", {type: "module"});
  worker.onmessage = ({data}) => data.line ? console.log(data.line) : resolve(data);
  worker.onerror = (event) => resolve({error: event.message || "the worker did not start"});
  worker.postMessage(tests);
})"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def run(browser: Any, arguments: Sequence[str]) -> Results:
    """Run pytest there with these arguments, in a browser of Playwright's."""
    here = Path(__file__).parent
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "index.html").write_text(PAGE)
        (folder / "bundle.zip").write_bytes(bundle.make())
        (folder / "pyodide").symlink_to(distribution.ensure())
        for name in ("worker.mjs", "enter.mjs"):
            shutil.copy(here / name, folder)
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
        with in_background(server) as address:
            page = browser.new_page()
            try:
                page.goto(address)
                answer = page.evaluate(START, list(arguments))
            finally:
                page.close()
    if "results" not in answer:
        raise RuntimeError(f"the tests did not come to an end inside Pyodide: {answer['error']}")
    return Results.of(answer["results"])
