"""What there is to map: files in folders, lists, rows of parquet files, arrays. One after the other, in a fixed order.

Nothing here holds all items at once, also not a folder with a million files.
"""

from __future__ import annotations

import heapq
import os
import pickle
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import translate
from pathlib import PurePath
from typing import IO, Any

import numpy as np

from webrnn.errors import OptionError

SUFFIXES = (".npy", ".npz", ".wav", ".parquet")
"""The files that are taken from folders."""
MANIFEST = "webrnn-map.json"
"""A folder that has it holds results, and is not looked into."""
MOST_NAMES = 10_000
"""So many names of a folder are sorted in memory; more go through temporary files."""


@dataclass(frozen=True, slots=True)
class Item:
    """One item: its place in the corpus, its name, and what it is; None is the file of that name."""

    index: int
    name: str
    source: Any = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a parquet file."""

    path: str
    group: int
    row: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something whose items cannot even be listed."""

    reason: str


Found = tuple[str, Any]
"""A name, and the source of an item."""


def found_in(items: Any) -> Iterator[Found]:
    """The items of what a caller gives: inputs as the command takes them, arrays, dicts of feeds, (name, item) pairs.

    >>> [name for name, _ in found_in([np.zeros(3), ("second", {"x": np.ones(2)}), "speech.wav"])]
    ['0', 'second', 'speech.wav']
    """
    if isinstance(items, str | os.PathLike):
        items = [items]
    elif isinstance(items, Mapping | np.ndarray):
        what = "an array" if isinstance(items, np.ndarray) else "a dict"
        raise OptionError(f"items are given as a list or another iterable: put {what} into one")
    count = 0
    for item in items:
        name = None
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
            name, item = item
        if isinstance(item, str | os.PathLike):
            for found in inputs(item):
                yield found if name is None else (name, _of_path(found))
                count += 1
        elif isinstance(item, np.ndarray | Mapping):
            yield str(count) if name is None else name, item
            count += 1
        else:
            raise OptionError(
                f"item {count} is of type {type(item).__name__}; items are arrays, dicts of feeds or paths"
            )


def _of_path(found: Found) -> Any:
    """The source of an item that goes by another name than that of its file."""
    return PurePath(found[0]) if found[1] is None else found[1]


def inputs(given: str | os.PathLike[str], stdin: IO[str] | None = None) -> Iterator[Found]:
    """The items of one input: a file, a folder, a pattern, `@list.txt`, or `-` for a list on stdin.

    A path that is no string (pathlib) is never a pattern or a list.
    """
    path = os.fspath(given)
    if not isinstance(given, str):
        yield from _in_path(path)
    elif path == "-":
        yield from _in_lines(stdin or sys.stdin)
    elif path.startswith("@"):
        try:
            with open(path[1:], errors="surrogateescape") as file:
                yield from _in_lines(file)
        except OSError as error:
            raise OptionError(f"{path}: the list cannot be read: {error.strerror}") from None
    elif any(character in path for character in "*?[") and not os.path.lexists(path):
        matches = _matching(path)
        first = next(matches, None)
        if first is None:
            raise OptionError(f"no file matches {path!r}")
        yield from _in_path(first)
        for match in matches:
            yield from _in_path(match)
    else:
        yield from _in_path(path)


def _in_lines(lines: Iterable[str]) -> Iterator[Found]:
    for line in lines:
        path = line.rstrip("\r\n")
        if path:
            yield from _in_path(path)


def _in_path(path: str) -> Iterator[Found]:
    if os.path.isdir(path):
        yield from _in_folder(path)
    elif path.endswith(".parquet"):
        yield from _rows(path)
    else:
        yield path, None


def _in_folder(folder: str) -> Iterator[Found]:
    try:
        if os.path.exists(os.path.join(folder, MANIFEST)):
            return
        names = _sorted_names(folder)
    except OSError as error:
        yield folder, Unreadable(f"the folder cannot be read: {error.strerror}")
        return
    for name in names:
        if name.startswith("."):
            continue
        if name.endswith("/"):
            yield from _in_folder(os.path.join(folder, name[:-1]))
        elif name.endswith(SUFFIXES):
            yield from _in_path(os.path.join(folder, name))


def _rows(path: str) -> Iterator[Found]:
    from .parquet import row_counts

    try:
        counts = row_counts(path)
    except (OSError, ValueError) as error:  # pyarrow's own errors are among them
        yield path, Unreadable(f"it is not a parquet file that can be read: {error}")
        return
    row = 0
    for group, count in enumerate(counts):
        for within in range(count):
            yield f"{path}#{row}", Row(path, group, within)
            row += 1


def _sorted_names(folder: str) -> Iterator[str]:
    """The names in a folder, sorted; those of folders end with a slash. Links to folders are not followed."""
    runs: list[IO[bytes]] = []
    names: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            names.append(entry.name + "/" if entry.is_dir(follow_symlinks=False) else entry.name)
            if len(names) == MOST_NAMES:
                runs.append(_spilled(names))
                names.clear()
    names.sort()
    return heapq.merge(*map(_read_back, runs), names) if runs else iter(names)


def _spilled(names: list[str]) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115
    names.sort()
    for first in range(0, len(names), 100):
        pickle.dump(names[first : first + 100], file)
    file.seek(0)
    return file


def _read_back(file: IO[bytes]) -> Iterator[str]:
    with file:
        while True:
            try:
                names = pickle.load(file)
            except EOFError:
                return
            yield from names


def _matching(pattern: str) -> Iterator[str]:
    """The paths that match a pattern, sorted folder by folder; `**` is any number of folders."""
    root, *parts = re.split(r"/+", pattern) if pattern.startswith("/") else ["", *re.split(r"/+", pattern)]
    start = "/" if pattern.startswith("/") else root
    return _matching_parts(start, parts)


def _matching_parts(folder: str, parts: list[str]) -> Iterator[str]:
    part, *rest = parts
    if part == "**":
        if rest:
            yield from _matching_parts(folder, rest)
        for name in _names_or_none(folder):
            if name.endswith("/") and not name.startswith("."):
                yield from _matching_parts(os.path.join(folder, name[:-1]), parts)
            elif not rest and not name.startswith(".") and name.endswith(SUFFIXES):
                yield os.path.join(folder, name)
        return
    if not any(character in part for character in "*?["):
        path = os.path.join(folder, part)
        if rest and os.path.isdir(path):
            yield from _matching_parts(path, rest)
        elif not rest and os.path.lexists(path):
            yield path
        return
    matches = re.compile(translate(part)).match
    for name in _names_or_none(folder):
        bare = name.rstrip("/")
        if not matches(bare) or (bare.startswith(".") and not part.startswith(".")):
            continue
        if not rest:
            yield os.path.join(folder, bare)
        elif os.path.isdir(os.path.join(folder, bare)):
            yield from _matching_parts(os.path.join(folder, bare), rest)


def _names_or_none(folder: str) -> Iterator[str]:
    try:
        return _sorted_names(folder or ".")
    except OSError:
        return iter(())
