"""The part of `webrnn bench --pyodide` that runs inside Pyodide: `session.run` as a user calls it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import webrnn


class Prepared:
    """A model on a backend, with its inputs."""

    def __init__(self, model: Any, backend: str, kinds: Any, buffers: Any, disable: Any):
        """`model` and the elements of `buffers` are bytes; `kinds` are (name, type, shape)."""
        self.session = webrnn.InferenceSession(_bytes(model), backend=backend, disable=list(disable))
        self.backend = self.session.backend
        self.feeds = {
            name: np.frombuffer(_bytes(buffer), kind).reshape(list(shape)).copy()
            for (name, kind, shape), buffer in zip(kinds, buffers, strict=True)
        }

    def results(self) -> dict[str, Any]:
        from pyodide.ffi import to_js

        names = [item.name for item in self.session.get_outputs()]
        arrays = self.session.run(None, self.feeds)
        flat = [np.ascontiguousarray(array).reshape(-1) for array in arrays]
        shown = [array.view(np.uint8) if array.dtype == np.bool_ else array for array in flat]
        return dict(zip(names, map(to_js, shown), strict=True))

    def seconds(self, times: int) -> float:
        """Timed here, as a call from JavaScript costs more than a short run."""
        run, feeds = self.session.run, self.feeds
        started = time.perf_counter()
        for _ in range(times):
            run(None, feeds)
        return time.perf_counter() - started


def _bytes(data: Any) -> bytes:
    return data if isinstance(data, bytes) else bytes(data.to_py() if hasattr(data, "to_py") else data)
