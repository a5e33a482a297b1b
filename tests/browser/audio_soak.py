"""DTLN and Silero on the audio thread for half an hour: `python -m tests.browser.audio_soak`.

Every second of sound and every probability has to have the bits of the Python pipeline, to the end; the WebAssembly
memories and the heap of the audio thread must not grow, and quanta allocate nothing. Chromium, Firefox and WebKitGTK
render offline one after the other, one channel at 16 kHz and two at 48 kHz, or play in real time, all at once.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import CDPSession, Page, sync_playwright

from tests.models.fetch import model_path
from webrnn.audio import Resampler, mono, plans, resample

from . import audio_cases
from .audio_cases import RATE
from .audio_realtime import MAY_PLAY
from .conftest import CHROMIUM, FLAGS, host_site, served
from .driven import Driven
from .other_browsers import KINDS, missing, open_browser

MODULE = "/audio_soak_page.js"
SILERO = 512
MOST_GROWTH = 64_000
"""Bytes by which the heap of the audio thread may grow between the first look and the last: code is compiled again."""
MOST_PER_QUANTUM = {"rendered": 256, "played": 1024}
"""Bytes that a quantum may allocate on average. V8 allocates a number for each reading of Date.now, of which there are
a few in each quantum, and, where sound is played, many in every 31st to measure the load; messages are the rest."""


@dataclass(frozen=True)
class Sound:
    """A recording that is repeated: [samples, channels] in a file of the site, one channel after the other."""

    rate: int
    channels: int
    file: str

    def options(self) -> dict[str, Any]:
        return {"rate": self.rate, "channels": self.channels, "sound": self.file}

    def read(self, site: Path) -> np.ndarray:
        return np.fromfile(site / "audio" / self.file, "<f4").reshape(self.channels, -1).T


MONO = Sound(RATE, 1, "noisy.f32")
STEREO = Sound(48000, 2, "stereo.f32")
"""At the rate of a device: resampled down and up again, each channel through a filter of its own."""


def sums(samples: np.ndarray) -> np.ndarray:
    """Of a second [samples, channels] for each channel what audio_soak_probe.mjs computes."""
    words = np.ascontiguousarray(samples.T, "<f4").view(np.uint32)
    total: np.ndarray = (words * (2 * np.arange(len(samples), dtype=np.uint32) + 1)).sum(1, dtype=np.uint32)
    return total.view(np.int32)


@dataclass(frozen=True)
class Expected:
    """What Python's pipeline makes of a sound: a row of sums for each second, of channels in and channels out."""

    heard: np.ndarray
    clean: np.ndarray
    probabilities: np.ndarray
    ends: np.ndarray
    """The samples of the context with which the frames of the probabilities end."""

    @classmethod
    def of(cls, sound: Sound, recording: np.ndarray, seconds: int, backend: str) -> Expected:
        dtln = plans.dtln(model_path("dtln_1"), model_path("dtln_2"))
        denoise = dtln.filter(backend, sample_rate=sound.rate, channels=sound.channels)
        speaking, down = plans.silero(model_path("silero_v6")).frames(backend), Resampler(sound.rate, RATE)
        heard, clean, probabilities = [], [], []
        out, lower = np.zeros((denoise.latency(128), sound.channels), np.float32), np.zeros(0, np.float32)
        for second in range(seconds):
            part = recording[np.arange(second * sound.rate, (second + 1) * sound.rate) % len(recording)]
            given = denoise.push(part if sound.channels > 1 else part[:, 0])
            out = np.concatenate([out, given.reshape(-1, sound.channels)])
            heard.append(sums(part))
            clean.append(sums(out[: sound.rate]))
            out = out[sound.rate :]
            lower = np.concatenate([lower, down.push(mono(part))])
            chunks = len(lower) // SILERO
            probabilities += [speaking(chunk)[0] for chunk in lower[: chunks * SILERO].reshape(-1, SILERO)]
            lower = lower[chunks * SILERO :]
        ends = SILERO * np.arange(1, len(probabilities) + 100) * sound.rate // RATE
        return cls(np.array(heard), np.array(clean), np.array(probabilities, np.float32), ends)

    def differences(self, report: dict[str, Any]) -> list[str]:
        found = list(report["found"])
        rows = np.array([row["sums"] for row in report["rows"]], np.int32)
        channels = self.heard.shape[1]
        for name, given, expected in (("in", rows[:, :channels], self.heard), ("out", rows[:, channels:], self.clean)):
            if len(given) != len(expected):
                found.append(f"{name}: {len(given)} seconds, not {len(expected)}")
            elif (wrong := (given != expected).any(1)).any():
                found.append(f"{name}: second {int(np.argmax(wrong))} has other bits")
        samples, values = np.array(report["results"], np.float64).reshape(-1, 2).T
        if len(values) < len(self.probabilities) - 1:  # the last one may be on its way
            found.append(f"{len(values)} probabilities, not {len(self.probabilities)}")
        if not np.array_equal(samples, self.ends[: len(samples)]):
            found.append("probabilities are not of one frame after the other")
        count = min(len(values), len(self.probabilities))
        wrong = values[:count].astype(np.float32) != self.probabilities[:count]
        if wrong.any():
            found.append(f"probability {int(np.argmax(wrong))} has other bits")
        pages = {row["pages"] for row in report["rows"]}
        if len(pages) != 1:
            found.append(f"the memories of WebAssembly grew: {sorted(pages)} pages")
        return found


@dataclass
class Thread:
    """The audio thread of a page in Chromium, over the DevTools protocol."""

    session: CDPSession
    page: Page
    _target: str = ""
    _answers: dict[int, Any] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.session.on("Target.attachedToTarget", self._attached)
        self.session.on("Target.receivedMessageFromTarget", self._received)
        options = {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": False}
        self.session.send("Target.setAutoAttach", options)

    def _attached(self, event: Any) -> None:
        if event["targetInfo"]["type"] == "worklet":
            self._target = event["sessionId"]

    def _received(self, event: Any) -> None:
        message = json.loads(event["message"])
        if "id" in message:
            self._answers[message["id"]] = message

    def ask(self, method: str, **parameters: Any) -> Any:
        number = next(self._ids)
        message = json.dumps({"id": number, "method": method, "params": parameters})
        self.session.send("Target.sendMessageToTarget", {"sessionId": self._target, "message": message})
        end = time.monotonic() + 60
        while number not in self._answers:
            self.page.wait_for_timeout(10)
            assert time.monotonic() < end, f"the audio thread does not answer {method}"
        return self._answers.pop(number).get("result")

    def used(self) -> int:
        """Bytes that are in use when the garbage is gone."""
        self.ask("HeapProfiler.collectGarbage")
        return int(self.ask("Runtime.getHeapUsage")["usedSize"])

    def begin_sampling(self) -> None:
        collected = dict(includeObjectsCollectedByMinorGC=True, includeObjectsCollectedByMajorGC=True)
        self.ask("HeapProfiler.startSampling", samplingInterval=128, **collected)

    def allocated(self) -> int:
        """Bytes since sampling began, also those that are garbage now."""

        def total(node: dict[str, Any]) -> int:
            return int(node["selfSize"]) + sum(total(child) for child in node["children"])

        return total(self.ask("HeapProfiler.stopSampling")["profile"]["head"])


@dataclass
class Heap:
    """What the audio thread of Chromium had at each look, and what it allocated between the last two."""

    how: str
    used: list[int] = field(default_factory=list)
    allocated: int = 0
    quanta: int = 1

    def differences(self) -> list[str]:
        found = []
        if self.used[-1] - self.used[0] > MOST_GROWTH:
            found.append(f"the heap of the audio thread grew: {self.used}")
        if self.allocated > MOST_PER_QUANTUM[self.how] * self.quanta:
            found.append(f"{self.quanta} quanta allocated {self.allocated} bytes")
        return found


def rendered_in_chromium(page: Page, sound: Sound, seconds: int, looks: int) -> tuple[dict[str, Any], Heap]:
    """Offline; rendering waits for each look at the memory."""
    thread, heap = Thread(page.context.new_cdp_session(page), page), Heap("rendered")
    pauses = [int(second) for second in np.linspace(seconds / (looks + 1), seconds - 1, looks)]
    begin(page, seconds=seconds, isPlayed=False, pauses=pauses, **sound.options())
    for second in pauses:
        while page.evaluate("soak.progress.waiting") != second:
            page.wait_for_timeout(100)
        if second == pauses[-1]:
            heap.allocated, heap.quanta = thread.allocated(), (pauses[-1] - pauses[-2]) * sound.rate // 128
        heap.used.append(thread.used())
        if second == pauses[-2]:
            thread.begin_sampling()
        page.evaluate("soak.progress.goOn()")
    return page.evaluate("report"), heap


def played_in_chromium(page: Page, seconds: int) -> tuple[dict[str, Any], Heap]:
    """In real time: the audio thread answers between quanta."""
    thread, heap = Thread(page.context.new_cdp_session(page), page), Heap("played")
    begin(page, seconds=seconds, isPlayed=True)
    looks, began = [seconds / 6, seconds * 2 / 3, seconds - 1.0], time.monotonic()
    for second in looks:
        page.wait_for_timeout(max(0.0, 1000 * (second - (time.monotonic() - began))))
        if second == looks[-1]:
            heap.allocated, heap.quanta = thread.allocated(), int((looks[-1] - looks[-2]) * RATE / 128)
        heap.used.append(thread.used())
        if second == looks[-2]:
            thread.begin_sampling()
    return page.evaluate("report"), heap


def begin(page: Page | Driven, **options: Any) -> None:
    """`report` promises what was found, and `isOver` says whether it has come."""
    page.evaluate(f"""import(new URL("{MODULE}", location).href).then((tests) => {{
        window.soak = tests;
        window.isOver = false;
        window.report = tests.soak({json.dumps(options)}).finally(() => (window.isOver = true));
    }})""")


@contextmanager
def chromium_page(address: str) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, MAY_PLAY])
        page = browser.new_page()
        page.goto(f"{address}empty.html")
        yield page
        browser.close()


def sites(folder: Path) -> dict[bool, Path]:
    """With the sounds and the plans, by whether the browser's sums are fused."""
    host = host_site(folder / "host")
    made = {is_fused: audio_cases.write_site(host, folder / f"{is_fused}", is_fused) for is_fused in (True, False)}
    for site in made.values():
        noisy = MONO.read(site)[:, 0]
        channels = [resample(samples, RATE, STEREO.rate) for samples in (noisy, noisy[::-1])]
        (site / "audio" / STEREO.file).write_bytes(np.concatenate(channels).astype("<f4").tobytes())
    return made


def expected_of(sound: Sound, site: Path, seconds: int, is_fused: bool) -> Expected:
    return Expected.of(sound, sound.read(site), seconds, audio_cases.fused_backend() if is_fused else "wasm:simd")


def play_everywhere(folder: Path, seconds: int) -> dict[str, list[str]]:
    """What was wrong in each browser that is here, all in the same time."""
    found: dict[str, list[str]] = {}
    pages = sites(folder)
    with ExitStack() as stack:
        address = {is_fused: stack.enter_context(served(site)) for is_fused, site in pages.items()}
        others = {}
        for name, kind in KINDS.items():
            if not missing(name):
                others[name] = stack.enter_context(open_browser(name)).browser
                others[name].goto(f"{address[kind.is_fused]}empty.html")
                begin(others[name], seconds=seconds, isPlayed=True)
        page = stack.enter_context(chromium_page(address[True]))
        report, heap = played_in_chromium(page, seconds)
        reports = {name: browser.evaluate("report") for name, browser in others.items()}
    fused = expected_of(MONO, pages[True], seconds, True)
    found["chromium"] = [*fused.differences(report), *heap.differences()]
    for name, report in reports.items():
        expected = fused if KINDS[name].is_fused else expected_of(MONO, pages[False], seconds, False)
        found[name] = expected.differences(report)
    return found


def render_everywhere(folder: Path, seconds: int) -> dict[str, list[str]]:
    """One browser after the other; says what it saw."""
    found: dict[str, list[str]] = {}
    pages = sites(folder)
    for sound in (MONO, STEREO):
        print(f"{sound.channels} x {sound.rate} Hz")
        began = time.monotonic()
        expected = {is_fused: expected_of(sound, site, seconds, is_fused) for is_fused, site in pages.items()}
        print(
            f"  Python has computed {seconds} s twice, fused and not, in {time.monotonic() - began:.0f} s", flush=True
        )
        with served(pages[True]) as address, chromium_page(address) as page:
            began = time.monotonic()
            report, heap = rendered_in_chromium(page, sound, seconds, looks=7)
        found[f"chromium, {sound.rate}"] = [*expected[True].differences(report), *heap.differences()]
        used = ", ".join(f"{used / 1000:.0f}" for used in heap.used)
        print(_said("chromium", report, began))
        print(
            f"  heap of the audio thread, kB: {used}; {heap.allocated} bytes allocated in {heap.quanta} quanta",
            flush=True,
        )
        for name, kind in KINDS.items():
            if missing(name):
                print(f"  {name} is not covered: it is not installed")
                continue
            with open_browser(name) as started, served(pages[kind.is_fused]) as address:
                began = time.monotonic()
                started.browser.goto(f"{address}empty.html")
                begin(started.browser, seconds=seconds, isPlayed=False, **sound.options())
                started.browser.wait_for("isOver", seconds=1200)
                report = started.browser.evaluate("report")
            found[f"{name}, {sound.rate}"] = expected[kind.is_fused].differences(report)
            print(_said(name, report, began), flush=True)
    return found


def _said(name: str, report: dict[str, Any], began: float) -> str:
    rows = report["rows"]
    took = f"{len(rows)} s of sound in {time.monotonic() - began:.0f} s"
    return (
        f"  {name}: {took}, {len(report['results'])} probabilities, {rows[-1]['pages']:g} pages of WebAssembly memory"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.browser.audio_soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30, help="how long (%(default)s)")
    parser.add_argument("--real-time", action="store_true", help="play instead of rendering offline")
    options = parser.parse_args()
    run = play_everywhere if options.real_time else render_everywhere
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder), round(60 * options.minutes))
    for name, lines in found.items():
        print(f"{name}: {'; '.join(lines) or 'every bit as in Python'}")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
