"""Packages that tests use, fetched once from npm and checked by hash."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path

from pyodide_pkg import core


def unpacked(name: str, version: str, sha256: str, cache: Path = core.CACHE) -> Path:
    """The folder of a package without those that it needs itself."""
    folder = cache / f"{name.rpartition('/')[2]}-{version}"
    with core.only_one(cache), tempfile.TemporaryDirectory(dir=cache) as temporary:
        if not folder.exists():
            npm = Path(core.node()).with_name("npm")
            command = [str(npm), "pack", "--silent", f"{name}@{version}"]
            subprocess.run(command, cwd=temporary, check=True, capture_output=True, timeout=300)
            archive = next(Path(temporary).glob("*.tgz"))
            digest = hashlib.sha256(archive.read_bytes()).hexdigest()
            assert digest == sha256, f"{name} {version} has sha256 {digest}: not using it"
            core.unpack(archive, Path(temporary))
            (Path(temporary) / "package").rename(folder)
    return folder
