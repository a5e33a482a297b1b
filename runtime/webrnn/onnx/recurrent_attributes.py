"""The attributes of RNN, GRU and LSTM, checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from webrnn.errors import ModelError, UnsupportedOp
from webrnn.ir import Node
from webrnn.ir.activations import ACTIVATION_ROWS, ActivationRow

DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""For each direction that the node runs, whether it is reversed."""

_DEFAULT_ACTIVATIONS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}

_KNOWN = {
    "activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size", "input_forget", "layout",
    "linear_before_reset",
}  # fmt: skip

_BY_LOWER_CASE = {row.onnx.lower(): row for row in ACTIVATION_ROWS if row.onnx}


@dataclass(frozen=True)
class RecurrentAttributes:
    directions: tuple[bool, ...]
    activations: tuple[tuple[ActivationRow, ...], ...]
    """For each direction the functions f, g, h."""
    hidden_size: int | None
    clip: float | None
    batch_first: bool
    input_forget: bool
    linear_before_reset: bool

    @staticmethod
    def of(node: Node, n_activations: int) -> RecurrentAttributes:
        attrs = node.attrs
        for name in attrs.keys() - _KNOWN:
            raise UnsupportedOp("this attribute is not known", attribute=name)
        direction = _of_kind(attrs, "direction", str, "forward")
        if direction not in DIRECTIONS:
            raise ModelError(f"{direction!r} is not a direction", attribute="direction")
        directions = DIRECTIONS[direction]
        layout = _of_kind(attrs, "layout", int, 0)
        if layout not in (0, 1):
            raise ModelError(f"layout is {layout}", attribute="layout")
        clip = _of_kind(attrs, "clip", float, None)
        return RecurrentAttributes(
            directions,
            _activations(node, n_activations, len(directions)),
            _of_kind(attrs, "hidden_size", int, None),
            clip or None,
            layout == 1,
            _of_kind(attrs, "input_forget", int, 0) != 0,
            _of_kind(attrs, "linear_before_reset", int, 0) != 0,
        )


def _of_kind(attrs: dict[str, Any], name: str, kind: type, default: Any) -> Any:
    value = attrs.get(name, default)
    if value is not default and not isinstance(value, kind):
        raise ModelError(f"the attribute is a {type(value).__name__}, it needs to be a {kind.__name__}", attribute=name)
    return value


def _activations(node: Node, per_direction: int, n_directions: int) -> tuple[tuple[ActivationRow, ...], ...]:
    names = _of_kind(node.attrs, "activations", list, None)
    if not names:
        names = _DEFAULT_ACTIVATIONS[node.op] * n_directions
    if len(names) != per_direction * n_directions:
        raise ModelError(
            f"{len(names)} functions given, it needs {per_direction * n_directions}", attribute="activations"
        )
    alphas = _numbers(node.attrs, "activation_alpha", len(names))
    betas = _numbers(node.attrs, "activation_beta", len(names))
    functions = [_activation(name, alphas, betas) for name in names]
    return tuple(tuple(functions[start : start + per_direction]) for start in range(0, len(functions), per_direction))


def _numbers(attrs: dict[str, Any], name: str, most: int) -> Iterator[float]:
    numbers = _of_kind(attrs, name, list, [])
    if len(numbers) > most:
        raise ModelError(f"{len(numbers)} numbers given for {most} functions", attribute=name)
    return iter(numbers)


def _activation(name: str, alphas: Iterator[float], betas: Iterator[float]) -> ActivationRow:
    """The values of alpha and beta go, in order, to the functions that have them; as in onnxruntime."""
    known = _BY_LOWER_CASE.get(name.lower() if isinstance(name, str) else "")
    if known is None:
        raise UnsupportedOp(f"the activation {name!r} is not known", attribute="activations")
    return known._replace(
        alpha=None if known.alpha is None else float(next(alphas, known.alpha)),
        beta=None if known.beta is None else float(next(betas, known.beta)),
    )
