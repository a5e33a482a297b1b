"""NAM's ConvNet and Linear: plain stacks of convolutions."""

from __future__ import annotations

import numpy as np

from .activations import activated
from .entries import Entry, Weights
from .signals import Signal, SignalBuilder


def convnet(s: SignalBuilder, x: Signal, config: Entry, weights: Weights) -> Signal:
    """Blocks of a convolution of two taps, a norm by statistics of the training or none, and an activation."""
    config.refuse_others({"channels", "dilations", "batchnorm", "activation", "groups", "in_channels", "out_channels"})
    channels, has_norm = config.count("channels"), config.flag("batchnorm", False)
    groups, outputs = config.count("groups", 1), config.count("out_channels", 1)
    if config.count("in_channels", 1) != x.channels:
        raise config.wrong(f"it gets {x.channels} signals", "in_channels")
    for index, dilation in enumerate(config.counts("dilations")):
        block = Entry(config.data, f"block_{index}", config.op)
        if x.channels % groups or channels % groups:
            raise block.wrong(f"{x.channels} and {channels} channels cannot be cut into {groups} groups", "groups")
        w = weights.take((channels, x.channels // groups, 2), block.node)
        bias = None if has_norm else weights.take((channels,), block.node)
        if has_norm:
            w, bias = _normed(w, weights, block)
        y = s.conv(x, w, bias, block, dilation, groups)
        x = activated(s, y, config.get("activation"), block)
    head = Entry(config.data, "head", config.op)
    w = weights.take((outputs, channels, 1), head.node)
    return s.conv(x, w, weights.take((outputs,), head.node), head)


def _normed(w: np.ndarray, weights: Weights, block: Entry) -> tuple[np.ndarray, np.ndarray]:
    """The weights of a convolution with the norm behind it in them."""
    mean, variance, gamma, beta = (weights.take((len(w),), block.node).astype(np.float64) for _ in range(4))
    epsilon = float(weights.take((1,), block.node)[0])
    if (variance + epsilon <= 0).any():
        raise block.wrong("variance + epsilon is not above zero", "weights")
    scale = gamma / np.sqrt(variance + epsilon)
    return (w * scale[:, None, None]).astype(np.float32), (beta - mean * scale).astype(np.float32)


def linear(s: SignalBuilder, x: Signal, config: Entry, weights: Weights) -> Signal:
    """An impulse response."""
    config.refuse_others({"receptive_field", "bias", "in_channels", "out_channels"})
    for key in ("in_channels", "out_channels"):
        if config.count(key, 1) != 1:
            raise config.unsupported("it is for one signal", key)
    if x.channels != 1:
        raise config.wrong(f"it takes one signal and gets {x.channels}")
    taps = Entry(config.data, "taps", config.op)
    w = weights.take((1, 1, config.count("receptive_field")), taps.node)
    return s.conv(x, w, weights.take((1,), taps.node) if config.flag("bias", False) else None, taps)
