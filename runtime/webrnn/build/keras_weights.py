"""The weights of one layer of Keras's, and what the file says of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from webrnn.errors import OptionError

from .keras_files import KerasFile, LayerConfig
from .weights import Weights, few, floats, require_shape

UNSET: Any = type("Unset", (), {"__repr__": lambda self: "as the file says"})()
"""An option that is not given: it is what the file says, or else Keras's default."""


class KerasWeights(Weights):
    """Weights by layers. A layer is found by its name, by its folder in the file, or by the end of its path."""

    def __init__(self, file: KerasFile):
        super().__init__(file.arrays, "/", file.origin)
        self.folders, self.layers, self.model = file.folders, file.layers, file.model

    def layer_names(self, prefix: str) -> dict[str, str]:
        """{what follows the name of the layer: the full name of the weight}"""
        parts = tuple(part for part in prefix.split("/") if part)
        for names in ({name: name for name in self.arrays}, self.folders):
            found = self._below(names, parts) or self._inside(names, parts, prefix)
            if found:
                return found
        raise self.unknown(prefix)

    def _below(self, names: Mapping[str, str], parts: tuple[str, ...]) -> dict[str, str]:
        """The weights whose names begin with these parts."""
        found = {name: _behind(spelled, parts, 0) for name, spelled in names.items()}
        return {rest: name for name, rest in found.items() if rest is not None}

    def _inside(self, names: Mapping[str, str], parts: tuple[str, ...], prefix: str) -> dict[str, str]:
        """The weights of the one model inside of the model that has such a layer."""
        groups: dict[tuple[str, ...], dict[str, str]] = {}
        for name, spelled in names.items():
            pieces = spelled.split("/")
            for start in range(1, len(pieces)):
                rest = _behind(spelled, parts, start)
                if rest is not None:
                    groups.setdefault(tuple(pieces[:start]), {})[rest] = name
                    break
        if len(groups) > 1:
            places = ["/".join((*above, prefix)) for above in groups]
            raise OptionError(f"{self.origin} has several layers {prefix!r}: {few(places)}")
        return next(iter(groups.values()), {})

    def prefixes(self) -> list[str]:
        """The layers, in the order of the file."""
        return list(dict.fromkeys(_layer_of(name) for name in self.arrays))


def _behind(name: str, parts: Sequence[str], at: int) -> str | None:
    """What follows these parts, if they are in the name from a place on."""
    pieces = name.split("/")
    if tuple(pieces[at : at + len(parts)]) != tuple(parts) or len(pieces) <= at + len(parts):
        return None
    return "/".join(pieces[at + len(parts) :])


_IS_INSIDE = re.compile(r"cell$|.*_cell(_\d+)?$|(forward|backward)_")
"""Parts of names that are parts of layers: cells, and the directions of a Bidirectional."""


def _layer_of(name: str) -> str:
    pieces = name.split("/")
    end = len(pieces) - (2 if "vars" in pieces else 1)
    while end > 1 and _IS_INSIDE.match(pieces[end - 1]):
        end -= 1
    return "/".join(pieces[:end]) or name


class Layer:
    """The weights of a layer by their roles, and its options."""

    def __init__(self, weights: KerasWeights, prefix: str, dtype: np.dtype, names: dict[str, str] | None = None):
        self.weights, self.prefix, self.dtype = weights, prefix, dtype
        self.names = weights.layer_names(prefix) if names is None else names
        self.config = self._config()

    def _config(self) -> LayerConfig | None:
        """What the file says of the layer: under its path or its name, whatever the caller calls it."""
        (rest, full), *_ = self.names.items()
        path = full[: len(full) - len(rest)].strip("/") if full.endswith(rest) else full
        parts = full.split("/")
        for name in (path, self.prefix, path.split("/")[-1], *reversed(parts[:-2])):
            if name in self.weights.layers:
                return self.weights.layers[name]
        return None

    def option(self, name: str, given: Any, default: Any) -> Any:
        """An option as it was given, or as the file has it, or Keras's default."""
        return option(self.config, name, given, default)

    def side(self, direction: str) -> Layer:
        """Of a Bidirectional, the layer of one direction, "forward" or "backward"."""
        names = {
            rest.partition("/")[2]: full
            for rest, full in self.names.items()
            if rest.split("/")[0].startswith(direction)
        }
        if not names:
            raise OptionError(f"layer {self.prefix!r} has no {direction} layer; it has {few(list(self.names))}")
        found = Layer.__new__(Layer)
        found.weights, found.prefix, found.dtype, found.names = self.weights, self.prefix, self.dtype, names
        found.config = None if self.config is None else self.config.inner
        return found

    def arrays(self, *roles: str, optional: Sequence[str] = ()) -> dict[str, np.ndarray]:
        """The weights by their roles, in the order in which Keras makes them. The optional ones may be left out."""
        numbered = {
            int(rest.rpartition("/")[2]): full
            for rest, full in self.names.items()
            if rest.split("/")[-2:-1] == ["vars"] and rest.rpartition("/")[2].isdecimal()
        }
        if numbered:
            full = [numbered[number] for number in sorted(numbered)]
            left_out = len(roles) - len(full)
            if left_out < 0 or left_out > len(optional):
                raise OptionError(
                    f"layer {self.prefix!r} has {len(full)} weights, {few(full)}; needed are {', '.join(roles)}"
                )
            kept = [role for role in roles if role not in optional[len(optional) - left_out :]]
            found = dict(zip(kept, full, strict=True))
        else:
            by_role = {rest.rpartition("/")[2].removesuffix(":0"): full for rest, full in self.names.items()}
            others = [full for role, full in by_role.items() if role not in roles]
            missing = [role for role in roles if role not in by_role and role not in optional]
            if others or missing or len(by_role) < len(self.names):
                have = few(list(self.names.values()))
                raise OptionError(f"layer {self.prefix!r} has the weights {have}; needed are {', '.join(roles)}")
            found = {role: by_role[role] for role in roles if role in by_role}
        return {role: floats(self.weights[name], name, self.dtype) for role, name in found.items()}

    def name_of(self, role: str) -> str:
        return f"{self.prefix}/{role}"

    def require(self, arrays: dict[str, np.ndarray], role: str, *shape: int | None) -> np.ndarray:
        return require_shape(arrays[role], self.name_of(role), shape)


def option(config: LayerConfig | None, name: str, given: Any, default: Any) -> Any:
    if given is not UNSET:
        return given
    if config is None or name not in config.options:
        return default
    said = config.options[name]
    if isinstance(said, dict):  # an activation that is an object, such as {"class_name": "function", "config": "relu"}
        inner = said.get("config")
        return inner if isinstance(inner, str) else inner.get("name", said) if isinstance(inner, dict) else said
    if isinstance(said, list) and len(said) == 1:
        return said[0]
    return said
