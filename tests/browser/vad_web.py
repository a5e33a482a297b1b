"""@ricky0123/vad-web, fetched once from npm and checked by hash: what webrnn/vad stands in for."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path

from pyodide_pkg import core

VERSION = "0.0.31"
SHA256 = "d1a211cf1a2ed26297da52cc08de79e75d79838a274bfc6de546feb1f828c940"


def vad_web(cache: Path = core.CACHE) -> Path:
    """The folder of its scripts."""
    folder = cache / f"vad-web-{VERSION}"
    with core.only_one(cache), tempfile.TemporaryDirectory(dir=cache) as temporary:
        if not folder.exists():
            npm = Path(core.node()).with_name("npm")
            command = [str(npm), "pack", "--silent", f"@ricky0123/vad-web@{VERSION}"]
            subprocess.run(command, cwd=temporary, check=True, capture_output=True, timeout=300)
            archive = next(Path(temporary).glob("*.tgz"))
            digest = hashlib.sha256(archive.read_bytes()).hexdigest()
            assert digest == SHA256, f"vad-web {VERSION} has sha256 {digest}: not using it"
            core.unpack(archive, Path(temporary))
            (Path(temporary) / "package").rename(folder)
    return folder / "dist"
