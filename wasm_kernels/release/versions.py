"""The version of webrnn: one line of runtime/webrnn/__init__.py. PLACES are the texts that say it again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from wasm_kernels.release import ReleaseError

SOURCE = "runtime/webrnn/__init__.py"


class Place(NamedTuple):
    """Where a version is written: the group of the pattern."""

    files: str
    pattern: str


PLACES = (
    Place(SOURCE, r'^__version__ = "(.+)"$'),
    Place("pyodide_pkg/recipe/meta.yaml", r"^  version: (.+)$"),
    Place("*.md", r"\bwebrnn-(\d+\.\d+\.\d+)\b"),
    Place("docs/*.md", r"\bwebrnn-(\d+\.\d+\.\d+)\b"),
    Place("web_demo/packaging/npm/README.md", r"\bwebrnn-(\d+\.\d+\.\d+)\b"),
)
"""The first is the one that all others repeat: wheels, npm package and page take it from there. Names of files in pages
are `webrnn-x.y.z...`; a version in a page that is a record of what was measured is written otherwise."""
NOT_OURS = ("CHANGELOG.md",)
"""What it says of an old version stays as it is."""


class Version(NamedTuple):
    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def parsed(text: str) -> Version:
    """
    >>> parsed("1.12.0") > parsed("1.9.3")
    True
    """
    if not re.fullmatch(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)", text, re.ASCII):
        raise ReleaseError(f"{text!r} is no version: it takes three numbers without leading zeros, such as 1.4.0")
    return Version(*map(int, text.split(".")))


def current(root: Path) -> Version:
    found = re.search(PLACES[0].pattern, (root / SOURCE).read_text(), re.M)
    if not found:
        raise ReleaseError(f"{SOURCE} has no line __version__ = ...")
    return parsed(found[1])


def next_ones(version: Version) -> list[Version]:
    """The versions that may follow, for messages."""
    major, minor, patch = version
    return [Version(major, minor, patch + 1), Version(major, minor + 1, 0), Version(major + 1, 0, 0)]


def written(root: Path) -> Iterator[tuple[str, str]]:
    """(file, version) of each place."""
    for name, pattern, text in _texts(root):
        yield from ((name, found[1]) for found in re.finditer(pattern, text, re.M))


def bumped(root: Path, version: Version) -> dict[str, str]:
    """The new texts of all files that have a version, by name."""
    found: dict[str, str] = {}
    for name, pattern, text in _texts(root):
        found[name] = re.sub(pattern, lambda match: _replaced(match, str(version)), found.get(name, text), flags=re.M)
    return {name: text for name, text in found.items() if text != (root / name).read_text()}


def _texts(root: Path) -> Iterator[tuple[str, str, str]]:
    for place in PLACES:
        for file in sorted(root.glob(place.files)):
            name = file.relative_to(root).as_posix()
            if name not in NOT_OURS:
                yield name, place.pattern, file.read_text()


def _replaced(match: re.Match[str], version: str) -> str:
    start, end = match.start(1) - match.start(), match.end(1) - match.start()
    return match[0][:start] + version + match[0][end:]
