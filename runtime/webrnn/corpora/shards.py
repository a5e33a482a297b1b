"""One file of results: an .npz file of few arrays, however many items it has.

| array | |
|---|---|
| `index` | the places of its items in the corpus, ascending |
| `names` | their names in UTF-8, each with a zero byte behind it |
| `layout` | JSON: for each group of arrays, its output |
| `<g>.items` | which of the items have an array of group g |
| `<g>.shapes` | the shapes of these, a row each |
| `<g>.data` | their numbers, one array behind the other |

A group is what has the same output, type and number of axes: usually there is one for each output.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from .errors import CorpusError
from .mapper import Result


def write_shard(file: BinaryIO, results: Sequence[Result]) -> None:
    """Write the good ones of these results.

    >>> file = io.BytesIO()
    >>> write_shard(file, [Result(7, "a", {"y": np.ones(2)}), Result(8, "b", {"y": np.zeros(1)})])
    >>> file = io.BytesIO(file.getvalue())
    >>> [(result.index, result.name, result["y"].tolist()) for result in read_shard(file)]
    [(7, 'a', [1.0, 1.0]), (8, 'b', [0.0])]
    """
    good = [result for result in results if result.outputs is not None]
    groups: dict[tuple[str, str, int], list[tuple[int, np.ndarray]]] = {}
    for place, result in enumerate(good):
        for output, array in (result.outputs or {}).items():
            groups.setdefault((output, array.dtype.str, array.ndim), []).append((place, array))
    arrays: dict[str, Any] = {
        "index": np.array([result.index for result in good], np.int64),
        "names": np.frombuffer(b"".join(os.fsencode(result.name) + b"\0" for result in good), np.uint8),
        "layout": np.frombuffer(json.dumps([output for output, _, _ in groups]).encode(), np.uint8),
    }
    for number, ((_, _, rank), members) in enumerate(groups.items()):
        arrays[f"{number}.items"] = np.array([place for place, _ in members], np.int64)
        arrays[f"{number}.shapes"] = np.array([array.shape for _, array in members], np.int64).reshape(
            len(members), rank
        )
        arrays[f"{number}.data"] = np.concatenate([array.ravel() for _, array in members])
    np.savez(file, **arrays)


def shard_bytes(results: Sequence[Result]) -> bytes:
    file = io.BytesIO()
    write_shard(file, results)
    return file.getvalue()


def read_shard(file: str | os.PathLike[str] | BinaryIO) -> Iterator[Result]:
    """The results of a shard in their order. Their arrays are copies."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        names = arrays["names"].tobytes().split(b"\0")
        layout = json.loads(arrays["layout"].tobytes())
    except Exception as error:  # whatever a damaged zip file makes of it
        raise CorpusError(f"{file}: the file of results is damaged: {error}") from error
    outputs: list[dict[str, np.ndarray]] = [{} for _ in arrays["index"]]
    for number, output in enumerate(layout):
        shapes, data = arrays[f"{number}.shapes"], arrays[f"{number}.data"]
        sizes = shapes.prod(axis=1, dtype=np.int64)
        ends = np.cumsum(sizes)
        for place, shape, size, end in zip(arrays[f"{number}.items"], shapes, sizes, ends, strict=True):
            outputs[place][output] = data[end - size : end].reshape(shape).copy()
    for index, name, found in zip(arrays["index"], names, outputs, strict=False):
        yield Result(int(index), os.fsdecode(name), found)
