"""Models, inputs and results that the JavaScript host is held to: what PlanProgram computes, bit for bit."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from tests.along_time.tcn import tcn
from tests.engine.loop_models import nested
from tests.plan.endless import endless_sequence, nested_loops
from webrnn.engine.kernels import loading as kernels
from webrnn.engine.programs.plan_program import PlanProgram
from webrnn.engine.session import InferenceSession
from webrnn.ir import DType
from webrnn.onnx.reader import read_model
from webrnn.passes.pipeline import run_passes
from webrnn.passes.small_weights import make_weights_small
from webrnn.passes.weight_forms import WeightForms
from webrnn.plan import instructions, opcodes
from webrnn.plan.encode import compile_graph
from webrnn.plan.file import ELEMENT_TYPES
from webrnn.plan.halves import stored_plan
from webrnn.reference.cast import convert

VARIANTS = ("relaxed", "simd", "scalar")
FLOAT, INT32, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL
Arrays = dict[str, np.ndarray]


@dataclass
class Case:
    """`runs` are feeds; with `carry` they are steps of one stream, and do not name the states."""

    name: str
    model: ModelProto
    runs: list[Arrays]
    carry: dict[str, str] = field(default_factory=dict)
    weights: str = "f32"

    def plan(self) -> bytes:
        return plan_of(self.model, weights=self.weights)

    def results(self, plan: bytes, variant: str) -> list[Arrays]:
        program = PlanProgram(plan, kernels.load(f"wasm:{variant}"))
        inputs, outputs = program.file.inputs, program.file.outputs
        states = {
            port.name: np.zeros([int(d) for d in port.shape], np.float32) for port in inputs if port.name in self.carry
        }
        found = []
        for feeds in self.runs:
            values = program.run([{**states, **feeds}[port.name] for port in inputs])
            by_name = {port.name: value for port, value in zip(outputs, values, strict=True)}
            states = {to: by_name[source] for to, source in self.carry.items()}
            found.append(by_name)
        return found


def plan_of(model: ModelProto, most_steps: int = 1000, weights: str = "f32") -> bytes:
    graph = read_model(model.SerializeToString())
    run_passes(graph)
    make_weights_small(graph, WeightForms(weights))
    return compile_graph(graph, most_steps=most_steps)


def encoded(arrays: Arrays) -> dict[str, Any]:
    return {
        name: {"dtype": DType.of(a).text, "shape": a.shape, "bytes": base64.b64encode(a.tobytes()).decode()}
        for name, a in arrays.items()
    }


def write(folder: Path, cases: Sequence[Case]) -> None:
    """<name>.rnn and <name>.json for each case."""
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        plan = case.plan()
        results = {variant: [encoded(run) for run in case.results(plan, variant)] for variant in VARIANTS}
        content = {"carry": case.carry, "runs": [encoded(feeds) for feeds in case.runs], "results": results}
        (folder / f"{case.name}.rnn").write_bytes(stored_plan(plan) if case.weights == "f16" else plan)
        (folder / f"{case.name}.json").write_text(json.dumps(content))
    (folder / "cases.json").write_text(json.dumps([case.name for case in cases]))
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)[: 2**15]
    every = every[~np.isnan(every)].astype(np.float32)
    (folder / "every_half.rnn").write_bytes(stored_plan(plan_of(table_of(np.concatenate([every, -every])))))
    (folder / "gather.rnn").write_bytes(plan_of(gather()))
    (folder / "endless.rnn").write_bytes(plan_of(endless()))
    (folder / "nested_loops.rnn").write_bytes(nested_loops(instructions.EXACT, instructions.EXACT))
    (folder / "endless_sequence.rnn").write_bytes(endless_sequence("gru"))
    (folder / "counted_loops.rnn").write_bytes(plan_of(onnx.load_from_string(nested([1, 4], fed=[0])), 2**31 - 1))
    names = list(instructions.ROWS)
    (folder / "expectations.json").write_text(json.dumps({"errors": opcodes.ERRORS, "instructions": names}))
    write_stored(folder, cases)


def unnamed_batch(rng: np.random.Generator) -> ModelProto:
    """A GRU whose state does not say that its batch is that of x."""
    proto = recurrent("GRU", rng, steps="time", batch="batch")
    proto.graph.input[1].type.tensor_type.shape.dim[1].dim_param = "another"
    return proto


ABOUT = {"audio": {"hop": 128}, "text": "für alle"}


def write_stored(folder: Path, cases: Sequence[Case]) -> None:
    """Plans that store their states, exported as users do it, and what their streams give for `runs`."""
    rng = np.random.default_rng(12)
    runs = [{"x": rng.standard_normal((time, 2, 12), dtype=np.float32)} for time in (1, 3, 1)]
    named = next(case for case in cases if case.name == "lstm_symbolic")
    for name, proto, carry in [
        ("stored", named.model, {"h": "y_h", "c": "y_c"}),
        ("stored_start", started(rng), "internal"),
    ]:
        session = InferenceSession(proto.SerializeToString(), backend="wasm:relaxed")
        session.export(folder / f"{name}.rnn", carry=carry, about=ABOUT)
        stream = InferenceSession(folder / f"{name}.rnn", backend="wasm:relaxed").stream()
        results = [dict(zip(stream.output_names, stream.step(feeds), strict=True)) for feeds in runs]
        content = {
            "carry": stream.carry,
            "about": ABOUT,
            "runs": [encoded(feeds) for feeds in runs],
            "results": {"relaxed": [encoded(run) for run in results]},
        }
        (folder / f"{name}.json").write_text(json.dumps(content))
    write_rings(folder)
    for name, late in (("cache", False), ("late_cache", True)):
        session = InferenceSession(cache(late).SerializeToString(), backend="wasm:relaxed")
        session.export(folder / f"{name}.rnn", carry={"past": "present"})
    other = InferenceSession(unnamed_batch(rng).SerializeToString())
    other.export(folder / "unnamed_batch.rnn", carry={"h": "y_h"})


def write_rings(folder: Path) -> None:
    """A stream whose histories are rings, and the whole run cut into its steps: some have as many frames as a ring has
    room for, some have more."""
    session = InferenceSession(tcn(8, (2, 8, 64)).SerializeToString(), backend="wasm:relaxed")
    session.export(folder / "rings.rnn", carry="internal", about=ABOUT)
    x = np.random.default_rng(13).standard_normal((2, 8, 90), dtype=np.float32)
    y, ends = session.run(None, {"x": x})[0], np.cumsum([1, 1, 2, 3, 1, 40, 1, 1, 2, 1, 37])
    cuts = [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    content = {
        "carry": {},
        "runs": [encoded({"x": x[:, :, cut].copy()}) for cut in cuts],
        "results": {"relaxed": [encoded({"y": y[:, :, cut].copy()}) for cut in cuts]},
    }
    (folder / "rings.json").write_text(json.dumps(content))


# --- the models ------------------------------------------------------------------------------------------------------


def determinants() -> ModelProto:
    """An instruction that only the full module has."""
    inputs = [helper.make_tensor_value_info("x", FLOAT, ["n", 3, 3])]
    outputs = [helper.make_tensor_value_info("y", FLOAT, ["n"])]
    graph = helper.make_graph([helper.make_node("Det", ["x"], ["y"], name="volumes")], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])


def table_of(array: np.ndarray) -> ModelProto:
    """Gives an array, and takes a number."""
    nodes = [helper.make_node("Mul", ["table", "x"], ["y"])]
    inputs = [helper.make_tensor_value_info("x", FLOAT, [1])]
    outputs = [helper.make_tensor_value_info("y", FLOAT, [array.size])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(array, "table")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])


def small_determinants() -> ModelProto:
    """One that only the full module has, behind one that only unfused modules have."""
    inputs = [helper.make_tensor_value_info("x", FLOAT, [32, 32])]
    outputs = [helper.make_tensor_value_info("y", FLOAT, [])]
    weights = np.random.default_rng(3).standard_normal((32, 32), np.float32) / 4
    nodes = [helper.make_node("MatMul", ["x", "w"], ["turned"]), helper.make_node("Det", ["turned"], ["y"])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(weights, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])


def all_cases() -> list[Case]:
    rng = np.random.default_rng(11)

    def x(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    frames = [{"x": x(1, 1, 12)} for _ in range(6)]
    symbolic = recurrent("LSTM", rng, steps="time", batch="batch")
    return [
        Case("gru", recurrent("GRU", rng, steps=7, batch=1), [{"x": x(7, 1, 12), "h": x(1, 1, 20)} for _ in range(2)]),
        Case("gru_stream", recurrent("GRU", rng, steps=1, batch=1), frames, carry={"h": "y_h"}),
        Case("lstm_stream", recurrent("LSTM", rng, steps=1, batch=1), frames, carry={"h": "y_h", "c": "y_c"}),
        Case(
            "audio",
            recurrent("GRU", rng, steps=1, batch=1, size=128, hidden=128),
            [{"x": x(1, 1, 128)} for _ in range(50)],
            carry={"h": "y_h"},
        ),
        Case(
            "lstm_symbolic",
            symbolic,
            [
                {"x": x(time, batch, 12), "h": x(1, batch, 20), "c": x(1, batch, 20)}
                for time, batch in [(3, 1), (3, 2), (300, 40), (1, 3), (3, 2)]
            ],
        ),
        Case(
            "rnn", recurrent("RNN", rng, steps=4, batch="batch"), [{"x": x(4, b, 12), "h": x(1, b, 20)} for b in (2, 5)]
        ),
        Case("scan", scan(), [{"s": x(3), "xs": x(t, 3)} for t in (5, 2)]),
        Case("loop", loop(), [{"n": np.int64(n), "x": x(4)} for n in (3, 5, 0)]),
        Case("countdown", countdown(), [{"x": np.float32([start, 1])} for start in (5.5, 1, 0, 7)]),
        Case("picked", picked(), [{"x": np.where(x(n) > 0, x(n), 0).astype(np.float32)} for n in (4, 3000, 0, 5)]),
        Case(
            "types",
            types(),
            [{"i": np.int32([5, -6]), "a": np.int64([1, -(2**40), 7]), "p": np.array([True, False, True]), "x": x(3)}],
        ),
        Case("every_type", every_type(), [every_feed()]),
        Case("determinants", determinants(), [{"x": x(n, 3, 3)} for n in (2, 5)]),
        Case(
            "small_gru", recurrent("GRU", rng, steps=7, batch=1), [{"x": x(7, 1, 12), "h": x(1, 1, 20)}], weights="int8"
        ),
        Case(
            "half_gru", recurrent("GRU", rng, steps=7, batch=1), [{"x": x(7, 1, 12), "h": x(1, 1, 20)}], weights="f16"
        ),
        Case("small_determinants", small_determinants(), [{"x": x(32, 32)}], weights="int16"),
    ]


def every_type() -> ModelProto:
    """An input of each type, and twice what it is where that can be added."""
    nodes, inputs, outputs = [], [], []
    for name, dtype in ELEMENT_TYPES.items():
        is_moved = dtype is DType.BOOL or (dtype.is_narrow and dtype is not DType.BFLOAT16)
        operands = [name] if is_moved else [name, name]
        nodes.append(helper.make_node("Identity" if is_moved else "Add", operands, [f"{name}_out"]))
        inputs.append(tensor(name, int(dtype), 3))
        outputs.append(tensor(f"{name}_out", int(dtype), 3))
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])


def every_feed() -> Arrays:
    return {name: convert(np.array([1, 3, 2], np.int64), dtype.array_type) for name, dtype in ELEMENT_TYPES.items()}


def tensor(name: str, kind: int, *shape: int | str) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model(
    nodes: list[NodeProto], inputs: list[ValueInfoProto], outputs: list[ValueInfoProto], weights: Arrays | None = None
) -> ModelProto:
    initializers = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def recurrent(
    op: str, rng: np.random.Generator, steps: int | str, batch: int | str, size: int = 12, hidden: int = 20
) -> ModelProto:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    states = ["h", "c"] if op == "LSTM" else ["h"]
    weights = {
        "w": rng.uniform(-0.3, 0.3, (1, gates * hidden, size)).astype(np.float32),
        "r": rng.uniform(-0.3, 0.3, (1, gates * hidden, hidden)).astype(np.float32),
        "b": rng.uniform(-0.3, 0.3, (1, 2 * gates * hidden)).astype(np.float32),
    }
    attributes = {"linear_before_reset": 1} if op == "GRU" else {}
    outputs = ["y", *(f"y_{state}" for state in states)]
    node = helper.make_node(op, ["x", "w", "r", "b", "", *states], outputs, hidden_size=hidden, name=op, **attributes)
    return model(
        [node],
        [tensor("x", FLOAT, steps, batch, size), *(tensor(state, FLOAT, 1, batch, hidden) for state in states)],
        [tensor("y", FLOAT, steps, 1, batch, hidden), *(tensor(f"y_{s}", FLOAT, 1, batch, hidden) for s in states)],
        weights,
    )


def started(rng: np.random.Generator) -> ModelProto:
    """A GRU for any batch whose state is hidden and starts from constants."""
    with_state = recurrent("GRU", rng, steps="time", batch="batch")
    start = rng.uniform(-1, 1, (1, 1, 20)).astype(np.float32)
    nodes = [
        helper.make_node("Shape", ["x"], ["batch"], start=1, end=2),
        helper.make_node("Concat", ["one", "batch", "one"], ["shape"], axis=0),
        helper.make_node("Expand", ["start", "shape"], ["h"]),
    ]
    graph = with_state.graph
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    weights |= {"one": np.int64([1]), "start": start}
    return model([*nodes, *graph.node], [graph.input[0]], list(graph.output), weights)


def scan() -> ModelProto:
    body = helper.make_graph(
        [helper.make_node("Mul", ["s", "x"], ["p"]), helper.make_node("Tanh", ["p"], ["t"]),
         helper.make_node("Add", ["t", "x"], ["s_next"]), helper.make_node("Identity", ["s_next"], ["y"])],
        "body",
        [tensor("s", FLOAT, 3), tensor("x", FLOAT, 3)],
        [tensor("s_next", FLOAT, 3), tensor("y", FLOAT, 3)],
    )  # fmt: skip
    node = helper.make_node("Scan", ["s", "xs"], ["last", "all"], body=body, num_scan_inputs=1, name="scan")
    outputs = [tensor("last", FLOAT, 3), tensor("all", FLOAT, "steps", 3)]
    return model([node], [tensor("s", FLOAT, 3), tensor("xs", FLOAT, "steps", 3)], outputs)


def loop() -> ModelProto:
    body = helper.make_graph(
        [helper.make_node("Identity", ["going"], ["going_on"]), helper.make_node("Sin", ["v"], ["s"]),
         helper.make_node("Add", ["s", "v"], ["v_next"])],
        "body",
        [tensor("i", INT64), tensor("going", BOOL), tensor("v", FLOAT, 4)],
        [tensor("going_on", BOOL), tensor("v_next", FLOAT, 4)],
    )  # fmt: skip
    node = helper.make_node("Loop", ["n", "", "x"], ["y"], body=body, name="loop")
    return model([node], [tensor("n", INT64), tensor("x", FLOAT, 4)], [tensor("y", FLOAT, 4)])


def countdown() -> ModelProto:
    """1 is taken off as long as the first element is above it, at most 10 times; all values on the way are given."""
    body = helper.make_graph(
        [helper.make_node("Sub", ["v", "one"], ["v_next"]), helper.make_node("Gather", ["v_next", "zero"], ["first"]),
         helper.make_node("Greater", ["first", "bound"], ["going_on"]),
         helper.make_node("Identity", ["v_next"], ["y"])],
        "body",
        [tensor("i", INT64), tensor("going", BOOL), tensor("v", FLOAT, 2)],
        [tensor("going_on", BOOL), tensor("v_next", FLOAT, 2), tensor("y", FLOAT, 2)],
    )  # fmt: skip
    node = helper.make_node("Loop", ["ten", "", "x"], ["last", "all"], body=body, name="countdown")
    numbers = {"ten": np.int64(10), "one": np.float32([1, 1]), "zero": np.int64(0), "bound": np.float32(1)}
    outputs = [tensor("last", FLOAT, 2), tensor("all", FLOAT, "steps", 2)]
    return model([node], [tensor("x", FLOAT, 2)], outputs, {name: np.array(value) for name, value in numbers.items()})


def cache(late: bool) -> ModelProto:
    """The mean of all that came so far; with `late`, from the last row on for which `go` is false."""
    nodes = [helper.make_node("Concat", ["past", "x"], ["longer"], axis=0)]
    branches = {
        name: helper.make_graph([helper.make_node("Identity", [of], [name])], name, [], [tensor(name, FLOAT, "k", 2)])
        for name, of in (("then_branch", "longer"), ("else_branch", "x"))
    }
    if late:
        nodes.append(helper.make_node("If", ["go"], ["present"], **branches))
    else:
        nodes.append(helper.make_node("Identity", ["longer"], ["present"]))
    nodes.append(helper.make_node("ReduceMean", ["present"], ["y"], axes=[0]))
    inputs = [tensor("x", FLOAT, 1, 2), *([tensor("go", BOOL)] if late else []), tensor("past", FLOAT, "n", 2)]
    return model(nodes, inputs, [tensor("present", FLOAT, "m", 2), tensor("y", FLOAT, 1, 2)])


def picked() -> ModelProto:
    """The elements that are not zero: how many there are is known only when it runs."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Squeeze", ["places", "zero"], ["place"]),
        helper.make_node("Gather", ["x", "place"], ["found"]),
        helper.make_node("Tanh", ["found"], ["y"]),
    ]
    outputs = [tensor("y", FLOAT, "count"), tensor("place", INT64, "count")]
    return model(nodes, [tensor("x", FLOAT, "n")], outputs, {"zero": np.int64([0])})


def types() -> ModelProto:
    nodes = [
        helper.make_node("Add", ["a", "a"], ["twice"]),
        helper.make_node("Where", ["p", "x", "zero"], ["kept"]),
        helper.make_node("Not", ["p"], ["not_p"]),
        helper.make_node("Neg", ["i"], ["minus_i"]),
    ]
    return model(
        nodes,
        [tensor("i", INT32, 2), tensor("a", INT64, 3), tensor("p", BOOL, 3), tensor("x", FLOAT, 3)],
        [tensor("minus_i", INT32, 2), tensor("twice", INT64, 3), tensor("kept", FLOAT, 3), tensor("not_p", BOOL, 3)],
        {"zero": np.zeros(3, np.float32)},
    )


def gather() -> ModelProto:
    node = helper.make_node("Gather", ["table", "i"], ["y"], name="pick")
    return model([node], [tensor("i", INT64, 1)], [tensor("y", FLOAT, 1)], {"table": np.float32([1, 2, 3])})


def endless() -> ModelProto:
    body = helper.make_graph(
        [helper.make_node("Mul", ["v", "v"], ["v_next"]), helper.make_node("Less", ["v_next", "one"], ["going_on"])],
        "body",
        [tensor("i", INT64), tensor("going", BOOL), tensor("v", FLOAT, 1)],
        [tensor("going_on", BOOL), tensor("v_next", FLOAT, 1)],
    )
    node = helper.make_node("Loop", ["", "", "x"], ["y"], body=body, name="forever")
    return model([node], [tensor("x", FLOAT, 1)], [tensor("y", FLOAT, 1)], {"one": np.float32([1])})
