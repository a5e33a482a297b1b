"""The built-in models: recurrent layers in two sizes, single steps, a cell of one's own in a Scan, a Loop.

They have the names, shapes and weights of the models that the peer benchmark generates (float32, batch 1, fixed seeds),
so that a file for another runtime made from those is the same model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from .onnx_file import GraphContent, GraphFile

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


class _Weights:
    """Uniform ones, in the order in which they are asked for."""

    def __init__(self, graph: GraphFile, seed: int):
        self._graph, self.rng = graph, np.random.default_rng(seed)

    def add(self, name: str, shape: tuple[int, ...], scale: float) -> None:
        self._graph.constant(name, self.rng.uniform(-scale, scale, shape).astype(np.float32))


def _layer(
    graph: GraphFile, weights: _Weights, op: str, prefix: str, x: str, sizes: tuple[int, int], states: Sequence[str]
) -> list[str]:
    """A recurrent op; the names of its outputs."""
    inputs, hidden = sizes
    rows, scale = GATES[op] * hidden, hidden**-0.5
    for name, shape in (("W", (1, rows, inputs)), ("R", (1, rows, hidden)), ("B", (1, 2 * rows))):
        weights.add(f"{prefix}_{name}", shape, scale)
    outputs = [f"{prefix}_Y", f"{prefix}_Yh", *([f"{prefix}_Yc"] if op == "LSTM" else [])]
    attributes = {"linear_before_reset": 1} if op == "GRU" else {}
    given = ["", *states] if states else []
    names = [f"{prefix}_{name}" for name in "WRB"]
    graph.node(op, [x, *names, *given], outputs, hidden_size=hidden, **attributes)
    return outputs


def sequence(op: str, hidden: int, steps: int, seed: int, layers: int = 1) -> bytes:
    """x [steps, 1, hidden] through recurrent layers -> y, h_n and, of an LSTM, c_n."""
    graph = GraphFile(op.lower())
    weights = _Weights(graph, seed)
    if layers > 1:
        graph.constant("ax1", np.array([1], np.int64))
    x, made = "x", [""]
    for layer in range(layers):
        made = _layer(graph, weights, op, f"l{layer}", x, (hidden, hidden), ())
        if layer + 1 < layers:
            x = f"l{layer}_sq"
            graph.node("Squeeze", [made[0], "ax1"], [x])
    outputs = dict(zip(("y", "h_n", "c_n"), ([steps, 1, 1, hidden], [1, 1, hidden], [1, 1, hidden]), strict=True))
    outputs = {name: outputs[name] for name, _ in zip(outputs, made, strict=False)}
    for name, result in zip(outputs, made, strict=True):
        graph.node("Identity", [result], [name])
    return graph.model({"x": [steps, 1, hidden]}, outputs)


def gru_step(hidden: int, seed: int, inputs: int | None = None) -> bytes:
    """One step of a GRU: x [1, 1, inputs] and h -> y, h_n."""
    graph = GraphFile("gru_step")
    inputs = inputs or hidden
    y, h = _layer(graph, _Weights(graph, seed), "GRU", "l0", "x", (inputs, hidden), ["h"])
    graph.node("Identity", [y], ["y"])
    graph.node("Identity", [h], ["h_n"])
    state = [1, 1, hidden]
    return graph.model({"x": [1, 1, inputs], "h": state}, {"y": [1, 1, 1, hidden], "h_n": state})


def mask_step(hidden: int, bins: int, seed: int) -> bytes:
    """One step of a mask for a spectrum, as the denoiser DTLN's: two LSTMs, a dense layer, a sigmoid."""
    graph = GraphFile("mask_step")
    weights = _Weights(graph, seed)
    graph.constant("ax1", np.array([1], np.int64))
    y1, h1, c1 = _layer(graph, weights, "LSTM", "l0", "mag", (bins, hidden), ["h1", "c1"])
    graph.node("Squeeze", [y1, "ax1"], ["s1"])
    y2, h2, c2 = _layer(graph, weights, "LSTM", "l1", "s1", (hidden, hidden), ["h2", "c2"])
    graph.node("Squeeze", [y2, "ax1"], ["s2"])
    weights.add("fc_w", (hidden, bins), hidden**-0.5)
    weights.add("fc_b", (bins,), hidden**-0.5)
    graph.node("MatMul", ["s2", "fc_w"], ["fc_m"])
    graph.node("Add", ["fc_m", "fc_b"], ["fc_a"])
    graph.node("Sigmoid", ["fc_a"], ["mask"])
    states = {"h1": h1, "c1": c1, "h2": h2, "c2": c2}
    for name, result in states.items():
        graph.node("Identity", [result], [f"{name}_n"])
    shape = [1, 1, hidden]
    return graph.model(
        {"mag": [1, 1, bins], **dict.fromkeys(states, shape)},
        {"mask": [1, 1, bins], **{f"{name}_n": shape for name in states}},
    )


def custom_cell(hidden: int, steps: int, seed: int) -> bytes:
    """A Scan whose body is an LSTM with a normalized sum and peepholes, a cell that no runtime has an op for."""
    graph = GraphFile("custom_cell")
    weights, scale = _Weights(graph, seed + 1000), hidden**-0.5
    for name, shape in (("W", (hidden, 4 * hidden)), ("R", (hidden, 4 * hidden)), ("b", (4 * hidden,)),
                        ("beta", (4 * hidden,)), ("pi", (hidden,)), ("pf", (hidden,)), ("po", (hidden,))):  # fmt: skip
        weights.add(name, shape, scale)
    graph.constant("gamma", (1 + weights.rng.uniform(-scale, scale, 4 * hidden)).astype(np.float32))
    graph.constant("split", np.array([hidden] * 4, np.int64))
    body = GraphFile("cell")
    for op, inputs, output in (
        ("MatMul", ["x_t", "W"], "xw"), ("MatMul", ["h_in", "R"], "hr"), ("Add", ["xw", "hr"], "sum"),
        ("Add", ["sum", "b"], "biased"),
    ):  # fmt: skip
        body.node(op, inputs, [output])
    body.node("LayerNormalization", ["biased", "gamma", "beta"], ["normal"], axis=-1, epsilon=1e-5)
    body.node("Split", ["normal", "split"], ["i0", "f0", "o0", "u0"], axis=-1)
    for op, inputs, output in (
        ("Mul", ["c_in", "pi"], "ip"), ("Add", ["i0", "ip"], "i1"), ("Sigmoid", ["i1"], "i"),
        ("Mul", ["c_in", "pf"], "fp"), ("Add", ["f0", "fp"], "f1"), ("Sigmoid", ["f1"], "f"),
        ("Tanh", ["u0"], "u"), ("Mul", ["f", "c_in"], "fc"), ("Mul", ["i", "u"], "iu"), ("Add", ["fc", "iu"], "c_out"),
        ("Mul", ["c_out", "po"], "op"), ("Add", ["o0", "op"], "o1"), ("Sigmoid", ["o1"], "o"),
        ("Tanh", ["c_out"], "tc"), ("Mul", ["o", "tc"], "h_out"), ("Identity", ["h_out"], "y_t"),
    ):  # fmt: skip
        body.node(op, inputs, [output])
    row = [1, hidden]
    content = body.content(dict.fromkeys(("h_in", "c_in", "x_t"), row), dict.fromkeys(("h_out", "c_out", "y_t"), row))
    graph.node("Scan", ["h0", "c0", "x"], ["h_n", "c_n", "y"], body=GraphContent(content), num_scan_inputs=1)
    return graph.model(
        {"x": [steps, 1, hidden], "h0": row, "c0": row}, {"y": [steps, 1, hidden], "h_n": row, "c_n": row}
    )


def decoder(hidden: int, steps: int, seed: int) -> bytes:
    """A Scan whose body is two GRU cells, the second on the state of the first, in plain ops."""
    graph = GraphFile("decoder")
    weights, scale = _Weights(graph, seed), hidden**-0.5
    body = GraphFile("two_cells")
    graph.constant("split", np.array([hidden] * 3, np.int64))
    body.constant("one", np.float32(1))
    x = "x_t"
    for cell in ("a", "b"):
        for name, shape in (("W", (hidden, 3 * hidden)), ("R", (hidden, 3 * hidden))):
            weights.add(f"{cell}_{name}", shape, scale)
        for name in ("wb", "rb"):
            weights.add(f"{cell}_{name}", (3 * hidden,), scale)
        for op, inputs, outputs in (
            ("MatMul", [x, "W"], ["xw"]), ("Add", ["xw", "wb"], ["xb"]),
            ("MatMul", ["h", "R"], ["hr"]), ("Add", ["hr", "rb"], ["hb"]),
            ("Split", ["xb", "split"], ["xz", "xr", "xn"]), ("Split", ["hb", "split"], ["hz", "hr2", "hn"]),
            ("Add", ["xz", "hz"], ["z0"]), ("Sigmoid", ["z0"], ["z"]),
            ("Add", ["xr", "hr2"], ["r0"]), ("Sigmoid", ["r0"], ["r"]),
            ("Mul", ["r", "hn"], ["rn"]), ("Add", ["xn", "rn"], ["n0"]), ("Tanh", ["n0"], ["n"]),
            ("Sub", ["one", "z"], ["keep"]), ("Mul", ["keep", "n"], ["new"]), ("Mul", ["z", "h"], ["old"]),
            ("Add", ["new", "old"], ["h_next"]),
        ):  # fmt: skip
            shared = ("x_t", "split", "one", x)
            names = [name if name in shared else f"{cell}_{name}" for name in inputs]
            attributes = {"axis": -1} if op == "Split" else {}
            body.node(op, names, [f"{cell}_{name}" for name in outputs], **attributes)
        x = f"{cell}_h_next"
    body.node("Identity", ["b_h_next"], ["y_t"])
    row = [1, hidden]
    content = body.content(
        dict.fromkeys(("a_h", "b_h", "x_t"), row), dict.fromkeys(("a_h_next", "b_h_next", "y_t"), row)
    )
    graph.node("Scan", ["a0", "b0", "x"], ["a_n", "b_n", "y"], body=GraphContent(content), num_scan_inputs=1)
    return graph.model(
        {"x": [steps, 1, hidden], "a0": row, "b0": row}, {"y": [steps, 1, hidden], "a_n": row, "b_n": row}
    )


def conditioned(hidden: int, steps: int, seed: int) -> bytes:
    """A Scan that computes in each step what only depends on an input of the model: tanh(cond·G)."""
    graph = GraphFile("conditioned")
    weights, scale = _Weights(graph, seed), hidden**-0.5
    for name in ("G", "R"):
        weights.add(name, (hidden, hidden), scale)
    body = GraphFile("cell")
    for op, inputs, output in (
        ("MatMul", ["cond", "G"], "g0"), ("Tanh", ["g0"], "g"), ("MatMul", ["h_in", "R"], "hr"),
        ("Add", ["hr", "x_t"], "s0"), ("Add", ["s0", "g"], "s1"), ("Tanh", ["s1"], "h_out"),
        ("Identity", ["h_out"], "y_t"),
    ):  # fmt: skip
        body.node(op, inputs, [output])
    row = [1, hidden]
    content = body.content({"h_in": row, "x_t": row}, {"h_out": row, "y_t": row})
    graph.node("Scan", ["h0", "x"], ["h_n", "y"], body=GraphContent(content), num_scan_inputs=1)
    return graph.model({"x": [steps, 1, hidden], "h0": row, "cond": row}, {"y": [steps, 1, hidden], "h_n": row})


def accumulating_loop(hidden: int, steps: int) -> bytes:
    """A Loop: acc = 0.9 acc + x[i], and the history of acc."""
    graph = GraphFile("accumulating_loop")
    graph.constant("M", np.array(steps, np.int64))
    graph.constant("cond0", np.array(True))
    body = GraphFile("accumulate")
    body.constant("decay", np.array(0.9, np.float32))
    body.node("Identity", ["cond_in"], ["cond_out"])
    body.node("Gather", ["x", "i"], ["x_t"], axis=0)
    body.node("Mul", ["acc_in", "decay"], ["d"])
    body.node("Add", ["d", "x_t"], ["acc_out"])
    body.node("Identity", ["acc_out"], ["y_t"])
    row = [1, hidden]
    content = body.content(
        {"i": [], "cond_in": [], "acc_in": row},
        {"cond_out": [], "acc_out": row, "y_t": row},
        {"i": np.int64, "cond_in": np.bool_, "cond_out": np.bool_},
    )
    graph.node("Loop", ["M", "cond0", "acc0"], ["acc_n", "y"], body=GraphContent(content))
    return graph.model({"x": [steps, 1, hidden], "acc0": row}, {"y": [steps, 1, hidden], "acc_n": row})


def streaming_gru(inputs: int = 64, hidden: int = 128) -> bytes:
    """A GRU for any number of steps and streams: x [steps, batch, inputs], h_in -> y, h_out.

    >>> from webrnn import InferenceSession
    >>> [item.name for item in InferenceSession(streaming_gru(4, 5)).get_outputs()]
    ['y', 'h_out']
    """
    graph = GraphFile("gru")
    y, h = _layer(graph, _Weights(graph, 0), "GRU", "l0", "x", (inputs, hidden), ["h_in"])
    graph.node("Identity", [y], ["y"])
    graph.node("Identity", [h], ["h_out"])
    state: list[int | str] = [1, "batch", hidden]
    return graph.model(
        {"x": ["steps", "batch", inputs], "h_in": state}, {"y": ["steps", 1, "batch", hidden], "h_out": state}
    )


BUILT_IN: dict[str, Callable[[], bytes]] = {
    "rnn_128": partial(sequence, "RNN", 128, 50, 11),
    "gru_128": partial(sequence, "GRU", 128, 50, 13),
    "lstm_128": partial(sequence, "LSTM", 128, 50, 16),
    "rnn_256": partial(sequence, "RNN", 256, 100, 12),
    "gru_256": partial(sequence, "GRU", 256, 100, 14),
    "lstm_256": partial(sequence, "LSTM", 256, 100, 17),
    "gru_256x2": partial(sequence, "GRU", 256, 100, 15, 2),
    "gru_128_t1": partial(gru_step, 128, 21),
    "gru_256_t1": partial(gru_step, 256, 22),
    "dtln_t1": partial(mask_step, 128, 257, 23),
    "scan_wlstm_128": partial(custom_cell, 128, 50, 31),
    "loop_accum": partial(accumulating_loop, 128, 50),
}
"""What `webrnn bench` takes when it is given no model: layers of 128 units are run for 50 steps, of 256 for 100."""

FURTHER: dict[str, Callable[[], bytes]] = {
    "decoder_256x2": partial(decoder, 256, 100, 51),
    "conditioned_128": partial(conditioned, 128, 50, 52),
    "scan_wlstm_128_t1": partial(custom_cell, 128, 1, 31),
}
"""Models that are run when they are asked for."""

TITLES = {
    "rnn_128": "RNN 128, 50 steps", "gru_128": "GRU 128, 50 steps", "lstm_128": "LSTM 128, 50 steps",
    "rnn_256": "RNN 256, 100 steps", "gru_256": "GRU 256, 100 steps", "lstm_256": "LSTM 256, 100 steps",
    "gru_256x2": "two GRU 256, 100 steps", "decoder_256x2": "two GRU 256 in one Scan, 100 steps",
    "gru_128_t1": "GRU 128, one step", "dtln_t1": "2 × LSTM 128, one step",
    "scan_wlstm_128": "Custom cell in a Scan", "loop_accum": "Loop",
}  # fmt: skip
"""What people are shown instead of names."""
