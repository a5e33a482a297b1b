"""Firefox, headless, over WebDriver BiDi."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .driven import WAIT_SECONDS, Driven, PageError
from .processes import started
from .websocket import WebSocket

COMMAND = "firefox-esr"
PREFERENCES = {
    "media.autoplay.default": 0,
    "media.navigator.permission.disabled": True,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "app.update.disabledForTesting": True,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "browser.safebrowsing.update.enabled": False,
    "extensions.update.enabled": False,
    "toolkit.telemetry.enabled": False,
    "services.settings.server": "data:,",
}
"""Sound without a click, the microphone without a question, and no calls to others."""


class Firefox(Driven):
    name = "Firefox"

    def __init__(self, port: int):
        self._socket = WebSocket(port, "/session", WAIT_SECONDS)
        self._ids = itertools.count(1)
        self._messages: list[str] = []
        session = self.command("session.new", capabilities={})
        self.version = session["capabilities"]["browserVersion"]
        self._context = self.command("browsingContext.getTree")["contexts"][0]["context"]
        self.command("session.subscribe", events=["log.entryAdded"])

    def command(self, method: str, **parameters: Any) -> Any:
        """A command of WebDriver BiDi; what the page logs meanwhile is kept."""
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.receive())
            if answer.get("method") == "log.entryAdded":
                self._messages.append(str(answer["params"]["text"]))
            elif answer.get("id") == number:
                if answer["type"] == "error":
                    raise PageError(f"{method}: {answer['error']}: {answer['message']}")
                return answer["result"]

    def goto(self, url: str) -> None:
        self._messages.clear()
        self.command("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def _text(self, expression: str) -> str:
        target = {"context": self._context}
        answer = self.command(
            "script.evaluate", expression=expression, target=target, awaitPromise=True, userActivation=True
        )
        if answer["type"] == "exception":
            raise PageError(answer["exceptionDetails"]["text"])
        return str(answer["result"]["value"])

    def click(self, selector: str) -> None:
        found = self.command(
            "browsingContext.locateNodes", context=self._context, locator={"type": "css", "value": selector}
        )["nodes"]
        if not found:
            raise PageError(f"there is no {selector}")
        self.scroll_to(selector)
        origin = {"type": "element", "element": {"sharedId": found[0]["sharedId"]}}
        moves = [
            {"type": "pointerMove", "x": 0, "y": 0, "origin": origin},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves}
        self.command("input.performActions", context=self._context, actions=[mouse])

    def messages(self) -> list[str]:
        self.command("session.status")  # what was logged before comes before the answer
        return list(self._messages)

    def close(self) -> None:
        self._socket.close()


@contextmanager
def firefox(environment: Mapping[str, str], **preferences: Any) -> Iterator[Firefox]:
    """A new Firefox with a profile of its own."""
    with tempfile.TemporaryDirectory(prefix="firefox", ignore_cleanup_errors=True) as profile:
        rows = {**PREFERENCES, **preferences}.items()
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in rows]
        (Path(profile) / "user.js").write_text("".join(lines))
        command = [COMMAND, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"]
        with started(command, {**environment, "HOME": profile, "MOZ_DISABLE_CONTENT_SANDBOX": "1"}) as program:
            port = program.wait_for(r"WebDriver BiDi listening on ws://127\.0\.0\.1:(\d+)")[1]
            browser = Firefox(int(port))
            try:
                yield browser
            finally:
                browser.close()
