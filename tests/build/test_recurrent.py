"""The loop of a projected LSTM, which ONNX does not have, beside the one of ONNX's LSTM."""

from __future__ import annotations

import numpy as np
import pytest

from webrnn import build
from webrnn.build.recurrent import Direction, Recurrence
from webrnn.ir import is_scan
from webrnn.ir.fused import is_cell


def net_of(projection: np.ndarray | None, reverse: bool) -> build.TorchNet:
    numbers = np.random.default_rng(0)
    w, r = (numbers.normal(size=(16, size)).astype("f") for size in (3, 4))
    bias = numbers.normal(size=16).astype("f")
    net = build.torch({})
    layer = Recurrence("LSTM", [Direction(w, r, bias, bias, projection, reverse)], name="layer")
    y, states = layer.run(net, net.input("x", ("time", 2, 3)), None)
    for name, tensor in (("y", y), ("h", states[0]), ("c", states[1])):
        net.output(name, tensor)
    return net


@pytest.mark.parametrize("reverse", [False, True])
def test_a_projection_that_does_nothing(reverse: bool) -> None:
    x = np.random.default_rng(1).normal(size=(5, 2, 3)).astype("f")
    plain, projected = (
        net_of(projection, reverse).session().run(None, {"x": x}) for projection in (None, np.eye(4, dtype="f"))
    )
    for have, want in zip(projected, plain, strict=True):
        assert np.array_equal(have, want)


def test_the_loop_is_products_and_a_cell() -> None:
    graph = net_of(np.eye(4, dtype="f"), False).graph()
    (scan,) = [node for node in graph.nodes if is_scan(node)]
    assert [node.op for node in scan.attrs["body"].nodes if is_cell(node)] == ["LstmCell"]
    assert scan.name == "layer"
