"""What tests ask of browsers that Playwright cannot drive as they are: Debian's Firefox and WebKitGTK."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from typing import Any

WAIT_SECONDS = 120.0


class PageError(Exception):
    """What a page raised, or what a browser answered instead of a result."""


class Driven(ABC):
    """A browser with one page."""

    name: str
    version: str

    @abstractmethod
    def goto(self, url: str) -> None:
        """Loads a page, and waits until it has loaded."""

    @abstractmethod
    def _text(self, expression: str) -> str:
        """A JavaScript expression that is a promise for a text."""

    @abstractmethod
    def click(self, selector: str) -> None:
        """As a user does it: the page may play sound afterwards."""

    @abstractmethod
    def messages(self) -> list[str]:
        """What the page has written to its console or raised since it was loaded, as far as the browser tells."""

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, or what it promises."""
        wrapped = f"(async () => JSON.stringify({{ value: await ({expression}) }}))()"
        return json.loads(self._text(wrapped)).get("value")

    def scroll_to(self, selector: str) -> None:
        """At once, whatever the page's style says."""
        options = "{ block: 'center', behavior: 'instant' }"
        self.evaluate(f"void document.querySelector({json.dumps(selector)}).scrollIntoView({options})")

    def run(self, module: str, call: str) -> Any:
        """What a function of a module of the site gives: `run("/page.js", "speech()")`."""
        return self.evaluate(f"import(new URL({json.dumps(module)}, location).href).then((tests) => tests.{call})")

    def wait_for(self, condition: str, seconds: float = WAIT_SECONDS) -> Any:
        """Until a JavaScript expression is true; its value."""
        end = time.monotonic() + seconds
        while not (value := self.evaluate(condition)):
            if time.monotonic() > end:
                raise PageError(f"this did not come true in {seconds:g} s: {condition}")
            time.sleep(0.1)
        return value
