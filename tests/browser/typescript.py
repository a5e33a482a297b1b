"""The TypeScript compiler, fetched once from npm and checked by hash."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path

from pyodide_pkg import core

VERSION = "5.9.3"
SHA256 = "10e108c9cf7d5f2879053dff18515fb405abf2ccef63eaaf017d9c571687a1d3"


def compiler(cache: Path = core.CACHE) -> Path:
    """The script `tsc`, to be run by Node."""
    folder = cache / f"typescript-{VERSION}"
    with core.only_one(cache), tempfile.TemporaryDirectory(dir=cache) as temporary:
        if not folder.exists():
            npm = Path(core.node()).with_name("npm")
            command = [str(npm), "pack", "--silent", f"typescript@{VERSION}"]
            subprocess.run(command, cwd=temporary, check=True, capture_output=True, timeout=300)
            archive = next(Path(temporary).glob("*.tgz"))
            digest = hashlib.sha256(archive.read_bytes()).hexdigest()
            assert digest == SHA256, f"typescript {VERSION} has sha256 {digest}: not using it"
            core.unpack(archive, Path(temporary))
            (Path(temporary) / "package").rename(folder)
    return folder / "bin" / "tsc"
