"""What layers give is compared in test_keras_cases.py; here is what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webrnn
from webrnn import build


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


WEIGHTS = {
    "dense/kernel": ones(3, 2), "dense/bias": ones(2), "conv/kernel": ones(4, 3, 6), "conv/bias": ones(5),
    "plain/kernel": ones(4, 3, 6), "up/kernel": ones(3, 5, 3), "norm/gamma": ones(3), "norm/beta": ones(2),
    "bn/gamma": ones(3), "bn/beta": ones(3), "bn/moving_mean": ones(3), "bn/moving_variance": ones(4),
    "table/embeddings": ones(7, 3), "sep/depthwise_kernel": ones(2, 3, 2), "sep/pointwise_kernel": ones(1, 5, 4),
}  # fmt: skip


@pytest.mark.parametrize(
    ("misuse", "words"),
    [
        (lambda net, x: net.dense("danse", x), "did you mean 'dense'"),
        (lambda net, x: net.dense("dense", x[..., :2]), r"node 'dense' \(Dense\): the input is .* the weights take 3"),
        (lambda net, x: net.dense("dense", x, activation="nothing"), "'nothing' is not an activation"),
        (lambda net, x: net.dense("conv", x), r"'conv/kernel' is \[4, 3, 6\], it needs to be \[\?, \?\]"),
        (lambda net, x: net.dense("norm", x), "layer 'norm' has the weights"),
        (lambda net, x: net.conv1d("conv", x), r"'conv/bias' is \[5\], it needs to be \[6\]"),
        (lambda net, x: net.conv1d("plain", x, padding="full"), "valid, same or causal"),
        (lambda net, x: net.conv1d("plain", x, strides=0), "strides is 0"),
        (lambda net, x: net.conv1d("plain", x, dilation_rate="a"), "dilation_rate is 'a'"),
        (lambda net, x: net.conv1d("plain", x, groups=4), "groups is 4"),
        (lambda net, x: net.conv1d("plain", x[0]), r"\[batch, time, channels\]"),
        (lambda net, x: net.conv1d("plain", x[..., :2]), "the weights take 3"),
        (lambda net, x: net.conv1d_transpose("up", x, padding="causal"), "valid or same"),
        (lambda net, x: net.separable_conv1d("sep", x), r"'sep/pointwise_kernel' is \[1, 5, 4\]"),
        (lambda net, x: net.layer_normalization("norm", x), r"'norm/beta' is \[2\]"),
        (lambda net, x: net.batch_normalization("bn", x), r"'bn/moving_variance' is \[4\], it needs to be \[3\]"),
        (lambda net, x: net.batch_normalization("bn", x, scale=False), "layer 'bn' has the weights"),
        (lambda net, x: net.embedding("table", x), "ids are integers"),
        (lambda net, x: net.max_pooling1d(x, 0), "pool_size is 0"),
        (lambda net, x: net.part("nothing"), "no weights below 'nothing'"),
    ],
)
def test_misuse(misuse: Any, words: str) -> None:
    net = build.keras(WEIGHTS)
    with pytest.raises(webrnn.Error, match=words):
        misuse(net, net.input("x", (1, "time", 3)))
    assert not net.weights.used


def test_parts_of_a_model() -> None:
    net = build.keras({"encoder/dense/kernel": ones(3, 2), "decoder/dense/kernel": ones(2, 3)})
    x = net.input("x", (1, 3))
    net.output("y", net.part("decoder").dense("dense", net.part("encoder").dense("dense", x)))
    assert net.session().run(None, {"x": ones(1, 3)})[0].tolist() == [[6, 6, 6]]


def test_pools_and_reductions() -> None:
    net = build.keras({})
    x = net.input("x", (1, 5, 2))
    for name, tensor in (
        ("most", net.max_pooling1d(x, 2, padding="same")),
        ("mean", net.average_pooling1d(x, 2)),
        ("all", net.global_average_pooling1d(x)),
        ("top", net.global_max_pooling1d(x)),
        ("same", net.activation(net.dropout(x, 0.5), "linear")),
    ):
        net.output(name, tensor)
    fed = np.arange(10, dtype="f").reshape(1, 5, 2)
    most, mean, whole, top, same = net.session().run(None, {"x": fed})
    assert most[0, :, 0].tolist() == [2, 6, 8]
    assert mean[0, :, 0].tolist() == [1, 5]
    assert whole.tolist() == [[4, 5]]
    assert top.tolist() == [[8, 9]]
    assert np.array_equal(same, fed)
