"""Bundlers of JavaScript, fetched once from npm, in the versions that package.json names."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from pyodide_pkg import core

HERE = Path(__file__).parent
APP = HERE / "app"


def installed(source: Path = HERE, cache: Path = core.CACHE) -> Path:
    """The folder with node_modules and with the scripts of `source`."""
    described = (source / "package.json").read_bytes()
    folder = cache / f"bundlers-{hashlib.sha256(described).hexdigest()[:12]}"
    with core.only_one(cache):
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            shutil.copy(source / "package.json", folder)
            npm = str(Path(core.node()).with_name("npm"))
            options = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock"]
            subprocess.run([npm, "install", *options], cwd=folder, check=True, timeout=600)
            (folder / "ready").touch()
    for file in source.glob("*.mjs"):
        partial = folder / f"{file.name}.{os.getpid()}"
        shutil.copy(file, partial)
        partial.replace(folder / file.name)
    return folder
