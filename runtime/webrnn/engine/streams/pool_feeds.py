"""What is handed in to a pool: handles, and feeds of one stream or of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from webrnn.errors import ModelError, ShapeError
from webrnn.ir import Value

from ..feeds import checked_feed
from .batching import Batched
from .carriers import Shapes
from .frames import Frames
from .rows import stream_first
from .streaming import StreamingModel


class PoolFeeds:
    """Checks feeds against what the streams of a model take."""

    def __init__(self, model: StreamingModel, batched: Batched | None, frames: Frames | None):
        carried = {before for before, _ in model.pairs}
        self.places = [index for index in range(len(model.inputs)) if index not in carried]
        """The places of the inputs that are fed."""
        self.values = [model.inputs[index] for index in self.places]
        self.axes: dict[str, int] | None = None
        """Which axis of each input counts streams, if one does."""
        if batched is not None:
            self.axes = {model.inputs[index].name: batched.inputs[index] for index in self.places}
        self._n_inputs, self._frames = len(model.inputs), frames

    def checked(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The feeds of one stream, in the order of the inputs. ShapeError says what is wrong with them."""
        self._require_names(feeds)
        sizes: dict[str, int] = {}
        checked = {}
        for value in self.values:
            array = checked[value.name] = checked_feed(value, feeds[value.name], sizes)
            if not isinstance(array, np.ndarray):
                raise ModelError(f"input {value.name!r} is not a tensor: a pool takes tensors")
            if self.axes is not None and array.shape[self.axes[value.name]] != 1:
                raise ShapeError(f"input {value.name!r} has shape {array.shape}: a submission is of one stream")
        if self._frames is not None:
            arguments: list[Any] = [None] * self._n_inputs
            for place, array in zip(self.places, checked.values(), strict=True):
                arguments[place] = array
            self._frames.check(arguments)
        return checked

    def stream_first(self, feeds: Mapping[str, Any], n: int) -> Mapping[str, Any]:
        """Arrays of many streams as [streams, *shape of one stream's], if they are as the model takes them; all others
        as they are."""
        if self.axes is None:
            return feeds
        found = dict(feeds)
        for value in self.values:
            array, axis = feeds.get(value.name), self.axes[value.name]
            if value.shape is None or type(array) is not np.ndarray:
                continue
            if array.ndim == len(value.shape) and array.shape[axis] == n:
                found[value.name] = stream_first(array, axis)
        return found

    def checked_many(self, feeds: Mapping[str, Any], n: int) -> dict[str, np.ndarray]:
        """The feeds of many streams, each [streams, *shape of one stream's], in the order of the inputs."""
        self._require_names(feeds)
        arrays = {}
        for value in self.values:
            array = checked_feed(Value(value.name, value.dtype, None, value.container), feeds[value.name], {})
            if not isinstance(array, np.ndarray):
                raise ModelError(f"input {value.name!r} is not a tensor: a pool takes tensors")
            arrays[value.name] = array
        arrays = dict(self.stream_first(arrays, n))
        for value in self.values:
            array = arrays[value.name]
            is_stacked = array.ndim == (array.ndim if value.shape is None else len(value.shape) + 1)
            if not is_stacked or not array.ndim or len(array) != n:
                raise ShapeError(
                    f"input {value.name!r} has shape {array.shape}: {n} streams take {self._layouts(value, n)}"
                )
        self.checked({name: array[0] for name, array in arrays.items()})
        return arrays

    def _layouts(self, value: Value, n: int) -> str:
        declared = ["?"] if value.shape is None else [str(size) for size in value.shape]
        stacked = f"[{', '.join([str(n), *declared])}]"
        if self.axes is None or value.shape is None:
            return stacked
        declared[self.axes[value.name]] = str(n)
        return f"[{', '.join(declared)}], or one array of each stacked along a new first axis"

    def _require_names(self, feeds: Mapping[str, Any]) -> None:
        names = [value.name for value in self.values]
        for name in feeds:
            if name not in names:
                raise ShapeError(f"{name!r} is not fed; a stream takes {names}")
        for name in names:
            if name not in feeds:
                raise ShapeError(f"input {name!r} is missing")

    def zeros(self, shapes: Shapes) -> dict[str, np.ndarray]:
        """Feeds of these shapes, without memory."""
        return {
            value.name: np.broadcast_to(np.zeros((), value.dtype.array_type if value.dtype else np.float32), shape)
            for value, shape in zip(self.values, shapes, strict=True)
        }


def handle_numbers(handles: Sequence[int] | np.ndarray) -> np.ndarray:
    """Handles as an array of int64."""
    try:
        array = np.asarray(handles)
    except ValueError:  # lists of different lengths
        array = np.zeros((1, 1))
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ModelError(f"handles are a list or an array of numbers that open() returned, not {handles!r:.80}")
    return array.astype(np.int64, copy=False)
