"""`Stream`: a model whose state lives between calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np

from webrnn.errors import ModelError, ShapeError
from webrnn.ir import SymbolicDim, Value

from .carriers import Carrier
from .feeds import checked_feed

Initial = Callable[[Sequence[Any]], list[np.ndarray]]
"""What the states start from, given the arguments of the first step (None in the place of states)."""


class Stream:
    """One stream of a model. `session.stream()` makes it.

    A step takes the inputs that are not carried and gives the outputs that are not; the others are the state. A step
    that raises leaves the state as it was.
    """

    def __init__(
        self,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        pairs: Sequence[tuple[int, int]],
        carrier: Carrier,
        initial: Initial,
        check_finite: bool = False,
    ):
        self._inputs, self._outputs, self._pairs = list(inputs), list(outputs), list(pairs)
        self._carrier, self._initial, self._check_finite = carrier, initial, check_finite
        carried, given = {before for before, _ in pairs}, {after for _, after in pairs}
        self._fed = {value.name: index for index, value in enumerate(inputs) if index not in carried}
        self._returned = [index for index in range(len(outputs)) if index not in given]
        self._state_names = [inputs[before].name for before, _ in pairs]
        self._seen: list[tuple[str, int, tuple[int, ...], np.dtype[Any]]] = []
        """What the feeds of the last step were: as long as they stay the same, they need no other check."""
        self._pending: dict[str, np.ndarray] | None = None
        """States that were given before the first step."""
        self._sizes: dict[str, int] = {}
        self._lock = Lock()

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
        """
        with self._lock:
            arguments = self._arguments(feeds)
            outputs = self._carrier.step(arguments)
            if self._check_finite:
                self._require_finite(outputs)
            if out is not None:
                results = self._filled(outputs, out)
            elif borrow:
                results = [outputs[index] for index in self._returned]
            else:
                results = [outputs[index].copy() for index in self._returned]
            self._carrier.commit()
            return results

    @property
    def state(self) -> dict[str, np.ndarray]:
        """A snapshot: a copy of each state by the name of its input. Empty before the first step, unless loaded."""
        with self._lock:
            if self._pending is not None:
                return {name: array.copy() for name, array in self._pending.items()}
            states = self._carrier.states()
            return {name: state.copy() for name, state in zip(self._state_names, states, strict=False)}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        with self._lock:
            arrays = self._checked_state(state)
            current = self._carrier.states() if self._seen else []
            same = [place.shape for place in current] == [arrays[name].shape for name in self._state_names]
            if current and same:
                self._pending = None
                for place, name in zip(current, self._state_names, strict=True):
                    place[...] = arrays[name]
            else:
                self._pending, self._seen = arrays, []

    def reset(self) -> None:
        """Start anew."""
        with self._lock:
            self._pending, self._seen, self._sizes = None, [], {}

    def fork(self) -> Stream:
        """Another stream that goes on from where this one is."""
        twin = Stream(self._inputs, self._outputs, self._pairs, self._carrier.fork(), self._initial, self._check_finite)
        state = self.state
        if state:
            twin.load(state)
        return twin

    def _arguments(self, feeds: Mapping[str, Any]) -> list[Any]:
        arguments: list[Any] = [None] * len(self._inputs)
        if self._seen and len(feeds) == len(self._seen):
            for name, index, shape, dtype in self._seen:
                array = feeds.get(name)
                if type(array) is not np.ndarray or array.shape != shape or array.dtype != dtype:
                    break
                arguments[index] = array
            else:
                return arguments
        return self._checked_arguments(feeds)

    def _checked_arguments(self, feeds: Mapping[str, Any]) -> list[Any]:
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
        self._start(arguments, sizes)
        self._seen = [
            (name, index, arguments[index].shape, arguments[index].dtype) for name, index in self._fed.items()
        ]
        return arguments

    def _start(self, arguments: list[Any], sizes: dict[str, int]) -> None:
        """Prepare the carrier for feeds of other shapes than before, with the states that it has or begins with."""
        running = bool(self._carrier.states()) and bool(self._sizes or self._seen)
        if running and self._pending is None:
            states = [state.copy() for state in self._carrier.states()]
        else:
            states = self._first_states(arguments)
        shapes = [np.shape(argument) for argument in arguments]
        for (before, _), state in zip(self._pairs, states, strict=True):
            shapes[before] = state.shape
        try:
            self._carrier.start(tuple(shapes))
        except Exception:
            self._pending, self._seen = dict(zip(self._state_names, states, strict=True)), []
            raise
        for place, state in zip(self._carrier.states(), states, strict=True):
            if place.shape != state.shape:
                raise ShapeError(f"a state of shape {state.shape} where {place.shape} is carried")
            place[...] = state
        self._pending, self._sizes = None, {**sizes, "": 1}

    def _first_states(self, arguments: list[Any]) -> list[np.ndarray]:
        if self._pending is not None:
            return [self._pending[name] for name in self._state_names]
        return self._initial(arguments)

    def _checked_state(self, state: Mapping[str, Any]) -> dict[str, np.ndarray]:
        if state.keys() != set(self._state_names):
            raise ShapeError(f"a snapshot has {self._state_names}, this one has {list(state)}")
        found = {}
        for before, _ in self._pairs:
            value = self._inputs[before]
            found[value.name] = np.array(checked_feed(value, state[value.name], {}))
        return found

    def _filled(self, outputs: list[Any], out: Sequence[np.ndarray]) -> list[Any]:
        if len(out) != len(self._returned):
            raise ShapeError(f"out has {len(out)} arrays, a step returns {len(self._returned)}")
        for target, index in zip(out, self._returned, strict=True):
            if target.shape != outputs[index].shape or target.dtype != outputs[index].dtype:
                raise ShapeError(
                    f"out for {self._outputs[index].name!r} is {target.dtype}{list(target.shape)}, the step gives "
                    f"{outputs[index].dtype}{list(outputs[index].shape)}"
                )
        for target, index in zip(out, self._returned, strict=True):
            target[...] = outputs[index]
        return list(out)

    def _require_finite(self, outputs: list[Any]) -> None:
        for value, output in zip(self._outputs, outputs, strict=True):
            if output.dtype.kind == "f" and not np.isfinite(output).all():
                raise ModelError(f"output {value.name!r} is not finite; the stream is as it was before this step")


def zeros_of(value: Value, sizes: Mapping[str, int]) -> np.ndarray:
    """A state of zeros. Sizes that no input of the first step names are 1: one stream."""
    if value.shape is None or value.dtype is None:
        raise ShapeError(f"the shape of state {value.name!r} is not declared: give it with load()")
    shape = [dim.substitute(sizes) if isinstance(dim, SymbolicDim) else dim for dim in value.shape]
    return np.zeros([dim if isinstance(dim, int) else 1 for dim in shape], value.dtype.array_type)
