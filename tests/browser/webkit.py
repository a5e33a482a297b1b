"""WebKitGTK's MiniBrowser on a screen of its own, over W3C WebDriver."""

from __future__ import annotations

import http.client
import json
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .driven import WAIT_SECONDS, Driven, PageError
from .processes import NotStarted, started, until

COMMAND = "WebKitWebDriver"
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""The key that W3C WebDriver gives elements."""
RECORD = """
if (!window.recorded) {
  window.recorded = [];
  for (const kind of ["error", "warn", "log"]) {
    const before = console[kind];
    console[kind] = (...what) => (recorded.push(what.map(String).join(" ")), before.apply(console, what));
  }
  addEventListener("error", ({ message }) => recorded.push(message));
  addEventListener("unhandledrejection", ({ reason }) => recorded.push(String(reason)));
}
"""
"""WebDriver tells nothing of the console: the page keeps it, from when it has loaded."""


class WebKit(Driven):
    name = "WebKitGTK"

    def __init__(self, port: int, binary: Path):
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS)
        options = {"binary": str(binary), "args": ["--automation", "--autoplay-policy=allow"]}
        wanted = {"browserName": "MiniBrowser", "webkitgtk:browserOptions": options}
        self._session = ""
        answer = self.command("POST", "session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"session/{answer['sessionId']}/"
        self.version = answer["capabilities"]["browserVersion"]
        self.command("POST", "timeouts", {"script": int(1000 * WAIT_SECONDS)})

    def command(self, method: str, path: str, content: dict[str, Any] | None = None) -> Any:
        """A command of W3C WebDriver."""
        body = None if content is None else json.dumps(content)
        self._connection.request(method, f"/{self._session}{path}".rstrip("/"), body)
        value = json.loads(self._connection.getresponse().read())["value"]
        if isinstance(value, dict) and "error" in value:
            raise PageError(f"{path}: {value['error']}: {value['message']}")
        return value

    def goto(self, url: str) -> None:
        self.command("POST", "url", {"url": url})
        self.command("POST", "execute/sync", {"script": RECORD, "args": []})

    def _text(self, expression: str) -> str:
        script = (
            f"const done = arguments[0]; {expression}.then((text) => done([text, null]), (e) => done([null, `${{e}}`]))"
        )
        text, error = self.command("POST", "execute/async", {"script": script, "args": []})
        if error is not None:
            raise PageError(error)
        return str(text)

    def click(self, selector: str) -> None:
        found = self.command("POST", "element", {"using": "css selector", "value": selector})
        self.scroll_to(selector)
        self.command("POST", f"element/{found[ELEMENT]}/click", {})

    def messages(self) -> list[str]:
        return list(self.evaluate("recorded"))

    def close(self) -> None:
        self.command("DELETE", "")
        self._connection.close()


def minibrowser() -> Path | None:
    """Debian puts it into a folder of the library."""
    return next(Path("/usr/lib").glob("*/webkit2gtk-4.1/MiniBrowser"), None)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def screen() -> Iterator[str]:
    """The name of a display that nobody sees."""
    command = "exec Xvfb -displayfd 1 -screen 0 1280x1500x24 -nolisten tcp"
    with started(["bash", "-c", command]) as program:
        number = program.wait_for(r"^(\d+)$")[1]
        yield f":{number}"


@contextmanager
def webkit(environment: Mapping[str, str]) -> Iterator[WebKit]:
    """A new MiniBrowser with a home of its own."""
    binary = minibrowser()
    if binary is None:
        raise NotStarted(f"{COMMAND} is here, MiniBrowser is not")
    with tempfile.TemporaryDirectory(prefix="webkit", ignore_cleanup_errors=True) as home, screen() as display:
        own = {
            "HOME": home,
            "DISPLAY": display,
            "NO_AT_BRIDGE": "1",
            "XDG_RUNTIME_DIR": home,
            "LIBGL_ALWAYS_SOFTWARE": "1",
        }
        port = _free_port()
        with started([COMMAND, f"--port={port}"], {**environment, **own}) as program:
            until(program, lambda: _listens(port), f"port {port}")
            browser = WebKit(port, binary)
            try:
                yield browser
            finally:
                browser.close()
