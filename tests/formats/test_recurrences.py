"""The order of gates. What the layers of each framework give is in test_rtneural_layers.py and test_state_dicts.py."""

import numpy as np
import pytest

from webrnn.formats.recurrences import KERAS_GRU, KERAS_LSTM, TORCH_GRU, TORCH_LSTM, gru, lstm
from webrnn.ir import DType, GraphBuilder, Symbol, is_scan


def gates_of(values: list[str], order: tuple[int, ...]) -> list[str]:
    return [values[gate] for gate in order]


def test_the_order_of_onnx() -> None:
    assert gates_of(["i", "f", "c", "o"], TORCH_LSTM) == gates_of(["i", "f", "c", "o"], KERAS_LSTM) == [*"iofc"]
    assert gates_of(["r", "z", "n"], TORCH_GRU) == gates_of(["z", "r", "n"], KERAS_GRU) == [*"zrn"]


@pytest.mark.parametrize("gates", [3, 4])
def test_one_loop_a_layer(gates: int) -> None:
    b = GraphBuilder("g")
    x = b.input("x", DType.FLOAT, (Symbol("time"), 1, 2))
    w, r, bias = (np.zeros(shape, np.float32) for shape in ((gates * 5, 2), (gates * 5, 5), (gates * 5,)))
    if gates == 3:
        gru(b, x, w, r, bias, bias, TORCH_GRU, "rec")
    else:
        lstm(b, x, w, r, bias, TORCH_LSTM, "rec", (np.zeros((1, 5), np.float32), np.ones((1, 5), np.float32)))
    assert [node.name for node in b.graph.nodes if is_scan(node)] == ["rec"]
