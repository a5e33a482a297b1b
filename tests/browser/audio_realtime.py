"""DTLN and Silero on the audio thread of a headless Chromium in real time: `python -m tests.browser.audio_realtime`.

It fails if a quantum was missed, or if a probability of speech has other bits than the page's own thread computes. It
needs a machine that has nothing else to do.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from . import audio_cases
from .conftest import CHROMIUM, FLAGS, host_site, served

MAY_PLAY = "--autoplay-policy=no-user-gesture-required"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.browser.audio_realtime", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30, help="how long (%(default)s)")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        pages = audio_cases.write_site(host_site(Path(folder) / "host"), Path(folder) / "site")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, MAY_PLAY])
        with served(pages) as address:
            page = browser.new_page()
            page.goto(f"{address}empty.html")
            report = page.evaluate(f"import('/audio_page.js').then((tests) => tests.realTime({seconds}))")
        browser.close()
    loads, last = report["loads"], report["loads"][-1]
    ms = [load["ms"] for load in loads]
    quanta, worst = sum(load["quanta"] for load in loads), max(load["worst"] for load in loads)
    print(f"{report['played']:.1f} s played, {quanta} quanta of {last['budget']:g} ms, {report['results']} results")
    print(f"a quantum took {min(ms):.2f} to {max(ms):.2f} ms, moving averages; the longest about {worst:.0f} ms")
    print(f"missed {last['missed']}, longer than they last {last['overruns']}")
    print(*report["found"], sep="\n")
    return 1 if report["found"] or last["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
