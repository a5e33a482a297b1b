from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webrnn
from webrnn import build

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def run(function: Callable[[Any], Any], shape: tuple[int | str, ...] = (2, "time", 4), x: np.ndarray = X) -> np.ndarray:
    net = build.torch({})
    given = net.input("x", shape, str(x.dtype))
    net.output("y", function(given))
    return net.session(backend="numpy").run(None, {"x": x})[0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1,
        lambda x: 2 - x,
        lambda x: x * 0.5 + x / 3,
        lambda x: 1 / (x + 1),
        lambda x: -x,
        lambda x: x**2,
        lambda x: x + np.arange(4, dtype=np.float32),
        lambda x: np.arange(4, dtype=np.float32) * x,
        lambda x: x @ np.ones((4, 2), np.float32),
        lambda x: x[0],
        lambda x: x[-1],
        lambda x: x[:, -1],
        lambda x: x[..., 0],
        lambda x: x[1:, 0, ::2],
        lambda x: x[:, ::-1],
        lambda x: x[:, None],
        lambda x: x[0, None, ..., 1:3],
        lambda x: x[:, 0, None, 1],
        lambda x: x[..., -3:-1],
    ],
)
def test_as_in_numpy(function: Callable[[Any], Any]) -> None:
    expected = np.asarray(function(X), np.float32)
    found = run(function)
    assert found.dtype == np.float32
    assert found.shape == expected.shape
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x.reshape("time", 8), X.reshape(3, 8)),
        (lambda x: x.reshape(-1, 2, "time"), X.reshape(4, 2, 3)),
        (lambda x: x.reshape(6, 4), X.reshape(6, 4)),
        (lambda x: x.reshape((-1,)), X.reshape(-1)),
        (lambda x: x.permute(2, 0, 1), X.transpose(2, 0, 1)),
        (lambda x: x.transpose(1, -1), X.swapaxes(1, 2)),
        (lambda x: x.unsqueeze(0, -1), X[None, ..., None]),
        (lambda x: x[:1].squeeze(0), X[0]),
        (lambda x: x.flatten(1), X.reshape(2, -1)),
        (lambda x: x.flatten(), X.reshape(-1)),
        (lambda x: x.mean(1), X.mean(1)),
        (lambda x: x.sum(0, 2, keepdims=True), X.sum((0, 2), keepdims=True)),
        (lambda x: x.max(-1), X.max(-1)),
        (lambda x: x.min(), X.min()),
        (lambda x: x.astype("int64") + 1, X.astype(np.int64) + 1),
        (lambda x: x.net.stack([x, x], 1), np.stack([X, X], 1)),
        (lambda x: x.net.split(x, 2, -1)[1], X[..., 2:]),
    ],
)
def test_layout(function: Callable[[Any], Any], expected: np.ndarray) -> None:
    found = run(function)
    assert found.shape == expected.shape
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x[0, 0, 0, 0], "4 indices"),
        (lambda x: x[2], "index 2 of an axis of size 2"),
        (lambda x: x["a"], "not an index"),
        (lambda x: x[..., ...], "one ellipsis"),
        (lambda x: x[True], "not an index"),
        (lambda x: x.reshape("width", 4), "called 'width'; there are 'time'"),
        (lambda x: x.reshape(-2), "not a size"),
        (lambda x: x.reshape(2, 2), "Reshape"),
        (lambda x: x.permute(0, 1), "not an order"),
        (lambda x: x.transpose(0, 3), "no axis"),
        (lambda x: x.squeeze(0), "Squeeze"),
        (lambda x: x.mean(5), "no axis"),
        (lambda x: x + "a", "a str cannot be combined"),
        (lambda x: x + np.ones(5), "cannot be broadcast"),
        (lambda x: x * 2 if x else x, "no value before the model runs"),
        (lambda x: [*x], "a tensor is one value"),
    ],
)
def test_what_cannot_be(function: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(webrnn.Error, match=words):
        run(function)


def test_integers_stay_integers() -> None:
    found = run(lambda x: x * 2 + 1, (3,), np.array([1, 2, 3], np.int64))
    assert found.dtype == np.int64
    assert found.tolist() == [3, 5, 7]
