"""Which axis of each input and output of a model counts independent streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product

from webrnn.ir import Graph, Symbol, SymbolicDim, Value
from webrnn.passes.infer_shapes import infer

BATCH = Symbol("streams")
MOST_ATTEMPTS = 64


@dataclass(frozen=True)
class BatchAxes:
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def find_batch_axes(graph: Graph) -> Iterator[BatchAxes]:
    """Ways to see the inputs of a graph as many streams side by side, the likeliest first.

    In each of them all outputs have one axis of streams as well. That is a necessary condition: whether the streams are
    independent of each other is for the caller to try.
    """
    options = [_options(value) for value in graph.inputs]
    if not options or not all(options):
        return
    for axes in islice(_likeliest_first(graph.inputs, options), MOST_ATTEMPTS):
        batched = with_batch(graph, axes)
        facts = infer(batched)
        found = [_axis_of_batch(facts.shape(value)) for value in batched.outputs]
        if all(axis is not None for axis in found):
            yield BatchAxes(axes, tuple(axis for axis in found if axis is not None))


def with_batch(graph: Graph, axes: Sequence[int]) -> Graph:
    """A copy of a graph that takes many streams."""
    copied = graph.copy()
    for value, axis in zip(copied.inputs, axes, strict=True):
        assert value.shape is not None
        value.shape = tuple(BATCH if i == axis else dim for i, dim in enumerate(value.shape))
    return copied


def _options(value: Value) -> list[int]:
    """The axes that may count streams: of size 1, of a named size, or of an unknown one."""
    if value.container or value.shape is None:
        return []
    return [axis for axis, dim in enumerate(value.shape) if dim == 1 or dim is None or isinstance(dim, SymbolicDim)]


def _likeliest_first(inputs: Sequence[Value], options: Sequence[list[int]]) -> Iterator[tuple[int, ...]]:
    """Assignments in which all axes have the same name first, then those near the front."""

    def same_name(axes: tuple[int, ...]) -> bool:
        dims = {value.shape[axis] for value, axis in zip(inputs, axes, strict=True) if value.shape is not None}
        return len(dims) == 1 and isinstance(next(iter(dims)), SymbolicDim)

    attempts = list(islice(product(*options), 4 * MOST_ATTEMPTS))
    return iter(sorted(attempts, key=lambda axes: (not same_name(axes), sum(axes))))


def _axis_of_batch(shape: Sequence[object] | None) -> int | None:
    if shape is None:
        return None
    axes = [axis for axis, dim in enumerate(shape) if dim == BATCH]
    return axes[0] if len(axes) == 1 else None
