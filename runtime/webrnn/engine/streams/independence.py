"""Whether streams side by side give what they give alone: it is tried, with noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from webrnn.errors import Error

from .batching import Batched
from .frames import Frames
from .resident import Stage
from .rows import RowPrograms, Rows
from .streaming import StreamingModel

TRIED_STREAMS = 3


def is_independent(model: StreamingModel, batched: Batched, frames: Frames | None, stage: Stage) -> bool:
    """Of streams with feeds of the shapes of a stage, which has those of one stream at least: bit for bit."""
    rng = np.random.default_rng(0)
    example = stage.feeds(0)
    names = [model.inputs[before].name for before, _ in model.pairs]
    try:
        firsts = model.first_states([example.get(value.name) for value in model.inputs])
        states = [[_noise_like(state, rng) for state in firsts] for _ in range(TRIED_STREAMS)]
        fed = _spread(states, frames)
        feeds = [{name: _noise_like(array, rng) for name, array in example.items()} for _ in range(TRIED_STREAMS)]
        programs = RowPrograms(batched, model.pairs, all_shapes(model, stage.shapes, firsts), TRIED_STREAMS)
        kernels = batched.program.kernels
        fed_rows, before, after = (
            [_filled(Rows(kernels, rows[0].shape, rows[0].dtype), rows) for rows in zip(*each, strict=True)]
            for each in ([list(some.values()) for some in feeds], states, states)
        )
        after = [
            rows if one_side else other
            for rows, other, one_side in zip(before, after, programs.overwrites(TRIED_STREAMS), strict=True)
        ]
        results = programs.run(TRIED_STREAMS, fed_rows, before, after)
        alone = model.stream()
        for number in range(TRIED_STREAMS):
            alone.load(dict(zip(names, states[number], strict=True)))
            outputs = alone.step(feeds[number])
            ours: list[Any] = [result[number] for result in results]
            if frames is not None and fed:
                ours = frames.shown(ours, fed[number])
            theirs = [*outputs, *(alone.state[name] for name in names)]
            if not all(map(_same, [*ours, *(rows.array[number] for rows in after)], theirs)):
                return False
    except Error:  # noise is not what this model takes
        return False
    return True


def all_shapes(
    model: StreamingModel, fed: tuple[tuple[int, ...], ...], states: list[np.ndarray]
) -> tuple[tuple[int, ...], ...]:
    """The shapes of all inputs of one stream."""
    carried = {before: state.shape for (before, _), state in zip(model.pairs, states, strict=True)}
    rest = iter(fed)
    return tuple(carried[index] if index in carried else next(rest) for index in range(len(model.inputs)))


def _filled(rows: Rows, values: Any) -> Rows:
    rows.reserve(len(values))
    for number, value in enumerate(values):
        rows.array[number] = value
    return rows


def _spread(states: list[list[np.ndarray]], frames: Frames | None) -> list[int]:
    """Let streams that are tried be at different places, the first at its start: the strides of each."""
    if frames is None or frames.position is None:
        return []
    fed = [0, *range(frames.warm_up, frames.warm_up + len(states) - 1)]
    for each, strides in zip(states, fed, strict=True):
        each[frames.position] = np.full_like(each[frames.position], strides)
    return fed


def _noise_like(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(array.shape).astype(array.dtype) if array.dtype.kind == "f" else array


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether these are the same bits, or NaN in the same places."""
    return a.shape == b.shape and (a.tobytes() == b.tobytes() or np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
