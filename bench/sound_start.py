"""`python -m bench.sound_start`: from the press of a button to the first clean sample in a headless Chromium, and the
bytes that a page with a denoiser and a detector of speech loads.

The page is served from the npm package. Its files are in the cache of the browser from a first visit; each round is a
new page, in which nothing is compiled. It needs a machine that has nothing else to do.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.conftest import CHROMIUM, FLAGS, served
from tests.browser.test_sound_js import MICROPHONE
from tests.models.fetch import speech_path
from web_demo.packaging import npm_package
from webrnn.audio import read_wav, write_wav
from webrnn.web.folders import page_folder

START = """async ({ prefetch }) => {
    const { denoise } = await import("/webrnn/audio.js");
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    if (prefetch) await denoise.prefetch();
    const began = performance.now();
    const clean = await denoise(stream);
    const resolved = performance.now() - began;
    const reader = new MediaStreamTrackProcessor({ track: clean.track }).readable.getReader();
    for (;;) {
        const { value } = await reader.read();
        const samples = new Float32Array(value.numberOfFrames);
        value.copyTo(samples, { planeIndex: 0, format: "f32-planar" });
        value.close();
        if (samples.some((sample) => sample !== 0)) break;
    }
    const first = performance.now() - began;
    await clean.stop();
    stream.getTracks().forEach((track) => track.stop());
    return { resolved, first, latency: 1000 * clean.latency, rate: clean.context.sampleRate };
}"""

BOTH = """async () => {
    const { denoise, detectSpeech } = await import("/webrnn/audio.js");
    const clean = await denoise(navigator.mediaDevices.getUserMedia({ audio: true }));
    const speech = await detectSpeech(clean, { weights: "int8" });
    await speech.stop();
    await clean.stop();
}"""


def _told(found: list[dict[str, float]]) -> str:
    first, done = (sorted(each[name] for each in found) for name in ("first", "resolved"))
    return (
        f"first clean sample {statistics.median(first):.0f} ms ({first[0]:.0f} to {first[-1]:.0f}), of which "
        f"{statistics.median(done):.0f} until denoise() is done; "
        f"latency {found[-1]['latency']:.0f} ms at {found[-1]['rate']:g} Hz"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sound_start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        site = Path(temporary) / "site"
        site.mkdir()
        npm_package.write(site / "webrnn")
        shutil.copy(page_folder() / "index.html", site)
        (site / "empty.html").write_text('<!doctype html><link rel="icon" href="data:,">')
        speech, rate = read_wav(speech_path())
        write_wav(Path(temporary) / "speech.wav", speech[rate : 11 * rate], rate)
        capture = f"--use-file-for-fake-audio-capture={temporary}/speech.wav"
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *MICROPHONE, capture])
        context = browser.new_context()
        with served(site) as address:
            page = context.new_page()
            names: list[str] = []
            page.on("request", lambda request: names.append(request.url.removeprefix(address)))
            page.goto(f"{address}empty.html")
            page.evaluate(BOTH)
            page.close()
            names.append("webrnn/audio_processor.js")  # the request of a worklet is not told
            files = [site / name for name in dict.fromkeys(names) if name != "empty.html"]
            sizes = npm_package.compressed_bytes(files)
            for file, size in zip(files, sizes, strict=True):
                print(f"{file.relative_to(site)!s:36} {file.stat().st_size:>9,} bytes, {size:>9,} compressed by brotli")
            total, small = sum(file.stat().st_size for file in files), sum(sizes)
            print(f"{'denoiser and detector, int8':36} {total:>9,} bytes, {small:>9,} compressed by brotli")
            for prefetch in (False, True):
                found = []
                for _ in range(rounds + 1):
                    page = context.new_page()
                    page.goto(f"{address}empty.html")
                    found.append(page.evaluate(START, {"prefetch": prefetch}))
                    page.close()
                print(f"{'after prefetch()' if prefetch else 'cached':17} {_told(found[1:])}")
        browser.close()
        shutil.rmtree(site)


if __name__ == "__main__":
    main()
