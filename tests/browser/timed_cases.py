"""Streams with frames that the JavaScript host is held to, exported as users do it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.engine.streams.timed_models import STRIDES, Averages
from webrnn.engine.session import InferenceSession

from .webrnn_cases import encoded

KINDS = {
    "centred": Averages(),
    "strided": Averages(width=5, left=1, right=3, stride=2, axis=2),
    "unpadded": Averages(left=0, right=0, axis=2),
    "causal": Averages(left=2, right=0, total=True),
    "longer": Averages(left=2, right=2, gain=True, total=True),
    "fixed": Averages(width=6, left=1, right=4, stride=2, axis=2, named=False, strides=3),
    "one": Averages(named=False),
}
GAIN = np.float32([1, 2, 3])


def write(folder: Path) -> None:
    """timed_<name>.rnn and .json: feeds of steps, their results, and those of the flush."""
    for name, kind in KINDS.items():
        path = folder / f"timed_{name}.rnn"
        kind.session("wasm:relaxed").export(path, carry=kind.carry)
        stream = InferenceSession(path, backend="wasm:relaxed").stream()
        lengths = (3, 3) if kind.strides is not STRIDES else (1, 3, 1, 4)
        x = kind.feed(sum(lengths), batch=2 if kind.named else 1)
        runs, results, first = [], [], 0
        for length in lengths:
            feeds = {"x": kind.frames(x, first, first + length), **({"gain": GAIN} if kind.gain else {})}
            first += length
            runs.append(feeds)
            results.append(stream.step(feeds))
        results.append(stream.flush())
        y = np.concatenate([result[0] for result in results], kind.axis)
        assert np.array_equal(y, kind.whole(x, GAIN if kind.gain else None))
        named = [dict(zip(stream.output_names, result, strict=True)) for result in results]
        content = {
            "timing": [stream.delay, stream.stride],
            "runs": [encoded(feeds) for feeds in runs],
            "results": {"relaxed": [encoded(result) for result in named]},
        }
        path.with_suffix(".json").write_text(json.dumps(content))
    (folder / "timed.json").write_text(json.dumps(list(KINDS)))
