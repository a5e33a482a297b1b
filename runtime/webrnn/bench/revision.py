"""Which code was measured: the commit of a checkout, or a version, and digests of the Python and of the kernels."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import webrnn

OWN_PACKAGE = Path(webrnn.__file__).resolve().parent
KERNELS = "_kernels"
WHAT_RUNS = ("runtime", "wasm_kernels", "web_demo", "pyproject.toml")
"""What of a checkout decides on figures: changes elsewhere do not make it dirty."""
SHORT = 10
"""Digits of a commit or a digest that are shown."""


@dataclass(frozen=True)
class Revision:
    version: str
    commit: str
    """Empty where the package is not in a checkout."""
    dirty: bool
    """Whether the checkout has changes that are not committed."""
    python: str
    """A digest of the package's Python."""
    kernels: str
    """A digest of the compiled kernels."""

    def as_data(self) -> dict[str, Any]:
        return asdict(self)

    def is_the_code_of(self, other: Revision) -> bool:
        return (self.python, self.kernels) == (other.python, other.kernels)

    def __str__(self) -> str:
        """
        >>> print(Revision("0.1.0", "0123456789abcdef", True, "aa", "bb"))
        0123456789 with changes
        >>> print(Revision("0.1.0", "", False, "0123456789abcdef", "bb"))
        version 0.1.0, Python 0123456789
        """
        if self.commit:
            return self.commit[:SHORT] + (" with changes" if self.dirty else "")
        return f"version {self.version}, Python {self.python[:SHORT]}"


def revision(package: Path = OWN_PACKAGE, version: str = webrnn.__version__) -> Revision:
    """Of the package in this folder."""
    commit, dirty = _commit(package.parents[1]) if package.parent.name == "runtime" else ("", False)
    kernels = package / KERNELS
    sources = (file for file in package.rglob("*.py") if KERNELS not in file.relative_to(package).parts)
    compiled = (file for file in kernels.rglob("*") if file.is_file() and file.suffix != ".pyc")
    return Revision(version, commit, dirty, _digest(package, sources), _digest(kernels, compiled))


def _commit(root: Path) -> tuple[str, bool]:
    """Of the checkout, and whether it has changes; not those of a checkout farther up that this one is a copy in."""
    if not (root / ".git").exists():
        return "", False
    commit = _git(root, "rev-parse", "HEAD")
    if commit is None:
        return "", False
    changes = _git(root, "status", "--porcelain", "--untracked-files=all", "--", *WHAT_RUNS)
    return commit, bool(changes)


def _git(root: Path, *arguments: str) -> str | None:
    """What git says; None if it cannot."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, env=environment, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _digest(folder: Path, files: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for file in sorted(files):
        data = file.read_bytes()
        found.update(f"{file.relative_to(folder).as_posix()} {len(data)}\n".encode() + data)
    return found.hexdigest()
