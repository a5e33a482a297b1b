"""What of a session is profiled: a run, or a step of a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from webrnn.engine.feeds import checked_feed
from webrnn.engine.session import InferenceSession
from webrnn.engine.streams.carry import Carry
from webrnn.errors import ShapeError

from .profiler import TOTAL_SECONDS, Profile, profile


class Subject:
    """A session, or with `carry`, as for `session.stream`, a stream of it; docs/profiling.md has an example."""

    def __init__(self, session: InferenceSession, carry: Carry | None = None):
        self._session = session
        self._model = None if carry is None else session._streaming(carry)
        self.program: Any = session._program if self._model is None else self._model.program
        self.inputs = list(session.inputs if self._model is None else self._model.inputs)
        """Of the program: states that a stream carries are among them."""
        self.timing = None if self._model is None else self._model.timing
        """Of a stream by frames."""
        self.carried = frozenset(self.inputs[before].name for before, _ in (self._model.pairs if self._model else ()))
        """The inputs that are states of a stream."""

    def profile(
        self,
        feeds: Mapping[str, Any],
        runs: int | None = None,
        name: str = "model",
        seconds: float = TOTAL_SECONDS,
    ) -> Profile:
        """Profile on these feeds, one for each input, for about so many seconds; `runs` are those of a round."""
        names = [value.name for value in self.inputs]
        for given in feeds:
            if given not in names:
                raise ShapeError(f"the model has no input {given!r}; it has {names}")
        sizes: dict[str, int] = {}
        arguments = [checked_feed(value, feeds.get(value.name), sizes) for value in self.inputs]
        found = profile(name, self.program, arguments, self._session.backend, self._call(feeds), runs, seconds)
        found.notes = self._notes()
        return found

    def _call(self, feeds: Mapping[str, Any]) -> Callable[[], Any]:
        if self._model is None:
            return lambda: self._session.run(None, feeds)
        frame = {name: feed for name, feed in feeds.items() if name not in self.carried}
        stream = self._model.stream()
        return lambda: stream.step(frame)

    def _notes(self) -> Sequence[str]:
        return list(dict.fromkeys(self._session._notes))
