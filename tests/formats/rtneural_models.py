"""Small models of RTNeural, and what they give: each layer written down in numpy once more, sample by sample."""

from __future__ import annotations

from typing import Any

import numpy as np

Layer = dict[str, Any]


def numbers(rng: np.random.Generator, *shape: int) -> list[Any]:
    return np.round(rng.uniform(-0.6, 0.6, shape), 4).tolist()


def dense(rng: np.random.Generator, inputs: int, outputs: int, activation: str = "", kind: str = "dense") -> Layer:
    weights = [numbers(rng, inputs, outputs), numbers(rng, outputs)]
    return {"type": kind, "activation": activation, "shape": [None, None, outputs], "weights": weights}


def conv1d(
    rng: np.random.Generator, inputs: int, outputs: int, kernel: int, dilation: int = 1, groups: int = 1
) -> Layer:
    return {
        "type": "conv1d",
        "activation": "",
        "shape": [None, None, outputs],
        "weights": [numbers(rng, kernel, inputs // groups, outputs), numbers(rng, outputs)],
        "kernel_size": [kernel],
        "dilation": [dilation],
        "groups": groups,
    }


def recurrent(rng: np.random.Generator, kind: str, inputs: int, hidden: int) -> Layer:
    gates = 3 if kind == "gru" else 4
    bias = numbers(rng, 2, gates * hidden) if kind == "gru" else numbers(rng, gates * hidden)
    weights = [numbers(rng, inputs, gates * hidden), numbers(rng, hidden, gates * hidden), bias]
    return {"type": kind, "activation": "tanh", "shape": [None, None, hidden], "weights": weights}


def batchnorm(rng: np.random.Generator, size: int, is_affine: bool = True, **others: Any) -> Layer:
    weights = [numbers(rng, size) for _ in range(3 if is_affine else 1)]
    variance = np.round(rng.uniform(0.5, 2, size), 4).tolist()
    kind = "batchnorm2d" if others else "batchnorm"
    return {"type": kind, "activation": "", "shape": [None, None, size], "epsilon": 0.001} | {
        "weights": [*weights, variance],
        **others,
    }


def prelu(rng: np.random.Generator, size: int) -> Layer:
    return {"type": "prelu", "activation": "", "shape": [None, None, size], "weights": [[numbers(rng, size)]]}


def conv2d(
    rng: np.random.Generator,
    features: int,
    filters: tuple[int, int],
    kernel: tuple[int, int],
    dilation: int = 1,
    stride: int = 1,
    padding: str = "valid",
) -> Layer:
    outputs = -(-features // stride) if padding == "same" else (features - kernel[1]) // stride + 1
    return {
        "type": "conv2d",
        "activation": "",
        "shape": [None, None, outputs, filters[1]],
        "kernel_size_time": [kernel[0]],
        "kernel_size_feature": kernel[1],
        "dilation": dilation,
        "strides": stride,
        "num_filters_in": filters[0],
        "num_features_in": features,
        "num_filters_out": filters[1],
        "padding": padding,
        "weights": [numbers(rng, *kernel, *filters), numbers(rng, filters[1])],
    }


def activation(name: str, size: int) -> Layer:
    return {"type": "activation", "activation": name, "shape": [None, None, size], "weights": []}


def model(in_shape: list[Any], *layers: Layer, **others: Any) -> dict[str, Any]:
    return {"in_shape": in_shape, "layers": [*layers], **others}


def result(data: dict[str, Any], x: np.ndarray) -> np.ndarray:
    """What RTNeural gives for frames x [time, ...], after `reset()`."""
    frames = [np.asarray(frame, np.float64).reshape(-1) for frame in x]
    for layer in data["layers"]:
        frames = _FUNCTIONS[layer["type"]](layer, frames)
        function = layer.get("activation", "")
        if layer["type"] not in ("gru", "lstm") and function:
            frames = [_ACTIVATIONS[function](frame) for frame in frames]
    return np.array(frames)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


_ACTIVATIONS = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": _sigmoid,
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(),
    "elu": lambda x: np.where(x > 0, x, np.exp(x) - 1),
}


def _dense(layer: Layer, frames: list[np.ndarray]) -> list[np.ndarray]:
    w, b = map(np.array, layer["weights"])
    return [frame @ w + b for frame in frames]


def _conv1d(layer: Layer, frames: list[np.ndarray]) -> list[np.ndarray]:
    w, b = map(np.array, layer["weights"])
    (kernel, per_group, outputs), dilation, groups = w.shape, layer["dilation"][-1], layer["groups"]
    results = []
    for t in range(len(frames)):
        y = b.copy()
        for k in range(kernel):
            source = t - (kernel - 1 - k) * dilation
            for o in range(outputs if source >= 0 else 0):
                group = o // (outputs // groups)
                y[o] += frames[source][group * per_group : (group + 1) * per_group] @ w[k, :, o]
        results.append(y)
    return results


def _conv2d(layer: Layer, frames: list[np.ndarray]) -> list[np.ndarray]:
    w, b = map(np.array, layer["weights"])
    features, filters, stride = layer["num_features_in"], layer["num_filters_in"], layer["strides"]
    images = [frame.reshape(features, filters) for frame in frames]
    outputs, kernel = layer["shape"][2], w.shape[1]
    around = max(0, (outputs - 1) * stride + kernel - features) if layer["padding"] == "same" else 0
    results = []
    for t in range(len(images)):
        y = np.tile(b, (outputs, 1))
        for k in range(len(w)):
            source = t - (len(w) - 1 - k) * layer["dilation"]
            for f in range(outputs if source >= 0 else 0):
                for j in range(kernel):
                    place = f * stride + j - around // 2
                    if 0 <= place < features:
                        y[f] += images[source][place] @ w[k, j]
        results.append(y.reshape(-1))
    return results


def _gru(layer: Layer, frames: list[np.ndarray]) -> list[np.ndarray]:
    w, r, (b, c) = map(np.array, layer["weights"])
    h, results = np.zeros(len(r)), []
    for frame in frames:
        (xz, xr, xn), (hz, hr, hn) = np.split(frame @ w + b, 3), np.split(h @ r + c, 3)
        update = _sigmoid(xz + hz)
        h = update * h + (1 - update) * np.tanh(xn + _sigmoid(xr + hr) * hn)
        results.append(h)
    return results


def _lstm(layer: Layer, frames: list[np.ndarray]) -> list[np.ndarray]:
    w, r, b = map(np.array, layer["weights"])
    h, c, results = np.zeros(len(r)), np.zeros(len(r)), []
    for frame in frames:
        i, f, g, o = np.split(frame @ w + h @ r + b, 4)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        results.append(h)
    return results


def _prelu(layer: Layer, frames: list[np.ndarray]) -> list[np.ndarray]:
    slope = np.array(layer["weights"][0][0])
    return [np.where(frame >= 0, frame, frame * slope) for frame in frames]


def _batchnorm(layer: Layer, frames: list[np.ndarray]) -> list[np.ndarray]:
    *affine, mean, variance = map(np.array, layer["weights"])
    gamma, beta = affine or (1, 0)
    deviation = np.sqrt(variance + layer["epsilon"])
    rows = [frame.reshape(-1, len(mean)) for frame in frames]
    return [((row - mean) / deviation * gamma + beta).reshape(-1) for row in rows]


_FUNCTIONS = {
    "activation": lambda layer, frames: frames,
    "batchnorm": _batchnorm,
    "batchnorm2d": _batchnorm,
    "conv1d": _conv1d,
    "conv2d": _conv2d,
    "dense": _dense,
    "gru": _gru,
    "lstm": _lstm,
    "prelu": _prelu,
    "time-distributed-dense": _dense,
}
