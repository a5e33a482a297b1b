"""The demo page in Firefox and WebKitGTK: it loads, and each part runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import served
from .driven import Driven
from .firefox import firefox
from .other_browsers import KINDS, ask_for, open_browser

MODELS = ("gru_128", "gru_128_t1")

pytestmark = pytest.mark.browsers


@pytest.fixture(scope="module")
def small_demo(full_demo: Path) -> Path:
    """Two models to time."""
    file = full_demo / "timings" / "timings.json"
    timings = json.loads(file.read_text())
    timings["models"] = [model for model in timings["models"] if model["name"] in MODELS]
    file.write_text(json.dumps(timings))
    return full_demo


@pytest.fixture(scope="module", params=list(KINDS))
def page(request: pytest.FixtureRequest, small_demo: Path) -> Iterator[Driven]:
    """One page for all tests: the parts do not disturb each other."""
    ask_for(request.param)
    with open_browser(request.param) as started, served(small_demo) as address:
        browser = started.browser
        browser.goto(address)
        browser.wait_for("document.documentElement.dataset.ready === 'true'")
        yield browser
        assert browser.messages() == []


def part_is(page: Driven, part: str, *states: str) -> None:
    """Waits for one of these states; nothing may be said to be wrong."""
    page.wait_for(f"{json.dumps(states)}.includes(document.querySelector('#{part}-app').dataset.state)")
    assert page.evaluate(f"[...document.querySelectorAll('#{part}-app .problem')].map((e) => e.innerText)") == []


def press(page: Driven, part: str, text: str) -> None:
    """The button with this text."""
    page.wait_for(
        f"""(() => {{
            document.querySelector("[data-to-press]")?.removeAttribute("data-to-press");
            const buttons = [...document.querySelectorAll("#{part}-app button")];
            const button = buttons.find((button) => button.innerText.trim().startsWith("{text}"));
            button?.setAttribute("data-to-press", "");
            return button !== undefined;
        }})()"""
    )
    page.click("[data-to-press]")


def test_listen(page: Driven) -> None:
    press(page, "listen", "Play the noisy clip")
    part_is(page, "listen", "playing", "failed")
    for heard in ("speech", "silence"):
        page.wait_for(f"document.querySelector('#listen-app .speech').innerText === '{heard}'")
    press(page, "listen", "Stop")
    part_is(page, "listen", "idle", "failed")


def test_the_microphone(page: Driven) -> None:
    if page.name == "WebKitGTK":
        pytest.skip("MiniBrowser asks its user, and WebDriver cannot answer")
    press(page, "listen", "Use the microphone")
    part_is(page, "listen", "playing", "failed")
    page.wait_for("['speech', 'silence'].includes(document.querySelector('#listen-app .speech').innerText)")
    press(page, "listen", "Stop")
    part_is(page, "listen", "idle", "failed")


def test_an_amp(page: Driven) -> None:
    press(page, "amp", "Play the guitar")
    part_is(page, "amp", "playing", "failed")
    meters = "[...document.querySelectorAll('#amp-app [role=meter]')]"
    page.wait_for(
        f"{meters}.length > 1 && {meters}.every((each) => Number(each.ariaValueNow) > Number(each.ariaValueMin))"
    )
    press(page, "amp", "Stop")
    part_is(page, "amp", "idle", "failed")


def test_without_a_device_firefox_gets_a_message(small_demo: Path) -> None:
    ask_for("firefox")
    with firefox({"PULSE_SERVER": "unix:/nowhere"}) as browser, served(small_demo) as address:
        browser.goto(address)
        browser.wait_for("document.documentElement.dataset.ready === 'true'")
        press(browser, "listen", "Play the noisy clip")
        browser.wait_for("document.querySelector('#listen-app').dataset.state === 'failed'")
        said = browser.evaluate("document.querySelector('#listen-app .problem').innerText")
    assert "device" in said


def test_your_model(page: Driven) -> None:
    page.click('#your-model-app [data-model="gru_256"]')
    part_is(page, "your-model", "ready", "failed")
    press(page, "your-model", "Run")
    page.wait_for("document.querySelector('#your-model-app .outputs') !== null")
    part_is(page, "your-model", "ready", "failed")
    page.wait_for("document.querySelector('#your-model-app [data-identical]')?.dataset.identical === 'true'")


def test_timings(page: Driven) -> None:
    press(page, "timings", "Measure in this browser")
    part_is(page, "timings", "done", "failed")
    cells = page.evaluate(
        "[...document.querySelectorAll('#timings-app td[data-difference]')].map((td) => Number(td.dataset.difference))"
    )
    assert len(cells) >= 3 * len(MODELS)
    assert max(cells) < 1e-4
