"""`python -m bench.cold_start`: from a fresh page to a model's first result, in headless Chromium.

A round opens a page in a new browser context, with empty caches, and times what a user waits for there: loading the
host, compiling it, loading gru_256 (100 steps), the first result. `--peer` is the `dist` folder of onnxruntime-web,
which then takes turns. Give the machine nothing else to do meanwhile.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from pathlib import Path

import webrnn
from web_demo.packaging import npm_package
from webrnn.bench.models import BUILT_IN
from webrnn.bench.web import CHROMIUM_FLAGS, chromium_path
from webrnn.demo.site import PEER_FILES
from webrnn.web.server import in_background, serve

PAGE = """<!doctype html>
<meta http-equiv="Content-Security-Policy" content="default-src 'self'; script-src 'self' 'wasm-unsafe-eval'">
<link rel="icon" href="data:,">
"""
WEBRNN = """
async () => {
  const started = performance.now();
  const { Model } = await import("/webrnn/webrnn.js");
  const model = await Model.load("/gru_256.rnn");
  const feeds = {};
  for (const { name, shape } of model.inputs) feeds[name] = new Float32Array(shape.reduce((a, b) => a * b, 1));
  model.run(feeds);
  return performance.now() - started;
}
"""
PEER = """
async () => {
  const started = performance.now();
  const ort = await import("/peer/ort.wasm.min.mjs");
  ort.env.wasm.numThreads = 1;
  const session = await ort.InferenceSession.create("/gru_256.onnx", { executionProviders: ["wasm"] });
  const feeds = {};
  for (const { name, shape } of session.inputMetadata) {
    feeds[name] = new ort.Tensor("float32", new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
  }
  await session.run(feeds);
  return performance.now() - started;
}
"""


def write_site(folder: Path, peer: Path | None) -> None:
    npm_package.write(folder / "webrnn")
    (folder / "index.html").write_text(PAGE)
    model = BUILT_IN["gru_256"]()
    (folder / "gru_256.onnx").write_bytes(model)
    webrnn.InferenceSession(model).export(folder / "gru_256.rnn")
    if peer is not None:
        (folder / "peer").mkdir()
        for name in PEER_FILES:
            shutil.copy(peer / name, folder / "peer")


def measure(peer: Path | None, rounds: int) -> dict[str, list[float]]:
    """Milliseconds by runtime and round."""
    from playwright.sync_api import sync_playwright

    scripts = {"webrnn": WEBRNN, **({"onnxruntime-web": PEER} if peer else {})}
    times: dict[str, list[float]] = {name: [] for name in scripts}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        write_site(Path(folder), peer)
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=list(CHROMIUM_FLAGS))
        with in_background(serve(Path(folder), port=0)) as address:
            for _ in range(rounds):
                for name, script in scripts.items():
                    context = browser.new_context()
                    page = context.new_page()
                    page.goto(address)
                    times[name].append(page.evaluate(script))
                    context.close()
        browser.close()
    return times


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.cold_start", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--peer", type=Path, metavar="DIST", help="the dist folder of onnxruntime-web")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path, help="write the times there, too")
    arguments = parser.parse_args()
    times = measure(arguments.peer, arguments.rounds)
    for name, found in times.items():
        print(f"{name:16} median {statistics.median(found):7.1f} ms, least {min(found):7.1f}, most {max(found):7.1f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(times))


if __name__ == "__main__":
    main()
