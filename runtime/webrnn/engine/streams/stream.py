"""`Stream`: a model whose state lives between calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from webrnn.errors import ModelError, PlanError, ShapeError
from webrnn.ir import Value
from webrnn.ir.timing import Timing

from ..feeds import checked_feed
from ..forking import new_lock
from ..javascript import JsProxy, mapping_of, require_fits, sequence_of
from .carriers import Carrier
from .frames import Frames, Kept

NOTHING_FED = "flush: nothing was fed yet; a flush ends a sequence, and the next step begins one"

Initial = Callable[[Sequence[Any]], list[np.ndarray]]
"""What the states start from, given the arguments of the first step (None in the place of states)."""


class Stream:
    """One stream of a model. `session.stream()` makes it.

    A step takes the inputs that are not carried and gives the outputs that are not; the others are the state. A step
    that raises leaves the state as it was.

    >>> import numpy as np
    >>> import webrnn
    >>> from onnx.parser import parse_model
    >>> model = parse_model('''<ir_version: 8, opset_import: ["": 17]>
    ... total (float[1] x, float[1] sum_in) => (float[1] twice, float[1] sum_out) {
    ...     twice = Add(x, x)
    ...     sum_out = Add(sum_in, x)
    ... }''')
    >>> stream = webrnn.InferenceSession(model.SerializeToString()).stream(carry={"sum_in": "sum_out"})
    >>> stream.step({"x": np.float32([3])}), stream.step({"x": np.float32([4])})
    ([array([6.], dtype=float32)], [array([8.], dtype=float32)])
    >>> stream.state
    {'sum_in': array([7.], dtype=float32)}
    """

    def __init__(
        self,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        pairs: Sequence[tuple[int, int]],
        carriers: Sequence[Carrier],
        initial: Initial,
        check_finite: bool = False,
        timing: Timing | None = None,
    ):
        """`carriers`: the first that takes the shapes of the feeds is used."""
        self._inputs, self._outputs, self._pairs = list(inputs), list(outputs), list(pairs)
        self._carriers = list(carriers)
        self._initial, self._check_finite = initial, check_finite
        carried, given = {before for before, _ in pairs}, {after for _, after in pairs}
        self._fed = {value.name: index for index, value in enumerate(inputs) if index not in carried}
        self._returned = [index for index in range(len(outputs)) if index not in given]
        self._state_names = [inputs[before].name for before, _ in pairs]
        self._seen: list[tuple[str, int, tuple[int, ...], np.dtype[Any]]] | None = None
        """The feeds that the carrier is prepared for: as long as they stay the same, they need no other check."""
        self._prepared: tuple[Carrier, Any] = (carriers[0], None)
        """That carrier, and where it has the states that the first step for these feeds takes."""
        self._now: tuple[Carrier, Any] | list[np.ndarray] | None = None
        """The states: those that a carrier has, and where; or arrays that no carrier has yet; None is the start. A step
        counts once this is assigned."""
        self.timing = timing
        """How its frames relate to those of the whole run; None if it is not known to have any."""
        self._frames = Frames(timing, inputs, outputs, pairs) if timing is not None else None
        self._may_warm_up = timing is not None
        """Whether the next step may give frames that are not shown: it looks, unless it is known that it does not."""
        self._last_fed: list[tuple[str, int, tuple[int, ...], np.dtype[Any]]] | None = None
        self._last_timeless: dict[int, np.ndarray] = {}
        """What inputs without frames were fed, by place; a flush feeds it again."""
        self._last_results: Kept | None = None
        """The outputs without frames of the last step, if a flush needs them."""
        self._lock = new_lock(self)

    def _after_fork(self, was_held: bool) -> None:
        if was_held:  # the carrier stopped in the middle of something
            self._seen = None

    @property
    def carry(self) -> dict[str, str]:
        """The pairs: {input: output}."""
        return {self._inputs[before].name: self._outputs[after].name for before, after in self._pairs}

    @property
    def output_names(self) -> list[str]:
        """What a step returns."""
        return [self._outputs[index].name for index in self._returned]

    @property
    def stride(self) -> int:
        """A step takes a multiple of so many frames."""
        return 1 if self.timing is None else self.timing.stride

    @property
    def delay(self) -> int:
        """By how many frames of the inputs the outputs are behind."""
        return 0 if self.timing is None else self.timing.delay

    def step(
        self, feeds: Mapping[str, Any], out: Sequence[np.ndarray] | None = None, borrow: bool = False
    ) -> list[Any]:
        """One step: the outputs that are not carried.

        Frames that are not ready are not among them: in the first steps of a stream with a `delay` the axis of time is
        shorter, and may have length 0. Results are new arrays; or, with `out`, these arrays, filled; or, with `borrow`,
        views that the next step, `reset` or `load` overwrites.

        Inside Pyodide feeds may be JavaScript's, as for `run`, and `out` a list of typed arrays. With `borrow` a page
        reads outputs where the kernels wrote them: `getBuffer()` of a result copies nothing.
        """
        feeds = mapping_of(feeds)
        now = after = None
        try:
            with self._lock:
                arguments = self._arguments(feeds)
                now = self._now
                carrier, at = now if type(now) is tuple else self._prepared
                fed = self._warmed_by(carrier.states(at)) if self._may_warm_up else None
                try:
                    outputs, at = carrier.step(arguments, at)
                except PlanError:  # in a branch that is taken now it does not hold for these sizes
                    if carrier is self._carriers[-1]:
                        raise
                    carrier, outputs, at = self._step_by_last(carrier.states(at), arguments)
                results = [outputs[index] for index in self._returned]
                if self._frames is not None:
                    results = self._shown(self._frames, results, fed, arguments)
                if self._check_finite:
                    self._require_finite(results, outputs, fed is not None)
                if out is not None:
                    results = self._filled(results, out)
                elif not borrow:
                    results = [_copied(result) for result in results]
                after = self._now = (carrier, at)
            return results
        except BaseException:
            if after is not None:  # a signal: the results do not get to the caller
                self._take_back(now, after)
            raise

    def _warmed_by(self, states: Sequence[np.ndarray]) -> int | None:
        """How many strides were fed before a step from these states; None if that is enough to show all that it gives,
        as it is from then on."""
        assert self._frames is not None
        fed = self._frames.fed(states)
        if fed < self._frames.warm_up:
            return fed
        self._may_warm_up = False
        return None

    def _shown(self, frames: Frames, results: list[Any], fed: int | None, arguments: list[Any]) -> list[Any]:
        """The results of a step without its warm-up. What a flush will need is kept."""
        if frames.timeless:
            self._last_timeless = {place: np.array(arguments[place]) for place in frames.timeless}
        if frames.keeps_results:
            self._last_results = frames.kept(results)
        return results if fed is None else frames.shown(results, fed)

    def knows(self, feeds: Mapping[str, np.ndarray], kept: Kept | None) -> None:
        """Of a stream that goes on from a snapshot: what the last step was fed and gave, for a flush."""
        arguments, _ = self._checked_arguments(feeds)
        with self._lock:
            self._last_fed = self._signature(arguments)
            if self._frames is not None:
                self._last_timeless = {place: arguments[place] for place in self._frames.timeless}
                self._last_results = kept
            if self._now is None and not self._pairs:
                self._now = []  # it has no states, and was fed

    def flush(self) -> list[Any]:
        """End the sequence: the frames that are left, so that all steps and this are the whole run. The next step
        begins a new sequence, as after `reset`.

        Inputs without frames are what they were in the last step. Outputs without frames are those of the whole run.
        """
        frames, before = self._frames, None
        if frames is None:
            raise ModelError("flush: it is not known that this stream has frames; no step has kept any back")
        try:
            with self._lock:
                known = _states_of(self._now)
                if known is None:
                    raise ModelError(NOTHING_FED)
                if frames.position is not None and not frames.fed(known):
                    raise ModelError(NOTHING_FED)
                arguments = self._flush_arguments(frames)
                states = self._now = [state.copy() for state in known]
                self._seen = None  # a carrier that had the states takes others
                results = self._flushed(frames, states, arguments)
                before, self._now, self._may_warm_up = states, None, True
            return results
        except BaseException:
            if before is not None:  # a signal
                with self._lock:
                    self._now = before if self._now is None else self._now
            raise

    def _flush_arguments(self, frames: Frames) -> list[Any]:
        shapes = {index: (shape, dtype) for _, index, shape, dtype in self._last_fed or self._declared_feeds(frames)}
        arguments = frames.flush_arguments(shapes, len(self._inputs))
        for place in frames.timeless:
            arguments[place] = self._last_timeless[place]
        return arguments

    def _declared_feeds(self, frames: Frames) -> list[tuple[str, int, tuple[int, ...], np.dtype[Any]]]:
        """For a stream that goes on from a snapshot and has not been fed."""
        found: list[tuple[str, int, Any, np.dtype[Any]]] = []
        for name, index in self._fed.items():
            value = self._inputs[index]
            axis = frames.timing.inputs.get(name)
            sizes = tuple(0 if place == axis else size for place, size in enumerate(value.shape or ()))
            if axis is None or value.dtype is None or not all(isinstance(size, int) for size in sizes):
                raise ModelError(f"flush: this stream was not fed yet, and how large {name!r} is has to be known")
            found.append((name, index, sizes, value.dtype.array_type))
        return found

    def _flushed(self, frames: Frames, states: list[np.ndarray], arguments: list[Any]) -> list[Any]:
        """What a flush from these states gives. The states themselves stay as they are."""
        fed = frames.fed(states)
        if frames.keeps_results and self._last_results is None:
            raise ModelError("flush: outputs without frames are those of the last step, and load() came after it")
        ending = list(states)
        if frames.end is not None:
            ending[frames.end] = np.full_like(states[frames.end], fed)
        shapes = [np.shape(argument) for argument in arguments]
        for (place, _), state in zip(self._pairs, states, strict=True):
            shapes[place] = state.shape
        carrier, at = self._started(tuple(shapes), ending)
        steps = []
        for _ in range(frames.flush_steps):
            try:
                outputs, at = carrier.step(arguments, at)
            except PlanError:
                if carrier is self._carriers[-1]:
                    raise
                carrier, outputs, at = self._step_by_last(carrier.states(at), arguments)
            steps.append([_copied(outputs[index]) for index in self._returned])
        results = [_copied(result) for result in frames.rest(frames.joined(steps), fed)]
        for number in frames.timeless_outputs if frames.keeps_results else ():
            results[number] = (self._last_results or {})[number]
        if self._check_finite:
            self._require_finite(results, [], False)
        return results

    def _take_back(self, before: Any, after: tuple[Carrier, Any]) -> None:
        """Undo a step, unless another thread has gone on from it."""
        with self._lock:
            if self._now is after:
                self._now = before

    @property
    def state(self) -> dict[str, np.ndarray]:
        """A snapshot: a copy of each state by the name of its input. Empty before the first step, unless loaded."""
        with self._lock:
            return {name: state.copy() for name, state in self._named_states()}

    def _named_states(self) -> Iterator[tuple[str, np.ndarray]]:
        return zip(self._state_names, _states_of(self._now) or [], strict=False)

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot. An empty one is the start."""
        with self._lock:
            states = self._checked_state(state) if state else None
            self._seen = self._last_results = None
            self._may_warm_up = self._frames is not None
            self._now = states

    def reset(self) -> None:
        """Start anew."""
        self.load({})

    def fork(self) -> Stream:
        """Another stream that goes on from where this one is."""
        carriers = [carrier.fork() for carrier in self._carriers]
        twin = Stream(
            self._inputs, self._outputs, self._pairs, carriers, self._initial, self._check_finite, self.timing
        )
        with self._lock:
            states = {name: state.copy() for name, state in self._named_states()}
            last = self._last_fed, self._last_timeless, self._last_results
        twin.load(states)
        twin._last_fed, twin._last_timeless, twin._last_results = last
        return twin

    def _arguments(self, feeds: Mapping[str, Any]) -> list[Any]:
        """Those of a step, for which a carrier is prepared then."""
        arguments: list[Any] = [None] * len(self._inputs)
        if self._seen is not None and len(feeds) == len(self._seen):
            for name, index, shape, dtype in self._seen:
                array = feeds.get(name)
                if type(array) is not np.ndarray or array.shape != shape or array.dtype != dtype:
                    break
                arguments[index] = array
            else:
                return arguments
        arguments, sizes = self._checked_arguments(feeds)
        if self._seen != self._signature(arguments):
            self._start(arguments, sizes)
        return arguments

    def _step_by_last(self, states: Sequence[np.ndarray], arguments: list[Any]) -> tuple[Carrier, list[Any], Any]:
        """A step by the carrier that takes all."""
        last = self._carriers[-1]
        return last, *last.step(arguments, last.start((), states))

    def _checked_arguments(self, feeds: Mapping[str, Any]) -> tuple[list[Any], dict[str, int]]:
        for name in feeds:
            if name not in self._fed:
                what = "is carried" if name in self._state_names else "is no input"
                raise ShapeError(f"{name!r} {what}; a step takes {list(self._fed)}")
        arguments: list[Any] = [None] * len(self._inputs)
        sizes: dict[str, int] = {}
        for name, index in self._fed.items():
            if name not in feeds:
                raise ShapeError(f"input {name!r} is missing")
            arguments[index] = checked_feed(self._inputs[index], feeds[name], sizes)
        if self._frames is not None:
            self._frames.check(arguments)
        return arguments, sizes

    def _start(self, arguments: list[Any], sizes: dict[str, int]) -> None:
        """Prepare a carrier for feeds of other shapes than before, with the states that there are or begin."""
        known = _states_of(self._now)
        states = self._initial(arguments) if known is None else [state.copy() for state in known]
        shapes = [np.shape(argument) for argument in arguments]
        for (before, _), state in zip(self._pairs, states, strict=True):
            checked_feed(self._inputs[before], state, sizes)
            shapes[before] = state.shape
        self._seen = None
        if known is not None:  # a carrier that has them may take others
            self._now = states
        self._prepared = self._started(tuple(shapes), states)
        self._seen = self._last_fed = self._signature(arguments)

    def _signature(self, arguments: list[Any]) -> list[tuple[str, int, tuple[int, ...], np.dtype[Any]]]:
        return [(name, index, arguments[index].shape, arguments[index].dtype) for name, index in self._fed.items()]

    def _started(self, shapes: tuple[tuple[int, ...], ...], states: Sequence[np.ndarray]) -> tuple[Carrier, Any]:
        *others, last = self._carriers
        for carrier in others:
            try:
                return carrier, carrier.start(shapes, states)
            except PlanError:
                continue
        return last, last.start(shapes, states)

    def _checked_state(self, state: Mapping[str, Any]) -> list[np.ndarray]:
        if state.keys() != set(self._state_names):
            raise ShapeError(f"a snapshot has {self._state_names}, this one has {list(state)}")
        sizes: dict[str, int] = {}
        return [np.array(checked_feed(self._inputs[b], state[self._inputs[b].name], sizes)) for b, _ in self._pairs]

    def _filled(self, results: list[Any], out: Sequence[np.ndarray]) -> list[Any]:
        out = sequence_of(out)
        if len(out) != len(results):
            raise ShapeError(f"out has {len(out)} arrays, a step returns {len(results)}")
        for target, result, index in zip(out, results, self._returned, strict=True):
            if isinstance(target, JsProxy):
                require_fits(target, result, self._outputs[index].name)
                continue
            if not isinstance(target, np.ndarray):
                raise ShapeError(f"out for {self._outputs[index].name!r} is a {type(target).__name__}, not an array")
            if target.shape != result.shape or target.dtype != result.dtype:
                raise ShapeError(
                    f"out for {self._outputs[index].name!r} is {target.dtype}{list(target.shape)}, the step gives "
                    f"{result.dtype}{list(result.shape)}"
                )
        for target, result in zip(out, results, strict=True):
            if isinstance(target, JsProxy):
                target.assign(result.reshape(-1))
            else:
                target[...] = result
        return list(out)

    def _require_finite(self, results: list[Any], outputs: list[Any], warms_up: bool) -> None:
        """Of results, and of the states among the outputs. In a stream with frames a history may have infinities that
        pad the sequence, and in the warm-up anything."""
        names = self.output_names
        for name, result in zip(names, results, strict=True):
            if result.dtype.kind == "f" and not np.isfinite(result).all():
                raise ModelError(f"output {name!r} is not finite; the stream is as it was before this step")
        for _, after in self._pairs if outputs and not warms_up else ():
            state, is_fine = outputs[after], np.isfinite if self._frames is None else _is_number
            if state.dtype.kind == "f" and not is_fine(state).all():
                name = self._outputs[after].name
                raise ModelError(f"output {name!r} is not finite; the stream is as it was before this step")


def _is_number(array: np.ndarray) -> np.ndarray:
    return ~np.isnan(array)


def _states_of(now: tuple[Carrier, Any] | list[np.ndarray] | None) -> list[np.ndarray] | None:
    if isinstance(now, tuple):
        carrier, at = now
        return carrier.states(at)
    return now


def _copied(output: Any) -> Any:
    return [_copied(item) for item in output] if isinstance(output, list) else output.copy()
