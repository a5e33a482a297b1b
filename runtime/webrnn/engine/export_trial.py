"""A plan is run once, from its bytes, before an export says that it is done: with inputs that are made up.

Which sizes a model takes is not written in it, so some are tried: 1 for all, then what `webrnn.guesses` has, then
others. A plan that refuses inputs which the model takes does not hold for all sizes; the numpy executor says what the
model takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import prod
from typing import Any

import numpy as np

from webrnn.errors import Error, LimitError, PlanError
from webrnn.guesses import Guess, Guesses, open_sizes, random_input, stride_sizes
from webrnn.ir import Graph, Value
from webrnn.ir.dims import is_static
from webrnn.ir.timing import Timing

from .exporting import load_plan
from .limits import Limits
from .programs.backends import Program
from .streams.streaming import StreamingModel

_SIZES = (2, 3, 16, 64, 256, 1024, 16384)
_MOST_ELEMENTS = 2**20
_MOST_ATTEMPTS = 64
_MOST_FINDINGS = 3
"""After so many inputs that the plan refuses and the model takes, only the plan is asked."""
_STEPS = 2
_STRIDES = (16, 4, 1)
"""Of frames, as guesses for a stream."""
_MOST_SECONDS = 10.0
"""Of a run, and of trying inputs which are refused."""
_TRIED_STREAMS = 3
_TRIED_SIZES = 3
"""So many sizes of feeds of a pool."""

Shapes = Mapping[str, Sequence[int]]
Results = list[list[Any]]
"""The outputs of each step."""


def try_plan(
    data: bytes,
    backend: str,
    limits: Limits,
    program: Program,
    inputs: Sequence[Value],
    shapes: Shapes | None,
    source: Graph | None,
) -> list[str]:
    """What is to be said of a plan after running it; PlanError if it does not do what the session does.

    `source` is the model, None if the session itself runs a plan from a file.
    """
    limits = _shorter(limits)
    plan = load_plan(data, backend, limits)
    oracle = None if source is None else _Oracle(source, limits)

    def taken_by_model(arguments: list[Any]) -> bool:
        return oracle is not None and oracle.takes(arguments)

    return _try(
        inputs, shapes, lambda arguments: [plan.run(arguments)], lambda arguments: [program.run(arguments)],
        taken_by_model, graph=source,
    )  # fmt: skip


def try_stream(data: bytes, backend: str, limits: Limits, model: StreamingModel, shapes: Shapes | None) -> list[str]:
    """The same for the plan of a stream: its first steps, and the flush of a stream with frames."""
    limits = _shorter(limits)
    plan = load_plan(data, backend, limits)
    loaded = StreamingModel.of_plan(plan, *plan.signature(), "auto" if plan.file.states else {})
    carried = {before for before, _ in model.pairs}
    fed = [(index, value) for index, value in enumerate(model.inputs) if index not in carried]
    oracle = None if model.graph is None else _Oracle(model.graph, limits)

    def steps(streams: StreamingModel, arguments: list[Any]) -> Results:
        stream = streams.stream()
        feeds = {value.name: argument for (_, value), argument in zip(fed, arguments, strict=True)}
        results = [stream.step(feeds) for _ in range(_STEPS)]
        return results if stream.timing is None else [*results, stream.flush()]

    def taken_by_model(arguments: list[Any]) -> bool:
        every: list[Any] = [None] * len(model.inputs)
        for (index, _), argument in zip(fed, arguments, strict=True):
            every[index] = argument
        try:
            for (before, _), state in zip(model.pairs, model.first_states(every), strict=True):
                every[before] = state
        except Error:
            return False
        return oracle is not None and oracle.takes(every)

    return _try(
        [value for _, value in fed], shapes, lambda arguments: steps(loaded, arguments),
        lambda arguments: steps(model, arguments), taken_by_model, model.timing, model.graph,
    )  # fmt: skip


def try_pool(data: bytes, backend: str, limits: Limits, shapes: Shapes | None) -> None:
    """PlanError unless streams side by side give what each gives alone, bit for bit, for some sizes of their feeds."""
    from .streams.batching import batched_plan
    from .streams.pool import StreamPool

    plan = load_plan(data, backend, _shorter(limits))
    model = StreamingModel.of_plan(plan, *plan.signature(), {state.input: state.output for state in plan.file.states})
    batched = batched_plan(model)
    assert not isinstance(batched, str)
    carried = {before for before, _ in model.pairs}
    one = [
        Value(value.name, value.dtype, tuple(1 if at == axis else size for at, size in enumerate(value.shape or ())))
        for index, (value, axis) in enumerate(zip(model.inputs, batched.inputs, strict=True))
        if index not in carried
    ]
    reason, n_tried = "the inputs that were made up are refused", 0
    for arguments in _made_up(one, shapes, model.timing):
        feeds = {value.name: argument for value, argument in zip(one, arguments, strict=True)}
        try:
            model.stream().step(feeds)
        except LimitError as error:
            reason = str(error)
            break
        except Error as error:
            reason = f"{_spell(one, arguments)}: {error}"
            continue
        pool = StreamPool(model, _TRIED_STREAMS, batched)
        for _ in range(_TRIED_STREAMS):
            pool.submit(pool.open(), feeds)
        pool.tick()
        if not pool.batched:
            raise PlanError(
                f"the streams of this model cannot be put side by side, with {_spell(one, arguments)}: {pool.reason}"
            )
        n_tried += 1
        if n_tried == _TRIED_SIZES:
            return
    if not n_tried:
        raise PlanError(f"whether streams are independent of each other could not be tried: {reason}")


class _Oracle:
    """What the model takes, from the model itself."""

    def __init__(self, graph: Graph, limits: Limits):
        self._graph, self._limits = graph, limits

    def takes(self, arguments: list[Any]) -> bool:
        from .executor.executor import Executor  # most plans never need it

        try:
            Executor(self._graph.copy(), self._limits).run(arguments)
        except Error:
            return False
        return True


def _shorter(limits: Limits) -> Limits:
    return replace(limits, seconds=min(_MOST_SECONDS, limits.seconds or _MOST_SECONDS))


def _try(
    inputs: Sequence[Value],
    shapes: Shapes | None,
    by_plan: Callable[[list[Any]], Results],
    by_session: Callable[[list[Any]], Results],
    taken_by_model: Callable[[list[Any]], bool],
    timing: Timing | None = None,
    graph: Graph | None = None,
) -> list[str]:
    refused: list[str] = []
    reason: Error | None = None
    has_run, end = False, time.perf_counter() + _MOST_SECONDS
    for number, arguments in enumerate(_made_up(inputs, shapes, timing, graph)):
        if time.perf_counter() > end:
            break
        try:
            found = by_plan(arguments)
        except LimitError as error:
            return [f"the plan was not run to its end: {error}"]
        except Error as error:
            reason = error
            finding = f"{_spell(inputs, arguments)} ({error})"
            if len(refused) < _MOST_FINDINGS and finding not in refused and taken_by_model(arguments):
                refused.append(finding)
            continue
        try:
            wanted = by_session(arguments)
        except Error as error:
            reason = error
            continue
        if not _agree(found, wanted):
            raise PlanError(f"the plan gives other results than the session for {_spell(inputs, arguments)}")
        has_run = True
        if number or all(is_static(value.shape) for value in inputs):
            break
    if has_run:
        return [f"the plan does not take {text}, which the model takes" for text in refused]
    if refused:
        raise PlanError(
            f"the plan does not hold for what the model takes, as {refused[0]}: give shapes={{input: shape}}"
        )
    why = (
        "an input is no tensor of a known rank" if reason is None else f"inputs that were made up are refused: {reason}"
    )
    return [f"the plan was not tried: {why}"]


def _made_up(
    inputs: Sequence[Value], shapes: Shapes | None, timing: Timing | None, graph: Graph | None = None
) -> Iterator[list[Any]]:
    """Arguments of different sizes: first 1, then guesses, then others, random and last zeros and ones."""
    given = [
        Value(value.name, value.dtype, tuple(shapes[value.name]) if shapes and value.name in shapes else value.shape)
        for value in inputs
    ]
    if any(value.container or value.dtype is None for value in inputs) or any(value.shape is None for value in given):
        return
    rng = np.random.default_rng(0)
    choices = (sizes for sizes in _choices_of_sizes(given, timing) if _n_elements(given, sizes) <= _MOST_ELEMENTS)
    random = ([random_input(value, sizes, rng) for value in given] for sizes in choices)
    if not all(is_static(value.shape) for value in given):
        yield from islice(random, 1)
    for guess in _guesses(given, timing, graph):
        yield list(guess.feeds(rng).values())
    first = list(islice(random, _MOST_ATTEMPTS))
    yield from first
    for make in (np.zeros_like, np.ones_like):
        yield from ([make(argument) for argument in arguments] for arguments in first)


def _guesses(values: Sequence[Value], timing: Timing | None, graph: Graph | None) -> Iterator[Guess]:
    """Frames of a stream are whole strides."""
    if timing is None:
        yield from Guesses(values, graph).tries()
        return
    for number in _STRIDES:
        yield from islice(Guesses(values, graph, sizes=stride_sizes(values, timing, number)).tries(), 1)


def _choices_of_sizes(values: Sequence[Value], timing: Timing | None) -> Iterator[dict[str, int]]:
    """Numbers for the sizes that are open, those of time in whole strides."""
    strides = {} if timing is None else stride_sizes(values, timing)
    for sizes in _choices_of_numbers(values):
        yield {name: number * strides.get(name, 1) for name, number in sizes.items()}


def _choices_of_numbers(values: Sequence[Value]) -> Iterator[dict[str, int]]:
    """Those without a name may have to be the same, or may not be."""
    names = list(dict.fromkeys(name for value in values for name in open_sizes(value).values()))
    yield dict.fromkeys(names, 1)
    for size in _SIZES if names else ():
        if len(names) > 1:
            yield from ({**dict.fromkeys(names, 1), name: size} for name in names)
        yield dict.fromkeys(names, size)
        if len(names) > 2:
            yield from ({**dict.fromkeys(names, size), name: 1} for name in names)


def _n_elements(values: Sequence[Value], sizes: Mapping[str, int]) -> int:
    total = 0
    for value in values:
        opened = open_sizes(value)
        total += prod(size if isinstance(size, int) else sizes[opened[i]] for i, size in enumerate(value.shape or ()))
    return total


def _agree(found: Results, wanted: Results) -> bool:
    """The same shapes and types, and floats that are as close as another order of arithmetic leaves them."""
    pairs = [pair for steps in zip(found, wanted, strict=True) for pair in zip(*steps, strict=True)]
    return all(_agree_arrays(np.asarray(a), np.asarray(b)) for a, b in pairs)


def _agree_arrays(found: np.ndarray, wanted: np.ndarray) -> bool:
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    if found.dtype.kind != "f":
        return True
    finite = wanted[np.isfinite(wanted)]
    scale = float(np.abs(finite).max()) if finite.size else 0.0
    return np.allclose(found, wanted, rtol=1e-2, atol=1e-3 * scale, equal_nan=True)


def _spell(inputs: Sequence[Value], arguments: Sequence[Any]) -> str:
    return ", ".join(f"{value.name}: {list(argument.shape)}" for value, argument in zip(inputs, arguments, strict=True))
