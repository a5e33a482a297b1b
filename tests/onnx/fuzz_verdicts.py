"""What each backend makes of a model, and whether they agree.

A verdict does not depend on when a model is refused: opening it and running it are one thing here. Backends agree if
all refuse, or if all give results of the same types and shapes whose numbers are as near as the arithmetic allows.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import webrnn
from tests.backends import BACKENDS, KERNELS
from tests.onnx.fuzz_feeds import make_feeds
from webrnn import reference

RELATIVE, ABSOLUTE = 1e-4, 1e-5
HALF = 5e-3
"""Of results of 16 bits."""
SIZES_FROM_NUMBERS = {"NonZero", "Unique", "Compress"}
TOO_LARGE = "bytes; the limit is"
"""How a backend says that a result is too large. One that need not make it, since nobody reads it, goes on."""
LARGEST = 1e15
DIVISIONS = {"Div", "Reciprocal", "Pow"}
"""Pow too: of a negative number it is one only if the exponent is whole, which a last bit decides."""
CANCELLING = {"DFT", "STFT"}
"""Sums of as many terms as the axis is long: what is 0 in one order of them is a rounding error in another."""
NUDGES = (1e-7, -1e-7, *[1e-6] * 20, *[1e-5] * 10)
"""By how much of their size inputs are moved, each up or down by chance, to see how far results move."""


@dataclass
class Outcome:
    """What a backend did with the feeds of one run."""

    results: list[Any] | None = None
    error: BaseException | None = None

    @property
    def verdict(self) -> str:
        if self.results is not None:
            return "ran"
        return "refused" if isinstance(self.error, webrnn.Error) else "foreign"

    def __str__(self) -> str:
        if self.results is not None:
            return "ran: " + "; ".join(_spell(result) for result in self.results)
        return f"{self.verdict}: {type(self.error).__name__}: {str(self.error)[:300]}"


@dataclass
class Finding:
    kind: str
    """foreign, verdict, result, bits, onnxruntime"""
    where: str
    """What is the same for all findings of one cause: an op, or a place in the code, and which backends did what."""
    what: str

    @property
    def signature(self) -> str:
        return f"{self.kind}: {self.where}"


@dataclass
class Trial:
    """A model on all backends, with several feeds."""

    data: bytes
    known: Mapping[str, Any]
    seed: int
    limits: webrnn.Limits
    backends: Sequence[str] = BACKENDS
    feeds: list[dict[str, Any]] = field(default_factory=list)
    outcomes: list[dict[str, Outcome]] = field(default_factory=list)
    """For each of the feeds, by backend."""

    def run(self, n_feeds: int = 2) -> None:
        sessions: dict[str, Any] = {}
        for backend in self.backends:
            sessions[backend] = _attempt(
                lambda backend=backend: webrnn.InferenceSession(self.data, backend=backend, limits=self.limits)
            )
        opened = [item for item in sessions.values() if isinstance(item, webrnn.InferenceSession)]
        if not opened:
            self.outcomes.append({backend: Outcome(error=error) for backend, error in sessions.items()})
            self.feeds.append({})
            return
        for index in range(n_feeds):
            feeds = make_feeds(opened[0].get_inputs(), self.known, 2 * self.seed + index)
            self.feeds.append(feeds)
            self.outcomes.append({backend: _outcome(item, feeds) for backend, item in sessions.items()})

    @property
    def ran(self) -> bool:
        return any(outcome.results is not None for row in self.outcomes for outcome in row.values())

    def findings(self) -> list[Finding]:
        for row in self.outcomes:
            found = [_foreign(backend, row[backend]) for backend in row if row[backend].verdict == "foreign"]
            found = found or _verdict_difference(row)
            if found:
                return found
        found = []
        for feeds, row in zip(self.feeds, self.outcomes, strict=True):
            if all(outcome.results is not None for outcome in row.values()):
                found += self._result_difference(feeds, row)
        return found[:1]

    def _result_difference(self, feeds: dict[str, Any], row: Mapping[str, Outcome]) -> list[Finding]:
        """Of backends whose results differ by more than they do when inputs and constants move by a last bit."""
        wanted = row["numpy"].results
        assert wanted is not None
        for backend in KERNELS:
            if backend not in row:
                continue
            results = row[backend].results
            assert results is not None
            what = difference(*_without_empty(wanted, results))
            if what.startswith("numbers") and (
                self.is_sensitive(feeds, wanted, results) or self._transforms_infinities(feeds)
            ):
                continue
            if what.startswith("shape") and self.counts_numbers():
                continue
            if what:
                return [Finding("result", f"{backend}, {self.ops()}", what)]
        first, *others = [row[backend].results for backend in KERNELS if backend in row]
        for other in others:
            what = difference(first or [], other or [], exact=True)
            if what:
                return [Finding("bits", f"{' and '.join(KERNELS)}, {self.ops()}", what)]
        return []

    def is_sensitive(self, feeds: dict[str, Any], wanted: list[Any], results: list[Any]) -> bool:
        """Whether numpy's own results move as far when its inputs, and the results of each op, move a little."""
        spread = [np.zeros(np.shape(item)) for item in wanted]
        session = webrnn.InferenceSession(self.data, backend="numpy", limits=self.limits, disable=["all"])
        for index, nudge in enumerate(NUDGES):
            rng = np.random.default_rng(index)
            moved = {name: _nudged(value, nudge, rng) for name, value in feeds.items()}
            with _errors_of_each_op(nudge, rng):
                outcome = _outcome(session, moved)
            if outcome.results is None or difference(wanted, outcome.results).startswith("shape"):
                return True
            pairs = zip(wanted, outcome.results, strict=True)
            spread = [np.maximum(far, _distance(a, b)) for far, (a, b) in zip(spread, pairs, strict=True)]
        if DIVISIONS.intersection(self.ops().split()):  # what cancels to 0 in one order of operations, and is divided
            spread = [
                np.where(np.isnan(a) | np.isnan(b), np.inf, far) for far, a, b in _floats(spread, wanted, results)
            ]
        return not difference(wanted, results, slack=[10 * item for item in spread])

    def _transforms_infinities(self, feeds: dict[str, Any]) -> bool:
        """Which results of a transform an infinity reaches, or what soon is one, depends on the order of sums; those of
        a transposed convolution, on whether it is a convolution of what is padded with zeros."""
        if not {"DFT", "STFT", "ConvTranspose"}.intersection(self.ops().split()):
            return False
        graph = webrnn.onnx.reader.read_model(self.data)
        values = [*feeds.values(), *(array for inner in graph.walk() for array in inner.constants.values())]
        numbers = [value for value in values if isinstance(value, np.ndarray) and value.dtype.kind in "fc"]
        return not all(is_finite(value) and not np.any(np.abs(value) > LARGEST) for value in numbers)

    def counts_numbers(self) -> bool:
        """Whether sizes depend on numbers that another op has rounded."""
        ops = self.ops().split()
        return len(ops) > 1 and not SIZES_FROM_NUMBERS.isdisjoint(ops)

    def ops(self) -> str:
        """Which ops the model has: what a difference in results is grouped by."""
        try:
            graph = webrnn.onnx.reader.read_model(self.data)
        except webrnn.Error:
            return "?"
        return " ".join(dict.fromkeys(node.op for inner in graph.walk() for node in inner.nodes))[:80]


def _floats(spread: list[Any], *results: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for far, *each in zip(spread, *results, strict=True):
        yield far, *(item if item.dtype.kind == "f" else np.zeros(item.shape) for item in each)


def _without_empty(wanted: Sequence[Any], results: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Without outputs that both have no elements, types and ranks being the same: the other sizes of what a loop of no
    steps gives are whatever is declared, or 0."""
    if len(wanted) != len(results):
        return wanted, results
    pairs = [
        (a, b)
        for a, b in zip(wanted, results, strict=True)
        if not (are_empty([a, b]) and a.dtype == b.dtype and a.ndim == b.ndim)
    ]
    return [a for a, _ in pairs], [b for _, b in pairs]


def are_empty(results: Sequence[Any]) -> bool:
    return all(isinstance(item, np.ndarray) and not item.size for item in results)


@contextmanager
def _errors_of_each_op(nudge: float, rng: np.random.Generator) -> Iterator[None]:
    """Let the results of all ops in numpy be a little wrong."""
    exact = reference.call

    def inexact(op: str, *arguments: Any) -> list[Any]:
        return [_nudged(result, nudge, rng, op in CANCELLING) for result in exact(op, *arguments)]

    reference.call = inexact
    try:
        yield
    finally:
        reference.call = exact


def _attempt(action: Any) -> Any:
    try:
        return action()
    except Exception as error:
        return error


def _outcome(session: Any, feeds: dict[str, Any]) -> Outcome:
    if isinstance(session, Exception):
        return Outcome(error=session)
    result = _attempt(lambda: session.run(None, feeds))
    return Outcome(error=result) if isinstance(result, Exception) else Outcome(results=result)


def _foreign(backend: str, outcome: Outcome) -> Finding:
    error = outcome.error
    assert error is not None
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "webrnn" in frame.filename]
    last = frames[-1] if frames else None
    place = f"{last.filename.partition('webrnn/')[2].rpartition('webrnn/')[2]}:{last.name}" if last else "?"
    return Finding("foreign", f"{backend} {type(error).__name__} in {place}", str(error)[:200])


def _verdict_difference(row: Mapping[str, Outcome]) -> list[Finding]:
    if len({outcome.verdict for outcome in row.values()}) == 1:
        return []
    refused = {backend: outcome.error for backend, outcome in row.items() if outcome.results is None}
    error = next(iter(refused.values()))
    assert isinstance(error, webrnn.Error)
    if all(TOO_LARGE in str(each) for each in refused.values()):
        return []
    message = re.sub(r"'[^']*'|\"[^\"]*\"", "_", re.sub(r"\[[^]]*\]|\([^)]*\)", "_", error.message))
    message = re.sub(r"-?\d+", "#", message)[:70]
    return [Finding("verdict", f"{'+'.join(refused)} refuses, {error.op or '?'}: {message}", str(error)[:200])]


def difference(wanted: Sequence[Any], results: Sequence[Any], exact: bool = False, slack: Any = None) -> str:
    """How results differ: in their types, shapes or numbers; empty if they do not."""
    if len(wanted) != len(results):
        return f"shape: {len(wanted)} and {len(results)} results"
    for index, (a, b) in enumerate(zip(wanted, results, strict=True)):
        if isinstance(a, list) or isinstance(b, list) or a is None or b is None:
            if type(a) is not type(b) or (isinstance(a, list) and difference(a, b, exact)):
                return f"shape: output {index}: {_spell(a)} and {_spell(b)}"
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"shape: output {index}: {a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}"
        if exact or a.dtype.kind not in "fc":
            near = _equal(a, b)
        else:
            near = _near(a, b)
        if slack is not None:
            near = near | (_distance(a, b) <= slack[index])
        if not np.all(near):
            at = tuple(int(i) for i in np.argwhere(~np.asarray(near))[0])
            return f"numbers: output {index} at {list(at)}: {a[at]!r} and {b[at]!r}"
    return ""


def _equal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind in "fc":
        return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))
    return np.asarray(a == b)


def _near(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    relative = HALF if a.dtype.itemsize == 2 else RELATIVE
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    with np.errstate(all="ignore"):
        close = np.abs(x - y) <= relative * np.abs(x) + max(ABSOLUTE, relative / 10) * max(1.0, _typical(x))
    return np.asarray(_equal(a, b) | close)


def _typical(x: np.ndarray) -> float:
    """The size of the numbers of a result; sums of them may cancel."""
    finite = np.abs(x[np.isfinite(x)])
    return float(finite.max()) if finite.size else 1.0


def _distance(a: Any, b: Any) -> np.ndarray:
    if not isinstance(a, np.ndarray) or a.dtype.kind not in "iufcb":
        return np.zeros(np.shape(a))
    with np.errstate(all="ignore"):
        distance = np.abs(a.astype(np.complex128) - b.astype(np.complex128))
    return np.where(_equal(a, b), 0.0, np.where(np.isfinite(distance), distance, np.inf))


def _nudged(value: Any, nudge: float, rng: np.random.Generator, cancels: bool = False) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return value
    with np.errstate(all="ignore"):
        if cancels:
            moved = value + _typical(value) * nudge * rng.choice((-1, 1), value.shape)
            return moved.astype(value.dtype)
        return (value * (1 + nudge * rng.choice((-1, 1), value.shape))).astype(value.dtype)


def is_finite(value: Any) -> bool:
    """Whether a feed has only numbers."""
    if isinstance(value, list):
        return all(map(is_finite, value))
    return not isinstance(value, np.ndarray) or value.dtype.kind not in "fc" or bool(np.isfinite(value).all())


def _spell(result: Any) -> str:
    if isinstance(result, np.ndarray):
        return f"{result.dtype}{list(result.shape)} {np.array2string(result.reshape(-1)[:6], separator=', ')}"
    return repr(result)[:80]
