"""Reading and writing by index. Whether indices are in range is decided where they are known."""

from __future__ import annotations

from webrnn.ir import WEBRNN, Dim

from .check import ANY, Check, spell
from .registry import check


def in_range(c: Check, index: int, length: Dim | None, name: str = "indices") -> None:
    """That the elements of an operand are indices of an axis; negative ones count from its end."""
    if length is None:
        return
    for each in c.content(index) or ():
        if isinstance(each, int):
            message = f"{name} hold {each}, out of range for {length} elements"
            c.at_least(length, each + 1 if each >= 0 else -each, message)


@check("Gather")
def gather(c: Check) -> None:
    c.has_rank(0, "data", 1, ANY)
    axis, shape = c.axis_attribute(0, c.rank(0)), c.shape(0)
    if axis is not None and shape is not None:
        in_range(c, 1, shape[axis])


@check("GatherElements")
def gather_elements(c: Check) -> None:
    _elements(c)


def _elements(c: Check) -> None:
    c.has_rank(0, "data", 1, ANY)
    axis, shape, indices = c.axis_attribute(0, c.rank(0)), c.shape(0), c.shape(1)
    if axis is None or shape is None:
        return
    c.has_rank(1, "indices", len(shape))
    in_range(c, 1, shape[axis])
    for position, (have, most) in enumerate(zip(indices or (), shape, strict=False)):
        if position != axis:
            c.at_least(most, have, f"indices of shape {spell(indices)} exceed data of shape {spell(shape)}")


@check("ScatterElements")
def scatter_elements(c: Check) -> None:
    _elements(c)
    indices = c.shape(1)
    if indices is not None:
        c.has_shape(2, indices, "updates")


@check("GatherND")
def gather_nd(c: Check) -> None:
    c.has_rank(0, "data", 1, ANY)
    c.has_rank(1, "indices", 1, ANY)
    batch, data, indices = c.attribute("batch_dims", 0), c.shape(0), c.shape(1)
    c.that(batch >= 0, f"{batch} is negative", "batch_dims")
    if data is None or indices is None:
        return
    c.that(batch < min(len(data), len(indices)), f"{batch} is too many for the inputs", "batch_dims")
    for a, b in zip(data[:batch], indices[:batch], strict=True):
        c.equal(a, b, f"data {spell(data)} and indices {spell(indices)} differ in their batch dimensions")
    _depth(c, len(data) - batch)


def _depth(c: Check, most: int) -> None:
    indices = c.shape(1)
    assert indices is not None
    c.at_least(indices[-1], 1, f"indices of shape {spell(indices)} name no axis")
    c.at_least(most, indices[-1], f"indices of shape {spell(indices)} are too deep for {most} dimensions")


@check("ScatterND")
def scatter_nd(c: Check) -> None:
    c.has_rank(0, "data", 1, ANY)
    c.has_rank(1, "indices", 1, ANY)
    data, indices = c.shape(0), c.shape(1)
    if data is None or indices is None:
        return
    _depth(c, len(data))
    if isinstance(indices[-1], int):
        c.has_shape(2, (*indices[:-1], *data[indices[-1] :]), "updates")


@check("TensorScatter")
def tensor_scatter(c: Check) -> None:
    cache, update = c.shape(0), c.shape(1)
    axis = c.axis_attribute(-2, c.rank(0))
    c.that(axis != 0, "it must not be the batch dimension", "axis")
    if cache is None or update is None:
        return
    message = f"update {spell(update)} does not fit the cache {spell(cache)}"
    c.that(len(update) == len(cache), message)
    for position, (a, b) in enumerate(zip(cache, update, strict=True)):
        if position != axis:
            c.equal(a, b, message)
    c.has_shape(2, (update[0],), "write_indices")


@check("SequenceMask", domain=WEBRNN)
def sequence_mask(c: Check) -> None:
    """The lengths of sequences [steps, batch, ...]."""
    shape = c.shape(1)
    c.has_rank(0, "sequence_lens", 1)
    if shape is None or len(shape) < 2:
        return
    c.has_shape(0, shape[1:2], "sequence_lens")
    for length in c.content(0) or ():
        message = f"sequence_lens is {spell(c.content(0))}, each needs to be from 0 to the {shape[0]} steps of X"
        c.at_least(length, 0, message)
        c.at_least(shape[0], length, message)
