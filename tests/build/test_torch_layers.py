"""What layers give is compared in test_torch_cases.py; here is what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webrnn
from webrnn import build

WEIGHTS = {
    "out.weight": np.ones((2, 4), "f"),
    "out.bias": np.ones(2, "f"),
    "conv.weight": np.ones((6, 2, 3), "f"),
    "norm.weight": np.ones(4, "f"),
    "norm.bias": np.ones(4, "f"),
    "bn.running_mean": np.ones(4, "f"),
    "bn.running_var": np.ones(3, "f"),
    "table.weight": np.ones((5, 4), "f"),
}


@pytest.mark.parametrize(
    ("misuse", "words"),
    [
        (lambda net, x: net.linear("out", x[:, :2].transpose(1, 2)), r"the input is \[1, time, 2\]: axis -1 has 2"),
        (lambda net, x: net.linear("conv", x), r"'conv.weight' is \[6, 2, 3\], it needs to be \[\?, \?\]"),
        (lambda net, x: net.linear("bn", x), "no 'bn.weight'"),
        (lambda net, x: net.conv1d("conv", x), "axis 1 has 4 elements, the weights take 2"),
        (lambda net, x: net.conv1d("conv", x, groups=4), "groups is 4, filters of 'conv.weight' are 6"),
        (lambda net, x: net.conv1d("conv", x, groups=0), "groups is 0"),
        (lambda net, x: net.conv1d("conv", x, groups=2, padding="full"), "'valid', 'same' or 'causal'"),
        (lambda net, x: net.conv1d("conv", x, groups=2, padding="same", stride=2), "needs stride 1"),
        (lambda net, x: net.conv1d("conv", x, groups=2, padding=-1), "padding is -1"),
        (lambda net, x: net.conv1d("conv", x, groups=2, stride=0), "stride is 0"),
        (lambda net, x: net.conv1d("conv", x, groups=2, dilation=1.5), "dilation is 1.5"),
        (lambda net, x: net.conv1d("conv", x, groups=2, padding_mode="mirror"), "padding_mode is 'mirror'"),
        (lambda net, x: net.conv1d("conv", x[0], groups=2), r"it has to be \[batch, channels, time\]"),
        (lambda net, x: net.conv2d("conv", x), r"needs to be \[\?, \?, \?, \?\]"),
        (lambda net, x: net.conv_transpose1d("conv", x), "the weights take 6"),
        (lambda net, x: net.batch_norm("bn", x), r"'bn.running_var' is \[3\], it needs to be \[4\]"),
        (lambda net, x: net.batch_norm("out", x), "no running_mean"),
        (lambda net, x: net.layer_norm("norm", net.input("wide", (1, 4, 5))), "axis -1 has 5 elements"),
        (lambda net, x: net.layer_norm("norm", x.transpose(1, 2), eps=-1), "eps is -1"),
        (lambda net, x: net.group_norm("norm", x, 3), "groups is 3"),
        (lambda net, x: net.embedding("table", x), "ids are integers"),
        (lambda net, x: net.prelu("norm", x[:, :3]), "the weights take 4"),
    ],
)
def test_misuse(misuse: Any, words: str) -> None:
    net = build.torch(WEIGHTS)
    x = net.input("x", (1, 4, "time"))
    with pytest.raises(webrnn.Error, match=words):
        misuse(net, x)
    assert not net.weights.used


def test_causal_padding_sees_nothing_behind() -> None:
    net = build.torch({"conv.weight": np.random.default_rng(0).normal(size=(2, 2, 3)).astype("f")})
    x = net.input("x", (1, 2, "time"))
    net.output("y", net.conv1d("conv", x, padding="causal", dilation=2))
    whole = np.random.default_rng(1).normal(size=(1, 2, 9)).astype("f")
    session = net.session()
    y = session.run(None, {"x": whole})[0]
    assert y.shape == (1, 2, 9)
    assert np.array_equal(session.run(None, {"x": whole[..., :5]})[0], y[..., :5])
    stream = net.stream()
    assert np.array_equal(np.concatenate([stream.step({"x": whole[..., i : i + 1]})[0] for i in range(9)], -1), y)


def test_parts_and_residuals() -> None:
    weights = {f"blocks.{index}.out.weight": np.eye(3, dtype="f") * (index + 1) for index in range(3)}
    net = build.torch({f"module.{name}": array for name, array in weights.items()})
    x = y = net.input("x", (1, 3))
    blocks = net.part("module").part("blocks")
    for index in range(3):
        block = blocks.part(str(index))
        y = y + block.dropout(block.linear("out", y), 0.5)
    net.output("y", y)
    assert net.session().run(None, {"x": np.ones((1, 3), "f")})[0].tolist() == [[24, 24, 24]]
    assert x.shape == (1, 3)


def test_names_of_layers_are_names_of_nodes() -> None:
    net = build.torch(WEIGHTS)
    net.output("y", net.linear("out", net.input("x", (1, 4))))
    assert "out" in {node.name for node in net.graph(strict=False).nodes}


def test_pools() -> None:
    net = build.torch({})
    x = net.input("x", (1, 2, 6))
    net.output("most", net.max_pool1d(x, 2))
    net.output("mean", net.avg_pool1d(x, 3, stride=1, padding=1))
    fed = np.arange(12, dtype="f").reshape(1, 2, 6)
    most, mean = net.session().run(None, {"x": fed})
    assert np.array_equal(most, fed.reshape(1, 2, 3, 2).max(-1))
    assert np.allclose(mean[0, 0], [1 / 3, 1, 2, 3, 4, 3])
