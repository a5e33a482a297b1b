"""Part 2 of the demo page: a guitar through an amp on the audio thread, and amps of one's own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import webrnn

from .axe import violations_anywhere
from .demo_page import advice, demo_page, fits, problems, screenshot, wait_for
from .node import node

WEB = Path(__file__).resolve().parents[2] / "web_demo"
AMP = WEB / "amp" / "crunch.nam"


@pytest.fixture
def page(browser: Browser, full_demo: Path) -> Iterator[Page]:
    with demo_page(browser, full_demo) as page:
        yield page


def play(page: Page) -> None:
    page.get_by_role("button", name="Play the guitar").click()
    wait_for(page, "amp", "playing", "failed")
    assert problems(page, "amp") == []


def loudness(page: Page, name: str) -> int:
    return int(page.get_by_role("meter", name=name).get_attribute("aria-valuenow") or "")


def open_file(page: Page, file: Path) -> None:
    page.locator("#amp-app > input[type=file]").set_input_files(file)
    expect(page.locator("#amp-app")).to_have_attribute("data-opened", file.name, timeout=120_000)


def test_a_still_picture_that_the_amp_itself_has_made(page: Page) -> None:
    page.locator("#amp").scroll_into_view_if_needed()
    expect(page.locator("#amp-app")).to_have_attribute("data-still", "crunch", timeout=30_000)
    assert re.fullmatch(r"[\d.]+%", page.locator("#amp-app [data-figure=load]").inner_text())
    expect(page.locator("#amp-app")).to_contain_text("A still: a guitar that the page plays")
    screenshot(page, "amp", "amp")


def test_the_guitar_is_heard_dry_and_amplified(page: Page) -> None:
    play(page)
    page.wait_for_timeout(1500)
    assert -60 < loudness(page, "Loudness into the amp") <= 0
    assert -60 < loudness(page, "Loudness behind the amp") <= 0
    page.get_by_role("switch", name="Amp").press("Space")
    page.get_by_role("slider", name="Gain").fill("-12")
    page.get_by_role("slider", name="Level").fill("-30")
    page.wait_for_timeout(2500)
    assert loudness(page, "Loudness behind the amp") < -30
    assert page.get_by_role("slider", name="Level").get_attribute("aria-valuetext") == "-30 dB"
    assert page.locator("#amp-app [data-figure=missed]").inner_text().isdecimal()
    page.locator("#amp-app").get_by_role("button", name="Stop").click()
    wait_for(page, "amp", "idle")


def test_one_part_is_heard_at_a_time(page: Page) -> None:
    play(page)
    page.get_by_role("button", name="Play the noisy clip").click()
    wait_for(page, "listen", "playing")
    wait_for(page, "amp", "idle")


def test_amps_of_ones_own_are_read_while_one_plays(page: Page, tmp_path: Path) -> None:
    model = json.loads(AMP.read_text())
    model["metadata"]["name"] = "somebody's amp"
    (tmp_path / "own.nam").write_text(json.dumps(model))
    layers = [{"type": "activation", "activation": "tanh", "shape": [None, None, 1]}]
    (tmp_path / "clipper.json").write_text(json.dumps({"in_shape": [None, None, 1], "layers": layers}))
    (tmp_path / "broken.nam").write_text('{"architecture": "Perceptron", "config": {}, "weights": []}')
    play(page)
    amps = page.locator("#amp-app select option")
    open_file(page, tmp_path / "own.nam")
    assert problems(page, "amp") == []
    assert amps.all_inner_texts()[1:] == ["somebody's amp"]
    open_file(page, tmp_path / "clipper.json")
    assert problems(page, "amp") == []
    assert amps.all_inner_texts()[1:] == ["somebody's amp", "clipper.json"]
    open_file(page, tmp_path / "broken.nam")
    (said,) = problems(page, "amp")
    assert said.startswith("broken.nam is no amp that can be played:")
    assert "Perceptron" in said
    assert "Neural Amp Modeler" in advice(page, "amp")
    assert amps.count() == 3
    wait_for(page, "amp", "playing")
    assert violations_anywhere(page) == []


def test_a_plan_that_is_no_amp_is_refused(page: Page, full_demo: Path) -> None:
    play(page)
    open_file(page, full_demo / "bundled" / "silero.rnn")
    (said,) = problems(page, "amp")
    assert "it gives numbers, not samples" in said
    assert page.locator("#amp-app select option").count() == 1
    wait_for(page, "amp", "playing")


def test_without_a_device_the_page_says_so(page: Page) -> None:
    page.evaluate("() => { AudioContext.prototype.resume = () => new Promise(() => {}); }")
    page.get_by_role("button", name="Play the guitar").click()
    wait_for(page, "amp", "failed")
    assert problems(page, "amp") == ["It cannot be played: no audio device answers, so nothing can be played"]


def test_on_a_phone_in_the_dark(browser: Browser, full_demo: Path) -> None:
    with demo_page(browser, full_demo, width=390, scheme="dark") as page:
        page.locator("#amp").scroll_into_view_if_needed()
        expect(page.locator("#amp-app")).to_have_attribute("data-still", "crunch", timeout=30_000)
        assert fits(page, 390)
        screenshot(page, "amp", "amp-phone-dark")


def run(code: str) -> str:
    return node("--input-type=module", "-e", code)


def test_the_guitar_is_always_the_same_and_in_tune() -> None:
    code = f"""
        import {{ guitar }} from {json.dumps((WEB / "amp" / "guitar.js").as_uri())};
        const [a, b] = [guitar(48000), guitar(48000)];
        const peak = a.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
        const part = [...a.subarray(3 * 48000, 4 * 48000)];
        console.log(JSON.stringify([a.length, a.every((x, i) => x === b[i]), part, peak]));
    """
    length, is_same, part, peak = json.loads(run(code))
    assert (length, is_same) == (round(16 * 60 / 104 * 48000), True)
    assert peak == 0.5
    spectrum = np.abs(np.fft.rfft(np.hanning(48000) * np.array(part)))
    for frequency in (110.0, 164.8):  # beats 5.2 to 6.9: A with its fifth
        assert abs(spectrum[int(frequency) - 12 : int(frequency) + 13].argmax() - 12) <= 2


def test_spectra_are_those_of_numpy() -> None:
    code = f"""
        import {{ transform }} from {json.dumps((WEB / "sound" / "spectra.js").as_uri())};
        const real = Float64Array.from({{ length: 64 }}, (_, i) => Math.sin(i * i));
        const imaginary = new Float64Array(64);
        transform(real, imaginary);
        console.log(JSON.stringify([[...real], [...imaginary]]));
    """
    real, imaginary = json.loads(run(code))
    expected = np.fft.fft(np.sin(np.arange(64.0) ** 2))
    np.testing.assert_allclose(np.array(real) + 1j * np.array(imaginary), expected, atol=1e-12)


def test_the_plan_of_the_amp_is_that_of_its_file(full_demo: Path) -> None:
    rng = np.random.default_rng(3)
    x = (0.3 * rng.standard_normal(512)).astype(np.float32)
    stream = webrnn.InferenceSession(full_demo / "bundled" / "crunch.rnn").stream()
    steps = [stream.step({"x": block})[0] for block in x.reshape(4, 128)]
    expected = webrnn.InferenceSession(AMP).run(None, {"x": x})[0]
    np.testing.assert_allclose(np.concatenate(steps), expected, atol=1e-6)
