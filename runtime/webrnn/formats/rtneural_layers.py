"""The layers of RTNeural's JSON files: one function each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from webrnn.ir import GraphBuilder, Value

from .entries import MOST_HISTORY, Entry
from .recurrences import KERAS_GRU, KERAS_LSTM, gru, lstm

_ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "elu": ("Elu", {"alpha": 1.0}),
    "gelu": ("Gelu", {}),
    "relu": ("Relu", {}),
    "selu": ("Selu", {}),
    "sigmoid": ("Sigmoid", {}),
    "softplus": ("Softplus", {}),
    "softsign": ("Softsign", {}),
    "tanh": ("Tanh", {}),
}
"""Those that look at each number alone. RTNeural knows tanh, relu, sigmoid, elu and softmax."""


@dataclass(frozen=True)
class Frames:
    """What a layer gives: [time, features], or behind a conv2d [time, features, filters]."""

    b: GraphBuilder
    value: Value
    sizes: tuple[int, ...]
    pace: int = 1
    """How many frames of the input make one of it."""
    history: int = 0
    """How many numbers the layers so far remember."""

    def made(self, value: Value, *sizes: int) -> Frames:
        return replace(self, value=value, sizes=sizes)

    @property
    def flat(self) -> Frames:
        """As [time, features]: filters of one feature stand together."""
        if len(self.sizes) == 1:
            return self
        size = int(np.prod(self.sizes))
        return self.made(self.b.op("Reshape", self.value, self.b.ints(-1, size)), size)

    def remembering(self, layer: Entry, numbers: int) -> Frames:
        if self.history + numbers > MOST_HISTORY:
            raise layer.unsupported(f"it would have to remember {numbers} numbers; no model may have more than 2^26")
        return replace(self, history=self.history + numbers)


Layer = Callable[[Frames, Entry], Frames]


def _dense(x: Frames, layer: Entry) -> Frames:
    x = x.flat
    (inputs,), outputs = x.sizes, _outputs(layer)
    weights, bias = _weights(layer, 1, 2)
    w = layer.array(weights, (inputs, outputs), "weights[0]")
    y = _plus(x.b, x.b.op("MatMul", x.value, x.b.constant(w, f"{layer.node}.w")), layer, bias, outputs)
    return _activated(x.made(y, outputs), layer)


def _conv1d(x: Frames, layer: Entry) -> Frames:
    x = x.flat
    (inputs,), outputs = x.sizes, _outputs(layer)
    kernel, dilation = layer.last_count("kernel_size"), layer.last_count("dilation", 1)
    groups, stride = layer.last_count("groups", 1), layer.last_count("strides", layer.last_count("stride", 1))
    if inputs % groups or outputs % groups:
        raise layer.wrong(f"{inputs} inputs and {outputs} outputs cannot be cut into {groups} groups", "groups")
    if layer.text("padding", "causal") not in ("causal", "valid"):
        raise layer.unsupported("RTNeural's convolutions look back only: padding is causal", "padding")
    x = x.remembering(layer, (kernel - 1) * dilation * inputs)
    weights, bias = _weights(layer, 1, 2)
    w = layer.array(weights, (kernel, inputs // groups, outputs), "weights[0]").transpose(2, 1, 0)
    rows = x.b.op("Unsqueeze", x.b.op("Transpose", x.value, perm=[1, 0]), x.b.ints(0))
    operands = [rows, x.b.constant(np.ascontiguousarray(w), f"{layer.node}.w")]
    if bias is not None:
        operands.append(x.b.constant(layer.array(bias, (outputs,), "weights[1]"), f"{layer.node}.b"))
    y = x.b.op(
        "Conv",
        *operands,
        name=layer.node,
        dilations=[dilation],
        group=groups,
        kernel_shape=[kernel],
        pads=[(kernel - 1) * dilation, 0],
        strides=[stride],
    )
    y = x.b.op("Transpose", x.b.op("Squeeze", y, x.b.ints(0)), perm=[1, 0])
    return _activated(replace(x.made(y, outputs), pace=x.pace * stride), layer)


def _conv2d(x: Frames, layer: Entry) -> Frames:
    """Along time it looks back, along features it is padded as the layer says."""
    kernel = layer.last_count("kernel_size_time"), layer.last_count("kernel_size_feature")
    dilation, stride = layer.last_count("dilation", 1), layer.last_count("strides", 1)
    filters_in, features_in = layer.last_count("num_filters_in"), layer.last_count("num_features_in")
    filters_out = layer.last_count("num_filters_out")
    if np.prod(x.sizes) != features_in * filters_in:
        raise layer.wrong(f"it takes {features_in} features of {filters_in} filters, the layer before gives {x.sizes}")
    padding = layer.text("padding")
    if padding not in ("valid", "same"):
        raise layer.unsupported(f"padding {padding!r} is not known", "padding")
    around = max(0, (-(-features_in // stride) - 1) * stride + kernel[1] - features_in) if padding == "same" else 0
    features_out = (features_in + around - kernel[1]) // stride + 1
    if features_in + around < kernel[1]:
        raise layer.wrong(f"a window of {kernel[1]} does not fit in {features_in} features", "kernel_size_feature")
    if _outputs(layer) != features_out * filters_out:
        raise layer.wrong(f"it gives {features_out} features of {filters_out} filters", "shape")
    before = (kernel[0] - 1) * dilation
    x = x.remembering(layer, before * features_in * filters_in)
    weights, bias = _weights(layer, 1, 2)
    w = layer.array(weights, (*kernel, filters_in, filters_out), "weights[0]").transpose(3, 2, 0, 1)
    image = x.b.op("Reshape", x.value, x.b.ints(1, -1, features_in, filters_in))
    operands = [
        x.b.op("Transpose", image, perm=[0, 3, 1, 2]),
        x.b.constant(np.ascontiguousarray(w), f"{layer.node}.w"),
    ]
    if bias is not None:
        operands.append(x.b.constant(layer.array(bias, (filters_out,), "weights[1]"), f"{layer.node}.b"))
    y = x.b.op(
        "Conv",
        *operands,
        name=layer.node,
        dilations=[dilation, 1],
        kernel_shape=[*kernel],
        pads=[before, around // 2, 0, around - around // 2],
        strides=[1, stride],
    )
    y = x.b.op("Transpose", y, perm=[0, 2, 3, 1])
    y = x.b.op("Reshape", y, x.b.ints(-1, features_out, filters_out))
    return _activated(x.made(y, features_out, filters_out), layer)


def _gru(x: Frames, layer: Entry) -> Frames:
    x = x.flat
    (inputs,), hidden = x.sizes, _outputs(layer)
    w, r, bias = _recurrent_weights(layer, inputs, hidden, 3)
    zeros = np.zeros(3 * hidden, np.float32)
    is_after = isinstance(bias, list) and bool(bias) and isinstance(bias[0], list)
    if bias is None:
        biases = zeros, zeros
    elif is_after:
        both = layer.array(bias, (2, 3 * hidden), "weights[2]")
        biases = both[0], both[1]
    else:
        biases = layer.array(bias, (3 * hidden,), "weights[2]"), zeros
    steps = x.b.op("Unsqueeze", x.value, x.b.ints(1))
    y = gru(x.b, steps, w, r, *biases, KERAS_GRU, layer.node, is_after or bias is None)
    return x.made(x.b.op("Squeeze", y, x.b.ints(1)), hidden)


def _lstm(x: Frames, layer: Entry) -> Frames:
    x = x.flat
    (inputs,), hidden = x.sizes, _outputs(layer)
    w, r, bias = _recurrent_weights(layer, inputs, hidden, 4)
    both = np.zeros(4 * hidden, np.float32) if bias is None else layer.array(bias, (4 * hidden,), "weights[2]")
    y = lstm(x.b, x.b.op("Unsqueeze", x.value, x.b.ints(1)), w, r, both, KERAS_LSTM, layer.node)
    return x.made(x.b.op("Squeeze", y, x.b.ints(1)), hidden)


def _recurrent_weights(layer: Entry, inputs: int, hidden: int, gates: int) -> tuple[np.ndarray, np.ndarray, Any]:
    if layer.text("activation", "") not in ("", "tanh"):
        raise layer.unsupported("RTNeural's recurrent layers have tanh, and so have these", "activation")
    w, r, bias = _weights(layer, 2, 3)
    kernel = layer.array(w, (inputs, gates * hidden), "weights[0]")
    return kernel.T, layer.array(r, (hidden, gates * hidden), "weights[1]").T, bias


def _prelu(x: Frames, layer: Entry) -> Frames:
    (slopes,) = _weights(layer, 1, 1)
    while isinstance(slopes, list) and len(slopes) == 1 and isinstance(slopes[0], list):
        slopes = slopes[0]
    size = x.sizes[-1]
    if isinstance(slopes, list) and len(slopes) == 1:
        size = 1
    elif isinstance(slopes, list) and len(slopes) != size:
        x, size = x.flat, int(np.prod(x.sizes))
    slope = layer.array(slopes, (size,), "weights[0]")
    return x.made(x.b.op("PRelu", x.value, x.b.constant(slope, f"{layer.node}.slope")), *x.sizes)


def _batchnorm(x: Frames, layer: Entry) -> Frames:
    return _normed(x.flat, layer)


def _batchnorm2d(x: Frames, layer: Entry) -> Frames:
    filters, features = layer.last_count("num_filters_in"), layer.last_count("num_features_in")
    if np.prod(x.sizes) != filters * features:
        raise layer.wrong(f"it takes {features} features of {filters} filters, the layer before gives {x.sizes}")
    return _normed(x.made(x.b.op("Reshape", x.value, x.b.ints(-1, features, filters)), features, filters), layer)


def _normed(x: Frames, layer: Entry) -> Frames:
    """Gamma, beta, mean and variance, or the last two."""
    parts = layer.items("weights")
    if len(parts) not in (2, 4):
        raise layer.wrong(f"it has {len(parts)} arrays, it needs 4, or 2 without gamma and beta", "weights")
    size, epsilon = x.sizes[-1], layer.number("epsilon")
    arrays = [layer.array(part, (size,), f"weights[{i}]").astype(np.float64) for i, part in enumerate(parts)]
    gamma, beta = arrays[:2] if len(parts) == 4 else (np.ones(size), np.zeros(size))
    mean, variance = arrays[-2:]
    if (variance + epsilon <= 0).any():
        raise layer.wrong("variance + epsilon is not above zero", "weights")
    scale = gamma / np.sqrt(variance + epsilon)
    scaled = x.b.op("Mul", x.value, x.b.constant(scale.astype(np.float32), f"{layer.node}.scale"))
    shift = (beta - mean * scale).astype(np.float32)
    return x.made(x.b.op("Add", scaled, x.b.constant(shift, f"{layer.node}.shift")), *x.sizes)


def _activated(x: Frames, layer: Entry) -> Frames:
    name = layer.text("activation", "")
    if name in ("", "linear"):
        return x
    if name == "softmax":
        if len(x.sizes) > 1 and x.sizes[0] > 1:
            raise layer.unsupported("softmax over features and filters together is not known", "activation")
        return x.made(x.b.op("Softmax", x.value, axis=-1), *x.sizes)
    if name in ("swish", "silu"):
        return x.made(x.b.op("Mul", x.value, x.b.op("Sigmoid", x.value)), *x.sizes)
    if name not in _ACTIVATIONS:
        raise layer.unsupported(f"the activation {name!r} is not known", "activation")
    op, attrs = _ACTIVATIONS[name]
    return x.made(x.b.op(op, x.value, **attrs), *x.sizes)


def _plus(b: GraphBuilder, y: Value, layer: Entry, bias: Any, outputs: int) -> Value:
    if bias is None:
        return y
    return b.op("Add", y, b.constant(layer.array(bias, (outputs,), "weights[1]"), f"{layer.node}.b"))


def _weights(layer: Entry, least: int, most: int) -> list[Any]:
    """The arrays of a layer; those that a layer without bias leaves out are None."""
    parts = layer.items("weights")
    if not least <= len(parts) <= most:
        raise layer.wrong(f"it has {len(parts)} arrays, it needs {most}", "weights")
    return [*parts, *[None] * (most - len(parts))]


def _outputs(layer: Entry) -> int:
    """How many numbers a frame of the result has, by the shape that the file gives."""
    shape = layer.items("shape")
    if not shape:
        raise layer.wrong("the list is empty", "shape")
    sizes = shape[2:] if len(shape) == 4 else shape[-1:]
    outputs = 1
    for size in sizes:
        outputs *= layer.whole(size, "shape")
    return outputs


LAYERS: dict[str, Layer] = {
    "activation": _activated,
    "batchnorm": _batchnorm,
    "batchnorm2d": _batchnorm2d,
    "conv1d": _conv1d,
    "conv2d": _conv2d,
    "dense": _dense,
    "gru": _gru,
    "lstm": _lstm,
    "prelu": _prelu,
    "time-distributed-dense": _dense,
}
