"""The weights of a recurrent node, cut for one direction and laid out for `x · weights`."""

from __future__ import annotations

import numpy as np

from webrnn.ir import GraphBuilder, Value

from .operands import expect_shape


class WeightCutter:
    """Constant weights become other constants, views where possible; others are cut by nodes when the graph runs."""

    def __init__(self, builder: GraphBuilder, n_gates: int, n_directions: int, hidden: int, prefix: str):
        self.b = builder
        self.n_gates, self.n_directions, self.hidden, self.prefix = n_gates, n_directions, hidden, prefix

    def input_weights(self, w: Value, direction: int) -> Value:
        """W: [directions, gates * hidden, inputs] to [inputs, gates * hidden]."""
        return self._transposed(w, direction, None, "W")

    def recurrent_weights(self, r: Value, direction: int) -> Value:
        """R: [directions, gates * hidden, hidden] to [hidden, gates * hidden]."""
        return self._transposed(r, direction, self.hidden, "R")

    def bias(self, b: Value | None, half: int, direction: int) -> Value | None:
        """B: [directions, 2 * gates * hidden] to the [gates * hidden] of W (half 0) or of R (half 1)."""
        size = self.n_gates * self.hidden
        return self._row(b, direction, 2 * size, slice(half * size, half * size + size), "B")

    def peepholes(self, p: Value | None, direction: int) -> Value | None:
        """P: [directions, 3 * hidden] to [3 * hidden]."""
        return self._row(p, direction, 3 * self.hidden, slice(0, 3 * self.hidden), "P")

    def _transposed(self, whole: Value, direction: int, columns: int | None, name: str) -> Value:
        whole = expect_shape(self.b, whole, (self.n_directions, self.n_gates * self.hidden, columns), name, self.prefix)
        array = self.b.array_of(whole)
        if array is not None:
            return self.b.constant(array[direction].T, f"{self.prefix}_{name}T", whole.dtype)
        one = self.b.op("Gather", whole, self.b.constant(np.int64(direction), "direction"), axis=0)
        return self.b.op("Transpose", one, perm=[1, 0], name=f"{self.prefix}_{name}T")

    def _row(self, whole: Value | None, direction: int, columns: int, part: slice, name: str) -> Value | None:
        if whole is None:
            return None
        whole = expect_shape(self.b, whole, (self.n_directions, columns), name, self.prefix)
        array = self.b.array_of(whole)
        if array is not None:
            return self.b.constant(array[direction, part], f"{self.prefix}_{name}", whole.dtype)
        one = self.b.op("Gather", whole, self.b.constant(np.int64(direction), "direction"), axis=0)
        return slice_last(self.b, one, part.start, part.stop)


def slice_last(b: GraphBuilder, value: Value, start: int, stop: int) -> Value:
    """value[..., start:stop]; a constant stays one."""
    array = b.array_of(value)
    if array is not None:
        return b.constant(array[..., start:stop], value.name, value.dtype)
    return b.op("Slice", value, b.ints(start), b.ints(stop), b.ints(-1))


def added(b: GraphBuilder, left: Value, right: Value) -> Value:
    """left + right; of two constants another one."""
    left_array, right_array = b.array_of(left), b.array_of(right)
    if left_array is not None and right_array is not None:
        with np.errstate(all="ignore"):
            return b.constant(left_array + right_array, left.name, left.dtype)
    return b.op("Add", left, right)


def scalar_like(b: GraphBuilder, number: float, value: Value) -> Value:
    """A scalar of the element type of `value`."""
    if value.dtype is not None:
        return b.constant(np.array(number, value.dtype.array_type), "scalar")
    return b.op("CastLike", b.constant(np.float32(number), "scalar"), value)
