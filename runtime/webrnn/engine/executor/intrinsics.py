"""The ops of the webrnn domain that have no body: checks that ONNX's recurrent ops imply, and fused ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from webrnn.errors import ShapeError
from webrnn.ir.fused import BACKWARD_CELLS

from .fused_ops import FUSED_OPS


def expect_shape(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    """Its first input, if that has the given sizes, None is any, and the same as its second on some axes."""
    array, *rest = arguments
    sizes, what = attrs["sizes"], attrs["what"]
    shape = getattr(array, "shape", None)
    if shape is None or len(shape) != len(sizes):
        raise ShapeError(f"{what} has shape {shape}, it needs {len(sizes)} axes")
    if any(need is not None and have != need for have, need in zip(shape, sizes, strict=True)):
        needed = ", ".join("?" if need is None else str(need) for need in sizes)
        raise ShapeError(f"{what} has shape {shape}, it needs to be [{needed}]")
    for axis, other in attrs["same"]:
        if shape[axis] != rest[0].shape[other]:
            raise ShapeError(f"{what} has shape {shape}, its axis {axis} needs to be {rest[0].shape[other]}")
    return [array]


def sequence_mask(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    """[steps, batch, 1]: whether a step is within the length of its sequence."""
    lengths, x = arguments
    n_steps, batch = x.shape[:2]
    if lengths.shape != (batch,) or lengths.dtype.kind not in "iu":
        raise ShapeError(
            f"sequence_lens is {lengths.dtype}{list(lengths.shape)}, it needs one integer for each of {batch}"
        )
    if np.any(lengths < 0) or np.any(lengths > n_steps):
        raise ShapeError(f"sequence_lens is {lengths.tolist()}, each needs to be from 0 to the {n_steps} steps of X")
    return [(np.arange(n_steps)[:, None] < lengths)[:, :, None]]


def random(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    from webrnn.reference.random import random as draw  # few models draw

    return [draw(*arguments, **attrs)]


def choose(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    from webrnn.reference.random import choose as sample

    return [sample(*arguments)]


def small_linear(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    from webrnn.reference.small import small_linear as multiply  # few models have small weights

    x, weights, scales, bias = [*arguments, None][:4]
    return [multiply(x, weights, scales, bias, attrs["range"])]


def small_conv(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    from webrnn.reference.small import small_conv as convolve

    x, weights, scales, bias = [*arguments, None][:4]
    return [convolve(x, weights, scales, bias, attrs)]


def ring(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    from webrnn.reference.rings import ring as turn  # only streams have histories

    return [*turn(*arguments, **attrs)]


def sequence_join(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
    """The elements of all sequences, one behind the other."""
    return [[element for sequence in arguments for element in sequence]]


def backward_cell(op: str) -> Callable[[list[Any], dict[str, Any]], list[Any]]:
    def run(arguments: list[Any], attrs: dict[str, Any]) -> list[Any]:
        from . import backward_ops  # only what learns goes backwards

        return backward_ops.FUSED_OPS[op](arguments, attrs)

    return run


INTRINSICS: dict[str, Callable[[list[Any], dict[str, Any]], list[Any]]] = {
    "ExpectShape": expect_shape,
    "Random": random,
    "Ring": ring,
    "Choose": choose,
    "SequenceJoin": sequence_join,
    "SequenceMask": sequence_mask,
    "SmallConv": small_conv,
    "SmallLinear": small_linear,
    **FUSED_OPS,
    **{op: backward_cell(op) for op in BACKWARD_CELLS},
}
