"""Whole models of Keras's: `KerasNet.sequential` follows the description that a .keras or .h5 file has of itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from webrnn.errors import OptionError, UnsupportedOp

from .keras_files import LayerConfig, layer_of
from .keras_recurrent import KerasNet
from .keras_weights import UNSET, KerasWeights, option
from .tensor import Tensor

_NOTHING = {
    "InputLayer", "Dropout", "SpatialDropout1D", "GaussianNoise", "GaussianDropout", "AlphaDropout",
    "ActivityRegularization", "Identity",
}  # fmt: skip
"""Layers that do nothing once a model is trained."""

_WITH_WEIGHTS = {
    "Dense": "dense", "GRU": "gru", "LSTM": "lstm", "SimpleRNN": "simple_rnn", "Bidirectional": "bidirectional",
    "Conv1D": "conv1d", "DepthwiseConv1D": "depthwise_conv1d", "SeparableConv1D": "separable_conv1d",
    "Conv1DTranspose": "conv1d_transpose", "BatchNormalization": "batch_normalization",
    "LayerNormalization": "layer_normalization", "Embedding": "embedding", "PReLU": "prelu",
}  # fmt: skip

_RECURRENT = {"GRU", "LSTM", "SimpleRNN"}


class KerasModel(KerasNet):
    """A model of Keras's under construction, all of it at once if it is a Sequential."""

    def sequential(self, x: Tensor, states: bool = False) -> Tensor:
        """The whole Sequential model of a .keras or .h5 file, layer after layer. With `states` recurrent layers keep
        their states between calls, as with stateful=True."""
        assert isinstance(self.weights, KerasWeights)
        model = self.weights.model
        if model is None or model.kind != "Sequential":
            kind = "weights alone" if model is None else f"a model of the class {model.kind!r}"
            raise OptionError(
                f"{self.weights.origin} has {kind}, not a Sequential model: call its layers one by one, "
                "y = net.dense('dense', x)"
            )
        return self._all(model, x, states, "")

    def _all(self, model: LayerConfig, x: Tensor, states: bool, above: str) -> Tensor:
        layers = model.options.get("layers")
        for item in layers if isinstance(layers, list) else ():
            found = layer_of(item)
            if found is None:
                raise OptionError("the description of the model has something in it that is no layer")
            x = self._one(found, f"{above}{found.options.get('name', '')}", x, states)
        return x

    def _one(self, layer: LayerConfig, name: str, x: Tensor, states: bool) -> Tensor:
        kind = layer.kind
        if kind in _NOTHING:
            return x
        if kind == "Sequential":
            return self._all(layer, x, states, f"{name}/")
        if kind == "TimeDistributed" and layer.inner.kind == "Dense":
            kind = "Dense"
        if kind in _WITH_WEIGHTS:
            options = {"states": True} if states and kind in _RECURRENT else {}
            y = getattr(self, _WITH_WEIGHTS[kind])(name, x, **options)
            if not isinstance(y, Tensor):
                raise UnsupportedOp("a layer of a Sequential has one output", node=name, op=kind)
            return y
        if kind in _PLAIN:
            with self.layer(kind, name):
                return _PLAIN[kind](self, x, lambda key, default: option(layer, key, UNSET, default))
        raise UnsupportedOp(
            "sequential() does not build layers of this class: call the layers of the model one by one; it builds "
            f"{', '.join([*_WITH_WEIGHTS, *_PLAIN])}",
            node=name,
            op=kind,
        )


Ask = Callable[[str, Any], Any]
"""What the file says of an option, or else a default."""


def _relu(net: KerasModel, x: Tensor, ask: Ask) -> Tensor:
    if ask("threshold", 0.0):
        raise UnsupportedOp("a threshold is not supported")
    slope, most = ask("negative_slope", 0.0), ask("max_value", None)
    y = net.leaky_relu(x, slope) if slope else net.relu(x)
    return y if most is None else net.op("Min", y, net.like(float(most), y))


def _leaky_relu(net: KerasModel, x: Tensor, ask: Ask) -> Tensor:
    return net.leaky_relu(x, ask("negative_slope", ask("alpha", 0.3)))


def _reshape(net: KerasModel, x: Tensor, ask: Ask) -> Tensor:
    sizes = ask("target_shape", ())
    sizes = tuple(sizes) if isinstance(sizes, list | tuple) else (sizes,)
    batch = (x.shape or (None,))[0]
    if batch is None:
        raise OptionError("a Reshape needs a batch that is known or has a name")
    return x.reshape(batch, *sizes)


def _permute(net: KerasModel, x: Tensor, ask: Ask) -> Tensor:
    dims = ask("dims", ())
    return x.permute(0, *(dims if isinstance(dims, list | tuple) else [dims]))


def _pool(method: str) -> Callable[[KerasModel, Tensor, Ask], Tensor]:
    return lambda net, x, ask: getattr(net, method)(
        x, ask("pool_size", 2), ask("strides", None), ask("padding", "valid")
    )


def _zero_padding(net: KerasModel, x: Tensor, ask: Ask) -> Tensor:
    given = ask("padding", 1)
    before, after = (given, given) if isinstance(given, int) else given
    return net.op("Pad", x, net.ints(0, before, 0, 0, after, 0))


def _rescaling(net: KerasModel, x: Tensor, ask: Ask) -> Tensor:
    return x * np.float32(ask("scale", 1.0)) + np.float32(ask("offset", 0.0))


_PLAIN: dict[str, Callable[[KerasModel, Tensor, Ask], Tensor]] = {
    "Activation": lambda net, x, ask: net.activation(x, ask("activation", None)),
    "ReLU": _relu,
    "LeakyReLU": _leaky_relu,
    "ELU": lambda net, x, ask: net.elu(x, ask("alpha", 1.0)),
    "Softmax": lambda net, x, ask: net.softmax(x, ask("axis", -1)),
    "Reshape": _reshape,
    "Permute": _permute,
    "Flatten": lambda net, x, ask: x.flatten(1),
    "MaxPooling1D": _pool("max_pooling1d"),
    "AveragePooling1D": _pool("average_pooling1d"),
    "GlobalAveragePooling1D": lambda net, x, ask: net.global_average_pooling1d(x),
    "GlobalMaxPooling1D": lambda net, x, ask: net.global_max_pooling1d(x),
    "ZeroPadding1D": _zero_padding,
    "Rescaling": _rescaling,
}
"""Layers without weights."""
