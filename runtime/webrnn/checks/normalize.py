"""Normalizations: scales and biases have an element for each channel, or are repeated along what is normalized."""

from __future__ import annotations

from webrnn.errors import ModelError, UnsupportedOp
from webrnn.ir import DType

from .check import ANY, Check
from .registry import check


@check("BatchNormalization")
def batch_normalization(c: Check) -> None:
    c.has_rank(0, "X", 1, ANY)
    shape = c.shape(0)
    if shape is None:
        channels = next((c.shape(index) for index in range(1, 5) if c.shape(index) is not None), None)
    else:
        channels = (shape[1] if len(shape) > 1 else 1,)
    for index, name in enumerate(("scale", "B", "input_mean", "input_var"), 1):
        c.has_rank(index, name, 1)
        if channels is not None:
            c.has_shape(index, channels, name)
    most = 3 if c.attribute("training_mode", 0) else 1
    c.that(c.n_outputs <= most, f"it gives {most} outputs, the node has {c.n_outputs}", "training_mode", ModelError)


@check("InstanceNormalization")
def instance_normalization(c: Check) -> None:
    c.has_rank(0, "input", 3, ANY)
    _per_channel(c, ("scale", "B"))


@check("GroupNormalization")
def group_normalization(c: Check) -> None:
    _float_stash(c)
    c.has_rank(0, "X", 2, ANY)
    groups, shape = c.attrs["num_groups"], c.shape(0)
    c.that(groups >= 1, f"{groups} is not positive", "num_groups")
    if shape is not None:
        c.multiple(shape[1], groups, f"{shape[1]} channels cannot be divided into {groups} groups", "num_groups")
    _per_channel(c, ("scale", "bias"))


def _per_channel(c: Check, names: tuple[str, str]) -> None:
    shape = c.shape(0)
    for index, name in enumerate(names, 1):
        c.has_shape(index, (None if shape is None else shape[1],), name)


@check("LayerNormalization", "RMSNormalization")
def layer_normalization(c: Check) -> None:
    _float_stash(c)
    axis, shape = c.axis_attribute(-1, c.rank(0)), c.shape(0)
    if axis is not None:
        c.broadcast_to(1, shape, "scale")
        c.broadcast_to(2, shape, "B")


def _float_stash(c: Check) -> None:
    stash = c.attribute("stash_type", DType.FLOAT)
    c.that(stash == DType.FLOAT, f"{stash} is not float32 (1)", "stash_type", UnsupportedOp)


@check("MeanVarianceNormalization")
def mean_variance_normalization(c: Check) -> None:
    c.axes(c.attribute("axes", (0, 2, 3)), c.rank(0), attribute="axes")


@check("LRN")
def local_response_normalization(c: Check) -> None:
    c.has_rank(0, "X", 2, ANY)
    c.that(c.attrs["size"] >= 1, f"it must be positive, not {c.attrs['size']}", "size", ModelError)


@check("Dropout")
def dropout(c: Check) -> None:
    for index, name in ((1, "ratio"), (2, "training_mode")):
        if c.given(index):
            c.is_single(index, name)
