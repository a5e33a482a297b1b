"""What each instruction of a plan is for, and what it contains."""

from __future__ import annotations

from dataclasses import dataclass

CATEGORIES = ("matrix", "cell", "element-wise", "reduction", "transform", "copy", "control", "fallback")
"""fallback: nodes that have no instruction and run in numpy."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The category of an instruction, or of what is left of it when its parts are counted on their own."""

    category: str
    parts: tuple[tuple[str, str], ...] = ()
    """Name and category of each."""
    is_control: bool = False
    """Its parts count steps and branches: their time is its own."""


_SEQUENCE = Kind("copy", (("products", "matrix"), ("cells", "cell")))

KINDS: dict[str, Kind] = {
    "require": Kind("control"),
    "sizes": Kind("control"),
    "branch": Kind("control", (("then", "control"), ("else", "control")), is_control=True),
    "loop": Kind("control", (("steps", "control"), ("end", "control")), is_control=True),
    "copy": Kind("copy"),
    "fill": Kind("copy"),
    "gather": Kind("copy"),
    "gemm": Kind("matrix"),
    "matmul": Kind("control", (("packing", "copy"), ("products", "matrix"))),
    "conv": Kind("matrix"),
    "expression": Kind("element-wise"),
    "rnn_cell": Kind("cell"),
    "gru_cell": Kind("cell"),
    "gru_reset": Kind("cell"),
    "gru_update": Kind("cell"),
    "lstm_cell": Kind("cell"),
    "rnn_sequence": _SEQUENCE,
    "gru_sequence": _SEQUENCE,
    "lstm_sequence": _SEQUENCE,
    "reduce": Kind("reduction"),
    "softmax": Kind("reduction"),
    "layer_norm": Kind("reduction"),
    "instance_norm": Kind("reduction"),
    "batch_norm": Kind("element-wise"),
    "pool": Kind("reduction"),
    "fft": Kind("transform"),
}
