"""What is in a file of weights: its tensors, and the layers that they look like. `webrnn info weights.safetensors`"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

import numpy as np

from webrnn.tables import table

from .hdf5 import SIGNATURE
from .keras_files import read_keras
from .keras_weights import KerasWeights
from .sources import Source, bytes_of, form_of, torch_arrays
from .torch_files import looks_like_torch
from .weights import Weights, spelled

_KINDS = {1: "RNN", 3: "GRU", 4: "LSTM"}


def is_weights(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one of weights, by its first bytes; False also for what cannot be read."""
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            start = file.read(32)
    except (OSError, ValueError):
        return False
    is_safetensors = start[8:9] == b"{" and int.from_bytes(start[:8], "little") <= size - 8
    return is_safetensors or start.startswith((SIGNATURE, b"PK\x03\x04")) or looks_like_torch(start)


def describe(source: Source) -> str:
    """Two tables: layers and tensors.

    >>> print(describe({"out.weight": np.ones((2, 3), np.float32), "out.bias": np.ones(2, np.float32)}))
    layers
      prefix  layer   sizes   weights
      out     Linear  3 to 2  8
    <BLANKLINE>
    tensors
      name        type     shape
      out.weight  float32  [2, 3]
      out.bias    float32  [2]
    """
    weights = _weights(source)
    layers = list(_keras_layers(weights) if isinstance(weights, KerasWeights) else _torch_layers(weights))
    tensors = [(name, str(array.dtype), spelled(array.shape)) for name, array in weights.arrays.items()]
    return "\n\n".join(
        (
            table("layers", layers, ("prefix", "layer", "sizes", "weights")),
            table("tensors", tensors, ("name", "type", "shape")),
        )
    )


def _weights(source: Source) -> Weights:
    if not isinstance(source, Mapping) and form_of(bytes_of(source)[0]) in ("hdf5", "keras"):
        return KerasWeights(read_keras(source))
    arrays, origin = torch_arrays(source)
    return Weights(arrays, ".", origin)


# ------------------------------------------------------------------------------------------------------------- PyTorch


def _torch_layers(weights: Weights) -> Iterator[tuple[str, str, str, str]]:
    for prefix in dict.fromkeys(prefix.split(".parametrizations.")[0] for prefix in weights.prefixes()):
        own = {name: weights.arrays[weights.full(prefix, name)] for name in weights.below(prefix)}
        near = {name: array for name, array in own.items() if "." not in name or name.startswith("parametrizations.")}
        count = sum(array.size for array in near.values())
        kind, sizes = _torch_layer(near)
        yield prefix, kind, sizes, f"{count:,}"


def _torch_layer(own: dict[str, np.ndarray]) -> tuple[str, str]:
    """What a module looks like, and its sizes."""
    plain = {_plain_name(name): array for name, array in own.items()}
    numbers = [int(found[1]) for name in plain if (found := re.fullmatch(r"weight_hh_l(\d+)", name))]
    for suffix in ("_l0", ""):
        w, r = plain.get(f"weight_ih{suffix}"), plain.get(f"weight_hh{suffix}")
        if w is not None and r is not None and w.ndim == r.ndim == 2:
            return _recurrent(plain, w, r, suffix, len(numbers))
    weight = plain.get("weight")
    if "running_mean" in plain:
        return "BatchNorm", f"{plain['running_mean'].size} channels"
    if weight is None:
        return "?", ""
    if weight.ndim == 1:
        return ("LayerNorm or GroupNorm" if "bias" in plain else "PReLU or RMSNorm"), f"{weight.size}"
    if weight.ndim == 2:
        kind = "Linear" if "bias" in plain else "Linear or Embedding"
        return kind, f"{weight.shape[1]} to {weight.shape[0]}"
    around = " x ".join(str(size) for size in weight.shape[2:])
    return f"Conv{weight.ndim - 2}d or ConvTranspose{weight.ndim - 2}d", f"{spelled(weight.shape[:2])}, kernel {around}"


def _recurrent(own: dict[str, np.ndarray], w: np.ndarray, r: np.ndarray, suffix: str, layers: int) -> tuple[str, str]:
    projection = own.get(f"weight_hr{suffix}")
    hidden = r.shape[1] if projection is None else projection.shape[-1]
    kind = _KINDS.get(r.shape[0] // hidden, "?") if hidden else "?"
    sizes = f"{w.shape[1]} to {hidden}"
    if projection is not None:
        sizes += f", projected to {r.shape[1]}"
    if not suffix:
        return f"{kind}Cell", sizes
    sizes += f", {layers} layers" if layers > 1 else ""
    return kind, sizes + (", both directions" if "weight_hh_l0_reverse" in own else "")


def _plain_name(name: str) -> str:
    """The name of a parameter whose weights are normalized, as if they were not."""
    found = re.fullmatch(r"parametrizations\.(\w+)\.original1", name)
    return found[1] if found else name.removesuffix("_v")


# --------------------------------------------------------------------------------------------------------------- Keras


def _keras_layers(weights: KerasWeights) -> Iterator[tuple[str, str, str, str]]:
    for prefix in weights.prefixes():
        names = weights.layer_names(prefix)
        shapes = [weights.arrays[name].shape for name in names.values()]
        count = sum(weights.arrays[name].size for name in names.values())
        said = next((weights.layers[part].kind for part in prefix.split("/") if part in weights.layers), "")
        yield prefix, said or _keras_kind(shapes), ", ".join(map(spelled, shapes)), f"{count:,}"


def _keras_kind(shapes: list[tuple[int, ...]]) -> str:
    """What a layer looks like, by the shapes of its weights in the order of the file."""
    ranks = [len(shape) for shape in shapes]
    if ranks[:2] == [2, 2] and shapes[1][0] and not shapes[1][1] % shapes[1][0]:
        return {1: "SimpleRNN", 3: "GRU", 4: "LSTM"}.get(shapes[1][1] // shapes[1][0], "?")
    kinds = {
        (2, 1): "Dense",
        (2,): "Dense or Embedding",
        (3, 1): "Conv1D",
        (3,): "Conv1D",
        (1, 1): "LayerNormalization",
    }
    if ranks == [1] * 4:
        return "BatchNormalization"
    if ranks[:2] == [3, 3]:
        return "SeparableConv1D"
    return kinds.get(tuple(ranks), "?")
