"""The model that commands take when they are given none, written without the `onnx` package."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

FLOAT, INT = 1, 2
"""Kinds: of tensors, and of attributes that are integers."""


def gru_model(inputs: int = 64, hidden: int = 128) -> bytes:
    """An ONNX file: x [steps, batch, inputs], h_in -> y, h_out, a GRU with random weights.

    >>> from webrnn import InferenceSession
    >>> [item.name for item in InferenceSession(gru_model(4, 5)).get_outputs()]
    ['y', 'h_out']
    """
    rng = np.random.default_rng(0)
    scale = hidden**-0.5
    weights = {
        "W": rng.uniform(-scale, scale, (1, 3 * hidden, inputs)),
        "R": rng.uniform(-scale, scale, (1, 3 * hidden, hidden)),
        "B": rng.uniform(-scale, scale, (1, 6 * hidden)),
    }
    attributes = [_integer("hidden_size", hidden), _integer("linear_before_reset", 1)]
    node = b"".join(
        [
            *(_text(1, name) for name in ("x", "W", "R", "B", "", "h_in")),
            *(_text(2, name) for name in ("y", "h_out")),
            _text(4, "GRU"),
            *(_field(5, attribute) for attribute in attributes),
        ]
    )
    graph = b"".join(
        [
            _field(1, node),
            _text(2, "gru"),
            *(_field(5, _tensor(name, array.astype("<f4"))) for name, array in weights.items()),
            _field(11, _value("x", ["steps", "batch", inputs])),
            _field(11, _value("h_in", [1, "batch", hidden])),
            _field(12, _value("y", ["steps", 1, "batch", hidden])),
            _field(12, _value("h_out", [1, "batch", hidden])),
        ]
    )
    return _number(1, 8) + _field(7, graph) + _field(8, _number(2, 17))


def _varint(number: int) -> bytes:
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def _field(tag: int, content: bytes) -> bytes:
    return _varint(tag << 3 | 2) + _varint(len(content)) + content


def _number(tag: int, number: int) -> bytes:
    return _varint(tag << 3) + _varint(number)


def _text(tag: int, text: str) -> bytes:
    return _field(tag, text.encode())


def _integer(name: str, number: int) -> bytes:
    return _text(1, name) + _number(3, number) + _number(20, INT)


def _tensor(name: str, array: np.ndarray) -> bytes:
    return (
        b"".join(_number(1, size) for size in array.shape)
        + _number(2, FLOAT)
        + _text(8, name)
        + _field(9, array.tobytes())
    )


def _value(name: str, shape: Sequence[int | str]) -> bytes:
    dims = b"".join(_field(1, _text(2, size) if isinstance(size, str) else _number(1, size)) for size in shape)
    return _text(1, name) + _field(2, _field(1, _number(1, FLOAT) + _field(2, dims)))
