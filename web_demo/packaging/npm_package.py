"""`python -m web_demo.packaging.npm_package`: puts the npm package together in build/npm/webrnn, packs it, and prints
what a page loads of it."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import webrnn
from pyodide_pkg.core import node
from webrnn.engine.kernels import loading as kernels
from webrnn.engine.kernels.wasm import CORE, FILES, TRAINING, VARIANTS, file_name
from webrnn.web.folders import modules

from . import plans
from .bundle import Bundle, bundle

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCES = HERE.parent / "host"
OUTPUT = ROOT / "build" / "npm"
HOST = "webrnn.js"
POOLS = "pool.js"
AUDIO = "audio.js"
VAD = "vad.js"
"""It shares what it needs with the rest of audio."""
MODULES = "src"
"""The folder of the modules themselves, for source maps."""


def write(folder: Path) -> Path:
    """The package, in a folder that is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MODULES).mkdir()
    for name, made in scripts().items():
        (folder / name).write_text(f"{made.text}//# sourceMappingURL={name}.map\n")
        (folder / f"{name}.map").write_text(made.source_map(name, MODULES))
        for module in made.modules:
            shutil.copyfile(SOURCES / module, folder / MODULES / module)
    for file in (
        *SOURCES.glob("*.d.ts"),
        HERE / "npm" / "README.md",
        HERE / "npm" / "webrnn_files.mjs",
        ROOT / "LICENSE",
    ):
        shutil.copy(file, folder)
    for name in FILES:
        shutil.copyfile(kernels.module_file(kernels.FOLDER, name), folder / name)
    plans.write(folder / plans.FOLDER)
    (folder / plans.NOTICE).write_text(plans.notice())
    (folder / "package.json").write_text(json.dumps(description(), indent=2) + "\n")
    return folder


def description() -> dict[str, Any]:
    """package.json: what npm/package.json says, with the version and the addresses that pyproject.toml has."""
    package = _description()
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"].get("urls", {})
    found = {"name": package.pop("name"), "version": webrnn.__version__, **package}
    if "Repository" in urls:
        address = urls["Repository"].removesuffix("/").removesuffix(".git")
        found["repository"] = {"type": "git", "url": f"git+{address}.git"}
    places = {"homepage": urls.get("Homepage"), "bugs": urls.get("Issues")}
    return {**found, **{field: address for field, address in places.items() if address}}


def scripts() -> dict[str, Bundle]:
    """The modules that package.json exports, each as one file. What is in the host or in its pools the others import
    from there; but those that are loaded by their address, by workers and audio threads, import nothing."""
    shared: dict[str, str] = {}
    for provider in (HOST, POOLS):
        shared = {**dict.fromkeys(modules(SOURCES, provider), provider), **shared}

    def made(name: str, also_export: Collection[str] = ()) -> Bundle:
        known = {**dict.fromkeys(modules(SOURCES, AUDIO), AUDIO), **shared} if name == VAD else shared
        return bundle(SOURCES, name, {module: place for module, place in known.items() if place != name}, also_export)

    found = {name: made(name) for name in entries()}
    needed = {name: {each for other in found.values() for each in other.imported.get(name, ())} for name in found}
    imported = {name: made(name, needed[name]) for name in found}
    return imported | {name: bundle(SOURCES, name) for name in loaded_by_address()}


def _description() -> dict[str, Any]:
    return dict(json.loads((HERE / "npm" / "package.json").read_text()))


def entries() -> list[str]:
    """The scripts that are imported by name: those with types."""
    exports = _description()["exports"].values()
    return [export["default"].removeprefix("./") for export in exports if not isinstance(export, str)]


def loaded_by_address() -> list[str]:
    exports = _description()["exports"].values()
    names = [export.removeprefix("./") for export in exports if isinstance(export, str)]
    return [name for name in names if name.endswith(".js")]


def pack(folder: Path, output: Path | None = None) -> Path:
    """The tarball of a package, made by npm, beside its folder or in another one. npm gives all files one time, and
    leaves what they allow, which depends on the user's mask: that is set here."""
    commands = {folder / name for name in _description()["bin"].values()}
    for file in folder.rglob("*"):
        file.chmod(0o755 if file.is_dir() or file in commands else 0o644)
    npm, output = Path(node()).with_name("npm"), output or folder.parent
    output.mkdir(parents=True, exist_ok=True)
    command = [str(npm), "pack", "--silent", "--pack-destination", str(output)]
    made = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return output / made.stdout.split()[-1]


def compressed_bytes(files: Sequence[Path]) -> list[int]:
    """The sizes of files as a server sends them, compressed by brotli."""
    script = """
        const size = (file) => require("node:zlib").brotliCompressSync(require("node:fs").readFileSync(file)).length;
        console.log(process.argv.slice(1).map(size).join());
    """
    command = [node(), "--eval", script, "--", *map(str, files)]
    made = subprocess.run(command, check=True, capture_output=True, text=True)
    return [int(size) for size in made.stdout.split(",")]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m web_demo.packaging.npm_package", description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder of the tarball (default: build/npm)")
    arguments = parser.parse_args(argv)
    folder = write(OUTPUT / "webrnn")
    tarball = pack(folder, arguments.output.resolve())
    shown = tarball.relative_to(ROOT) if tarball.is_relative_to(ROOT) else tarball
    print(f"{shown}: {tarball.stat().st_size:,} bytes; npm install {shown}")
    for kind, models in ((CORE, "most models"), (TRAINING, "models that learn"), ("", "a model with something rare")):
        names = [HOST, file_name(VARIANTS[0] + kind)]
        sizes = compressed_bytes([folder / name for name in names])
        print(f"{models}: {' + '.join(names)}, {' + '.join(f'{size:,}' for size in sizes)} = {sum(sizes):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
