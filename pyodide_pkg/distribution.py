"""A Pyodide to serve oneself: `python -m pyodide_pkg.distribution [--output FOLDER]`.

The folder holds Pyodide's core files, numpy, micropip, webrnn's wheel and the pyodide-lock.json that names them with
their hashes; a page that loads its pyodide.mjs needs nothing else, and no network. What is downloaded is kept below
.cache and checked by hash; the folder for a state of the sources is made once and never changes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from pyodide_pkg import core, sources, wheel

CORE_FILES = ("pyodide.mjs", "pyodide.js", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide.d.ts",
              "ffi.d.ts", "package.json")  # fmt: skip
PACKAGES = ("numpy", "micropip")
PACKAGES_FOLDER = f"pyodide-{core.VERSION}-packages"
LOCK = "pyodide-lock.json"
#: Folders of states of the sources that nobody asked for in this time are removed.
KEPT_SECONDS = 24 * 3600


def ensure(cache: Path = core.CACHE) -> Path:
    """The folder of the distribution for the sources as they are, after making it if need be."""
    home = cache / f"pyodide-{core.VERSION}-dist"
    if (made := _existing(home)) is not None:
        return made
    base = core.ensure(cache)
    with core.only_one(cache):
        if (made := _existing(home)) is not None:
            return made
        packages = fetch_packages(base / LOCK, cache / PACKAGES_FOLDER)
        home.mkdir(parents=True, exist_ok=True)
        while True:
            key = wheel.sources_key()
            with tempfile.TemporaryDirectory(dir=cache) as temporary:
                folder = Path(temporary) / "dist"
                assemble(folder, base, packages)
                if key != wheel.sources_key():  # edited meanwhile
                    continue
                folder.rename(home / key[:16])
            break
        _remove_old(home)
        return home / key[:16]


def of_wheel(own_wheel: Path, folder: Path) -> Path:
    """A new distribution with a wheel of webrnn that is there already."""
    if not own_wheel.is_file() or not fnmatch(own_wheel.name, "webrnn-*pyemscripten_*.whl"):
        raise core.SetupError(f"{own_wheel} is no wheel of webrnn for Pyodide")
    base = core.ensure()
    assemble(folder, base, fetch_packages(base / LOCK, core.CACHE / PACKAGES_FOLDER), own_wheel)
    return folder


def fetch_packages(lock: Path, folder: Path) -> list[Path]:
    """The files of PACKAGES as Pyodide's own lock file names them."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    known = json.loads(lock.read_text())["packages"]
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:

        def fetch(entry: dict[str, Any]) -> Path:
            task = bar.add_task(f"{entry['name']} {entry['version']} for Pyodide", total=None)

            def progress(so_far: int, in_all: int) -> None:
                bar.update(task, completed=so_far, total=in_all or None)

            return sources.fetch(entry["file_name"], entry["sha256"], folder, progress)

        return [fetch(known[name]) for name in PACKAGES]


def assemble(folder: Path, base: Path, packages: list[Path], own_wheel: Path | None = None) -> None:
    """With this wheel of webrnn, or with one that is built."""
    folder.mkdir()
    for file in [*(base / name for name in CORE_FILES), *packages]:
        _link(file, folder / file.name)
    own = Path(shutil.copy(own_wheel, folder)) if own_wheel else wheel.build(folder)
    write_lock(base / LOCK, own, folder / LOCK)


def write_lock(original: Path, own_wheel: Path, target: Path) -> None:
    """Pyodide's lock file, with the packages that are here and webrnn."""
    from pyodide_lock import PackageSpec, PyodideLockSpec
    from pyodide_lock.utils import parse_top_level_import_name, update_package_sha256

    content: dict[str, Any] = json.loads(original.read_text())
    # required by versions of pyodide-lock that are older than Pyodide 314
    content["info"]["version"] = core.VERSION
    content["packages"] = {name: content["packages"][name] for name in PACKAGES}
    target.write_text(json.dumps(content))
    lock = PyodideLockSpec.from_json(target)
    name, version = own_wheel.name.split("-")[:2]
    lock.packages[name] = update_package_sha256(
        PackageSpec(
            name=name,
            version=version,
            file_name=own_wheel.name,
            install_dir="site",
            imports=parse_top_level_import_name(own_wheel) or [],
            depends=["numpy"],
        ),
        own_wheel,
    )
    lock.check_wheel_filenames()
    lock.to_json(target, indent=1)


def check(folder: Path) -> list[str]:
    """What of a distribution does not have the hash that its lock file says."""
    packages = json.loads((folder / LOCK).read_text())["packages"].values()
    return [
        entry["file_name"]
        for entry in packages
        if not (file := folder / entry["file_name"]).exists()
        or hashlib.sha256(file.read_bytes()).hexdigest() != entry["sha256"]
    ]


def _existing(home: Path) -> Path | None:
    folder = home / wheel.sources_key()[:16]
    if not folder.exists():
        return None
    os.utime(folder)
    return folder


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _remove_old(home: Path) -> None:
    for folder in home.iterdir():
        if folder.stat().st_mtime < time.time() - KEPT_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m pyodide_pkg.distribution", description=(__doc__ or "").split("\n\n")[1]
    )
    parser.add_argument("--output", type=Path, help="copy the distribution to this folder")
    parser.add_argument("--cache", type=Path, default=core.CACHE, help="where downloads are kept (default: .cache)")
    arguments = parser.parse_args(argv)
    try:
        folder = ensure(arguments.cache.resolve())
    except core.SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if arguments.output:
        folder = shutil.copytree(folder, arguments.output, dirs_exist_ok=True)
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{folder} ({size / 1e6:.1f} MB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
