"""The index of a folder of results: which items are in which shard, and which are bad. A line is written when all that
it says is on the disk; what has no line was not done.

An item is done by one line only, unless it was bad: then a later line may have done it again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import CorpusError

INDEX = "index.jsonl"


@dataclass(frozen=True, slots=True)
class Failure:
    """A bad item."""

    index: int
    name: str
    kind: str
    reason: str

    def line(self) -> str:
        """As it stands in failed.jsonl."""
        return json.dumps({"index": self.index, "item": self.name, "error": self.kind, "reason": self.reason}) + "\n"


@dataclass(frozen=True, slots=True)
class Record:
    """A shard, and the items that it was made of. One without a file has only bad items."""

    file: str | None
    first: int
    count: int
    """Items first, first + 1, ...; of a `retry` they are only those between which were bad before."""
    names: str | None
    """The sha256 of the names of the items, each with a zero byte; None for a retry."""
    failed: tuple[Failure, ...] = ()
    retry: tuple[int, ...] | None = None
    """The items that were tried again."""

    def line(self) -> str:
        plain: dict[str, Any] = {"file": self.file, "first": self.first, "count": self.count, "names": self.names}
        if self.failed:
            plain["failed"] = [[bad.index, bad.name, bad.kind, bad.reason] for bad in self.failed]
        if self.retry is not None:
            plain["retry"] = list(self.retry)
        return json.dumps(plain) + "\n"

    @staticmethod
    def of_line(line: bytes) -> Record | int:
        """A record, or how many items there are, which the last line says when a run came to its end."""
        plain = json.loads(line)
        if "items" in plain:
            return int(plain["items"])
        failed = tuple(Failure(*bad) for bad in plain.get("failed", ()))
        retry = tuple(plain["retry"]) if "retry" in plain else None
        return Record(plain["file"], plain["first"], plain["count"], plain["names"], failed, retry)


def end_line(count: int) -> str:
    return json.dumps({"items": count}) + "\n"


def read_index(folder: Path) -> Iterator[tuple[Record | int, int]]:
    """Each line that is whole, and where in the file it ends."""
    end = 0
    try:
        file = open(folder / INDEX, "rb")  # noqa: SIM115
    except FileNotFoundError:
        return
    with file:
        for number, line in enumerate(file):
            if not line.endswith(b"\n"):
                return  # the process was killed while it wrote
            end += len(line)
            try:
                yield Record.of_line(line), end
            except (ValueError, KeyError, TypeError):
                raise CorpusError(f"{folder / INDEX}, line {number + 1}: it is damaged") from None


def sync_folder(folder: Path) -> None:
    """Let what was renamed in a folder be so after a power cut too. Windows cannot be asked for that."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
