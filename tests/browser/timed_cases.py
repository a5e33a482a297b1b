"""Streams with frames that the JavaScript host is held to, exported as users do it."""

from __future__ import annotations

import json
from collections.abc import Sequence
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


EXPORTED = ("tcn.script", "crn.dynamo", "tasnet.script", "down_and_up.dynamo", "kws.script", "mel_gru.script")
"""Models that PyTorch exported for whole sequences: rings, delays and strides as they occur."""
_FOLDER = Path(__file__).parents[1] / "along_time" / "exported"


def write(folder: Path) -> None:
    """timed_<name>.rnn and .json: feeds of steps, their results, and those of the flush."""
    for name, kind in KINDS.items():
        path = folder / f"timed_{name}.rnn"
        kind.session("wasm:relaxed").export(path, carry=kind.carry)
        lengths = (3, 3) if kind.strides is not STRIDES else (1, 3, 1, 4)
        x = kind.feed(sum(lengths), batch=2 if kind.named else 1)
        feeds = {"x": x, **({"gain": GAIN} if kind.gain else {})}
        (y, *_) = _written(path, feeds, lengths)
        assert np.array_equal(y, kind.whole(x, GAIN if kind.gain else None))
    for name in EXPORTED:
        path = folder / f"timed_{name}.rnn"
        session = InferenceSession((_FOLDER / f"{name}.onnx").read_bytes(), backend="wasm:relaxed")
        session.export(path, carry="internal")
        stream = session.stream(carry="internal")
        lengths = (1, 1, 2, 7, 1, 40)
        feeds = {}
        for value in session.inputs:
            sizes = [size if isinstance(size, int) else 1 for size in value.shape]
            if value.name in stream.timing.inputs:
                sizes[stream.timing.inputs[value.name]] = sum(lengths) * stream.stride
            feeds[value.name] = np.random.default_rng(3).standard_normal(sizes).astype(np.float32)
        for made, whole in zip(_written(path, feeds, lengths), session.run(None, feeds), strict=True):
            assert np.array_equal(made, whole)
    (folder / "timed.json").write_text(json.dumps([*KINDS, *EXPORTED]))


def _written(path: Path, feeds: dict[str, np.ndarray], lengths: Sequence[int]) -> list[np.ndarray]:
    """Steps of so many strides of a plan and its flush, written down; what they give together."""
    stream = InferenceSession(path, backend="wasm:relaxed").stream()
    timing, runs, results, first = stream.timing, [], [], 0
    for length in lengths:
        frames = range(first * stream.stride, (first + length) * stream.stride)
        axes = timing.inputs
        runs.append({name: x.take(frames, axes[name]) if name in axes else x for name, x in feeds.items()})
        results.append(stream.step(runs[-1]))
        first += length
    results.append(stream.flush())
    named = [dict(zip(stream.output_names, result, strict=True)) for result in results]
    content = {
        "timing": [stream.delay, stream.stride],
        "runs": [encoded(feeds) for feeds in runs],
        "results": {"relaxed": [encoded(result) for result in named]},
    }
    path.with_suffix(".json").write_text(json.dumps(content))
    axes = {name: timed.axis for name, timed in timing.outputs.items()}
    return [
        np.concatenate([result[name] for result in named], axes[name]) if name in axes else results[-1][place]
        for place, name in enumerate(stream.output_names)
    ]
