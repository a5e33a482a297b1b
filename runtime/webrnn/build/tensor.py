"""`Tensor`: a value of a model that is being built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from webrnn.errors import OptionError, ShapeError
from webrnn.ir import DType, SymbolicDim, Value

if TYPE_CHECKING:
    from .net import Net

END = 2**63 - 1


class Tensor:
    """What a layer takes and gives. Numbers, arrays and tensors can be added, multiplied and so on, as in numpy.

    >>> from webrnn import build
    >>> net = build.torch({"out.weight": np.ones((4, 4), np.float32)})
    >>> x = net.input("x", ("time", 4))
    >>> y = x + net.linear("out", x) * 0.5
    >>> y.shape, y[-1].shape, y.transpose(0, 1).shape
    (('time', 4), (4,), (4, 'time'))
    """

    __slots__ = ("net", "owner", "value")

    def __init__(self, net: Net, value: Value):
        self.net, self.value = net, value
        self.owner = net.core.builder
        """The graph that it is a value of: the model, or the body of a loop."""

    @property
    def shape(self) -> tuple[int | str | None, ...] | None:
        """The sizes; those that are open by their names, None where nothing is known."""
        if self.value.shape is None:
            return None
        return tuple(str(size) if isinstance(size, SymbolicDim) else size for size in self.value.shape)

    @property
    def rank(self) -> int:
        if self.value.shape is None:
            raise ShapeError(f"the rank of {self.value.name!r} is not known")
        return len(self.value.shape)

    @property
    def dtype(self) -> str:
        return "unknown" if self.value.dtype is None else str(self.value.dtype.array_type)

    def __repr__(self) -> str:
        return f"<Tensor {self.value.name} {self.dtype} {self.shape}>"

    def __bool__(self) -> bool:
        raise OptionError(
            "a tensor has no value before the model runs; to choose between two, use net.op('Where', ...)"
        )

    def __iter__(self) -> Any:
        raise OptionError("a tensor is one value; a recurrent layer of PyTorch's gives two: y, h = net.gru(...)")

    # ------------------------------------------------------------------------------------------------- arithmetic

    def _with(self, op: str, other: Any, swapped: bool = False) -> Tensor:
        if not isinstance(other, Tensor | int | float | np.ndarray | np.generic):
            raise OptionError(f"a tensor and a {type(other).__name__} cannot be combined")
        operands = (self, other) if not swapped else (other, self)
        return self.net.op(op, *(self.net.like(item, self) for item in operands))

    def __add__(self, other: Any) -> Tensor:
        return self._with("Add", other)

    def __radd__(self, other: Any) -> Tensor:
        return self._with("Add", other, swapped=True)

    def __sub__(self, other: Any) -> Tensor:
        return self._with("Sub", other)

    def __rsub__(self, other: Any) -> Tensor:
        return self._with("Sub", other, swapped=True)

    def __mul__(self, other: Any) -> Tensor:
        return self._with("Mul", other)

    def __rmul__(self, other: Any) -> Tensor:
        return self._with("Mul", other, swapped=True)

    def __truediv__(self, other: Any) -> Tensor:
        return self._with("Div", other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return self._with("Div", other, swapped=True)

    def __pow__(self, other: Any) -> Tensor:
        return self._with("Pow", other)

    def __matmul__(self, other: Any) -> Tensor:
        return self._with("MatMul", other)

    def __neg__(self) -> Tensor:
        return self.net.op("Neg", self)

    __array_ufunc__ = None  # so that array + tensor asks the tensor

    # ----------------------------------------------------------------------------------------------------- layout

    def __getitem__(self, index: Any) -> Tensor:
        """x[0], x[:, -1], x[..., 2:5], x[:, None], x[::-1]: integers, slices, one ellipsis and None."""
        items = list(index) if isinstance(index, tuple) else [index]
        for item in items:
            if not (item is None or item is Ellipsis or isinstance(item, slice) or _is_integer(item)):
                raise OptionError(f"{item!r} is not an index: integers, slices, ... and None are")
        if sum(item is Ellipsis for item in items) > 1:
            raise OptionError("an index has at most one ellipsis")
        named = sum(item is not None and item is not Ellipsis for item in items)
        if named > self.rank:
            raise OptionError(f"{named} indices for a tensor of shape {self.shape}")
        place = items.index(Ellipsis) if Ellipsis in items else len(items)
        items[place : place + 1] = [slice(None)] * (self.rank - named)
        axis = 0
        dropped: list[int] = []
        added: list[int] = []
        slices: list[tuple[int, int, int, int]] = []
        for position, item in enumerate(items):
            if item is None:
                added.append(position - len(dropped))
                continue
            if _is_integer(item):
                slices.append((axis, int(item), int(item) + 1 if item != -1 else END, 1))
                dropped.append(axis)
            elif item != slice(None):
                step = 1 if item.step is None else int(item.step)
                start = (0 if step > 0 else END) if item.start is None else int(item.start)
                stop = (END if step > 0 else -END) if item.stop is None else int(item.stop)
                slices.append((axis, start, stop, step))
            axis += 1
        result = self
        for axis, start, *_ in slices:
            size = None if self.value.shape is None else self.value.shape[axis]
            if axis in dropped and isinstance(size, int) and not -size <= start < size:
                raise OptionError(f"index {start} of an axis of size {size}")
        if slices:
            axes, starts, stops, steps = zip(*slices, strict=True)
            ints = self.net.ints
            result = self.net.op("Slice", self, ints(*starts), ints(*stops), ints(*axes), ints(*steps))
        if dropped:
            result = self.net.op("Squeeze", result, self.net.ints(*dropped))
        return result.unsqueeze(*added) if added else result

    def reshape(self, *sizes: int | str) -> Tensor:
        """Sizes may be numbers, one -1, and the names of open sizes of inputs: y.reshape("time", -1)."""
        given = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], tuple | list) else sizes
        return self.net.reshaped(self, tuple(given))

    def permute(self, *axes: int) -> Tensor:
        """The axes in another order, all of them named."""
        if sorted(axis % self.rank for axis in axes) != list(range(self.rank)):
            raise OptionError(f"{axes} is not an order of the {self.rank} axes of {self.shape}")
        return self.net.op("Transpose", self, perm=[axis % self.rank for axis in axes])

    def transpose(self, first: int, second: int) -> Tensor:
        """Two axes in each other's place, as in PyTorch."""
        order = list(range(self.rank))
        for axis in (first, second):
            self._require_axis(axis)
        order[first], order[second] = order[second], order[first]
        return self.permute(*order)

    def unsqueeze(self, *axes: int) -> Tensor:
        return self.net.op("Unsqueeze", self, self.net.ints(*axes))

    def squeeze(self, *axes: int) -> Tensor:
        for axis in axes:
            self._require_axis(axis)
        return self.net.op("Squeeze", self, self.net.ints(*axes))

    def flatten(self, start: int = 0) -> Tensor:
        """All axes from `start` on as one."""
        self._require_axis(start)
        kept = (self.shape or ())[: start % self.rank]
        known = tuple(size for size in kept if size is not None)
        if len(known) < len(kept):
            raise ShapeError(f"sizes of {self.shape} are not known before the model runs")
        return self.net.reshaped(self, (*known, -1))

    def mean(self, *axes: int, keepdims: bool = False) -> Tensor:
        return self._reduced("ReduceMean", axes, keepdims)

    def sum(self, *axes: int, keepdims: bool = False) -> Tensor:
        return self._reduced("ReduceSum", axes, keepdims)

    def max(self, *axes: int, keepdims: bool = False) -> Tensor:
        return self._reduced("ReduceMax", axes, keepdims)

    def min(self, *axes: int, keepdims: bool = False) -> Tensor:
        return self._reduced("ReduceMin", axes, keepdims)

    def _reduced(self, op: str, axes: tuple[int, ...], keepdims: bool) -> Tensor:
        for axis in axes:
            self._require_axis(axis)
        return self.net.op(op, self, self.net.ints(*(axes or range(self.rank))), keepdims=int(keepdims))

    def astype(self, dtype: str) -> Tensor:
        return self.net.op("Cast", self, to=int(DType.of(np.zeros(0, dtype))))

    def _require_axis(self, axis: int) -> None:
        if not _is_integer(axis) or not -self.rank <= axis < self.rank:
            raise OptionError(f"{axis!r} is no axis of a tensor of shape {self.shape}")


def _is_integer(item: Any) -> bool:
    return isinstance(item, int | np.integer) and not isinstance(item, bool)
