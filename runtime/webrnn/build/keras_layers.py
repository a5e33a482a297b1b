"""Layers of Keras's without recurrence, on tensors with the channels last: [batch, time, channels].

Each method takes the name of the layer. Options that are left out are those of the file, if it is a .keras or an .h5 of
a whole model, and Keras's defaults otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from webrnn.errors import OptionError, ShapeError

from .activations import Activations, activated
from .keras_weights import UNSET, KerasWeights, Layer
from .tensor import Tensor
from .torch_layers import numbers, positive
from .weights import spelled


class KerasLayers(Activations):
    """Layers by their names: net.dense("dense_1", x)."""

    def named(self, name: str) -> Layer:
        assert isinstance(self.weights, KerasWeights)
        return Layer(self.weights, self.full(name), self.core.dtype)

    def part(self, prefix: str) -> Any:
        found = super().part("")
        found.prefix = self.full(prefix)
        assert isinstance(self.weights, KerasWeights)
        self.weights.layer_names(found.prefix)
        return found

    def dense(self, name: str, x: Tensor, activation: Any = UNSET) -> Tensor:
        """keras.layers.Dense, also inside of TimeDistributed."""
        with self.layer("Dense", self.full(name)):
            layer = self.named(name)
            if layer.config is not None and layer.config.kind == "TimeDistributed":
                layer.config = layer.config.inner
            arrays = layer.arrays("kernel", "bias", optional=["bias"])
            kernel = layer.require(arrays, "kernel", None, None)
            self.require_size(x, -1, kernel.shape[0])
            bias = layer.require(arrays, "bias", kernel.shape[1]) if "bias" in arrays else None
            y = self.product(x, kernel, bias, name)
            return activated(self, y, layer.option("activation", activation, None))

    def _finished(self, layer: Layer, y: Tensor, arrays: dict[str, np.ndarray], size: int, activation: Any) -> Tensor:
        if "bias" in arrays:
            y = y + layer.require(arrays, "bias", size)
        return activated(self, y, layer.option("activation", activation, None))

    def embedding(self, name: str, ids: Tensor) -> Tensor:
        """keras.layers.Embedding; ids are integers. Masks (`mask_zero`) are not made."""
        with self.layer("Embedding", self.full(name)):
            layer = self.named(name)
            if layer.option("mask_zero", UNSET, False):
                raise OptionError("mask_zero is not supported: sequences of one length each need no mask")
            table = layer.require(layer.arrays("embeddings"), "embeddings", None, None)
            if not ids.dtype.startswith(("int", "uint")):
                raise OptionError(f"ids are integers, these are of type {ids.dtype}")
            return self.op("Gather", table, ids, axis=0, name=name)

    # -------------------------------------------------------------------------------------------------- convolutions

    def conv1d(
        self,
        name: str,
        x: Tensor,
        strides: Any = UNSET,
        padding: Any = UNSET,
        dilation_rate: Any = UNSET,
        groups: Any = UNSET,
        activation: Any = UNSET,
    ) -> Tensor:
        """keras.layers.Conv1D on [batch, time, channels]; `padding` is "valid", "same" or "causal"."""
        with self.layer("Conv1D", self.full(name)):
            layer = self.named(name)
            arrays = layer.arrays("kernel", "bias", optional=["bias"])
            kernel = layer.require(arrays, "kernel", None, None, None)
            count = layer.option("groups", groups, 1)
            if type(count) is not int or count < 1 or kernel.shape[2] % count:
                raise OptionError(f"groups is {count!r}, the layer has {kernel.shape[2]} filters")
            y = self._convolved(layer, x, kernel.transpose(2, 1, 0), strides, padding, dilation_rate, count, name)
            return self._finished(layer, y, arrays, kernel.shape[2], activation)

    def depthwise_conv1d(
        self,
        name: str,
        x: Tensor,
        strides: Any = UNSET,
        padding: Any = UNSET,
        dilation_rate: Any = UNSET,
        activation: Any = UNSET,
    ) -> Tensor:
        """keras.layers.DepthwiseConv1D."""
        with self.layer("DepthwiseConv1D", self.full(name)):
            layer = self.named(name)
            arrays = layer.arrays("kernel", "bias", optional=["bias"])
            kernel = layer.require(arrays, "kernel", None, None, None)
            y = self._depthwise(layer, x, kernel, strides, padding, dilation_rate, name)
            return self._finished(layer, y, arrays, kernel.shape[1] * kernel.shape[2], activation)

    def separable_conv1d(
        self,
        name: str,
        x: Tensor,
        strides: Any = UNSET,
        padding: Any = UNSET,
        dilation_rate: Any = UNSET,
        activation: Any = UNSET,
    ) -> Tensor:
        """keras.layers.SeparableConv1D: a depthwise convolution and a product."""
        with self.layer("SeparableConv1D", self.full(name)):
            layer = self.named(name)
            arrays = layer.arrays("depthwise_kernel", "pointwise_kernel", "bias", optional=["bias"])
            depthwise = layer.require(arrays, "depthwise_kernel", None, None, None)
            wide = depthwise.shape[1] * depthwise.shape[2]
            pointwise = layer.require(arrays, "pointwise_kernel", 1, wide, None)
            y = self._depthwise(layer, x, depthwise, strides, padding, dilation_rate, name)
            return self._finished(layer, self.op("MatMul", y, pointwise[0]), arrays, pointwise.shape[2], activation)

    def _depthwise(self, layer: Layer, x: Tensor, kernel: np.ndarray, *options: Any) -> Tensor:
        """kernel [size, channels, multiplier]"""
        size, channels, multiplier = kernel.shape
        filters = kernel.transpose(1, 2, 0).reshape(channels * multiplier, 1, size)
        strides, padding, dilation_rate, name = options
        return self._convolved(layer, x, filters, strides, padding, dilation_rate, channels, name)

    def conv1d_transpose(
        self, name: str, x: Tensor, strides: Any = UNSET, padding: Any = UNSET, activation: Any = UNSET
    ) -> Tensor:
        """keras.layers.Conv1DTranspose without `output_padding` and dilation."""
        with self.layer("Conv1DTranspose", self.full(name)):
            layer = self.named(name)
            for option, plain in (("output_padding", None), ("dilation_rate", 1)):
                if layer.option(option, UNSET, plain) != plain:
                    raise OptionError(f"{option} is not supported")
            arrays = layer.arrays("kernel", "bias", optional=["bias"])
            kernel = layer.require(arrays, "kernel", None, None, None)
            size, filters, channels = kernel.shape
            (stride,) = numbers(layer.option("strides", strides, 1), 1, "strides", 1)
            mode = layer.option("padding", padding, "valid")
            if mode not in ("valid", "same"):
                raise OptionError(f"padding is {mode!r}; it is valid or same")
            self._require_sequence(x, channels)
            cut = max(size - stride, 0) if mode == "same" else 0
            attrs = dict(strides=[stride], pads=[cut // 2, cut - cut // 2], kernel_shape=[size])
            attrs["output_padding"] = [max(stride - size, 0)]
            y = self.op("ConvTranspose", x.permute(0, 2, 1), kernel.transpose(2, 1, 0), name=name, **attrs)
            return self._finished(layer, y.permute(0, 2, 1), arrays, filters, activation)

    def _convolved(
        self,
        layer: Layer,
        x: Tensor,
        weight: np.ndarray,
        strides: Any,
        padding: Any,
        dilation_rate: Any,
        groups: int,
        name: str,
    ) -> Tensor:
        """weight [filters, channels / groups, size]"""
        if layer.option("data_format", UNSET, "channels_last") != "channels_last":
            raise OptionError("data_format is channels_first; only channels_last is supported")
        (stride,) = numbers(layer.option("strides", strides, 1), 1, "strides", 1)
        (dilation,) = numbers(layer.option("dilation_rate", dilation_rate, 1), 1, "dilation_rate", 1)
        mode = layer.option("padding", padding, "valid")
        if mode not in ("valid", "same", "causal"):
            raise OptionError(f"padding is {mode!r}; it is valid, same or causal")
        self._require_sequence(x, weight.shape[1] * groups)
        around = dilation * (weight.shape[2] - 1)
        attrs: dict[str, Any] = dict(
            strides=[stride], dilations=[dilation], group=groups, kernel_shape=[weight.shape[2]]
        )
        if mode == "same" and stride > 1:  # how much is added depends on the length
            attrs["auto_pad"] = "SAME_UPPER"
        else:
            before = {"valid": 0, "same": around // 2, "causal": around}[mode]
            attrs["pads"] = [before, around - before if mode == "same" else 0]
        y = self.op("Conv", x.permute(0, 2, 1), weight, name=name, **attrs)
        return y.permute(0, 2, 1)

    def _require_sequence(self, x: Tensor, channels: int) -> None:
        self._value(x)
        if x.rank != 3:
            raise ShapeError(f"the input is {spelled(x.shape)}, it has to be [batch, time, channels]")
        self.require_size(x, 2, channels)

    def max_pooling1d(
        self, x: Tensor, pool_size: int = 2, strides: int | None = None, padding: str = "valid"
    ) -> Tensor:
        """keras.layers.MaxPooling1D."""
        return self._pooled("MaxPool", x, pool_size, strides, padding)

    def average_pooling1d(
        self, x: Tensor, pool_size: int = 2, strides: int | None = None, padding: str = "valid"
    ) -> Tensor:
        """keras.layers.AveragePooling1D."""
        return self._pooled("AveragePool", x, pool_size, strides, padding)

    def _pooled(self, op: str, x: Tensor, pool_size: int, strides: int | None, padding: str) -> Tensor:
        with self.layer(op, None):
            size = numbers(pool_size, 1, "pool_size", 1)
            steps = numbers(pool_size if strides is None else strides, 1, "strides", 1)
            if padding not in ("valid", "same"):
                raise OptionError(f"padding is {padding!r}; it is valid or same")
            auto_pad = "VALID" if padding == "valid" else "SAME_UPPER"
            return self.op(op, x.permute(0, 2, 1), kernel_shape=size, strides=steps, auto_pad=auto_pad).permute(0, 2, 1)

    # -------------------------------------------------------------------------------------------------------- norms

    def batch_normalization(
        self, name: str, x: Tensor, epsilon: Any = UNSET, center: Any = UNSET, scale: Any = UNSET
    ) -> Tensor:
        """keras.layers.BatchNormalization over the last axis, with the statistics of training."""
        with self.layer("BatchNormalization", self.full(name)):
            layer = self.named(name)
            if layer.option("axis", UNSET, -1) not in (-1, x.rank - 1):
                raise OptionError("only the last axis is supported")
            roles = self._norm_roles(layer, center, scale)
            arrays = layer.arrays(*roles, "moving_mean", "moving_variance")
            mean = layer.require(arrays, "moving_mean", None)
            count = mean.shape[0]
            variance = layer.require(arrays, "moving_variance", count)
            self.require_size(x, -1, count)
            eps = positive(layer.option("epsilon", epsilon, 1e-3))
            factor = 1 / np.sqrt(variance.astype(np.float64) + eps)
            if "gamma" in arrays:
                factor = factor * layer.require(arrays, "gamma", count)
            shift = -mean * factor
            if "beta" in arrays:
                shift = shift + layer.require(arrays, "beta", count)
            return x * factor.astype(self.core.dtype) + shift.astype(self.core.dtype)

    def layer_normalization(
        self, name: str, x: Tensor, epsilon: Any = UNSET, center: Any = UNSET, scale: Any = UNSET
    ) -> Tensor:
        """keras.layers.LayerNormalization over the last axis."""
        with self.layer("LayerNormalization", self.full(name)):
            layer = self.named(name)
            if layer.option("axis", UNSET, -1) not in (-1, x.rank - 1):
                raise OptionError("only the last axis is supported")
            if layer.option("rms_scaling", UNSET, False):
                raise OptionError("rms_scaling is not supported")
            roles = self._norm_roles(layer, center, scale)
            arrays = layer.arrays(*roles)
            (count,) = next(iter(arrays.values())).shape[-1:] if arrays else (None,)
            gamma = layer.require(arrays, "gamma", count) if "gamma" in arrays else np.ones(count or 1, self.core.dtype)
            bias = [layer.require(arrays, "beta", count)] if "beta" in arrays else []
            self.require_size(x, -1, len(gamma))
            eps = positive(layer.option("epsilon", epsilon, 1e-3))
            return self.op("LayerNormalization", x, gamma, *bias, axis=-1, epsilon=eps, name=name)

    def _norm_roles(self, layer: Layer, center: Any, scale: Any) -> list[str]:
        given = (("gamma", "scale", scale), ("beta", "center", center))
        return [role for role, option, value in given if layer.option(option, value, True)]

    def prelu(self, name: str, x: Tensor) -> Tensor:
        """keras.layers.PReLU."""
        with self.layer("PReLU", self.full(name)):
            layer = self.named(name)
            return self.op("PRelu", x, layer.arrays("alpha")["alpha"], name=name)

    def leaky_relu(self, x: Tensor, negative_slope: float = 0.3) -> Tensor:
        """keras.layers.LeakyReLU."""
        return self.op("LeakyRelu", x, alpha=float(negative_slope))

    def gelu(self, x: Tensor, approximate: bool = False) -> Tensor:
        return self.op("Gelu", x, approximate="tanh" if approximate else "none")

    def activation(self, x: Tensor, function: Any) -> Tensor:
        """keras.layers.Activation: a function by its name."""
        return activated(self, x, function)

    def global_average_pooling1d(self, x: Tensor) -> Tensor:
        return x.mean(1)

    def global_max_pooling1d(self, x: Tensor) -> Tensor:
        return x.max(1)
