"""`Stream`: a model whose state lives between calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from webrnn.errors import ModelError, PlanError, ShapeError
from webrnn.ir import Value

from ..feeds import checked_feed
from ..forking import new_lock
from ..javascript import JsProxy, mapping_of, require_fits, sequence_of
from .carriers import Carrier

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

    def step(
        self, feeds: Mapping[str, Any], out: Sequence[np.ndarray] | None = None, borrow: bool = False
    ) -> list[Any]:
        """One step: the outputs that are not carried.

        They are new arrays; or, with `out`, these arrays, filled; or, with `borrow`, views that the next step, `reset`
        or `load` overwrites.

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
                try:
                    outputs, at = carrier.step(arguments, at)
                except PlanError:  # in a branch that is taken now it does not hold for these sizes
                    if carrier is self._carriers[-1]:
                        raise
                    carrier, outputs, at = self._step_by_last(carrier.states(at), arguments)
                if self._check_finite:
                    self._require_finite(outputs)
                if out is not None:
                    results = self._filled(outputs, out)
                elif borrow:
                    results = [outputs[index] for index in self._returned]
                else:
                    results = [_copied(outputs[index]) for index in self._returned]
                after = self._now = (carrier, at)
            return results
        except BaseException:
            if after is not None:  # a signal: the results do not get to the caller
                self._take_back(now, after)
            raise

    def _take_back(self, before: Any, after: tuple[Carrier, Any]) -> None:
        """Undo a step, unless another thread has gone on from it."""
        with self._lock:
            if self._now is after:
                self._now = before

    @property
    def state(self) -> dict[str, np.ndarray]:
        """A snapshot: a copy of each state by the name of its input. Empty before the first step, unless loaded."""
        with self._lock:
            states = _states_of(self._now) or []
            return {name: state.copy() for name, state in zip(self._state_names, states, strict=False)}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot. An empty one is the start."""
        with self._lock:
            states = self._checked_state(state) if state else None
            self._seen = None
            self._now = states

    def reset(self) -> None:
        """Start anew."""
        self.load({})

    def fork(self) -> Stream:
        """Another stream that goes on from where this one is."""
        carriers = [carrier.fork() for carrier in self._carriers]
        twin = Stream(self._inputs, self._outputs, self._pairs, carriers, self._initial, self._check_finite)
        twin.load(self.state)
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
        self._seen = self._signature(arguments)

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

    def _filled(self, outputs: list[Any], out: Sequence[np.ndarray]) -> list[Any]:
        out = sequence_of(out)
        if len(out) != len(self._returned):
            raise ShapeError(f"out has {len(out)} arrays, a step returns {len(self._returned)}")
        for target, index in zip(out, self._returned, strict=True):
            if isinstance(target, JsProxy):
                require_fits(target, outputs[index], self._outputs[index].name)
                continue
            if not isinstance(target, np.ndarray):
                raise ShapeError(f"out for {self._outputs[index].name!r} is a {type(target).__name__}, not an array")
            if target.shape != outputs[index].shape or target.dtype != outputs[index].dtype:
                raise ShapeError(
                    f"out for {self._outputs[index].name!r} is {target.dtype}{list(target.shape)}, the step gives "
                    f"{outputs[index].dtype}{list(outputs[index].shape)}"
                )
        for target, index in zip(out, self._returned, strict=True):
            if isinstance(target, JsProxy):
                target.assign(outputs[index].reshape(-1))
            else:
                target[...] = outputs[index]
        return list(out)

    def _require_finite(self, outputs: list[Any]) -> None:
        for value, output in zip(self._outputs, outputs, strict=True):
            if output.dtype.kind == "f" and not np.isfinite(output).all():
                raise ModelError(f"output {value.name!r} is not finite; the stream is as it was before this step")


def _states_of(now: tuple[Carrier, Any] | list[np.ndarray] | None) -> list[np.ndarray] | None:
    if isinstance(now, tuple):
        carrier, at = now
        return carrier.states(at)
    return now


def _copied(output: Any) -> Any:
    return [_copied(item) for item in output] if isinstance(output, list) else output.copy()
