"""Reads a folder of results."""

from __future__ import annotations

import heapq
import json
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from .errors import CorpusError
from .index import Failure, Record, read_index
from .items import MANIFEST
from .mapper import Result
from .shards import read_shard


class Corpus:
    """The results of `webrnn map` in a folder, in the order of the items. It may be read while it is being written.

    `len(corpus)` counts the items that have results, `corpus.failed` those that are bad; `corpus.complete` says whether
    all items were tried. `corpus.about` has the model and the options. Memory is that of one shard.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)
        try:
            self.about: dict[str, Any] = json.loads((self.folder / MANIFEST).read_text())
        except OSError as error:
            raise CorpusError(f"{self.folder} is no folder of results: {MANIFEST}: {error.strerror}") from None
        except ValueError:
            raise CorpusError(f"{self.folder / MANIFEST} is damaged") from None
        self.failed: dict[int, Failure] = {}
        """The bad items, by their places."""
        self.complete = False
        self._tried = 0
        self._shards: list[tuple[int, str]] = []
        self._retried: list[tuple[int, str]] = []
        for record, _ in read_index(self.folder):
            self.complete = isinstance(record, int)
            if isinstance(record, Record):
                self._take(record)
        self._shards.sort()
        self._retried.sort()

    def _take(self, record: Record) -> None:
        if record.retry is None:
            self._tried += record.count
        for index in record.retry or ():
            self.failed.pop(index, None)
        self.failed.update((failure.index, failure) for failure in record.failed)
        if record.file is None:
            return
        if record.retry is None:
            self._shards.append((record.first, record.file))
        else:
            bad = {failure.index for failure in record.failed}
            self._retried += [(index, record.file) for index in record.retry if index not in bad]

    def __len__(self) -> int:
        return self._tried - len(self.failed)

    def __iter__(self) -> Iterator[Result]:
        first_try = (result for _, file in self._shards for result in read_shard(self.folder / file))
        if not self._retried:
            return first_try
        return heapq.merge(first_try, self._of_retries(), key=lambda result: result.index)

    def _of_retries(self) -> Iterator[Result]:
        @lru_cache(maxsize=4)
        def results(file: str) -> dict[int, Result]:
            return {result.index: result for result in read_shard(self.folder / file)}

        for index, file in self._retried:
            yield results(file)[index]


def read(folder: str | os.PathLike[str]) -> Corpus:
    """The results in a folder: iterate over them."""
    return Corpus(folder)
