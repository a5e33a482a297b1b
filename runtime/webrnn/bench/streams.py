"""Timing of streams: the tick that a program makes, frame in, result out, state kept."""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from webrnn.engine.session import InferenceSession
from webrnn.engine.streams.carry import Carry
from webrnn.guesses import first_that_runs, stride_sizes

from .case import require_sizes

FRAMES = 8
"""Different feeds that streams get in turn."""
ROUNDS, FEWEST_TICKS = 10, 5
SHORTEST_TRIAL = 2e-4
"""Seconds of ticks that show how many there are in a round."""
TRACED_TICKS = 20

Feeds = Mapping[str, np.ndarray]
Tick = Callable[[Sequence[Feeds]], Any]
"""Runs all streams once, each on its feeds."""


def time_ticks(ticks: Sequence[Callable[[Any], Any]], frames: Sequence[Any], count: int) -> list[array[float]]:
    """Seconds of so many calls of each, which they make in turn, on one frame after the other."""
    clock, n_frames = time.perf_counter, len(frames)
    found = [array("d", bytes(8 * count)) for _ in ticks]
    pairs = list(zip(ticks, found, strict=True))
    for number in range(count):
        frame = frames[number % n_frames]
        for tick, seconds in pairs:
            started = clock()
            tick(frame)
            seconds[number] = clock() - started
    return found


def percentiles(seconds: np.ndarray) -> tuple[float, float, float, float]:
    """The median, 99%, 99.9% and the longest."""
    p50, p99, p999, worst = (float(each) for each in np.percentile(seconds, [50, 99, 99.9, 100]))
    return p50, p99, p999, worst


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
    kib_per_tick: float | None = None
    """Most memory that Python objects took during a tick, results included, beyond what they took before it. None where
    Python does not run."""
    blocks_per_tick: float | None = None
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
    tick: Tick | None
    """None where ticks are made and timed elsewhere."""
    elsewhere: Callable[[int], array[float]] | None = None
    """Makes so many ticks, and says how long each took."""
    program: bytes | None = None
    """The plan that it runs, if it is one."""
    seconds: array[float] = field(default_factory=lambda: array("d"))


class StreamBench:
    """Prepares ways to run a model's streams; `measure` times them in turn."""

    def __init__(
        self,
        model: str | bytes,
        carry: Carry,
        sizes: dict[str, int],
        fixed: dict[str, Any],
        seed: int = 0,
        shapes: dict[str, list[int]] | None = None,
    ):
        self.shapes = shapes or {}
        self.model, self.carry, self.sizes, self.fixed = model, carry, sizes, fixed
        self.runners: list[Runner] = []
        self.notes: list[str] = []
        self._rng = np.random.default_rng(seed)
        self._frames: list[dict[str, np.ndarray]] = []
        self._pairs: dict[str, str] = {}
        self._states: dict[str, np.ndarray] = {}
        self._axes: dict[str, int] = {}

    @property
    def frames(self) -> list[dict[str, np.ndarray]]:
        """What streams are fed, in turn; known once a backend was added."""
        return self._frames

    @property
    def pairs(self) -> dict[str, str]:
        """What is carried, input to output."""
        return self._pairs

    @property
    def states(self) -> dict[str, np.ndarray]:
        """What one who carries them by hand starts from."""
        return self._states

    def prepare(self, backend: str) -> None:
        """Makes up the frames, without any way to run them."""
        session = InferenceSession(self.model, backend=backend, fixed=self.fixed)
        self._find_out(session, session.stream(self.carry))

    def add_backend(self, backend: str, depths: Sequence[int], disable: Sequence[str] = ()) -> None:
        session = InferenceSession(self.model, backend=backend, disable=disable, fixed=self.fixed)
        stream = session.stream(self.carry)
        if not self._frames:
            self._find_out(session, stream)
        stream.step(self._frames[0])
        stream.reset()
        name = session.backend
        program = _program(session, self.carry)
        self.runners.append(Runner(f"{name} stream", 1, lambda frames: stream.step(frames[0]), program=program))
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
            self.runners.append(Runner(f"{name} {how}", depth, tick, program=program))
            batched = pool._batched
            if batched is not None:
                names = [value.name for value in pool._model.inputs]
                self._axes = dict(zip(names, batched.inputs, strict=True))

    def _find_out(self, session: InferenceSession, stream: Any) -> None:
        """Frames to feed and, for who carries states by hand, what they start from."""
        self._pairs = stream.carry
        require_sizes(session.inputs, self.sizes)
        fed = [value for value in session.inputs if value.name not in self._pairs]
        names = {value.name for value in fed}
        strides = {} if stream.timing is None else stride_sizes(fed, stream.timing)
        tries = session.guesses({**strides, **self.sizes}, self.shapes, is_step=True).tries()

        def step(feeds: Feeds) -> Any:
            return stream.step({name: feed for name, feed in feeds.items() if name in names})

        guess = first_that_runs(tries, step)[0]
        self._frames = [
            {name: feed for name, feed in guess.feeds(self._rng).items() if name in names} for _ in range(FRAMES)
        ]
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
        fixed = {
            item.name: as_declared(item, self.fixed[item.name])
            for item in session.get_inputs()
            if item.name in self.fixed
        }
        shapes = {item.name: item.shape for item in session.get_inputs()}
        can_batch = self._axes and all(not isinstance(shapes[name][axis], int) for name, axis in self._axes.items())
        for how, axes in (("one by one", None), *((("batched by hand", self._axes),) if can_batch else ())):
            for depth in (depth for depth in depths if depth > 1 or axes is None):
                states = [dict(self._states) for _ in range(depth)]
                by_hand = _ByHand(session, self._pairs, states, fixed, axes)
                self.runners.append(Runner(f"onnxruntime, {how}", depth, by_hand.tick))

    def measure(self, seconds: float, say: Callable[[str], None] = lambda line: None) -> list[Figures]:
        """Each way runs for about so long, in rounds in which all have their turn."""
        ticks = [self._ticks_of_a_round(runner, seconds / ROUNDS) for runner in self.runners]
        gc.collect()
        for number in range(ROUNDS):
            say(f"round {number + 1} of {ROUNDS}")
            for runner, count in zip(self.runners, ticks, strict=True):
                runner.seconds += self.run(runner, count)
        return [self._figures(runner) for runner in self.runners]

    def _ticks_of_a_round(self, runner: Runner, seconds: float) -> int:
        """A clock that goes in large steps may say that some ticks took no time."""
        ticks, total = 2, 0.0
        for _ in range(3):
            total = sum(self.run(runner, ticks))
        while total < SHORTEST_TRIAL:
            ticks *= 4
            total = sum(self.run(runner, ticks))
        return max(FEWEST_TICKS, int(seconds * ticks / total))

    def results(self, runner: Runner) -> Any:
        """What the last of some ticks gives."""
        assert runner.tick is not None
        return [runner.tick(frames) for frames in self.frames_of(runner)][-1]

    def run(self, runner: Runner, ticks: int) -> array[float]:
        """Seconds of each of so many ticks."""
        if runner.elsewhere is not None:
            return runner.elsewhere(ticks)
        assert runner.tick is not None
        return time_ticks([runner.tick], self.frames_of(runner), ticks)[0]

    def frames_of(self, runner: Runner) -> list[list[dict[str, np.ndarray]]]:
        """What all its streams are fed, tick by tick."""
        return [[self._frames[(t + i) % FRAMES] for i in range(runner.depth)] for t in range(FRAMES)]

    def _figures(self, runner: Runner) -> Figures:
        ms = 1e3 * np.array(runner.seconds)
        allocations = self._allocations(runner, runner.tick) if runner.tick is not None else (None, None)
        return Figures(runner.way, runner.depth, len(ms), float(ms.mean()), *percentiles(ms), *allocations)

    def _allocations(self, runner: Runner, tick: Tick) -> tuple[float, float]:
        self.run(runner, 3)
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(TRACED_TICKS):
            tick([self._frames[0]] * runner.depth)
        gc.collect()
        blocks = (sys.getallocatedblocks() - before) / TRACED_TICKS
        tracemalloc.start()
        try:
            peaks = []
            for _ in range(TRACED_TICKS):
                frames = [self._frames[0]] * runner.depth
                held = tracemalloc.get_traced_memory()[0]
                tracemalloc.reset_peak()
                tick(frames)
                peaks.append(tracemalloc.get_traced_memory()[1] - held)
        finally:
            tracemalloc.stop()
        return float(np.median(peaks)) / 1024, blocks


def _program(session: InferenceSession, carry: Carry) -> bytes | None:
    """The plan that the session's streams ran last, if they run one."""
    program: Any = session._streaming(carry).program
    plan = getattr(program, "recent", None) or getattr(program, "plan", program)
    return getattr(getattr(plan, "file", None), "data", None)


class _ByHand:
    """onnxruntime with states fed back: those of each stream or, with `axes`, those of all streams side by side."""

    def __init__(
        self,
        session: Any,
        pairs: Mapping[str, str],
        states: list[dict[str, np.ndarray]],
        fixed: Feeds,
        axes: Mapping[str, int] | None = None,
    ):
        self._session, self._states, self._fixed, self._axes = session, states, fixed, axes
        outputs = [item.name for item in session.get_outputs()]
        self._positions = {before: outputs.index(after) for before, after in pairs.items()}
        if axes is not None:
            self._states = [_joined(states, axes)]

    def tick(self, frames: Sequence[Feeds]) -> list[Any]:
        if self._axes is not None:
            frames = [_joined(frames, self._axes)]
        all_outputs = []
        for feeds, states in zip(frames, self._states, strict=True):
            outputs = self._session.run(None, {**feeds, **states, **self._fixed})
            for before, position in self._positions.items():
                states[before] = outputs[position]
            all_outputs.append(outputs)
        return all_outputs


def _joined(parts: Sequence[Feeds], axes: Mapping[str, int]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([part[name] for part in parts], axes[name]) for name in parts[0]}


def as_declared(item: Any, value: Any) -> np.ndarray:
    """What an input is fixed to, of the type and rank that a session's `get_inputs()` says."""
    types = {
        "tensor(int64)": np.int64,
        "tensor(float)": np.float32,
        "tensor(bool)": np.bool_,
        "tensor(int32)": np.int32,
    }
    array = np.asarray(value, types.get(item.type))
    sizes = [size if isinstance(size, int) else 1 for size in item.shape]
    return array if array.ndim == len(sizes) else np.broadcast_to(array, sizes).copy()
