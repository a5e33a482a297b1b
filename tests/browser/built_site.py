"""A new Vite project with the packed npm package and five lines: `python -m tests.browser.built_site`.

It is built, served as documented (scripts and modules compressed), and used with a microphone that hears speech in
noise. Run as a program it prints how long it takes from the press of a button to the first clean sample, and what was
loaded.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from playwright.sync_api import Page, sync_playwright

from examples.denoise_wav import with_noise
from pyodide_pkg import core
from tests.models.fetch import speech_path
from web_demo.packaging import npm_package
from webrnn.audio import Resampler, read_wav, write_wav

from .conftest import CHROMIUM, FLAGS
from .other_browsers import missing, open_browser
from .sound_device import RATE

VITE = "8.3.8"
PROGRAMS = {
    "denoise": """\
import { denoise } from "webrnn/audio";
document.querySelector("button").onclick = async () => {
  const clean = await denoise(navigator.mediaDevices.getUserMedia({ audio: true }));
  document.querySelector("audio").srcObject = clean.stream;
};
""",
    "speech": """\
import { detectSpeech } from "webrnn/audio";
const said = (text) => document.querySelector("button").append(text);
document.querySelector("button").onclick = () => detectSpeech(navigator.mediaDevices.getUserMedia({ audio: true }), {
  weights: "int8", onSpeechStart: () => said(" start"), onSpeechEnd: (audio) => said(` ${audio.length} samples`),
});
""",
}
PAGE = """<!doctype html><html lang="en"><title>webrnn</title><link rel="icon" href="data:,">
<button>Press</button><audio></audio><script type="module" src="/main.js"></script></html>
"""


def vite(cache: Path = core.CACHE) -> Path:
    """Its script, to be run by Node; fetched once from npm."""
    folder = cache / f"vite-{VITE}"
    script = folder / "node_modules" / "vite" / "bin" / "vite.js"
    with core.only_one(cache):
        if not script.exists():
            _npm(cache, "install", "--prefix", str(folder), f"vite@{VITE}")
    return script


def _npm(folder: Path, *arguments: str) -> None:
    npm = Path(core.node()).with_name("npm")
    command = [str(npm), *arguments, "--loglevel=error", "--no-audit", "--no-fund"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)


def build(folder: Path, tarball: Path, program: str) -> Path:
    """The folder of the built site of a new project."""
    folder.mkdir()
    (folder / "package.json").write_text('{ "name": "site", "private": true, "type": "module" }')
    (folder / "index.html").write_text(PAGE)
    (folder / "main.js").write_text(PROGRAMS[program])
    _npm(folder, "install", str(tarball))
    done = subprocess.run([core.node(), vite(), "build"], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "dist"


def package(folder: Path) -> Path:
    return npm_package.pack(npm_package.write(folder / "webrnn"))


@dataclass
class Served:
    address: str
    sizes: dict[str, int] = field(default_factory=dict)
    """What was loaded, and the bytes of it on the wire."""


class _Handler(SimpleHTTPRequestHandler):
    extensions_map = {  # noqa: RUF012
        ".html": "text/html",
        ".js": "text/javascript",
        ".wasm": "application/wasm",
        "": "application/octet-stream",
    }

    def __init__(self, *arguments: Any, sizes: dict[str, int], **options: Any):
        self.sizes = sizes
        super().__init__(*arguments, **options)

    def do_GET(self) -> None:
        file = Path(self.translate_path(self.path))
        file = file / "index.html" if file.is_dir() else file
        if not file.is_file():
            self.send_error(404)
            return
        content = file.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(file)))
        self.send_header("Cache-Control", "max-age=600")
        if file.suffix in (".js", ".wasm"):
            content = gzip.compress(content)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.sizes[file.name] = len(content)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """As docs/web.md says it: with types, caching and compression."""
    sizes: dict[str, int] = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(folder), sizes=sizes))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Served(f"http://127.0.0.1:{server.server_address[1]}/", sizes)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def write_speech(folder: Path) -> Path:
    """Speech in noise and a silence, for microphones: noisy.wav, and noisy.f32 at the device's rate."""
    speech, rate = read_wav(speech_path())
    noisy = with_noise(speech[: 4 * rate], 10)
    noisy = np.concatenate([noisy, np.zeros(2 * rate, np.float32)])
    write_wav(folder / "noisy.wav", noisy, rate)
    up = Resampler(rate, RATE)
    samples = np.concatenate([up.push(noisy), up.flush()])
    (folder / "noisy.f32").write_bytes(samples.astype("<f4").tobytes())
    return folder


class Driver(Protocol):
    def evaluate(self, expression: str, /) -> Any: ...

    def goto(self, url: str, /) -> Any: ...

    def click(self, selector: str, /) -> Any: ...


@contextmanager
def chromium(folder: Path) -> Iterator[Page]:
    """Its microphone plays the file."""
    file = f"--use-file-for-fake-audio-capture={folder / 'noisy.wav'}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*FLAGS, "--use-fake-ui-for-media-stream", file]
        )
        yield browser.new_page()
        browser.close()


@contextmanager
def firefox(folder: Path) -> Iterator[Driver]:
    """Its microphone is the sound device's."""
    with open_browser("firefox") as started, started.device.speaking(folder / "noisy.f32"):
        yield started.browser


BROWSERS: dict[str, Any] = {"chromium": chromium, "firefox": firefox}

HEARD = """(async () => {
  const audio = document.querySelector("audio");
  while (!audio.srcObject) await new Promise((resolve) => setTimeout(resolve, 1));
  const resolved = performance.now();
  const context = new AudioContext();
  const analyser = new AnalyserNode(context, { fftSize: 2048 });
  new MediaStreamAudioSourceNode(context, { mediaStream: audio.srcObject }).connect(analyser);
  const samples = new Float32Array(2048);
  while (!samples.some((sample) => sample !== 0)) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    analyser.getFloatTimeDomainData(samples);
  }
  const first = performance.now();
  let loudest = 0;
  while (performance.now() < first + 2000) {
    analyser.getFloatTimeDomainData(samples);
    for (const sample of samples) loudest = Math.max(loudest, Math.abs(sample));
    await new Promise((resolve) => setTimeout(resolve, 40));
  }
  await context.close();
  return { resolved: resolved - pressed, first: first - pressed, loudest, rate: context.sampleRate };
})()"""
"""From the press to the first sample that is heard; then what is heard in two seconds."""

WATCH = (
    "void document.querySelector('button').addEventListener('click', () => (window.pressed = performance.now()), true)"
)

SPOKEN = """(async () => {
  const button = document.querySelector("button");
  const end = performance.now() + 30_000;
  while (!/start.* samples/.test(button.innerText) && performance.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return button.innerText;
})()"""


def denoised(browser: Driver, site: Served) -> dict[str, Any]:
    browser.goto(site.address)
    browser.evaluate(WATCH)
    browser.click("button")
    return dict(browser.evaluate(HEARD))


def spoken(browser: Driver, site: Served) -> str:
    browser.goto(site.address)
    browser.click("button")
    return str(browser.evaluate(SPOKEN))


def main() -> int:
    with tempfile.TemporaryDirectory() as temporary:
        folder = write_speech(Path(temporary))
        tarball = package(folder)
        sites = {name: build(folder / name, tarball, name) for name in PROGRAMS}
        for name, start in BROWSERS.items():
            if name != "chromium" and missing(name):
                print(f"{name} is not covered: it is not installed")
                continue
            with start(folder) as browser, served(sites["denoise"]) as one, served(sites["speech"]) as two:
                for how in ("first", "cached"):
                    found = denoised(browser, one)
                    times = f"a stream after {found['resolved']:.0f} ms, a clean sample after {found['first']:.0f} ms"
                    print(f"{name}, {how}: {times}, at {found['rate']} Hz")
                print(f"{name}: {spoken(browser, two)}")
            print(json.dumps(one.sizes | two.sizes, indent=1))
            print(f"{name}: {sum((one.sizes | two.sizes).values()):,} bytes for both")
    return 0


if __name__ == "__main__":
    sys.exit(main())
