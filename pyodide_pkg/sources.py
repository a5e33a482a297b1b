"""Packages that were compiled for Pyodide, from whichever source is reachable; only their sha256 is trusted.

The same files are in more than one place: a folder or server of one's own (WEBRNN_PYODIDE_PACKAGES), a PyPI package
that carries a Pyodide distribution, and where Pyodide itself would fetch them from, which its own code says.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from pyodide_pkg import core, remote_zip

#: A package on PyPI with the files of Pyodide below MEMBERS. It is never installed.
CARRIER = "open-webui==0.12.4"
MEMBERS = "open_webui/frontend/pyodide/"
OWN = "WEBRNN_PYODIDE_PACKAGES"

Progress = Callable[[int, int], object]
Source = Callable[[str, Progress], bytes]


def fetch(name: str, sha256: str, folder: Path, progress: Progress, sources: dict[str, Source] | None = None) -> Path:
    """The file `name` in `folder`, from the first source that gives it with this hash."""
    target = folder / name
    if target.exists() and hashlib.sha256(target.read_bytes()).hexdigest() == sha256:
        return target
    problems = []
    for label, source in (known_sources() if sources is None else sources).items():
        try:
            data = source(name, progress)
        except (OSError, KeyError, subprocess.CalledProcessError, zipfile.BadZipFile) as error:
            problems.append(f"{label}: {_reason(error)}")
            continue
        found = hashlib.sha256(data).hexdigest()
        if found == sha256:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
                file.write(data)
            os.chmod(file.name, 0o644)
            os.replace(file.name, target)
            return target
        problems.append(f"{label}: sha256 {found}, not using it")
    raise core.SetupError(
        f"no source gives {name} with sha256 {sha256}:\n  " + "\n  ".join(problems) + f"\nPut the file into a folder "
        f"and name the folder, or the address of a server that has it, in {OWN}."
    )


def known_sources() -> dict[str, Source]:
    own = os.environ.get(OWN)
    return {
        **({own: lambda name, progress: from_place(own, name, progress)} if own else {}),
        f"parts of {CARRIER}": from_parts_of_carrier,
        "Pyodide's own server": from_pyodide,
        f"all of {CARRIER}": from_whole_carrier,
    }


def from_place(place: str, name: str, progress: Progress) -> bytes:
    """From a folder or from below an http address."""
    if not place.startswith(("http://", "https://")):
        return (Path(place) / name).read_bytes()
    with urllib.request.urlopen(f"{place.rstrip('/')}/{name}", timeout=remote_zip.TIMEOUT) as answer:
        total = int(answer.headers.get("Content-Length") or 0)
        data = bytearray()
        while block := answer.read(remote_zip.BLOCK):
            data += block
            progress(len(data), total)
    return bytes(data)


def from_parts_of_carrier(name: str, progress: Progress) -> bytes:
    """A few MB out of a wheel of 106, from where pip would download it."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps",
               "--ignore-requires-python", "--only-binary", ":all:", "--report", "-", CARRIER]  # fmt: skip
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    address = report["install"][0]["download_info"]["url"]
    if address.startswith("file:"):
        with zipfile.ZipFile(urllib.request.url2pathname(address.removeprefix("file://"))) as wheel:
            return wheel.read(MEMBERS + name)
    return remote_zip.read_member(address, MEMBERS + name, progress)


def from_whole_carrier(name: str, progress: Progress) -> bytes:
    """For package indexes that do not serve parts of files."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--ignore-requires-python",
                   "--only-binary", ":all:", "--dest", folder, CARRIER]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, text=True)
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            return wheel.read(MEMBERS + name)


def from_pyodide(name: str, progress: Progress) -> bytes:
    return from_place(_pyodide_address(core.ensure() / "pyodide.mjs"), name, progress)


def _pyodide_address(module: Path) -> str:
    """Where pyodide.mjs would load packages from if it had no folder of its own."""
    found = re.search(r"packageBaseUrl\s*\?\?\s*`([^`$]+)\$\{\w+\}([^`$]*)`", module.read_text())
    if not found:
        raise OSError(f"{module.name} does not say where its packages are")
    return f"{found[1]}{core.VERSION}{found[2]}"


def _reason(error: Exception) -> str:
    lines: Iterator[str] = iter(())
    if isinstance(error, subprocess.CalledProcessError):
        lines = reversed((error.stderr or "").strip().splitlines())
    return next(lines, str(error))
