"""Timing of streams: the tick that a program makes, frame in, result out, state kept."""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from webrnn.engine.carry import Carry
from webrnn.engine.random_feeds import random_input
from webrnn.engine.session import InferenceSession

FRAMES = 8
"""Different feeds that streams get in turn."""
ROUNDS = 10
TRACED_TICKS = 20

Feeds = Mapping[str, np.ndarray]
Tick = Callable[[Sequence[Feeds]], Any]
"""Runs all streams once, each on its feeds."""


@dataclass
class Figures:
    """One way to run so many streams: times of a tick in milliseconds."""

    way: str
    depth: int
    ticks: int
    mean: float
    p50: float
    p99: float
    p999: float
    worst: float
    kib_per_tick: float
    """Most memory that Python objects took during a tick, results included, beyond what they took before it."""
    blocks_per_tick: float
    """Python objects by which the process grows."""

    @property
    def ticks_per_second(self) -> float:
        return 1e3 / self.mean

    def times_realtime(self, frame_ms: float) -> float:
        """Seconds of audio of all streams that are done in a second."""
        return self.depth * frame_ms / self.mean

    def as_data(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Runner:
    way: str
    depth: int
    tick: Tick
    seconds: list[float] = field(default_factory=list)


class StreamBench:
    """Prepares ways to run a model's streams; `measure` times them in turn."""

    def __init__(self, model: str | bytes, carry: Carry, sizes: dict[str, int], fixed: dict[str, Any], seed: int = 0):
        self.model, self.carry, self.sizes, self.fixed = model, carry, sizes, fixed
        self.runners: list[Runner] = []
        self.notes: list[str] = []
        self._rng = np.random.default_rng(seed)
        self._frames: list[dict[str, np.ndarray]] = []
        self._pairs: dict[str, str] = {}
        self._states: dict[str, np.ndarray] = {}
        self._axes: dict[str, int] = {}

    def add_backend(self, backend: str, depths: Sequence[int]) -> None:
        session = InferenceSession(self.model, backend=backend, fixed=self.fixed)
        stream = session.stream(self.carry)
        if not self._frames:
            self._find_out(session, stream)
        name = session.backend
        self.runners.append(Runner(f"{name} stream", 1, lambda frames: stream.step(frames[0])))
        for depth in depths:
            pool = session.pool(depth, self.carry)
            handles = [pool.open() for _ in range(depth)]

            def tick(frames: Sequence[Feeds], pool: Any = pool, handles: list[int] = handles) -> Any:
                for handle, feeds in zip(handles, frames, strict=True):
                    pool.submit(handle, feeds)
                return pool.tick()

            tick([self._frames[0]] * depth)
            how = "pool" if pool.batched else "pool, one by one"
            if not pool.batched and depth == depths[0]:
                self.notes.append(f"{name}: {pool.reason}")
            self.runners.append(Runner(f"{name} {how}", depth, tick))
            batched = pool._batched
            if batched is not None:
                names = [value.name for value in pool._model.inputs]
                self._axes = dict(zip(names, batched.inputs, strict=True))

    def _find_out(self, session: InferenceSession, stream: Any) -> None:
        """Frames to feed and, for who carries states by hand, what they start from."""
        self._pairs = stream.carry
        fed = [value for value in session.inputs if value.name not in self._pairs]
        self._frames = [
            {value.name: random_input(value, self.sizes, self._rng) for value in fed} for _ in range(FRAMES)
        ]
        stream.step(self._frames[0])
        self._states = {name: np.zeros_like(state) for name, state in stream.state.items()}
        stream.reset()

    def add_onnxruntime(self, depths: Sequence[int]) -> None:
        """The same by hand, if onnxruntime is there and the states are inputs of the model."""
        try:
            import onnxruntime
        except ImportError:
            self.notes.append("onnxruntime is not installed: pip install 'webrnn[bench]'")
            return
        if self.carry == "internal":
            self.notes.append("onnxruntime: the states of this model are not its inputs, it cannot carry them")
            return
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            session = onnxruntime.InferenceSession(self.model, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            self.notes.append(f"onnxruntime does not take this model: {str(error).splitlines()[0]}")
            return
        outputs = [item.name for item in session.get_outputs()]
        fixed = {
            item.name: _as_declared(item, self.fixed[item.name])
            for item in session.get_inputs()
            if item.name in self.fixed
        }
        for depth in depths:
            each = _ByHand(session, outputs, self._pairs, [dict(self._states) for _ in range(depth)], fixed)
            self.runners.append(Runner("onnxruntime, one by one", depth, each.tick))
        shapes = {item.name: item.shape for item in session.get_inputs()}
        if self._axes and all(not isinstance(shapes[name][axis], int) for name, axis in self._axes.items()):
            for depth in (depth for depth in depths if depth > 1):
                together = _BatchedByHand(session, outputs, self._pairs, self._states, fixed, self._axes, depth)
                self.runners.append(Runner("onnxruntime, batched by hand", depth, together.tick))

    def measure(self, seconds: float, say: Callable[[str], None] = lambda line: None) -> list[Figures]:
        """Each way runs for about so long, in rounds in which all have their turn."""
        ticks = [self._ticks_of_a_round(runner, seconds / ROUNDS) for runner in self.runners]
        gc.collect()
        for number in range(ROUNDS):
            say(f"round {number + 1} of {ROUNDS}")
            for runner, count in zip(self.runners, ticks, strict=True):
                self._run(runner, count, runner.seconds)
        return [self._figures(runner) for runner in self.runners]

    def _ticks_of_a_round(self, runner: Runner, seconds: float) -> int:
        for _ in range(3):
            trial: list[float] = []
            self._run(runner, 2, trial)
        return max(5, int(seconds / min(trial)))

    def _run(self, runner: Runner, ticks: int, times: list[float]) -> None:
        clock, tick, depth = time.perf_counter, runner.tick, runner.depth
        frames = [[self._frames[(t + i) % FRAMES] for i in range(depth)] for t in range(FRAMES)]
        for number in range(ticks):
            now = frames[number % FRAMES]
            started = clock()
            tick(now)
            times.append(clock() - started)

    def _figures(self, runner: Runner) -> Figures:
        ms = 1e3 * np.array(runner.seconds)
        p50, p99, p999 = np.percentile(ms, [50, 99, 99.9])
        kib, blocks = self._allocations(runner)
        mean, worst = float(ms.mean()), float(ms.max())
        return Figures(runner.way, runner.depth, len(ms), mean, float(p50), float(p99), float(p999), worst, kib, blocks)

    def _allocations(self, runner: Runner) -> tuple[float, float]:
        ignored: list[float] = []
        self._run(runner, 3, ignored)
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(TRACED_TICKS):
            runner.tick([self._frames[0]] * runner.depth)
        gc.collect()
        blocks = (sys.getallocatedblocks() - before) / TRACED_TICKS
        tracemalloc.start()
        try:
            peaks = []
            for _ in range(TRACED_TICKS):
                frames = [self._frames[0]] * runner.depth
                held = tracemalloc.get_traced_memory()[0]
                tracemalloc.reset_peak()
                runner.tick(frames)
                peaks.append(tracemalloc.get_traced_memory()[1] - held)
        finally:
            tracemalloc.stop()
        return float(np.median(peaks)) / 1024, blocks


class _ByHand:
    """onnxruntime with the states of each stream fed back."""

    def __init__(
        self,
        session: Any,
        outputs: list[str],
        pairs: Mapping[str, str],
        states: list[dict[str, np.ndarray]],
        fixed: Feeds,
    ):
        self._session, self._states, self._fixed = session, states, fixed
        self._positions = {before: outputs.index(after) for before, after in pairs.items()}

    def tick(self, frames: Sequence[Feeds]) -> list[Any]:
        all_outputs = []
        for feeds, states in zip(frames, self._states, strict=True):
            outputs = self._session.run(None, {**feeds, **states, **self._fixed})
            for before, position in self._positions.items():
                states[before] = outputs[position]
            all_outputs.append(outputs)
        return all_outputs


class _BatchedByHand:
    """onnxruntime on all streams side by side; who feeds them puts the frames together."""

    def __init__(
        self,
        session: Any,
        outputs: list[str],
        pairs: Mapping[str, str],
        states: Mapping[str, np.ndarray],
        fixed: Feeds,
        axes: Mapping[str, int],
        depth: int,
    ):
        self._session, self._fixed, self._axes = session, fixed, axes
        self._positions = {before: outputs.index(after) for before, after in pairs.items()}
        self._states = {name: np.concatenate([state] * depth, axes[name]) for name, state in states.items()}

    def tick(self, frames: Sequence[Feeds]) -> list[Any]:
        feeds = {name: np.concatenate([frame[name] for frame in frames], self._axes[name]) for name in frames[0]}
        outputs = self._session.run(None, {**feeds, **self._states, **self._fixed})
        for before, position in self._positions.items():
            self._states[before] = outputs[position]
        return list(outputs)


def _as_declared(item: Any, value: Any) -> np.ndarray:
    types = {
        "tensor(int64)": np.int64,
        "tensor(float)": np.float32,
        "tensor(bool)": np.bool_,
        "tensor(int32)": np.int32,
    }
    array = np.asarray(value, types.get(item.type))
    sizes = [size if isinstance(size, int) else 1 for size in item.shape]
    return array if array.ndim == len(sizes) else np.broadcast_to(array, sizes).copy()
