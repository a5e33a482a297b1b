"""Models put together from pieces of which it is known whether they run by frames: x [batch, time, n] -> y."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tests.onnx.models import floats, graph, model

WIDTH = 6
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


class Builder:
    """Nodes of a model; each piece takes the name of a value of [batch, time, WIDTH] and gives such a one."""

    def __init__(self, rng: np.random.Generator, batch: int | str = "batch"):
        self.rng, self.batch = rng, batch
        self.nodes: list[Any] = []
        self.constants: list[TensorProto] = []
        self.inputs: dict[str, tuple[int, list[Any]]] = {}

    def op(self, op: str, *inputs: str, n_outputs: int = 1, name: str = "", **attributes: Any) -> Any:
        made = [f"v{len(self.nodes)}_{index}" for index in range(n_outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), made, name=name, **attributes))
        return made[0] if n_outputs == 1 else made

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def scalar(self, value: int) -> str:
        return self.constant(np.array(value, np.int64))

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weights(self, *shape: int) -> str:
        return self.constant(self.rng.normal(0, 0.5, shape).astype(np.float32))

    def input(self, name: str, shape: list[Any]) -> str:
        self.inputs[name] = (TensorProto.FLOAT, shape)
        return name

    def size(self, x: str, axis: int) -> str:
        return self.op("Shape", x, start=axis, end=axis + 1)

    def model(self, outputs: dict[str, list[Any] | None]) -> ModelProto:
        infos = [floats(name, shape) for name, (_, shape) in self.inputs.items()]
        return model(self.nodes, infos, [floats(name, shape) for name, shape in outputs.items()], self.constants, 20)


def cell(b: Builder, x: str, op: str = "GRU", inputs: int = WIDTH, hidden: int = WIDTH, **attributes: Any) -> str:
    """A recurrent layer over [time, batch, n]: gives [time, directions, batch, hidden]."""
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    rows = GATES[op] * hidden
    operands = [
        b.weights(directions, rows, inputs),
        b.weights(directions, rows, hidden),
        b.weights(directions, 2 * rows),
    ]
    y, _ = b.op(op, x, *operands, n_outputs=2, name=f"{op.lower()}_layer", hidden_size=hidden, **attributes)
    return y


def recurrent(b: Builder, x: str, op: str = "GRU", **attributes: Any) -> str:
    time_first = b.op("Transpose", x, perm=[1, 0, 2])
    y = cell(b, time_first, op, **attributes)
    return b.op("Transpose", b.op("Squeeze", y, b.ints(1)), perm=[1, 0, 2])


def keras_recurrent(b: Builder, x: str) -> str:
    """The directions are removed as Keras' exports do it: Transpose, then Reshape."""
    y = cell(b, b.op("Transpose", x, perm=[1, 0, 2]), "LSTM")
    moved = b.op("Transpose", y, perm=[2, 0, 1, 3])
    return b.op("Reshape", moved, b.ints(0, -1, WIDTH) if b.batch != 1 else b.ints(1, -1, WIDTH))


def dense(b: Builder, x: str) -> str:
    return b.op("Tanh", b.op("Add", b.op("MatMul", x, b.weights(WIDTH, WIDTH)), b.weights(WIDTH)))


def tensordot(b: Builder, x: str) -> str:
    """A dense layer on rows of all frames of all streams, as TensorFlow writes it."""
    rows = b.op("Reshape", x, b.ints(-1, WIDTH))
    product = b.op("Gemm", rows, b.weights(WIDTH, WIDTH), b.weights(WIDTH), transB=1)
    shape = b.op("Concat", b.size(x, 0), b.size(x, 1), b.ints(WIDTH), axis=0)
    return b.op("Reshape", product, shape)


def layer_norm(b: Builder, x: str) -> str:
    return b.op("LayerNormalization", x, b.weights(WIDTH), b.weights(WIDTH), axis=-1)


def written_layer_norm(b: Builder, x: str) -> str:
    centred = b.op("Sub", x, b.op("ReduceMean", x, b.ints(-1)))
    variance = b.op("ReduceMean", b.op("Mul", centred, centred), b.ints(2))
    spread = b.op("Sqrt", b.op("Add", variance, b.constant(np.float32([0.1]))))
    return b.op("Div", centred, spread)


def _channels_first(b: Builder, x: str, layer: Callable[[str], str]) -> str:
    return b.op("Transpose", layer(b.op("Transpose", x, perm=[0, 2, 1])), perm=[0, 2, 1])


def conv_1(b: Builder, x: str) -> str:
    return _channels_first(b, x, lambda c: b.op("Conv", c, b.weights(WIDTH, WIDTH, 1), b.weights(WIDTH)))


def conv_2d_over_features(b: Builder, x: str) -> str:
    """[batch, 1, time, n], a kernel of 1 frame by 3 features."""
    wide = b.op("Unsqueeze", x, b.ints(1))
    y = b.op("Conv", wide, b.weights(1, 1, 1, 3), pads=[0, 1, 0, 1], kernel_shape=[1, 3])
    return b.op("Squeeze", y, b.ints(1))


def batch_norm(b: Builder, x: str) -> str:
    positive = b.constant(np.abs(b.rng.normal(1, 0.1, WIDTH)).astype(np.float32))
    operands = [b.weights(WIDTH), b.weights(WIDTH), b.weights(WIDTH), positive]
    return _channels_first(b, x, lambda c: b.op("BatchNormalization", c, *operands))


def residual(b: Builder, x: str) -> str:
    return b.op("Add", x, dense(b, x))


def softmax(b: Builder, x: str) -> str:
    return b.op("Softmax", x, axis=-1)


def gates(b: Builder, x: str) -> str:
    both = b.op("MatMul", x, b.weights(WIDTH, 2 * WIDTH))
    left, right = b.op("Split", both, n_outputs=2, axis=2, num_outputs=2)
    return b.op("Mul", left, b.op("Sigmoid", right))


def cut_and_joined(b: Builder, x: str) -> str:
    low = b.op("Slice", x, b.ints(0), b.ints(2), b.ints(2))
    high = b.op("Gather", x, b.constant(np.array([5, 4, 3, 2], np.int64)), axis=2)
    return b.op("Concat", low, high, axis=-1)


def repeated_embedding(b: Builder, x: str) -> str:
    """What belongs to the whole sequence is put beside each frame."""
    name = b.input(f"speaker{len(b.inputs)}", [b.batch, 2])
    shape = b.op("Concat", b.size(x, 0), b.size(x, 1), b.ints(2), axis=0)
    spread = b.op("Expand", b.op("Unsqueeze", name, b.ints(1)), shape)
    return b.op("MatMul", b.op("Concat", x, spread, axis=2), b.weights(WIDTH + 2, WIDTH))


def mask(b: Builder, x: str) -> str:
    name = b.input(f"mask{len(b.inputs)}", [b.batch, "time"])
    return b.op("Mul", x, b.op("Unsqueeze", name, b.ints(2)))


def over_features(b: Builder, x: str) -> str:
    """A recurrent layer inside each frame, along its features: [features, batch * time, 1]."""
    rows = b.op("Transpose", b.op("Reshape", x, b.ints(-1, WIDTH, 1)), perm=[1, 0, 2])
    y = b.op("Squeeze", cell(b, rows, "GRU", 1, 1, direction="bidirectional"), b.ints(3))
    frames = b.op("Transpose", b.op("ReduceSum", y, b.ints(1), keepdims=0), perm=[1, 0])
    return b.op("Reshape", frames, b.op("Concat", b.size(x, 0), b.size(x, 1), b.ints(WIDTH), axis=0))


def _loop(b: Builder, x: str, body: Any, count: str, condition: str = "", states: list[str] = []) -> str:  # noqa: B006
    zeros = b.op("ConstantOfShape", b.op("Concat", b.size(x, 1), b.ints(WIDTH), axis=0))
    outputs = b.op("Loop", count, condition, zeros, *states, n_outputs=2 + len(states), name="own_loop", body=body)
    return b.op("Transpose", outputs[-1], perm=[1, 0, 2])


def _loop_body(b: Builder, x: str, index: list[Any], condition: list[Any], extra: Any = None) -> Any:
    """h' = tanh(x[index] + h) with `index` computed from i; a second state where `extra` says so."""
    nodes = [
        *index,
        helper.make_node("Gather", [x, "at"], ["frame"], axis=0, name="picks"),
        helper.make_node("Mul", ["frame", "h"], ["scaled"]),
        helper.make_node("Add", ["frame", "scaled"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["h_next"]),
        helper.make_node("Identity", ["h_next"], ["y"]),
        *condition,
    ]
    inputs = [_info("i", TensorProto.INT64, []), _info("go", TensorProto.BOOL, []), floats("h", None)]
    outputs = [_info("go_on", TensorProto.BOOL, []), floats("h_next", None)]
    if extra is not None:
        nodes, inputs, outputs = [*nodes, *extra[0]], [*inputs, extra[1]], [*outputs, extra[2]]
    return graph(nodes, inputs, [*outputs, floats("y", None)])


def _info(name: str, dtype: int, shape: list[Any]) -> Any:
    return helper.make_tensor_value_info(name, dtype, shape)


_ALWAYS = [helper.make_node("Identity", ["go"], ["go_on"])]


def walking_loop(b: Builder, x: str) -> str:
    """A Loop that picks frame i in step i, which passes make a plain Scan."""
    frames = b.op("Transpose", x, perm=[1, 0, 2])
    body = _loop_body(b, frames, [helper.make_node("Identity", ["i"], ["at"])], _ALWAYS)
    count = b.op("Squeeze", b.size(frames, 0), b.ints(0))
    return _loop(b, frames, body, count, b.constant(np.array(True)))


def own_counter(b: Builder, x: str) -> str:
    """`while n < time`, as Keras' loops are exported: n is a state."""
    return _counting_loop(b, x, [helper.make_node("Identity", ["n"], ["at"])])


def next_frame_by_counter(b: Builder, x: str) -> str:
    """x[n + 1] in step n, and x[0] in the last one."""
    count = b.op("Squeeze", b.size(x, 1), b.ints(0))
    return _counting_loop(b, x, [helper.make_node("Mod", ["n_next", count], ["at"])])


def _counting_loop(b: Builder, x: str, index: list[Any]) -> str:
    frames = b.op("Transpose", x, perm=[1, 0, 2])
    count = b.op("Squeeze", b.size(frames, 0), b.ints(0))
    one = b.scalar(1)
    goes_on = [helper.make_node("Less", ["n_next", count], ["go_on"])]
    counted = [helper.make_node("Add", ["n", one], ["n_next"])]
    extra = ([], _info("n", TensorProto.INT64, []), _info("n_next", TensorProto.INT64, []))
    body = _loop_body(b, frames, [*counted, *index], goes_on, extra)
    return _loop(b, frames, body, b.scalar(2**31 - 1), b.op("Less", b.scalar(0), count), [b.scalar(0)])


def backwards_by_hand(b: Builder, x: str) -> str:
    frames = b.op("Transpose", x, perm=[1, 0, 2])
    count = b.op("Squeeze", b.size(frames, 0), b.ints(0))
    last = b.op("Sub", count, b.scalar(1))
    body = _loop_body(b, frames, [helper.make_node("Sub", [last, "i"], ["at"])], _ALWAYS)
    return _loop(b, frames, body, count, b.constant(np.array(True)))


def frame_before(b: Builder, x: str) -> str:
    """x[max(t - 1, 0)] inside a loop."""
    frames = b.op("Transpose", x, perm=[1, 0, 2])
    count = b.op("Squeeze", b.size(frames, 0), b.ints(0))
    index = [helper.make_node("Sub", ["i", b.scalar(1)], ["n"]), helper.make_node("Max", ["n", b.scalar(0)], ["at"])]
    return _loop(b, frames, _loop_body(b, frames, index, _ALWAYS), count, b.constant(np.array(True)))


def step_number(b: Builder, x: str) -> str:
    frames = b.op("Transpose", x, perm=[1, 0, 2])
    count = b.op("Squeeze", b.size(frames, 0), b.ints(0))
    body = graph(
        [
            helper.make_node("Gather", [frames, "i"], ["frame"], axis=0),
            helper.make_node("Cast", ["i"], ["number"], to=TensorProto.FLOAT),
            helper.make_node("Sin", ["number"], ["phase"]),
            helper.make_node("Add", ["frame", "phase"], ["shifted"]),
            helper.make_node("Add", ["shifted", "h"], ["sum"]),
            helper.make_node("Tanh", ["sum"], ["h_next"]),
            helper.make_node("Identity", ["h_next"], ["y"]),
            *_ALWAYS,
        ],
        [_info("i", TensorProto.INT64, []), _info("go", TensorProto.BOOL, []), floats("h", None)],
        [_info("go_on", TensorProto.BOOL, []), floats("h_next", None), floats("y", None)],
    )
    return _loop(b, frames, body, count, b.constant(np.array(True)))


def early_exit(b: Builder, x: str) -> str:
    """It ends when its state is large; the frames behind are zeros, so the result is cut to what there is."""
    frames = b.op("Transpose", x, perm=[1, 0, 2])
    count = b.op("Squeeze", b.size(frames, 0), b.ints(0))
    limit, axes = b.constant(np.float32(0.9)), b.ints(0, 1)
    ends = [
        helper.make_node("ReduceMax", ["h_next", axes], ["most"], keepdims=0),
        helper.make_node("Less", ["most", limit], ["go_on"]),
    ]
    body = _loop_body(b, frames, [helper.make_node("Identity", ["i"], ["at"])], ends)
    return _loop(b, frames, body, count, b.constant(np.array(True)))


def causal_conv(b: Builder, x: str) -> str:
    weights = b.weights(WIDTH, WIDTH, 3)

    def layer(c: str) -> str:
        return b.op("Conv", b.op("Pad", c, b.ints(0, 0, 2, 0, 0, 0)), weights, name="causal")

    return _channels_first(b, x, layer)


def padded_conv(b: Builder, x: str) -> str:
    return _channels_first(b, x, lambda c: b.op("Conv", c, b.weights(WIDTH, WIDTH, 3), pads=[2, 0], name="causal"))


def average_pool(b: Builder, x: str) -> str:
    return _channels_first(
        b, x, lambda c: b.op("AveragePool", c, kernel_shape=[3], pads=[1, 1], strides=[1], count_include_pad=1)
    )


def shifted_by_slice(b: Builder, x: str) -> str:
    """x[t - 1], zeros first."""
    zeros = b.op("Mul", b.op("Slice", x, b.ints(0), b.ints(1), b.ints(1)), b.constant(np.float32([0])))
    return b.op("Add", x, b.op("Concat", zeros, b.op("Slice", x, b.ints(0), b.ints(-1), b.ints(1)), axis=1))


def shifted_by_pad(b: Builder, x: str) -> str:
    return b.op("Add", x, b.op("Pad", x, b.ints(0, 1, 0, 0, -1, 0)))


def flipped(b: Builder, x: str) -> str:
    return b.op("Slice", x, b.ints(-1), b.ints(-(2**31)), b.ints(1), b.ints(-1), name="flip")


def flipped_lstm(b: Builder, x: str) -> str:
    return recurrent(b, flipped(b, x), "LSTM")


def go_backwards(b: Builder, x: str) -> str:
    """Keras: the layer runs backwards and gives its results in the order in which it makes them."""
    return flipped(b, recurrent(b, x, "LSTM", direction="reverse"))


def flipped_by_gather(b: Builder, x: str) -> str:
    count = b.op("Squeeze", b.size(x, 1), b.ints(0))
    order = b.op("Range", b.op("Sub", count, b.scalar(1)), b.scalar(-1), b.scalar(-1))
    return recurrent(b, b.op("Gather", x, order, axis=1), "GRU")


def flipped_by_reverse_sequence(b: Builder, x: str) -> str:
    lengths = b.op("Expand", b.size(x, 1), b.size(x, 0))
    return recurrent(b, b.op("ReverseSequence", x, lengths, batch_axis=0, time_axis=1), "GRU")


def reverse(b: Builder, x: str) -> str:
    return recurrent(b, x, "GRU", direction="reverse")


def bidirectional(b: Builder, x: str) -> str:
    y = cell(b, b.op("Transpose", x, perm=[1, 0, 2]), direction="bidirectional")
    return b.op("Transpose", b.op("ReduceSum", y, b.ints(1), keepdims=0), perm=[1, 0, 2])


def softmax_over_time(b: Builder, x: str) -> str:
    return b.op("Softmax", x, axis=1)


def centred_over_time(b: Builder, x: str) -> str:
    return b.op("Sub", x, b.op("ReduceMean", x, b.ints(1)))


def cumulative(b: Builder, x: str) -> str:
    return b.op("CumSum", x, b.scalar(1))


def instance_norm(b: Builder, x: str) -> str:
    return _channels_first(b, x, lambda c: b.op("InstanceNormalization", c, b.weights(WIDTH), b.weights(WIDTH)))


def attention(b: Builder, x: str) -> str:
    scores = b.op("Softmax", b.op("MatMul", x, b.op("Transpose", x, perm=[0, 2, 1])), axis=-1)
    return b.op("MatMul", scores, x)


def divided_by_length(b: Builder, x: str) -> str:
    return b.op("Div", x, b.op("Cast", b.size(x, 1), to=TensorProto.FLOAT))


def positions(b: Builder, x: str) -> str:
    numbers = b.op("Range", b.scalar(0), b.op("Squeeze", b.size(x, 1), b.ints(0)), b.scalar(1))
    return b.op("Add", x, b.op("Unsqueeze", b.op("Sin", b.op("Cast", numbers, to=TensorProto.FLOAT)), b.ints(1)))


def last_frame_everywhere(b: Builder, x: str) -> str:
    return b.op("Add", x, b.op("Slice", x, b.ints(-1), b.ints(2**31 - 1), b.ints(1)))


def every_other_frame_zero(b: Builder, x: str) -> str:
    """Time is cut: [batch, time / 2, 2, n] for an even number of frames."""
    shape = b.op("Concat", b.size(x, 0), b.ints(-1, 2, WIDTH), axis=0)
    pairs = b.op("Mul", b.op("Reshape", x, shape), b.constant(np.float32([[1], [0]])))
    return b.op("Reshape", pairs, b.op("Concat", b.size(x, 0), b.ints(-1, WIDTH), axis=0))


def layer_norm_over_time(b: Builder, x: str) -> str:
    mean = b.op("ReduceMean", b.op("Mul", x, x), b.ints(1, 2))
    return b.op("Div", x, b.op("Sqrt", b.op("Add", mean, b.constant(np.float32([0.1])))))


RECURRENT = {
    "rnn": lambda b, x: recurrent(b, x, "RNN"),
    "gru": lambda b, x: recurrent(b, x, "GRU"),
    "gru_reset_after": lambda b, x: recurrent(b, x, "GRU", linear_before_reset=1),
    "lstm": lambda b, x: recurrent(b, x, "LSTM"),
    "keras_lstm": keras_recurrent,
    "walking_loop": walking_loop,
}

BY_COUNTER = {"own_counter": own_counter}
"""A plain walk only where the size that the counter is compared with is known to be that of time."""

PLAIN = {
    piece.__name__: piece
    for piece in (
        dense,
        tensordot,
        layer_norm,
        written_layer_norm,
        conv_1,
        conv_2d_over_features,
        batch_norm,
        residual,
        softmax,
        gates,
        cut_and_joined,
        repeated_embedding,
        mask,
        over_features,
        positions,
    )
}

HISTORIES = {
    piece.__name__: piece
    for piece in (
        causal_conv,
        padded_conv,
        average_pool,
        shifted_by_slice,
        shifted_by_pad,
        every_other_frame_zero,
        frame_before,
        step_number,
        cumulative,
    )
}
"""Pieces of which a frame depends on some frames around it, on its number, or on all before it."""

NEEDS_MORE = {
    piece.__name__: piece
    for piece in (
        next_frame_by_counter,
        backwards_by_hand,
        flipped,
        flipped_lstm,
        go_backwards,
        flipped_by_gather,
        flipped_by_reverse_sequence,
        reverse,
        bidirectional,
        softmax_over_time,
        centred_over_time,
        instance_norm,
        attention,
        divided_by_length,
        last_frame_everywhere,
        layer_norm_over_time,
    )
}
"""Pieces of which a frame depends on frames that come later, or on all that came before."""


def build(pieces: list[Callable[[Builder, str], str]], rng: np.random.Generator, **options: Any) -> ModelProto:
    """x -> y through the pieces, one after the other, with x added here and there."""
    time_first = options.pop("time_first", False)
    b = Builder(rng, **options)
    x = b.input("x", ["time", b.batch, WIDTH] if time_first else [b.batch, "time", WIDTH])
    value = start = b.op("Transpose", x, perm=[1, 0, 2]) if time_first else x
    for piece in pieces:
        value = piece(b, value)
        if rng.random() < 0.3:
            value = b.op("Add", value, start)
    if time_first:
        value = b.op("Transpose", value, perm=[1, 0, 2])
    b.nodes.append(helper.make_node("Identity", [value], ["y"]))
    return b.model({"y": None})
