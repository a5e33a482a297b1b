"""`python -m bench.worker_pools`: frames a second of 256 streams in one worker and in two, in a headless Chromium."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from webrnn.web.folders import page_folder
from webrnn.web.server import in_background, serve

from .node_pools import write


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.worker_pools", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each round")
    arguments = parser.parse_args()
    chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    print("| model | streams | one worker, frames/s | two workers, frames/s | ratio |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        write(folder)
        shutil.copy(page_folder() / "index.html", folder)
        shutil.copy(Path(__file__).with_suffix(".mjs"), folder / "bench.js")
        (folder / "empty.html").write_text('<link rel="icon" href="data:,">')
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        with in_background(serve(folder, port=0)) as address:
            page.goto(f"{address}empty.html")
            for entry in json.loads((folder / "models.json").read_text()):
                row = page.evaluate(
                    "(given) => import('/bench.js').then(({ compare }) => compare(...given))",
                    [entry, arguments.rounds, arguments.seconds],
                )
                print("| {name} | {streams} | {one:,} | {two:,} | {ratio:.2f} |".format(**row), flush=True)
        browser.close()


if __name__ == "__main__":
    main()
