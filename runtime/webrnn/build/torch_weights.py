"""The weights of one module of PyTorch's, by their names in a state_dict."""

from __future__ import annotations

import numpy as np

from webrnn.errors import OptionError, UnsupportedOp

from .weights import Weights, floats, require_shape


class Module:
    """What a state_dict has below a prefix."""

    def __init__(self, weights: Weights, prefix: str, dtype: np.dtype):
        self.weights, self.prefix, self.dtype = weights, prefix, dtype
        if not weights.below(prefix):
            raise weights.unknown(prefix)

    def full(self, name: str) -> str:
        return self.weights.full(self.prefix, name)

    def has(self, name: str) -> bool:
        """Whether there is a parameter, as it is or in parts."""
        return any(self.full(part) in self.weights for part in (name, f"{name}_g", _original(name, 0)))

    def get(self, name: str, *shape: int | None) -> np.ndarray:
        """A parameter of this shape; None is any size. Weight norm is folded."""
        array = self._array(name)
        return require_shape(array, self.full(name), shape) if shape else array

    def maybe(self, name: str, *shape: int | None) -> np.ndarray | None:
        return self.get(name, *shape) if self.has(name) else None

    def skip(self, *names: str) -> None:
        """Parameters that a model that runs does not need."""
        self.weights.used.update(self.full(name) for name in names if self.full(name) in self.weights)

    def require_only(self, *names: str, kind: str) -> None:
        """That there is nothing else below the prefix: a layer of another kind has other parameters."""
        known = {*names, *(f"{name}_g" for name in names), *(f"{name}_v" for name in names)}
        known |= {_original(name, part) for name in names for part in (0, 1)}
        others = [name for name in self.weights.below(self.prefix) if name not in known and "." not in name]
        if others and self.prefix:
            raise OptionError(f"{self.full(others[0])!r} is no parameter of a {kind}")

    def _array(self, name: str) -> np.ndarray:
        full = self.full(name)
        if full in self.weights:
            return floats(self.weights[full], full, self.dtype)
        for length, direction in ((f"{name}_g", f"{name}_v"), (_original(name, 0), _original(name, 1))):
            if self.full(length) in self.weights and self.full(direction) in self.weights:
                return self._folded(self.full(length), self.full(direction))
        for original in (f"{name}_orig", f"parametrizations.{name}.original"):
            if self.full(original) in self.weights:
                raise UnsupportedOp(
                    f"{self.full(original)!r}: only weight norm is folded; remove what makes {name!r} before "
                    "the weights are saved (torch.nn.utils.parametrize.remove_parametrizations)"
                )
        raise self.weights.missing(self.prefix, name)

    def _folded(self, length: str, direction: str) -> np.ndarray:
        """Weight norm: g * v / |v|, the norm over all axes that g has not."""
        g, v = (floats(self.weights[name], name, np.dtype(np.float64)) for name in (length, direction))
        if g.size == 1:  # one length for the whole tensor
            g = g.reshape((1,) * v.ndim)
        elif g.ndim != v.ndim:
            require_shape(g, length, (None,) * v.ndim)
        else:
            require_shape(g, length, tuple(1 if own == 1 else size for own, size in zip(g.shape, v.shape, strict=True)))
        axes = tuple(axis for axis in range(v.ndim) if g.shape[axis] == 1)
        return (g * (v / np.sqrt((v * v).sum(axis=axes, keepdims=True)))).astype(self.dtype)


def _original(name: str, part: int) -> str:
    return f"parametrizations.{name}.original{part}"
