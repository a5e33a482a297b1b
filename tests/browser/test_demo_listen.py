"""Part 1 of the demo page: the audio thread, as far as a page can see it. What it computes is tested in test_audio*."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from .axe import violations_anywhere
from .demo_page import advice, demo_page, fits, problems, screenshot, wait_for

INK = """(canvas, seconds) => {
    // How far from the background the last seconds of the spectra in a scrolling picture are, on average.
    const [columns, rows] = [Math.floor((canvas.width * seconds) / 10), Math.floor(canvas.height * 0.7)];
    const copy = new OffscreenCanvas(columns, rows).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, columns - canvas.width, 0);
    const { data } = copy.getImageData(0, 0, columns, rows);
    const back = getComputedStyle(canvas).backgroundColor.match(/[0-9.]+/g).map(Number);
    let ink = 0;
    for (let i = 0; i < data.length; i++) if (i % 4 < 3) ink += Math.abs(data[i] - back[i % 4]);
    return ink / (data.length / 4);
}"""


@pytest.fixture
def page(browser: Browser, full_demo: Path) -> Iterator[Page]:
    with demo_page(browser, full_demo) as page:
        yield page


def play(page: Page) -> None:
    page.get_by_role("button", name="Play the noisy clip").click()
    wait_for(page, "listen", "playing", "failed")
    assert problems(page, "listen") == []


def figure(page: Page, name: str) -> str:
    return page.locator(f"#listen-app [data-figure={name}]").inner_text()


def test_the_clip_is_denoised_and_voices_are_found(page: Page) -> None:
    play(page)
    speech = page.locator("#listen-app .speech")
    expect(speech).to_have_text("speech", timeout=20_000)
    expect(speech).to_have_text("silence", timeout=20_000)
    canvases = page.locator("#listen-app canvas")
    noisy, clean = (canvases.nth(index).evaluate(INK, 3) for index in (0, 1))
    assert clean < noisy / 2
    assert re.fullmatch(r"[\d.]+ (µs|ms)", figure(page, "load"))
    assert figure(page, "missed").isdecimal()
    assert figure(page, "latency") == "24 ms"
    assert re.fullmatch(r"1\.[345]\d? MB", figure(page, "size")), "both models, with weights of 8 bits"
    assert re.fullmatch(r"[\d.]+% of 8 ms", figure(page, "budget"))
    screenshot(page, "listen", "listen")

    page.get_by_role("switch", name="Denoise").press("Space")
    page.wait_for_timeout(2500)
    noisy, passed = (canvases.nth(index).evaluate(INK, 1.5) for index in (0, 1))
    assert passed > noisy / 2

    page.get_by_role("button", name="Stop").click()
    wait_for(page, "listen", "idle")
    page.get_by_role("button", name="Play the noisy clip").click()
    wait_for(page, "listen", "playing")


def test_a_still_picture_before_anything_is_pressed(page: Page) -> None:
    expect(page.locator("#listen-app")).to_contain_text("A still of the clip")
    canvases = page.locator("#listen-app canvas")
    noisy, clean = (canvases.nth(index).evaluate(INK, 10) for index in (0, 1))
    assert 0 < clean < noisy / 2
    assert not page.evaluate("performance.getEntriesByType('resource').some(({name}) => /[.](rnn|wav)$/.test(name))")


def test_another_denoiser_and_other_weights_while_it_plays(page: Page) -> None:
    play(page)
    page.get_by_label("Weights").select_option("float32")
    expect(page.locator("#listen-app [data-figure=size]")).to_have_text(re.compile(r"4\.\d+ MB"))
    for name, latency in (("nsnet2", r"\d+ ms"), ("gtcrn", "24 ms|32 ms")):
        page.get_by_label("Denoiser").select_option(name)
        expect(page.locator("#listen-app [data-figure=latency]")).to_have_text(re.compile(latency), timeout=20_000)
        wait_for(page, "listen", "playing")
        assert problems(page, "listen") == []
    expect(page.get_by_label("Weights").locator("option")).to_have_count(1)


NO_DEVICE = "() => { AudioContext.prototype.resume = () => new Promise(() => {}); }"
DENIED = "() => { navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('', '%s'); }; }"


def test_without_a_device_the_page_says_so(browser: Browser, full_demo: Path) -> None:
    """As Firefox: a context that nobody plays never answers."""
    with demo_page(browser, full_demo) as page:
        page.evaluate(NO_DEVICE)
        page.get_by_role("button", name="Play the noisy clip").click()
        wait_for(page, "listen", "failed")
        (said,) = problems(page, "listen")
        assert said == "It cannot be played: no audio device answers, so nothing can be played"
        assert "headphones or a loudspeaker" in advice(page, "listen")
        expect(page.get_by_role("button", name="Play the noisy clip")).to_be_enabled()
        expect(page.locator("#listen-app")).to_contain_text("A still of the clip")
        screenshot(page, "listen", "listen-no-device")
        assert violations_anywhere(page) == []


@pytest.mark.parametrize(
    ("name", "message", "next_step"),
    [
        ("NotAllowedError", "this page may not use it", "allow the microphone for this page"),
        ("NotFoundError", "there is none", "connect a microphone"),
        ("NotReadableError", "it gives no sound", "end other programs"),
    ],
)
def test_a_microphone_that_cannot_be_used(page: Page, name: str, message: str, next_step: str) -> None:
    page.evaluate(DENIED % name)
    page.get_by_role("button", name="Use the microphone").click()
    wait_for(page, "listen", "failed")
    assert problems(page, "listen") == [f"The microphone cannot be used: {message}"]
    assert next_step in advice(page, "listen")


@pytest.mark.parametrize(("rate", "channels"), [("", "1"), ("48000", "2"), ("44100", "1")])
def test_the_audio_thread_at_other_rates(page: Page, rate: str, channels: str) -> None:
    page.get_by_label("Audio thread").select_option(rate)
    page.get_by_label("Channels").select_option(channels)
    play(page)
    expect(page.locator("#listen-app .speech")).to_have_text("speech", timeout=20_000)
    latency = page.locator("#listen-app [data-figure=latency]")
    expect(latency).to_have_text(re.compile(r"\d"), timeout=20_000)
    assert 24 <= float(latency.inner_text().split()[0]) < 60
    page.wait_for_timeout(2000)
    canvases = page.locator("#listen-app canvas")
    noisy, clean = (canvases.nth(index).evaluate(INK, 2) for index in (0, 1))
    assert clean < noisy / 1.5
    page.get_by_label("Audio thread").select_option("16000")
    wait_for(page, "listen", "playing")
    expect(latency).to_have_text("24 ms", timeout=20_000)


REFUSED = """() => {
    const Plain = MediaStreamAudioSourceNode;
    window.MediaStreamAudioSourceNode = function (context, options) {
        if (context.sampleRate === 16000) throw new DOMException("different sample rates", "NotSupportedError");
        return new Plain(context, options);
    };
}"""


def test_a_browser_that_refuses_microphones_at_other_rates_gets_its_own(page: Page) -> None:
    """As Firefox."""
    page.context.grant_permissions(["microphone"])
    page.evaluate(REFUSED)
    page.get_by_role("button", name="Use the microphone").click()
    wait_for(page, "listen", "playing")
    assert problems(page, "listen") == []
    expect(page.get_by_label("Audio thread")).to_have_value("")


def test_the_microphone(page: Page) -> None:
    page.context.grant_permissions(["microphone"])
    page.get_by_role("button", name="Use the microphone").click()
    wait_for(page, "listen", "playing", "failed")
    assert problems(page, "listen") == []
    expect(page.locator("#listen-app .speech")).to_have_text(re.compile("speech|silence"), timeout=20_000)


def test_without_a_microphone_the_page_says_so_and_plays_the_clip(page: Page) -> None:
    page.get_by_role("button", name="Use the microphone").click()
    wait_for(page, "listen", "failed")
    (said,) = problems(page, "listen")
    assert said.startswith("The microphone cannot be used:")
    play(page)


def test_another_plan_takes_the_place_of_the_denoiser(page: Page, full_demo: Path) -> None:
    page.locator("#your-model-app > input[type=file]").set_input_files(full_demo / "bundled" / "dtln_float32.rnn")
    wait_for(page, "your-model", "ready", "failed")
    page.get_by_role("button", name="Put it on the audio thread").click()
    wait_for(page, "your-model", "ready", "failed")
    assert problems(page, "your-model") == []
    expect(page.locator("#listen-app")).to_contain_text(
        "dtln_float32.rnn is on the audio thread, in the place of DTLN."
    )
    play(page)
    page.get_by_role("button", name="Put it back").click()
    expect(page.locator("#listen-app")).not_to_contain_text("is on the audio thread")


def test_on_a_phone_in_the_dark(browser: Browser, full_demo: Path) -> None:
    with demo_page(browser, full_demo, width=360, scheme="dark") as page:
        play(page)
        page.wait_for_timeout(4000)
        assert fits(page, 360)
        screenshot(page, "listen", "listen-phone-dark")
