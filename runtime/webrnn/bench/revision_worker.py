"""One revision's side of `webrnn bench --against`: a script that runs on that revision's webrnn, whichever it is.

It answers a line of JSON with a line of JSON, times calls by itself, and uses only what every revision has: numpy and
the public API. It is copied to a folder of its own and run there, so that nothing beside it is imported.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import webrnn

PACKAGE = Path(webrnn.__file__).resolve().parent


class Timed:
    """A call, made on one item after the other."""

    def __init__(self, call: Callable[[Any], Any], items: Sequence[Any]):
        self._call, self._items, self._next = call, items, 0
        self.seconds = array("d")

    def block(self, calls: int) -> float:
        clock, call, items, n_items = time.perf_counter, self._call, self._items, len(self._items)
        found = array("d", bytes(8 * calls))
        gc.disable()
        try:
            for number in range(calls):
                item = items[(self._next + number) % n_items]
                started = clock()
                call(item)
                found[number] = clock() - started
        finally:
            gc.enable()
        self._next += calls
        self.seconds += found
        return float(np.median(found))

    def results(self) -> list[Any]:
        """Those of the last of all items, so that states count."""
        result: Any = None
        for item in self._items:
            result = self._call(item)
        return _flat(result)


def _flat(result: Any) -> list[Any]:
    """The arrays of a run or a step, or those that a tick gives by stream."""
    if isinstance(result, dict):
        return [each for outputs in result.values() for each in _flat(outputs)]
    return list(result)


class Worker:
    def __init__(self) -> None:
        self._timed: dict[str, Timed] = {}

    def about(self) -> dict[str, Any]:
        return {
            "package": str(PACKAGE),
            "version": webrnn.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
        }

    def prepare(self, name: str, results: str, **how: Any) -> dict[str, Any]:
        """`results` is the file that gets what the model gives."""
        timed = Timed(*_call(**how))
        arrays = timed.results()
        if strangers := _strangers():
            raise RuntimeError(f"this is not the revision alone: {', '.join(strangers)}")
        with open(results, "wb") as file:
            np.savez(file, *arrays)
        self._timed[name] = timed
        return {}

    def block(self, name: str, calls: int) -> dict[str, Any]:
        return {"seconds": self._timed[name].block(calls)}

    def finish(self, name: str, times: str) -> dict[str, Any]:
        """`times` is the file that gets the seconds of all calls."""
        np.save(times, np.array(self._timed.pop(name).seconds))
        gc.collect()
        return {}


def _call(
    model: str, backend: str, fixed: dict[str, Any], feeds: str, carry: Any = None, depth: int | None = None
) -> tuple[Callable[[Any], Any], list[Any]]:
    """A whole run; with `carry` the step of a stream, and with `depth` the tick of a pool."""
    session = webrnn.InferenceSession(model, backend=backend, fixed=fixed or None)
    frames = _frames(feeds)
    if carry is None:
        return lambda feed: session.run(None, feed), frames
    if depth is None:
        stream = session.stream(carry)
        return stream.step, frames
    pool = session.pool(depth, carry)
    handles = [pool.open() for _ in range(depth)]

    def tick(first: int) -> Any:
        for place, handle in enumerate(handles):
            pool.submit(handle, frames[(first + place) % len(frames)])
        return pool.tick()

    return tick, list(range(len(frames)))


def _frames(file: str) -> list[dict[str, Any]]:
    """Arrays are named NUMBER:INPUT in the file."""
    found: dict[int, dict[str, Any]] = {}
    with np.load(file, allow_pickle=False) as data:
        for key in data.files:
            number, _, name = key.partition(":")
            found.setdefault(int(number), {})[name] = data[key]
    return [found[number] for number in sorted(found)]


def _strangers() -> list[str]:
    """Modules of webrnn and libraries of kernels that are loaded from elsewhere than the revision's package."""
    files = {
        str(getattr(module, "__file__", None) or PACKAGE)
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "webrnn"
    }
    try:
        with open("/proc/self/maps") as maps:
            mapped = {line.split(None, 5)[-1].strip() for line in maps if "/_kernels/" in line}
    except OSError:
        mapped = set()
    return [
        file for file in sorted(files | mapped) if PACKAGE not in (Path(file).resolve(), *Path(file).resolve().parents)
    ]


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what others print is no answer
    worker = Worker()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request.pop("what"))(**request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:200]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
