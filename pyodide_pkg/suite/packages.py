"""The pure-Python packages that the tests use, as files to put into a bundle.

They are those of this environment, in their versions, without their compiled parts. hypothesis has code in Rust in its
newer versions; the last one without is taken for it.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "pyodide-suite"
FROM_HERE = (
    "pytest",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    "sortedcontainers",
    "typing_extensions",
    "protobuf",
    "onnx",
)
HYPOTHESIS = "6.155.0"
HYPOTHESIS_SHA256 = "d6ffa3062afabaf908491be707c60843f6671f7c3e9f2ed249d5827207ebbf33"


def files() -> Iterator[tuple[str, bytes]]:
    """(path below site-packages, content)."""
    for name in FROM_HERE:
        for file in metadata.files(name) or []:
            path = file.as_posix()
            if _is_wanted(path):
                yield path, Path(str(file.locate())).read_bytes()
    with ZipFile(_hypothesis()) as wheel:
        for path in wheel.namelist():
            if _is_wanted(path):
                yield path, wheel.read(path)


def _is_wanted(path: str) -> bool:
    if path.startswith((".", "onnx/backend/test/", "onnx/reference/")):
        return False
    return path.endswith((".py", "/METADATA", "/entry_points.txt", "/vendor/tlds-alpha-by-domain.txt"))


def _hypothesis() -> Path:
    """Its wheel, from PyPI when it is first asked for."""
    wheel = CACHE / f"hypothesis-{HYPOTHESIS}-py3-none-any.whl"
    if not wheel.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        wanted = ["--no-deps", "--only-binary", ":all:", "--dest", str(CACHE), f"hypothesis=={HYPOTHESIS}"]
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", *wanted], check=True)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if digest != HYPOTHESIS_SHA256:
        raise ValueError(f"{wheel.name} has sha256 {digest}, expected {HYPOTHESIS_SHA256}: not using it")
    return wheel
