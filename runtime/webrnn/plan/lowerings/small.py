"""Products with small weights: what they give is written down in reference/small.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from webrnn.ir import WEBRNN, Node, Value

from ..lowering import Lowering, attribute, present, rule
from ..opcodes import INTEGER_PANEL, SMALL_ROWS
from ..views import View
from .axes import axes_of
from .channels_last import ONE, channels_second, pair_of, place_of, rows_of_channels, steps_of, with_zeros
from .integers import integer_panels
from .linear import rows_of


@rule("SmallLinear", domain=WEBRNN)
def _small_linear(l: Lowering, node: Node) -> None:
    x, w, output = present(node.inputs[0]), present(node.inputs[1]), present(node.outputs[0])
    l.require_equal(l.view(x).shape[-1], l.shape(w)[0])
    y = l.dense_output(output)
    multiply(l, node, rows_of(l, l.view(x)), l.reshaped(y, (y.rows, y.shape[-1])))


def multiply(l: Lowering, node: Node, x: View, y: View) -> None:
    """y[m, n] of x[m, k] and what else a SmallLinear has: as many positions as there are rows."""
    w, scale = present(node.inputs[1]), l.view(present(node.inputs[2]))
    windows, target = x.with_axis(0).with_axis(0), y.with_axis(0).with_axis(0)
    weights, scratch = packed(l, w), rounded_rows(l, constant_shape(l, w)[0])
    steps = steps_of([ONE, ONE])
    l.emit("small_rows", windows, weights, scale, _bias(l, node), target, scratch, *steps, node.attrs["range"], 0)


def _bias(l: Lowering, node: Node) -> View | None:
    bias = node.inputs[3] if len(node.inputs) > 3 else None
    return None if bias is None else l.dense(l.view(bias))


def rounded_rows(l: Lowering, terms: int) -> View:
    """Where rows go that are rounded to integers."""
    return l.temporary((SMALL_ROWS * (terms + terms % 2),), "i16")


def constant_shape(l: Lowering, w: Value) -> tuple[int, ...]:
    array = l.array(w)
    if array is None:
        raise l.refuse("its weights are not constant")
    return array.shape


def packed(
    l: Lowering, w: Value, which: str = "whole", arrange: Callable[[np.ndarray], np.ndarray] | None = None
) -> View:
    """Constant integers in panels, once they are arranged as a matrix [k, n]."""
    array = l.array(w)
    if array is None:
        raise l.refuse("its weights are not constant")
    return l.constant(
        l.once((id(array), f"panels of {which}"), array, lambda: small_panels(arrange(array) if arrange else array))
    )


def small_panels(weights: np.ndarray) -> np.ndarray:
    """Integers [k, n] as instructions take them. Of 8-bit weights two columns share a number of 16 bits: the weight of
    the first half of a panel, plus 128, is its low byte.

    >>> small_panels(np.array([[1], [2]], np.int8))[:4], small_panels(np.zeros((3, 17), np.int16)).size
    (array([-127,    0, -126,    0], dtype=int8), 128)
    """
    panels = integer_panels(weights)
    if weights.dtype == np.int16:
        return panels
    halves = panels.reshape(-1, 2, INTEGER_PANEL // 2, 2)
    return np.stack([halves[:, 0] ^ np.int8(-128), halves[:, 1]], axis=-1).reshape(-1)


@rule("SmallConv", domain=WEBRNN)
def _small_conv(l: Lowering, node: Node) -> None:
    x, w, scale, output = (present(value) for value in (*node.inputs[:3], node.outputs[0]))
    group, view, bias = attribute(node, "group", 1), l.view(x), _bias(l, node)
    filters, depth, *kernel = constant_shape(l, w)
    l.require_equal(view.shape[1], depth * group)
    axes = pair_of(axes_of(l, node, kernel, view.shape[2:], l.shape(output)[2:]))
    if not all(axis.is_stepped for axis in axes):
        raise l.refuse("its windows are too far apart")
    rows = with_zeros(l, rows_of_channels(view), axes)
    target = place_of(l, rows, filters, axes, l.destinations.get(output))
    scratch = rounded_rows(l, depth * axes[0].kernel * axes[1].kernel)
    width = filters // group
    for g in range(group):
        own = slice(g * width, (g + 1) * width)
        weights = packed(l, w, f"group {g}", lambda array, own=own: _as_matrix(array[own]))  # type: ignore[misc]
        l.emit(
            "small_rows", rows.sliced(3, g * depth, depth), weights, l.view(scale).sliced(0, g * width, width),
            bias and bias.sliced(0, g * width, width), target.sliced(3, g * width, width), scratch, *steps_of(axes),
            node.attrs["range"], 0,
        )  # fmt: skip
    l.views[output] = channels_second(target, view.rank)


def _as_matrix(kernels: np.ndarray) -> np.ndarray:
    """[filters, channels, ...] as [taps * channels, filters]: the channels of a tap lie behind each other."""
    return np.moveaxis(kernels, (0, 1), (-1, -2)).reshape(-1, kernels.shape[0])
