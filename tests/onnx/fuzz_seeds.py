"""What fuzzing starts from: small models of each family of ops, and the small ones of ONNX's own node tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, helper
from onnx.parser import parse_model

from tests.onnx.models import bools, floats, graph, initializer, integers, model, recurrent

TEXTS = Path(__file__).with_name("fuzz_seeds.txt")

MOST_BYTES = 4000
"""Larger models of ONNX's suite are left out: time goes into many small ones."""


@dataclass(frozen=True)
class Seed:
    name: str
    model: ModelProto
    feeds: dict[str, Any] = field(default_factory=dict)
    """Inputs that the model is known to accept."""


@cache
def all_seeds() -> list[Seed]:
    """In an order that is always the same."""
    return [*own_seeds(), *suite_seeds()]


@cache
def own_seeds() -> list[Seed]:
    seeds = [Seed(f"{index}", item) for index, item in enumerate(control_flow_models())]
    opset = 0
    for line in TEXTS.read_text().splitlines():
        if line.startswith("opset"):
            opset = int(line.split()[1])
        elif line and not line.startswith("#"):
            item = parse_model(f'<ir_version: 10, opset_import: ["": {opset}, "com.microsoft": 1]> g {line}')
            seeds.append(Seed(item.graph.node[-1].op_type, item))
    return seeds


@cache
def suite_seeds() -> list[Seed]:
    """Those of ONNX's node tests that are small; their integers of one axis become constants in half of them."""
    from tests.reference.onnx_cases import node_cases, to_webrnn

    seeds = []
    for name, case in sorted(node_cases().items()):
        if case.model is None or case.model.ByteSize() > MOST_BYTES or name.endswith("_expanded"):
            continue
        inputs = case.data_sets[0][0] if case.data_sets else []
        try:
            feeds = {i.name: to_webrnn(v) for i, v in zip(case.model.graph.input, inputs, strict=False)}
        except TypeError:  # a kind of value that webrnn does not carry
            feeds = {}
        if sum(np.size(item) for item in feeds.values() if isinstance(item, np.ndarray)) > 2000:
            continue
        seeds.append(Seed(name, case.model, feeds))
        baked = with_constants(case.model, feeds)
        if baked is not None:
            seeds.append(Seed(f"{name} with constants", baked, feeds))
    return seeds


def with_constants(source: ModelProto, feeds: dict[str, Any]) -> ModelProto | None:
    """The model whose inputs that say how (axes, shapes, pads) are initializers."""
    constant = [
        info.name
        for info in source.graph.input[1:]
        if isinstance(feeds.get(info.name), np.ndarray)
        and feeds[info.name].dtype in (np.dtype(np.int64), np.dtype(np.int32))
        and feeds[info.name].ndim <= 1
    ]
    if not constant:
        return None
    item = ModelProto()
    item.CopyFrom(source)
    kept = [info for info in item.graph.input if info.name not in constant]
    del item.graph.input[:]
    item.graph.input.extend(kept)
    item.graph.initializer.extend(initializer(name, feeds[name]) for name in constant)
    return item


def control_flow_models() -> Iterator[ModelProto]:
    yield recurrent("LSTM", direction="bidirectional", activations=["Sigmoid", "Tanh", "Tanh"] * 2)
    yield recurrent("GRU", linear_before_reset=1, clip=3.0)
    yield recurrent("RNN", direction="reverse")
    yield recurrent("GRU", steps=1, batch=1, inputs=1, hidden=1)
    yield recurrent("LSTM", batch=1, inputs=2, hidden=3, layout=0, input_forget=0)
    yield _loop()
    yield _counted_loop()
    yield _scan()
    yield _scan_of_rows()
    yield _shapes()


def _loop() -> ModelProto:
    body = graph(
        [
            helper.make_node("Add", ["s", "x"], ["s_next"]),
            helper.make_node("Less", ["i", "most"], ["go_on"]),
            helper.make_node("Identity", ["s_next"], ["seen"]),
        ],
        [integers("i", []), bools("go", []), floats("s", [2])],
        [bools("go_on", []), floats("s_next", [2]), floats("seen", [2])],
        [initializer("most", np.int64(5))],
    )
    loop = helper.make_node("Loop", ["n", "", "x"], ["last", "all"], body=body, name="loop")
    other = graph([helper.make_node("Neg", ["last"], ["a"])], [], [floats("a", [2])])
    same = graph([helper.make_node("Identity", ["last"], ["b"])], [], [floats("b", [2])])
    choose = helper.make_node("If", ["c"], ["y"], then_branch=other, else_branch=same, name="choose")
    return model(
        [loop, choose],
        [floats("x", [2]), bools("c", [])],
        [floats("y", [2]), floats("all", None)],
        [initializer("n", np.int64(7))],
    )


def _counted_loop() -> ModelProto:
    """A loop that reads `x[i]`, as exporters write a recurrence, with the number of steps from a shape."""
    body = graph(
        [
            helper.make_node("Gather", ["x", "i"], ["row"], axis=0),
            helper.make_node("MatMul", ["row", "w"], ["mixed"]),
            helper.make_node("Add", ["mixed", "h"], ["sum"]),
            helper.make_node("Tanh", ["sum"], ["h_next"]),
            helper.make_node("Identity", ["go"], ["go_on"]),
            helper.make_node("Identity", ["h_next"], ["seen"]),
        ],
        [integers("i", []), bools("go", []), floats("h", [1, 3])],
        [bools("go_on", []), floats("h_next", [1, 3]), floats("seen", [1, 3])],
    )
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"], start=0, end=1),
        helper.make_node("Squeeze", ["shape", "zero"], ["n"]),
        helper.make_node("Loop", ["n", "", "h0"], ["last", "all"], body=body, name="loop"),
    ]
    constants = [
        initializer("zero", np.array([0], np.int64)),
        initializer("w", np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)),
        initializer("h0", np.zeros((1, 3), np.float32)),
    ]
    return model(nodes, [floats("x", ["t", 1, 2])], [floats("last", None), floats("all", None)], constants)


def _scan() -> ModelProto:
    body = graph(
        [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Mul", ["t", "e"], ["o"])],
        [floats("s", [2]), floats("e", [2])],
        [floats("t", [2]), floats("o", [2])],
    )
    scan = helper.make_node("Scan", ["s0", "xs"], ["last", "all"], body=body, num_scan_inputs=1, scan_input_axes=[1])
    return model([scan], [floats("s0", [2]), floats("xs", [2, 4])], [floats("last", [2]), floats("all", None)])


def _scan_of_rows() -> ModelProto:
    """A scan in reverse over a size that has a name, with a matrix product and a branch in its body."""
    yes = graph([helper.make_node("Relu", ["u"], ["p"])], [], [floats("p", None)])
    no = graph([helper.make_node("Neg", ["u"], ["q"])], [], [floats("q", None)])
    body = graph(
        [
            helper.make_node("MatMul", ["e", "w"], ["m"]),
            helper.make_node("Add", ["m", "s"], ["u"]),
            helper.make_node("ReduceSum", ["u"], ["r"], keepdims=0),
            helper.make_node("Greater", ["r", "bound"], ["c"]),
            helper.make_node("If", ["c"], ["t"], then_branch=yes, else_branch=no),
            helper.make_node("Sigmoid", ["t"], ["o"]),
        ],
        [floats("s", [2]), floats("e", [3])],
        [floats("t", [2]), floats("o", [2])],
        [initializer("bound", np.float32(0.1))],
    )
    scan = helper.make_node(
        "Scan", ["s0", "xs"], ["last", "all"], body=body, num_scan_inputs=1, scan_input_directions=[1],
        scan_output_directions=[1], scan_output_axes=[1],
    )  # fmt: skip
    weights = initializer("w", np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2))
    return model(
        [scan], [floats("s0", [2]), floats("xs", ["t", 3])], [floats("last", None), floats("all", None)], [weights]
    )


def _shapes() -> ModelProto:
    nodes = [
        helper.make_node("Expand", ["x", "big"], ["e"]),
        helper.make_node("Pad", ["e", "pads"], ["p"]),
        helper.make_node("Tile", ["p", "times"], ["t"]),
        helper.make_node("Reshape", ["t", "flat"], ["r"]),
        helper.make_node("Slice", ["r", "from", "to"], ["s"]),
        helper.make_node("Conv", ["image", "kernel"], ["c"], pads=[1, 1, 1, 1], strides=[1, 1]),
        helper.make_node("Flatten", ["c"], ["f"]),
    ]
    constants = {"big": [4, 3], "pads": [1, 1, 0, 0], "times": [2, 2], "flat": [-1], "from": [1], "to": [9]}
    initializers = [initializer(name, np.array(value, np.int64)) for name, value in constants.items()]
    initializers.append(initializer("kernel", np.ones((1, 1, 3, 3), np.float32)))
    return model(
        nodes,
        [floats("x", [1, 3]), floats("image", [1, 1, 4, 4])],
        [floats("s", None), floats("f", None)],
        initializers,
    )
