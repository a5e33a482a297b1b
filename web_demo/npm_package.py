"""`python -m web_demo.npm_package`: puts the npm package together in build/npm/webrnn, and packs it."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

import webrnn
from pyodide_pkg.core import node
from webrnn.engine import kernels
from webrnn.engine.wasm import VARIANTS

from .bundle import bundle

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
OUTPUT = ROOT / "build" / "npm"
HOST = "webrnn.js"
OTHERS = ("audio.js", "audio_processor.js")
"""Modules that pages load by themselves; they import from the host what they share with it."""


def write(folder: Path) -> Path:
    """The package, in a folder that is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in scripts().items():
        (folder / name).write_text(text)
    for file in (*HERE.glob("*.d.ts"), HERE / "npm" / "README.md", ROOT / "LICENSE"):
        shutil.copy(file, folder)
    for variant in VARIANTS:
        name = f"wasm_{variant}.wasm"
        shutil.copyfile(kernels.module_file(kernels.FOLDER, name), folder / name)
    package = json.loads((HERE / "npm" / "package.json").read_text())
    described = {"name": package.pop("name"), "version": webrnn.__version__, **package}
    (folder / "package.json").write_text(json.dumps(described, indent=2) + "\n")
    return folder


def scripts() -> dict[str, str]:
    """The host and the audio modules, each as one file."""
    shared = dict.fromkeys(bundle(HERE, HOST).modules, HOST)
    others = {name: bundle(HERE, name, shared) for name in OTHERS}
    needed = {name for other in others.values() for name in other.imported.get(HOST, ())}
    return {HOST: bundle(HERE, HOST, also_export=needed).text, **{name: other.text for name, other in others.items()}}


def pack(folder: Path) -> Path:
    """The tarball of a package, made by npm, beside its folder."""
    npm = Path(node()).with_name("npm")
    command = [str(npm), "pack", "--silent", "--pack-destination", str(folder.parent)]
    made = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return folder.parent / made.stdout.split()[-1]


def main() -> int:
    argparse.ArgumentParser(prog="python -m web_demo.npm_package", description=__doc__).parse_args()
    tarball = pack(write(OUTPUT / "webrnn"))
    print(f"{tarball.relative_to(ROOT)}: {tarball.stat().st_size:,} bytes; npm install {tarball.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
