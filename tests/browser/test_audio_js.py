"""Audio plans on the audio thread, in Node and in Chromium: to the bit what native kernels give."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from . import audio_cases
from .conftest import served
from .node import node

HERE = Path(__file__).parent
NOT_FOUND = "Failed to load resource: the server responded with a status of 404 (File not found)"


@pytest.fixture(scope="module")
def site(host: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return audio_cases.write_site(host, tmp_path_factory.mktemp("audio") / "site")


@pytest.mark.parametrize("file", ["audio.test.mjs", "audio_rates.test.mjs"])
def test_any_block_size(site: Path, file: str) -> None:
    assert "# fail 0" in node("--test-reporter=tap", str(HERE / file), f"{site.as_uri()}/")


OFFLINE = "speech bypass mix swap rates badPlans failingPlans notFinite chain rare twoNodes"


@pytest.mark.parametrize("what", OFFLINE.split())
def test_offline(site: Path, browser: Browser, what: str) -> None:
    page = browser.new_page()
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    with served(site) as address:
        page.goto(f"{address}empty.html")
        found = page.evaluate(f"import('/audio_page.js').then((tests) => tests.{what}())")
    page.close()
    assert found == []
    assert [text for text in messages if what != "badPlans" or text != NOT_FOUND] == []


def test_in_real_time(site: Path, browser: Browser) -> None:
    page = browser.new_page()
    with served(site) as address:
        page.goto(f"{address}empty.html")
        page.mouse.click(1, 1)  # without it the page may make no sound
        report = page.evaluate("import('/audio_page.js').then((tests) => tests.realTime(3))")
    page.close()
    assert report["found"] == [], "results have the bits that the page's own thread computes"
    quanta = sum(load["quanta"] for load in report["loads"])
    assert {load["budget"] for load in report["loads"]} == {8}
    assert 0 < quanta * 128 <= report["played"] * 16000 + 4096
    assert abs(report["results"] * 512 - quanta * 128) <= 8192, "no frame is left out; the last report may be missing"
