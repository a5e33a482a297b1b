"""Layers of PyTorch's without recurrence. Each method is called as the module is made and called, sizes left out: these
are in the weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from webrnn.errors import OptionError, ShapeError

from .activations import Activations
from .tensor import Tensor
from .torch_weights import Module
from .weights import spelled

_PAD_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


class TorchLayers(Activations):
    """Layers by the prefix of their weights in a state_dict: net.linear("encoder.out", x)."""

    def module(self, prefix: str) -> Module:
        return Module(self.weights, self.full(prefix), self.core.dtype)

    def linear(self, prefix: str, x: Tensor) -> Tensor:
        """torch.nn.Linear."""
        with self.layer("Linear", self.full(prefix)):
            module = self.module(prefix)
            weight = module.get("weight", None, None)
            bias = module.maybe("bias", weight.shape[0])
            module.require_only("weight", "bias", kind="Linear")
            self.require_size(x, -1, weight.shape[1])
            return self.product(x, weight.T, bias, prefix)

    def embedding(self, prefix: str, ids: Tensor) -> Tensor:
        """torch.nn.Embedding: a row of the table for each id: net.input("ids", (1, "time"), "int64")."""
        with self.layer("Embedding", self.full(prefix)):
            table = self.module(prefix).get("weight", None, None)
            if not ids.dtype.startswith(("int", "uint")):
                raise OptionError(f"ids are integers, these are of type {ids.dtype}")
            return self.op("Gather", table, ids, axis=0, name=prefix)

    # -------------------------------------------------------------------------------------------------- convolutions

    def conv1d(
        self,
        prefix: str,
        x: Tensor,
        stride: int = 1,
        padding: int | str = 0,
        dilation: int = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
    ) -> Tensor:
        """torch.nn.Conv1d on [batch, channels, time]. `padding` is a number, "valid", "same", or "causal": as much in
        front that a frame sees none behind it."""
        return self._conv(prefix, x, 1, stride, padding, dilation, groups, padding_mode)

    def conv2d(
        self,
        prefix: str,
        x: Tensor,
        stride: int | Sequence[int] = 1,
        padding: int | str | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
    ) -> Tensor:
        """torch.nn.Conv2d on [batch, channels, height, width]."""
        return self._conv(prefix, x, 2, stride, padding, dilation, groups, padding_mode)

    def conv_transpose1d(
        self,
        prefix: str,
        x: Tensor,
        stride: int = 1,
        padding: int = 0,
        output_padding: int = 0,
        groups: int = 1,
        dilation: int = 1,
    ) -> Tensor:
        """torch.nn.ConvTranspose1d."""
        return self._conv_transpose(prefix, x, 1, stride, padding, output_padding, groups, dilation)

    def conv_transpose2d(
        self,
        prefix: str,
        x: Tensor,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        dilation: int | Sequence[int] = 1,
    ) -> Tensor:
        """torch.nn.ConvTranspose2d."""
        return self._conv_transpose(prefix, x, 2, stride, padding, output_padding, groups, dilation)

    def _conv(
        self, prefix: str, x: Tensor, n: int, stride: Any, padding: Any, dilation: Any, groups: int, mode: str
    ) -> Tensor:
        with self.layer(f"Conv{n}d", self.full(prefix)):
            module = self.module(prefix)
            weight = module.get("weight", *(None,) * (n + 2))
            bias = module.maybe("bias", weight.shape[0])
            strides, dilations = numbers(stride, n, "stride", 1), numbers(dilation, n, "dilation", 1)
            groups = self._groups(groups, weight.shape[0], f"filters of {module.full('weight')!r} are")
            self._require_channels(x, n, weight.shape[1] * groups)
            pads = _pads(padding, weight.shape[2:], strides, dilations)
            if mode != "zeros":
                if mode not in _PAD_MODES:
                    raise OptionError(f"padding_mode is {mode!r}; it is one of zeros, {', '.join(_PAD_MODES)}")
                around = [0, 0, *(before for before, _ in pads), 0, 0, *(after for _, after in pads)]
                if any(around):
                    x = self.op("Pad", x, self.ints(*around), mode=_PAD_MODES[mode])
                pads = [(0, 0)] * n
            return self.convolved(x, weight, bias, strides, pads, dilations, groups, prefix)

    def convolved(
        self,
        x: Tensor,
        weight: np.ndarray,
        bias: np.ndarray | None,
        strides: Sequence[int],
        pads: Sequence[tuple[int, int]],
        dilations: Sequence[int],
        groups: int,
        name: str,
    ) -> Tensor:
        flat = [*(before for before, _ in pads), *(after for _, after in pads)]
        attrs = dict(strides=list(strides), pads=flat, dilations=list(dilations), group=groups)
        return self.op(
            "Conv",
            x,
            weight,
            *([] if bias is None else [bias]),
            kernel_shape=list(weight.shape[2:]),
            name=name,
            **attrs,
        )

    def _conv_transpose(
        self, prefix: str, x: Tensor, n: int, stride: Any, padding: Any, more: Any, groups: int, dilation: Any
    ) -> Tensor:
        with self.layer(f"ConvTranspose{n}d", self.full(prefix)):
            module = self.module(prefix)
            weight = module.get("weight", *(None,) * (n + 2))
            strides, dilations = numbers(stride, n, "stride", 1), numbers(dilation, n, "dilation", 1)
            pads, output_padding = numbers(padding, n, "padding", 0), numbers(more, n, "output_padding", 0)
            groups = self._groups(groups, weight.shape[0], f"channels of {module.full('weight')!r} are")
            bias = module.maybe("bias", weight.shape[1] * groups)
            self._require_channels(x, n, weight.shape[0])
            for axis, extra in enumerate(output_padding):
                if extra >= max(strides[axis], dilations[axis]):
                    raise OptionError(f"output_padding {extra} has to be smaller than stride or dilation")
            operands = [x, weight, *([] if bias is None else [bias])]
            attrs = dict(strides=strides, pads=[*pads, *pads], dilations=dilations, group=groups)
            attrs |= dict(kernel_shape=list(weight.shape[2:]), output_padding=output_padding)
            return self.op("ConvTranspose", *operands, name=prefix, **attrs)

    def _groups(self, groups: Any, size: int, what: str) -> int:
        if type(groups) is not int or groups < 1 or size % groups:
            raise OptionError(f"groups is {groups!r}, {what} {size}")
        return groups

    def _require_channels(self, x: Tensor, n: int, channels: int) -> None:
        if x.rank != n + 2:
            raise ShapeError(
                f"the input is {spelled(x.shape)}, it has to be [batch, channels, {'time' if n == 1 else '...'}]"
            )
        self.require_size(x, 1, channels)

    def max_pool1d(self, x: Tensor, kernel: int, stride: int | None = None, padding: int = 0) -> Tensor:
        """torch.nn.MaxPool1d."""
        return self._pooled("MaxPool", x, kernel, stride, padding)

    def avg_pool1d(self, x: Tensor, kernel: int, stride: int | None = None, padding: int = 0) -> Tensor:
        """torch.nn.AvgPool1d, zeros of the padding counted."""
        return self._pooled("AveragePool", x, kernel, stride, padding, count_include_pad=1)

    def _pooled(self, op: str, x: Tensor, kernel: int, stride: int | None, padding: int, **attrs: Any) -> Tensor:
        with self.layer(op, None):
            (size,), (pad,) = numbers(kernel, 1, "kernel", 1), numbers(padding, 1, "padding", 0)
            strides = numbers(size if stride is None else stride, 1, "stride", 1)
            return self.op(op, x, kernel_shape=[size], strides=strides, pads=[pad, pad], **attrs)

    # -------------------------------------------------------------------------------------------------------- norms

    def batch_norm(self, prefix: str, x: Tensor, eps: float = 1e-5) -> Tensor:
        """torch.nn.BatchNorm1d and 2d, with the statistics of training: [batch, channels] or [batch, channels, ...]."""
        with self.layer("BatchNorm", self.full(prefix)):
            module = self.module(prefix)
            if not module.has("running_mean"):
                raise OptionError("it has no running_mean: a BatchNorm that keeps no statistics cannot be run")
            mean = module.get("running_mean", None)
            count = mean.shape[0]
            variance = module.get("running_var", count)
            weight, bias = module.maybe("weight", count), module.maybe("bias", count)
            module.skip("num_batches_tracked")
            self.require_size(x, 1, count)
            scale = np.ones(count, mean.dtype) if weight is None else weight
            shift = np.zeros(count, mean.dtype) if bias is None else bias
            return self.op("BatchNormalization", x, scale, shift, mean, variance, epsilon=positive(eps), name=prefix)

    def layer_norm(self, prefix: str, x: Tensor, eps: float = 1e-5) -> Tensor:
        """torch.nn.LayerNorm over the last axes, as many as the weights have."""
        with self.layer("LayerNorm", self.full(prefix)):
            module = self.module(prefix)
            weight = module.get("weight")
            bias = module.maybe("bias", *weight.shape)
            for axis in range(1, weight.ndim + 1):
                self.require_size(x, -axis, weight.shape[-axis])
            operands = [x, weight, *([] if bias is None else [bias])]
            return self.op("LayerNormalization", *operands, axis=-weight.ndim, epsilon=positive(eps), name=prefix)

    def rms_norm(self, prefix: str, x: Tensor, eps: float | None = None) -> Tensor:
        """torch.nn.RMSNorm; without `eps` that of the type."""
        with self.layer("RMSNorm", self.full(prefix)):
            weight = self.module(prefix).get("weight")
            for axis in range(1, weight.ndim + 1):
                self.require_size(x, -axis, weight.shape[-axis])
            least = float(np.finfo(self.core.dtype).eps) if eps is None else positive(eps)
            return self.op("RMSNormalization", x, weight, axis=-weight.ndim, epsilon=least, name=prefix)

    def group_norm(self, prefix: str, x: Tensor, groups: int, eps: float = 1e-5) -> Tensor:
        """torch.nn.GroupNorm on [batch, channels, ...]."""
        with self.layer("GroupNorm", self.full(prefix)):
            module = self.module(prefix)
            weight = module.get("weight", None)
            bias = module.get("bias", weight.shape[0])
            self.require_size(x, 1, weight.shape[0])
            groups = self._groups(groups, weight.shape[0], "channels are")
            return self.op("GroupNormalization", x, weight, bias, num_groups=groups, epsilon=positive(eps), name=prefix)

    def instance_norm(self, prefix: str, x: Tensor, eps: float = 1e-5) -> Tensor:
        """torch.nn.InstanceNorm1d and 2d with affine=True, which keep no statistics."""
        with self.layer("InstanceNorm", self.full(prefix)):
            module = self.module(prefix)
            weight = module.get("weight", None)
            bias = module.get("bias", weight.shape[0])
            self.require_size(x, 1, weight.shape[0])
            return self.op("InstanceNormalization", x, weight, bias, epsilon=positive(eps), name=prefix)

    # ---------------------------------------------------------------------------------------------------- activations

    def prelu(self, prefix: str, x: Tensor) -> Tensor:
        """torch.nn.PReLU: one slope, or one for each channel of [batch, channels, ...]."""
        with self.layer("PReLU", self.full(prefix)):
            slope = self.module(prefix).get("weight", None)
            if len(slope) > 1:
                self.require_size(x, 1, len(slope))
                slope = slope.reshape(-1, *(1,) * (x.rank - 2))
            return self.op("PRelu", x, slope, name=prefix)

    def leaky_relu(self, x: Tensor, slope: float = 0.01) -> Tensor:
        return self.op("LeakyRelu", x, alpha=float(slope))

    def gelu(self, x: Tensor, approximate: str = "none") -> Tensor:
        return self.op("Gelu", x, approximate=approximate)


def numbers(given: Any, n: int, what: str, least: int) -> list[int]:
    """An option of a convolution: a number for all axes, or one for each.

    >>> numbers(2, 2, "stride", 1), numbers((1, 2), 2, "stride", 1)
    ([2, 2], [1, 2])
    """
    found = list(given) if isinstance(given, tuple | list) else [given] * n
    if len(found) != n or not all(type(item) is int and item >= least for item in found):
        raise OptionError(
            f"{what} is {given!r}; it is a number from {least} on" + (f", or {n} of them" if n > 1 else "")
        )
    return found


def positive(eps: Any) -> float:
    if not isinstance(eps, int | float) or not eps >= 0:
        raise OptionError(f"eps is {eps!r}")
    return float(eps)


def _pads(padding: Any, kernel: Sequence[int], strides: list[int], dilations: list[int]) -> list[tuple[int, int]]:
    """How much is added before and behind each axis."""
    around = [dilation * (size - 1) for dilation, size in zip(dilations, kernel, strict=True)]
    if padding == "valid":
        return [(0, 0) for _ in around]
    if padding == "same":
        if any(stride != 1 for stride in strides):
            raise OptionError("padding='same' needs stride 1")
        return [(total // 2, total - total // 2) for total in around]
    if padding == "causal":
        return [(total, 0) for total in around]
    if isinstance(padding, str):
        raise OptionError(f"padding is {padding!r}; it is a number, 'valid', 'same' or 'causal'")
    return [(pad, pad) for pad in numbers(padding, len(around), "padding", 0)]
