"""What the page asks of Python: `call(name, request, buffers)`, JSON and bytes in, JSON and bytes out.

It runs inside Pyodide, and as well in any Python that has webrnn.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import webrnn
from webrnn.engine.states import carried_pairs
from webrnn.ir import Graph, Scan, is_scan
from webrnn.onnx.reader import read_model
from webrnn.passes.op_sets import is_plain
from webrnn.passes.report import optimize
from webrnn.passes.report.text import as_data, scaled

Buffers = list[bytes]
Reply = tuple[dict[str, Any], Buffers]

CATEGORIES = {
    "matrix": {"MatMul", "Gemm", "Conv", "ConvTranspose", "Linear", "Einsum", "FusedConv"},
    "cell": {"GruCell", "LstmCell", "RnnCell", "GruReset", "GruUpdate", "GRU", "LSTM", "RNN"},
    "shape": {"Squeeze", "Unsqueeze", "Reshape", "Transpose", "Split", "Concat", "Slice", "Gather", "Shape", "Identity",
              "Cast", "Expand", "Flatten", "ConstantOfShape", "Size", "Pad", "ExpectShape", "Tile"},
}  # fmt: skip
"""How the page colours ops; all others are arithmetic by elements, or the like."""

LEAVING = {
    "hoist_sequences": "computed for all steps at once, before the loop",
    "hoist_invariants": "the same in all steps: computed once, before the loop",
    "sink_outputs": "nothing in the loop needs it: computed for all steps at once, behind it",
    "inline_single_step": "a loop of one step is the step itself",
    "gather_to_sequence": "an element for each step: now a sequence of the loop",
}
"""Passes that make loops smaller, and why they may."""

NODES_SHOWN = 1500


class Workbench:
    """The model that is open, and what is being timed."""

    def __init__(self) -> None:
        self.session: webrnn.InferenceSession | None = None
        self.model = b""
        self.fixed: dict[str, Any] = {}
        self.timed: dict[str, tuple[Callable[[], Any], int]] = {}

    def open(self, request: dict[str, Any], buffers: Buffers) -> Reply:
        model, fixed = buffers[0], {name: np.array(value) for name, value in request.get("fixed", {}).items()}
        start = time.perf_counter()
        before: Graph = read_model(model, fixed)
        report = optimize(model, fixed=fixed)
        session = webrnn.InferenceSession(model, fixed=fixed)
        seconds = time.perf_counter() - start
        self.session, self.model, self.fixed = session, model, fixed
        left = list(_left_the_loop(report))
        return {
            "inputs": [_port(item) for item in session.get_inputs()],
            "outputs": [_port(item) for item in session.get_outputs()],
            "states": [list(pair) for pair in carried_pairs(before)],
            "inner_states": [
                {"loop": node.label, "names": [value.name for state in Scan.of(node).states for value in state.body_in]}
                for graph in report.graph.walk()
                for node in graph.nodes
                if is_scan(node)
            ],
            "report": {**as_data(report), "text": str(report), "flops": _flops(report)},
            "before": _graph(before, {item["label"] for item in left}),
            "after": _graph(report.graph, set()),
            "left": left,
            "backend": session.backend,
            "notes": session.report().splitlines(),
            "seconds": seconds,
        }, []

    def run(self, request: dict[str, Any], buffers: Buffers) -> Reply:
        session = self._opened()
        feeds = _arrays(request["feeds"], buffers)
        session.run(None, feeds)  # binds the sizes
        start = time.perf_counter()
        results = session.run(None, feeds)
        ms = (time.perf_counter() - start) * 1e3
        rows, parts = [], []
        for item, result in zip(session.get_outputs(), results, strict=True):
            if not isinstance(result, np.ndarray):
                raise webrnn.UnsupportedOp(f"output {item.name!r} is no tensor: this page shows tensors only")
            array = np.ascontiguousarray(result)
            rows.append({"name": item.name, "type": str(array.dtype), "shape": list(array.shape)})
            parts.append(array.tobytes())
        return {"outputs": rows, "ms": ms}, parts

    def plan(self, request: dict[str, Any], buffers: Buffers) -> Reply:
        session = self._opened()
        try:
            session.export("model.rnn")
        except webrnn.PlanError:
            session.export("model.rnn", shapes=request["shapes"])
        with open("model.rnn", "rb") as file:
            return {}, [file.read()]

    def prepare(self, request: dict[str, Any], buffers: Buffers) -> Reply:
        engine, pace = request["engine"], request["pace"]
        backend = {"pyodide": "auto"}.get(engine, engine)
        session = webrnn.InferenceSession(buffers[0], backend=backend)
        feeds = _arrays(request["feeds"], buffers[1:])

        def once() -> list[Any]:
            return session.run(None, feeds)

        names = [item.name for item in session.get_outputs()]
        results = dict(zip(names, once(), strict=True))
        found = b"".join(results[name].astype(np.float32).tobytes() for name in request["names"])
        end, runs, spent = time.perf_counter() + pace["warmUpMs"] / 1e3, 1, 0.0
        while True:
            spent = _seconds(once, runs)
            if time.perf_counter() >= end:
                break
            if spent < pace["sliceMs"] / 1e3:
                runs *= 2
        self.timed[engine] = once, max(1, round(runs * pace["sliceMs"] / 1e3 / max(spent, 1e-4)))
        return {}, [found]

    def measure(self, request: dict[str, Any], buffers: Buffers) -> Reply:
        once, count = self.timed[request["engine"]]
        return {"ms": _seconds(once, count) * 1e3 / count}, []

    def clear(self, request: dict[str, Any], buffers: Buffers) -> Reply:
        self.timed.clear()
        return {}, []

    def _opened(self) -> webrnn.InferenceSession:
        if self.session is None:
            raise webrnn.OptionError("no model is open")
        return self.session


def call(name: str, request: str, buffers: Sequence[Any]) -> tuple[str, Buffers]:
    """Run a method of the workbench; what it raises is part of the result."""
    try:
        given = [bytes(buffer) for buffer in buffers]
        reply, parts = getattr(_workbench, name)(json.loads(request), given)
        return json.dumps(reply), parts
    except webrnn.Error as error:
        return json.dumps({"error": {"kind": type(error).__name__, "message": str(error)}}), []
    except (Exception, RecursionError) as error:
        details = traceback.format_exc(limit=-6)
        message = f"{type(error).__name__}: {error}"
        return json.dumps({"error": {"kind": "Unexpected", "message": message, "details": details}}), []


def _seconds(run: Callable[[], Any], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        run()
    return time.perf_counter() - start


def _port(item: Any) -> dict[str, Any]:
    return {"name": item.name, "type": item.type, "shape": item.shape}


def _arrays(rows: list[dict[str, Any]], buffers: Buffers) -> dict[str, np.ndarray]:
    return {
        row["name"]: np.frombuffer(buffer, np.dtype(row["type"])).reshape(row["shape"])
        for row, buffer in zip(rows, buffers, strict=True)
    }


def _flops(report: webrnn.Report) -> dict[str, list[str]]:
    """Text for people: inside and outside loops, before and after."""
    measures = (report.before, report.after)
    return {
        "inside": [scaled(m.inside.flops) for m in measures],
        "inside_per_step": [scaled(m.inside.per_step) for m in measures],
        "outside": [scaled(m.outside.flops) for m in measures],
    }


def _left_the_loop(report: webrnn.Report) -> Iterator[dict[str, str]]:
    """A pass says `MatMul from_x out of gru`."""
    for step in report.steps:
        if step.name not in LEAVING:
            continue
        for text in step.fired:
            what, out_of, loop = text.partition(" out of ")
            op, label = what.split(" ", 1) if out_of and " " in what else ("loop", what)
            yield {"op": op, "label": label, "loop": loop, "pass": step.name, "why": LEAVING[step.name]}


def _graph(graph: Graph, leaving: set[str]) -> dict[str, Any]:
    """The nodes of a graph in order, loops and branches with their own; at most NODES_SHOWN of them."""
    left = [NODES_SHOWN]

    def rows(inner: Graph) -> list[dict[str, Any]]:
        found = []
        for node in inner.nodes:
            if left[0] <= 0:
                break
            left[0] -= 1
            row: dict[str, Any] = {"op": node.op, "label": node.label, "kind": _category(node.op)}
            shape = next((value.shape for value in node.outputs if value is not None), None)
            if shape is not None:
                row["shape"] = [
                    None if size is None else size if isinstance(size, int) else str(size) for size in shape
                ]
            if node.label in leaving:
                row["leaves"] = True
            if is_scan(node):
                row["kind"] = "loop"
                row["blocks"] = [{"title": "each step", "nodes": rows(Scan.of(node).body)}]
            elif is_plain(node, "If"):
                row["kind"] = "branch"
                titles = {"then_branch": "if true", "else_branch": "if false"}
                row["blocks"] = [{"title": titles[name], "nodes": rows(body)} for name, body in node.subgraphs]
            found.append(row)
        return found

    total = sum(len(inner.nodes) for inner in graph.walk())
    return {"nodes": rows(graph), "total": total, "shown": NODES_SHOWN - left[0]}


def _category(op: str) -> str:
    return next((name for name, ops in CATEGORIES.items() if op in ops), "arithmetic")


_workbench = Workbench()
