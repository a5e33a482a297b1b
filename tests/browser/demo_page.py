"""What the tests of the demo page share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from .conftest import served

SCREENSHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"
RECORD_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => violations.push(event.blockedURI));
"""
LOAD_MS = 120_000
"""Pyodide starts within this time also on a machine that does much else."""


@contextmanager
def demo_page(
    browser: Browser, folder: Path, width: int = 1180, scheme: str = "light", is_clean: bool = True
) -> Iterator[Page]:
    """The page, ready. Afterwards nothing may have been written to the console or refused by the policy."""
    page = browser.new_page(
        viewport={"width": width, "height": 1400}, color_scheme="dark" if scheme == "dark" else "light"
    )
    messages: list[str] = []
    requests: list[str] = []
    page.add_init_script(RECORD_VIOLATIONS)
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    try:
        with served(folder) as address:
            page.goto(address)
            expect(page.locator("html")).to_have_attribute("data-ready", "true", timeout=30_000)
            yield page
            if is_clean:
                assert not messages, messages
                violations = page.evaluate("violations")
                assert not violations, violations
                others = [url for url in requests if not url.startswith((address, "data:", f"blob:{address}"))]
                assert not others, others
    finally:
        page.close()


def wait_for(page: Page, part: str, *states: str) -> None:
    expect(page.locator(f"#{part}-app")).to_have_attribute("data-state", re.compile("|".join(states)), timeout=LOAD_MS)


def screenshot(page: Page, part: str, name: str) -> None:
    """Of one part as a whole, without the bar at the top."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.evaluate("document.querySelector('.top').style.position = 'static'")
    page.locator(f"#{part}").screenshot(path=SCREENSHOTS / f"{name}.png")


def problems(page: Page, part: str) -> list[str]:
    """What went wrong, without what to try next."""
    return page.locator(f"#{part}-app .problem > p:first-child").all_inner_texts()


def advice(page: Page, part: str) -> str:
    return page.locator(f"#{part}-app .problem .next").inner_text()


def fits(page: Page, width: int) -> bool:
    """Whether nothing sticks out to the right."""
    return bool(page.evaluate("document.documentElement.scrollWidth") <= width)
