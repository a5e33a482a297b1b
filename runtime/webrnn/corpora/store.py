"""A folder of results that is being written.

    OUT/webrnn-map.json    the model and the options
    OUT/index.jsonl        what is done, see index.py
    OUT/shards/0000/*.npz  results, see shards.py
    OUT/failed.jsonl       bad items with their reasons; made of the index

A shard is written under another name, brought to the disk, renamed, and then gets its line in the index. A process may
be killed at any moment: what has no line is dropped and done again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from .errors import CorpusError
from .index import INDEX, Failure, Record, end_line, read_index, sync_folder
from .items import MANIFEST, Found, Item
from .ranges import Ranges

FORMAT = 1
LOCK, FAILED, SHARDS, TEMPORARY = ".lock", "failed.jsonl", "shards", "tmp"
SHARDS_IN_FOLDER = 1000
LOCKED_BYTE = 1 << 30
"""On Windows others cannot read what is locked, and are to read the number of the process."""


class Store:
    """Opens a folder of results to go on with it, or to begin. Close it to give it free."""

    def __init__(self, folder: str | os.PathLike[str], about: Mapping[str, Any], restart: bool = False):
        """`about` says what decides about the results: {"model": ..., "options": {...}}."""
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CorpusError(f"{self.folder} cannot be made: {error.strerror}") from None
        self._lock = self._locked()
        self._index: IO[bytes] | None = None
        self._failed: IO[str] | None = None
        try:
            self._open({"format": FORMAT, **about}, restart)
        except BaseException:
            self.close()
            raise

    def _open(self, about: dict[str, Any], restart: bool) -> None:
        self._require_ours()
        if restart:
            self._clear()
        self.done = Ranges()
        """The items that were tried."""
        self.bad: dict[int, int] = {}
        """Those of them that are bad, and which record says so."""
        self._records = 0
        self._checks: list[tuple[int, int, str]] = []
        """(first, count, sha256 of the names) of what was done before."""
        self.tried = 0
        """How many items were tried; `retried` of those that were bad before."""
        self.retried = 0
        self._next_file = 0
        self._read_index()
        self._require_same(about)
        self._index = open(self.folder / INDEX, "ab")  # noqa: SIM115
        self._failed = open(self.folder / FAILED, "w", errors="surrogateescape")  # noqa: SIM115
        for failure in self._failures():
            self._failed.write(failure.line())
        self._failed.flush()

    def close(self) -> None:
        for file in (self._index, self._failed):
            if file is not None:
                file.close()
        shutil.rmtree(self.temporary, ignore_errors=True)
        self._lock.close()

    @property
    def temporary(self) -> Path:
        """Where shards are written before they count."""
        return self.folder / TEMPORARY

    def _locked(self) -> IO[str]:
        lock = open(self.folder / LOCK, "a+")  # noqa: SIM115
        try:
            _lock(lock)
        except OSError:
            lock.seek(0)
            who = lock.read().strip() or "unknown"
            lock.close()
            raise CorpusError(f"{self.folder}: another process, {who}, writes its results there") from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        return lock

    def _require_ours(self) -> None:
        others = {entry.name for entry in os.scandir(self.folder)} - {LOCK, TEMPORARY}
        if others and MANIFEST not in others and not all(name.startswith(MANIFEST) for name in others):
            raise CorpusError(
                f"{self.folder} has other files, such as {min(others)!r}: results go to a folder of their own"
            )

    def _clear(self) -> None:
        (self.folder / INDEX).unlink(missing_ok=True)  # nothing counts without it
        for name in (SHARDS, TEMPORARY):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for name in (FAILED, MANIFEST):  # as long as the last one is there, the folder is known as ours
            (self.folder / name).unlink(missing_ok=True)

    def _require_same(self, about: dict[str, Any]) -> None:
        """Raise if the folder has results of something else."""
        file = self.folder / MANIFEST
        try:
            before = json.loads(file.read_text())
        except FileNotFoundError:
            before = None
        except ValueError:
            raise CorpusError(f"{file} is damaged; restart=True (--restart) begins anew") from None
        if before is not None and before != about and (self.done.end or self._next_file):
            raise CorpusError(
                f"{self.folder} has results of another run: {_difference(before, about)}. Take another folder, or "
                "begin anew with restart=True (--restart), which drops them"
            )
        if before != about:
            partial = file.with_name(f"{MANIFEST}.partial")
            with open(partial, "w") as out:
                json.dump(about, out, indent=1)
                out.flush()
                os.fsync(out.fileno())
            os.replace(partial, file)
            sync_folder(self.folder)

    def _read_index(self) -> None:
        """Take what is done, and drop what is not whole."""
        kept: set[str] = set()
        end = 0
        for record, end_of_line in read_index(self.folder):
            end = end_of_line
            if isinstance(record, int):
                continue
            if record.file is not None:
                if not (self.folder / record.file).exists():
                    hint = "put it back, or begin anew with restart=True (--restart)"
                    raise CorpusError(f"{self.folder / record.file} was removed: {hint}")
                kept.add(record.file)
                self._next_file = max(self._next_file, int(Path(record.file).stem) + 1)
            self._take(record)
        if (self.folder / INDEX).exists():
            os.truncate(self.folder / INDEX, end)
        shutil.rmtree(self.temporary, ignore_errors=True)
        self.temporary.mkdir(exist_ok=True)
        for file in self.folder.glob(f"{SHARDS}/*/*"):
            if str(file.relative_to(self.folder)) not in kept:
                file.unlink()

    def _take(self, record: Record) -> None:
        self._note(record)
        if record.names is not None:
            self._checks.append((record.first, record.count, record.names))

    def _note(self, record: Record) -> None:
        if record.retry is None:
            self.done.add(record.first, record.count)
            self.tried += record.count
        for index in record.retry or ():
            self.bad.pop(index, None)
        self.bad.update(dict.fromkeys((failure.index for failure in record.failed), self._records))
        self._records += 1

    def _failures(self) -> Iterator[Failure]:
        records = (record for record, _ in read_index(self.folder) if isinstance(record, Record))
        for number, record in enumerate(records):
            yield from (failure for failure in record.failed if self.bad.get(failure.index) == number)

    def open_items(self, found: Iterable[Found], retry: bool = False) -> Iterator[Item]:
        """The items that are not done, or that are bad if these are tried again. Raises if what is done goes by other
        names now."""
        again = set(self.bad) if retry else set()
        checks = sorted(self._checks, reverse=True)
        digest, left, expected = hashlib.sha256(), 0, ""
        total = 0
        for index, (name, source) in enumerate(found):
            total = index + 1
            if index not in self.done:
                yield Item(index, name, source)
                continue
            if not left:
                while checks and checks[-1][0] < index:
                    checks.pop()
                if checks and checks[-1][0] == index:
                    _, left, expected = checks.pop()
                    digest = hashlib.sha256()
            if left:
                digest.update(os.fsencode(name) + b"\0")
                left -= 1
                if not left and digest.hexdigest() != expected:
                    raise CorpusError(
                        f"{self.folder}: the items before {name!r} (number {index}) are not those of the run before, "
                        "or in another order. Give the same inputs, new ones behind them; or take another folder, or "
                        "begin anew with restart=True (--restart)"
                    )
            if index in again:
                yield Item(index, name, source)
        if total < self.done.end:
            raise CorpusError(
                f"{self.folder} has results of {self.done.end} items, and now there are {total}. Give the same inputs, "
                "new ones behind them; or begin anew with restart=True (--restart)"
            )
        self.total = total

    def belong_together(self, before: Item, item: Item) -> bool:
        """Whether two items may be in one shard: new ones that follow each other, or bad ones that are tried again."""
        if before.index in self.done:
            return item.index in self.done
        return item.index == before.index + 1 and item.index not in self.done

    def commit(self, finished: Sequence[tuple[Sequence[Item], Path | bytes | None, Sequence[Failure]]]) -> None:
        """Keep what was made of chunks of items that belong together: each a shard that is on the disk,
        or its bytes, and the bad items."""
        assert self._index is not None
        assert self._failed is not None
        records, folders = [], set()
        for items, shard, failed in finished:
            name = None if shard is None else self._kept(shard)
            if name is not None:
                folders.add((self.folder / name).parent)
            records.append(self._record(items, name, failed))
        for folder in folders:
            sync_folder(folder)
        self._index.write("".join(record.line() for record in records).encode())
        self._index.flush()
        os.fsync(self._index.fileno())
        for record in records:
            self._note(record)
            self.retried += len(record.retry or ())
            self._failed.writelines(failure.line() for failure in record.failed)
        self._failed.flush()

    def _record(self, items: Sequence[Item], name: str | None, failed: Sequence[Failure]) -> Record:
        first = items[0].index
        if first in self.done:
            return Record(name, first, items[-1].index + 1 - first, None, tuple(failed), tuple(i.index for i in items))
        digest = hashlib.sha256(b"".join(os.fsencode(item.name) + b"\0" for item in items))
        return Record(name, first, len(items), digest.hexdigest(), tuple(failed))

    def _kept(self, shard: Path | bytes) -> str:
        number, self._next_file = self._next_file, self._next_file + 1
        name = f"{SHARDS}/{number // SHARDS_IN_FOLDER:04d}/{number:08d}.npz"
        target = self.folder / name
        if not target.parent.exists():
            target.parent.mkdir(parents=True)
            sync_folder(target.parent.parent)
            sync_folder(self.folder)
        if isinstance(shard, bytes):
            data, shard = shard, self.temporary / target.name
            with open(shard, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        os.replace(shard, target)
        return name

    def finish(self) -> None:
        """Say that all items were tried."""
        assert self._index is not None
        assert self._failed is not None
        self._index.write(end_line(self.total).encode())
        self._index.flush()
        os.fsync(self._index.fileno())
        self._failed.seek(0)
        self._failed.truncate()
        for failure in self._failures():
            self._failed.write(failure.line())
        self._failed.flush()

    total: int = 0
    """How many items there are; known once all were listed."""


def _lock(file: IO[str]) -> None:
    """Raises OSError if another process has the lock."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(file.fileno(), LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        os.lseek(file.fileno(), 0, os.SEEK_SET)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _difference(before: Mapping[str, Any], now: Mapping[str, Any], where: str = "") -> str:
    """
    >>> _difference({"model": "a", "options": {"frame": 512}}, {"model": "a", "options": {"frame": 256}})
    'options.frame was 512 and is 256'
    """
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if old != new:
            if isinstance(old, Mapping) and isinstance(new, Mapping):
                return _difference(old, new, f"{where}{name}.")
            words = ["not given" if value is None else repr(value) for value in (old, new)]
            return f"{where}{name} was {words[0]} and is {words[1]}"
    return "they are the same"
