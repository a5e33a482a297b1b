"""Sizes that a model leaves open: what each may be, the most plausible first."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from webrnn.ir import DType, Value
from webrnn.ir.timing import Timing

SECOND = 16000
"""Samples, as most models of speech have them."""

LENGTHS: dict[str, tuple[int, ...]] = {
    "samples": (
        SECOND, 10 * SECOND, 5 * SECOND, 3 * SECOND, 2 * SECOND, 1 << 14, SECOND // 2, 1536, 1024, 576, 512, 256, 128,
        20, 1280, 640, 480, 320, 160,
    ),
    "block": (512, 576, 256, 128, 1024, 480, 160, 320, 640, 1280, SECOND),
    "frames": (200, 100, 50, 16, 300, 1000, 76, 8, 4, 1),
    "tokens": (20, 16, 50, 8, 128, 2, 1),
    "image": (32, 64, 224, 320, 128, 160),
    "step": (1, 2, 4, 8, 16, 50, 100),
    "past": (1, 0, 8, 16),
    "batch": (1, 2),
}  # fmt: skip
"""By kind of size; `block` is of samples, for a model that carries states, `step` of frames, for a step of a stream."""

WORDS = {
    "samples": "samples, one second at 16 kHz",
    "block": "a block of samples, since states are carried",
    "frames": "frames of a sequence",
    "tokens": "tokens of a text",
    "image": "a side of an image",
    "step": "one frame, since a stream goes on from step to step",
    "past": "what a cache holds before the first step",
    "batch": "one item of a batch",
}
"""What is said of each kind."""

_BATCH = re.compile(r"batch|^bs$|stream", re.IGNORECASE)
_FIRST = re.compile(r"^[nb]$", re.IGNORECASE)
"""A batch if it is the first axis."""
_CHANNELS = re.compile(r"chan|^c$", re.IGNORECASE)
_PAST = re.compile(r"past|cache|memory", re.IGNORECASE)
_TIME = re.compile(r"time|seq|frame|step|len|^t$", re.IGNORECASE)
_SOUND = re.compile(r"wav|audio|sample|signal|speech|pcm|sound", re.IGNORECASE)

_COLOURS = (1, 3, 4)
"""The last axis of images whose channels come last."""

_FLOATS = (DType.FLOAT, DType.FLOAT16, DType.DOUBLE, DType.BFLOAT16)


@dataclass(frozen=True)
class OpenSize:
    """A size that a model leaves open, wherever it occurs."""

    name: str
    kind: str

    @property
    def is_time(self) -> bool:
        return self.kind not in ("batch", "past", "image")


def open_sizes(value: Value) -> dict[int, str]:
    """The names of the sizes that an input leaves open, by axis; one that the model does not name is `input.axis`.

    >>> from webrnn.ir import DType, Symbol
    >>> open_sizes(Value("x", DType.FLOAT, (2, Symbol("n"), None)))
    {1: 'n', 2: 'x.2'}
    """
    dims = enumerate(value.shape or ())
    return {axis: f"{value.name}.{axis}" if dim is None else str(dim) for axis, dim in dims if not isinstance(dim, int)}


def stride_sizes(inputs: Sequence[Value], timing: Timing, number: int = 1) -> dict[str, int]:
    """Of a stream by frames: so many strides, for the sizes that count frames."""
    axes = [(open_sizes(value), timing.inputs[value.name]) for value in inputs if value.name in timing.inputs]
    return {names[axis]: number * timing.stride for names, axis in axes if axis in names}


def sizes_of(
    inputs: Sequence[Value],
    states: Collection[str],
    known: Mapping[str, int],
    indices: Collection[str] = (),
    loops: frozenset[str] = frozenset(),
) -> list[OpenSize]:
    """All open sizes, each once. `known` are those that are no question any more, `indices` inputs that are tokens, and
    `loops` sizes that loops have as many steps as."""
    kinds: dict[str, str] = {}
    for value in inputs:
        if value.container:
            continue
        shape = tuple(
            known.get(name, dim) if (name := open_sizes(value).get(axis)) is not None else dim
            for axis, dim in enumerate(value.shape or ())
        )
        for axis, name in open_sizes(value).items():
            if name not in known and kinds.get(name, "batch") == "batch":
                kinds[name] = _kind(value, shape, axis, name, states, value.name in indices)
                if name in loops and kinds[name] == "batch":
                    kinds[name] = "tokens" if value.name in indices or value.dtype not in _FLOATS else "frames"
                if name not in loops and kinds[name] == "frames" and loops & set(open_sizes(value).values()):
                    kinds[name] = "batch"
    return [OpenSize(name, kind) for name, kind in kinds.items()]


def _kind(value: Value, shape: Sequence[object], axis: int, name: str, states: Collection[str], is_index: bool) -> str:
    """By what is beside it, and by its name."""
    called = "" if value.shape is not None and value.shape[axis] is None else name
    others = [dim for at, dim in enumerate(shape) if at != axis]
    is_open = [not isinstance(dim, int) for dim in others]
    is_first = axis == 0 and (len(shape) > 1 or _FIRST.search(called) is not None)
    is_batch = is_first and not _SOUND.search(called) and not _TIME.search(called)
    is_past = _PAST.search(called) is not None or (_PAST.search(value.name) is not None and not is_batch)
    if is_past and not (_BATCH.search(called) or _CHANNELS.search(called)):
        return "past"
    if _BATCH.search(called) or _CHANNELS.search(called) or value.name in states or is_batch:
        return "batch"
    if is_index or value.dtype not in _FLOATS:
        return "tokens" if len(shape) > 1 or is_index else "batch"
    if len(shape) == 4 and sum(is_open) > 1:
        return "batch" if axis == 1 and shape[-1] not in _COLOURS else "image"
    wide = [dim for dim in others if isinstance(dim, int) and dim > 1]
    if _SOUND.search(called) or (axis == len(shape) - 1 and not wide):
        return "block" if states else "samples"
    return "frames" if wide or len(shape) == 1 else "batch"


_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def arithmetic(name: str, sizes: Mapping[str, int]) -> int | None:
    """The number of a size whose name is made of names of other sizes, as exporters of decoders write them.

    >>> arithmetic("past_length + 1", {"past_length": 4}), arithmetic("a-b", {"a": 3})
    (5, None)
    """
    try:
        tree = ast.parse(name, mode="eval").body
        return None if isinstance(tree, ast.Name) else max(_number(tree, sizes), 0)
    except (SyntaxError, ValueError, KeyError, ZeroDivisionError, RecursionError):
        return None


def _number(tree: ast.expr, sizes: Mapping[str, int]) -> int:
    if isinstance(tree, ast.Name):
        return sizes[tree.id]
    if isinstance(tree, ast.Constant) and isinstance(tree.value, int):
        return tree.value
    if isinstance(tree, ast.BinOp) and type(tree.op) in _OPERATIONS:
        return _OPERATIONS[type(tree.op)](_number(tree.left, sizes), _number(tree.right, sizes))
    raise ValueError(name_of(tree))


def name_of(tree: ast.expr) -> str:
    return type(tree).__name__
