"""Files of Keras's: .weights.h5, .h5 and .keras. Weights by the names of layers, and what is known of each layer.

layers/conv1d/vars/0                    .weights.h5 and .keras: weights have numbers; the group `vars` says the name of
                                        its layer, "front", so this is front/vars/0
model_weights/front/sequential/front/kernel      .h5 of Keras 3: front/kernel
model_weights/gru/gru/gru_cell/kernel:0          .h5 of Keras 2: gru/gru_cell/kernel
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from webrnn.errors import ModelError, OptionError

from .archives import Archive
from .hdf5 import Hdf5, read_hdf5
from .sources import Source, arrays_of, bytes_of, form_of, read_npz
from .texts import read_json


@dataclass
class KerasFile:
    arrays: dict[str, np.ndarray]
    origin: str
    folders: dict[str, str] = field(default_factory=dict)
    """The name of each array with the names of the file's folders instead of those of layers, where they differ."""
    layers: dict[str, LayerConfig] = field(default_factory=dict)
    """What the file says of its layers, by their names; empty for files of weights alone."""
    model: LayerConfig | None = None
    """What it says of the whole model."""


@dataclass(frozen=True)
class LayerConfig:
    kind: str
    """"GRU", "Dense", and so on."""
    options: Mapping[str, Any]
    """The arguments that the layer was made with."""

    @property
    def inner(self) -> LayerConfig:
        """Of a wrapper (Bidirectional, TimeDistributed), the layer inside."""
        return layer_of(self.options.get("layer")) or LayerConfig("", {})


def read_keras(source: Source) -> KerasFile:
    if isinstance(source, Mapping):
        return KerasFile({name.removesuffix(":0"): array for name, array in arrays_of(source).items()}, "the dict")
    data, origin = bytes_of(source)
    form = form_of(data)
    if form == "hdf5":
        return _of_hdf5(read_hdf5(data), origin, None)
    if form == "keras":
        return _of_archive(data, origin)
    if form == "npz":
        return KerasFile({name.removesuffix(":0"): array for name, array in read_npz(data).items()}, origin)
    raise OptionError(f"{origin} has weights of PyTorch's: webrnn.build.torch reads them")


def _of_archive(data: bytes, origin: str) -> KerasFile:
    archive = Archive(data)
    config = archive.read("config.json") if "config.json" in archive.names else None
    return _of_hdf5(read_hdf5(archive.read("model.weights.h5")), origin, config)


def _of_hdf5(file: Hdf5, origin: str, config: bytes | None) -> KerasFile:
    stored = {path: array for path, array in file.datasets.items() if _is_weight(path)}
    if not stored:
        raise ModelError(f"{origin} has no weights; it has {sorted(file.datasets)[:8]}")
    is_numbered = any(path.split("/")[-2:-1] == ["vars"] for path in stored)
    names = {path: _by_layer(path, file) if is_numbered else _by_kernel(path) for path in stored}
    counts = Counter(names.values())
    folders = {path: _folders(path) for path in stored}
    names = {path: name if counts[name] == 1 else folders[path] for path, name in names.items()}
    if len(set(names.values())) < len(names):
        names = {path: path for path in stored}
    text = config if config is not None else file.attributes.get("", {}).get("model_config")
    text = text.encode() if isinstance(text, str) else text
    model = read_json(text, "the description of the model") if isinstance(text, bytes) else None
    return KerasFile(
        {names[path]: array for path, array in stored.items()},
        origin,
        {names[path]: folder for path, folder in folders.items() if is_numbered and folder != names[path]},
        _all_layers(model),
        layer_of(model),
    )


def _is_weight(path: str) -> bool:
    parts = path.split("/")
    return parts[0] not in ("optimizer", "optimizer_weights") and "seed_generator" not in parts


def _folders(path: str) -> str:
    return "/".join(part for part in path.split("/") if part != "layers")


def _by_layer(path: str, file: Hdf5) -> str:
    """The path, with each folder under the name of its layer."""
    parts = path.split("/")
    named = []
    for place, part in enumerate(parts):
        if part == "layers" and place + 1 < len(parts):
            continue
        said = file.attributes.get("/".join((*parts[: place + 1], "vars")), {}).get("name")
        named.append(said if isinstance(said, str) and said and "/" not in said else part)
    return "/".join(named)


def _by_kernel(path: str) -> str:
    """model_weights/gru/gru/gru_cell/kernel:0 to gru/gru_cell/kernel."""
    parts = path.removesuffix(":0").split("/")
    if parts[0] == "model_weights":
        parts = parts[1:]
    again = parts.index(parts[0], 1) if parts[0] in parts[1:] else 0
    return "/".join((parts[0], *parts[again + 1 :]))


def _all_layers(model: Any) -> dict[str, LayerConfig]:
    """The layers of a model and of models inside it, by their paths and, where it is clear, by their names."""
    by_path = dict(_layers_below(model, (), 0))
    by_name: dict[str, LayerConfig] = {}
    counts = Counter(path[-1] for path in by_path)
    for path, layer in by_path.items():
        if counts[path[-1]] == 1 or len(path) == 1:
            by_name[path[-1]] = layer
    return {**by_name, **{"/".join(path): layer for path, layer in by_path.items()}}


def _layers_below(model: Any, above: tuple[str, ...], depth: int) -> Iterator[tuple[tuple[str, ...], LayerConfig]]:
    found = layer_of(model)
    if found is None or depth > 32:
        return
    inner = found.options.get("layers")
    for one in [*(inner if isinstance(inner, list) else ()), found.options.get("layer")]:
        layer = layer_of(one)
        if layer is not None and isinstance(layer.options.get("name"), str):
            path = (*above, layer.options["name"])
            yield path, layer
            yield from _layers_below(one, path, depth + 1)


def layer_of(item: Any) -> LayerConfig | None:
    """What a part of the description says of one layer, or of a model; None if it is of something else."""
    if not isinstance(item, dict) or not isinstance(item.get("config"), dict):
        return None
    return LayerConfig(str(item.get("class_name", "")), item["config"])
