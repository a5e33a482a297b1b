"""GRU and LSTM layers with the gates in the order of the file's framework, on frames [time, 1, inputs]."""

from __future__ import annotations

import numpy as np

from webrnn.ir import DType, GraphBuilder, Node, Value
from webrnn.onnx.recurrent import expand_gru, expand_lstm

TORCH_LSTM = KERAS_LSTM = (0, 3, 1, 2)
"""Where ONNX's gates i, o, f, c are among i, f, c, o."""
TORCH_GRU = (1, 0, 2)
"""Where ONNX's z, r, h are among r, z, n."""
KERAS_GRU = (0, 1, 2)


def lstm(
    b: GraphBuilder,
    x: Value,
    w: np.ndarray,
    r: np.ndarray,
    bias: np.ndarray,
    gates: tuple[int, ...],
    name: str,
    starts: tuple[np.ndarray, np.ndarray] | None = None,
) -> Value:
    """W [4 hidden, inputs], R [4 hidden, hidden], one bias [4 hidden]; what H and C start from, zeros without."""
    hidden = r.shape[1]
    both = np.concatenate([_ordered(bias, gates), np.zeros(4 * hidden, np.float32)])
    weights = [_constant(b, name, array) for array in (_ordered(w, gates), _ordered(r, gates), both)]
    states = [] if starts is None else [_constant(b, name, start) for start in starts]
    return _layer(b, "LSTM", [x, *weights, None, *states], hidden, name, {})


def gru(
    b: GraphBuilder,
    x: Value,
    w: np.ndarray,
    r: np.ndarray,
    w_bias: np.ndarray,
    r_bias: np.ndarray,
    gates: tuple[int, ...],
    name: str,
    reset_after: bool = True,
) -> Value:
    """W [3 hidden, inputs], R [3 hidden, hidden], and a bias [3 hidden] of each."""
    biases = np.concatenate([_ordered(w_bias, gates), _ordered(r_bias, gates)])
    weights = [_constant(b, name, array) for array in (_ordered(w, gates), _ordered(r, gates), biases)]
    return _layer(b, "GRU", [x, *weights], r.shape[1], name, {"linear_before_reset": int(reset_after)})


def _layer(
    b: GraphBuilder, op: str, inputs: list[Value | None], hidden: int, name: str, attrs: dict[str, int]
) -> Value:
    """The outputs of all steps, [time, 1, hidden]."""
    trace = b.value(f"{name}_y", DType.FLOAT)
    node = Node(op, inputs, [trace], {"hidden_size": hidden, **attrs}, name)
    (expand_lstm if op == "LSTM" else expand_gru)(b, node)
    return b.op("Squeeze", trace, b.ints(1))


def _ordered(array: np.ndarray, gates: tuple[int, ...]) -> np.ndarray:
    return np.concatenate([np.split(array, len(gates))[gate] for gate in gates])


def _constant(b: GraphBuilder, name: str, array: np.ndarray) -> Value:
    return b.constant(np.ascontiguousarray(array[None], np.float32), name)
