"""The judge of streams along time: what a stream gives, by steps of any size and with a flush, is the whole run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import webrnn

from .stacks import Model, multiple

Feeds = Mapping[str, np.ndarray]
MOST_FRAMES = 200


@dataclass
class Verdict:
    refused: str = ""
    """What the refusal says."""
    node: Any = None
    wrong: str = ""
    stride: int = 0
    delay: int = 0
    flushes: bool = False
    cuttings: int = 0
    """How many cuttings were compared."""
    no_plan: str = ""
    """Why the stream is not one plan for all sizes."""

    @property
    def accepted(self) -> bool:
        return not self.refused and not self.wrong


@dataclass
class Result:
    """What came out of a stream or of a whole run, by the name of the output."""

    outputs: dict[str, np.ndarray] = field(default_factory=dict)


def open_stream(session: webrnn.InferenceSession, time: Mapping[str, int] | None = None) -> Any:
    options = {"time": dict(time)} if time else {}
    return session.stream(carry="internal", **options)


def cut_feeds(feeds: Feeds, axes: Mapping[str, int], first: int, last: int) -> dict[str, np.ndarray]:
    return {
        name: array.take(range(first, last), axes[name]) if name in axes else array for name, array in feeds.items()
    }


def joined(names: Sequence[str], steps: Sequence[Sequence[np.ndarray]], timing: Any) -> dict[str, np.ndarray]:
    """Frames of all steps; of an output without time, what the last step gave."""
    outputs = {}
    for place, name in enumerate(names):
        parts = [step[place] for step in steps]
        timed = timing.outputs.get(name)
        outputs[name] = np.concatenate(parts, axis=timed.axis) if timed is not None else parts[-1]
    return outputs


def by_steps(stream: Any, feeds: Feeds, lengths: Sequence[int], snapshot_at: int = -1) -> dict[str, np.ndarray]:
    """What a stream gives in steps of these frames and a flush; at one of them it goes on from a snapshot."""
    timing, results, start = stream.timing, [], 0
    for place, length in enumerate(lengths):
        chunk = cut_feeds(feeds, timing.inputs, start, start + length)
        if place == snapshot_at:
            snapshot = stream.state
            stream.step(chunk)
            stream.load(snapshot)
        results.append(stream.step(chunk))
        start += length
    results.append(stream.flush())
    return joined(stream.output_names, results, timing)


def by_pool(
    session: webrnn.InferenceSession, runs: Sequence[Feeds], stride: int, timing: Any, rng: np.random.Generator
) -> list[dict[str, np.ndarray]]:
    """What streams of one pool give, each with feeds of its own and begun when it happens to."""
    pool = session.pool(max_streams=len(runs), carry="internal")
    handles = [pool.open() for _ in runs]
    fed, results = [0] * len(runs), [[] for _ in runs]
    name, axis = next(iter(timing.inputs.items()))
    lengths = [feeds[name].shape[axis] for feeds in runs]
    while any(done < length for done, length in zip(fed, lengths, strict=True)):
        for place, handle in enumerate(handles):
            if fed[place] < lengths[place] and rng.random() < 0.7:
                end = min(lengths[place], fed[place] + stride * int(rng.integers(1, 3)))
                pool.submit(handle, cut_feeds(runs[place], timing.inputs, fed[place], end))
                fed[place] = end
        for handle, outputs in pool.tick().items():
            results[handles.index(handle)].append(outputs)
    for place, handle in enumerate(handles):
        results[place].append(pool.flush(handle))
    names = [value.name for value in session.get_outputs()]
    return [joined(names, steps, timing) for steps in results]


def cuttings(frames: int, stride: int, rng: np.random.Generator) -> Iterator[list[int]]:
    """Steps of 1, 2 and 7 strides, all at once, and a random cutting."""
    strides = frames // stride
    for size in (1, 2, 7, strides):
        yield [stride * size] * (strides // size) + [stride * (strides % size)] * (strides % size > 0)
    cuts = np.sort(rng.integers(0, strides + 1, rng.integers(1, 5)))
    yield [stride * int(size) for size in np.diff([0, *cuts, strides]) if size]


def difference(given: Mapping[str, np.ndarray], whole: Mapping[str, np.ndarray]) -> str:
    for name, wanted in whole.items():
        mine = given[name]
        if mine.shape != wanted.shape or mine.dtype != wanted.dtype:
            return f"{name} is {mine.dtype}{list(mine.shape)}, whole {wanted.dtype}{list(wanted.shape)}"
        if mine.tobytes() != wanted.tobytes():
            places = np.argwhere(~((mine == wanted) | (np.isnan(mine) & np.isnan(wanted))))
            if not len(places):
                return f"{name} has other zeros or NaN"
            most = np.nanmax(np.abs(mine.astype(np.float64) - wanted), initial=0)
            return f"{name} differs at {len(places)} of {mine.size} places, first {places[0].tolist()}, by {most:.3g}"
    return ""


def sizes(model: Model, stride: int) -> list[int]:
    least = multiple(model.shortest, stride)
    return [least, least + stride, multiple(least + 9, stride)]


def judge(
    model: Model,
    backends: Sequence[str] = ("native",),
    seed: int = 0,
    thorough: bool = True,
    name_time: bool = False,
    with_file: bool = False,
    with_pool: bool = False,
) -> Verdict:
    """`thorough`: every cutting at every length; `name_time`: the caller says which axes are time; `with_file`: also
    through an exported plan; `with_pool`: also several streams of a pool."""
    verdict = Verdict()
    rng = np.random.default_rng(seed)
    data = model.proto.SerializeToString()
    for backend in backends:
        session = webrnn.InferenceSession(data, backend=backend)
        try:
            stream = open_stream(session, model.time_axes if name_time else None)
        except webrnn.ModelError as error:
            verdict.refused, verdict.node = error.message, error.node
            if not error.node:
                verdict.wrong = f"a refusal that names no node: {error}"
            return verdict
        timing = stream.timing
        verdict.stride, verdict.delay, verdict.flushes = stream.stride, stream.delay, bool(timing.flush_strides)
        verdict.no_plan = obstacles(stream)
        if stream.stride != timing.stride or stream.delay != timing.delay:
            verdict.wrong = "the stream's own stride or delay are not those of its timing"
            return verdict
        if dict(timing.inputs) != model.time_axes:
            verdict.wrong = f"time is {dict(timing.inputs)}, not {model.time_axes}"
            return verdict
        streams = {"stream": stream}
        if with_file and not verdict.no_plan:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.rnn"
                session.export(path, carry="internal")
                streams["file"] = webrnn.InferenceSession(path, backend=backend).stream()
        if with_pool:
            least = multiple(model.shortest, stream.stride)
            runs = [model.feeds(least + more * stream.stride, rng, batch=1) for more in (0, 3, 1)]
            names = [value.name for value in session.get_outputs()]
            for feeds, given in zip(runs, by_pool(session, runs, stream.stride, timing, rng), strict=True):
                gap = difference(given, dict(zip(names, session.run(None, feeds), strict=True)))
                if gap:
                    verdict.wrong = f"{backend} pool, steps of strides: {gap}"
                    return verdict
        for place, frames in enumerate(sizes(model, stream.stride)):
            if frames > MOST_FRAMES and place:
                continue
            feeds = model.feeds(frames, rng, batch=1 + place % 2)
            names = [value.name for value in session.get_outputs()]
            whole = dict(zip(names, session.run(None, feeds), strict=True))
            for count, lengths in enumerate(cuttings(frames, stream.stride, rng)):
                if not thorough and (count + place) % 3:
                    continue
                if len(lengths) > 40:
                    continue
                verdict.cuttings += 1
                for kind, each in streams.items():
                    each.reset()
                    given = by_steps(each, feeds, lengths, snapshot_at=1 if count == 4 else -1)
                    gap = difference(given, whole)
                    if gap:
                        verdict.wrong = f"{backend} {kind}, {frames} frames in steps of {lengths}: {gap}"
                        return verdict
    return verdict


def obstacles(stream: Any) -> str:
    """Why a stream is not one plan for all sizes; empty if it is."""
    if len(stream._carriers) > 1:
        return ""
    found = stream._carriers[-1]._program.obstacles()
    return found[0] if found else "?"
