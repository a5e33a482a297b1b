"""`python -m bench.peers.prepare <folder of the benchmark's models>`: what the web plugins need, in build/peers/web.

That is the plugins, webrnn.js, the wasm modules and the plans of the models, in one folder: the benchmark serves a
plugin from its own folder only.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import webrnn
from web_demo.packaging import npm_package
from webrnn.engine.kernels import loading as kernels
from webrnn.engine.kernels.wasm import FILES

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUTPUT = ROOT / "build" / "peers" / "web"


def write(models: Path, folder: Path = OUTPUT) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "plans").mkdir(parents=True)
    for plugin in HERE.glob("*.mjs"):
        shutil.copy(plugin, folder)
    (folder / "webrnn.js").write_text(npm_package.scripts()["webrnn.js"].text)
    for name in FILES:
        shutil.copy(kernels.module_file(kernels.FOLDER, name), folder)
    for entry in json.loads((models / "manifest.json").read_text())["models"]:
        session = webrnn.InferenceSession(models / entry["file"], backend="native")
        session.export(folder / "plans" / f"{entry['name']}.rnn")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.peers.prepare", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("models", type=Path, help="the folder with manifest.json")
    write(parser.parse_args().models)
    print(f"{OUTPUT.relative_to(ROOT)}: webrnn.mjs, webrnn_stream.mjs")


if __name__ == "__main__":
    main()
