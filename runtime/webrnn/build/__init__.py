"""Models from weights: a file of PyTorch's or Keras's and a few lines become a graph. See docs/building.md.

>>> import numpy as np
>>> from webrnn import build
>>> net = build.torch({"out.weight": np.float32([[1, 2]]), "out.bias": np.float32([3])})
>>> x = net.input("x", ("time", 2))
>>> net.output("y", net.sigmoid(net.linear("out", x)))
>>> net.session().run(None, {"x": np.float32([[-1, -1]])})
[array([[0.5]], dtype=float32)]
"""

from __future__ import annotations

from typing import Any

from .keras_files import read_keras
from .keras_models import KerasModel
from .keras_weights import KerasWeights
from .sources import Source, is_of_keras, torch_arrays
from .tensor import Tensor
from .torch_recurrent import TorchNet
from .weights import Weights

__all__ = ["KerasModel", "Source", "Tensor", "TorchNet", "Weights", "keras", "load", "torch"]


def load(source: Source, **options: Any) -> TorchNet | KerasModel:
    """`torch` or `keras`, by the form of a file. An .npz or a dict may be of either: name the function for these."""
    return keras(source, **options) if is_of_keras(source) else torch(source, **options)


def torch(source: Source, *, key: str | None = None, dtype: str = "float32") -> TorchNet:
    """A model with the weights of PyTorch's: a safetensors file, a file of `torch.save(model.state_dict(), path)`, an
    .npz, or a dict of arrays or tensors.

    `key` names the state_dict inside of a checkpoint: "state_dict", "model". Weights of other float types are turned
    into `dtype`, in which the model computes. A file of torch.save is read without executing its pickle.
    """
    arrays, origin = torch_arrays(source, key)
    return TorchNet(Weights(arrays, ".", origin), dtype)


def keras(source: Source, *, dtype: str = "float32") -> KerasModel:
    """A model with the weights of Keras's: a .keras file, an .h5 of a whole model, a .weights.h5, an .npz, or a dict of
    arrays, such as {w.path: w.numpy() for w in model.weights}.

    The first two say of each layer how it was made: options that a call leaves out are those of the file.
    """
    return KerasModel(KerasWeights(read_keras(source)), dtype)
