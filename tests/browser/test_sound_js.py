"""denoise and detectSpeech in Chromium, on a microphone that plays a file and in an OfflineAudioContext."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from . import sound_cases
from .conftest import CHROMIUM, FLAGS, served

MICROPHONE = ["--use-fake-ui-for-media-stream", "--autoplay-policy=no-user-gesture-required"]


@pytest.fixture(scope="module")
def page(host: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Its microphone plays speech in noise."""
    site = sound_cases.write_site(host, tmp_path_factory.mktemp("sound") / "site")
    capture = f"--use-file-for-fake-audio-capture={site / 'noisy.wav'}"
    with sync_playwright() as playwright, served(site) as address:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *MICROPHONE, capture])
        page = browser.new_page()
        page.goto(f"{address}empty.html")
        page.mouse.click(1, 1)
        yield page
        browser.close()


@pytest.mark.parametrize("what", ["bits", "tracks", "misuse", "liveKit"])
def test_denoise(page: Page, what: str) -> None:
    assert page.evaluate(f"import('/sound_denoise.js').then((tests) => tests.{what}())") == []


def test_the_first_sample_comes(page: Page) -> None:
    found = page.evaluate("import('/sound_denoise.js').then((tests) => tests.timeToFirstSample({ prefetch: true }))")
    assert 0 < found["resolved"] <= found["first"]


@pytest.mark.parametrize("what", ["bits", "chained", "live", "ended", "micVAD"])
def test_speech(page: Page, what: str) -> None:
    assert page.evaluate(f"import('/sound_speech.js').then((tests) => tests.{what}())") == []
