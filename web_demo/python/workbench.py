"""What the page asks of Python: `call(name, request, buffers)`, JSON and bytes in, JSON and bytes out.

It runs inside Pyodide, and as well in any Python that has webrnn.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import webrnn
from webrnn.engine.exporting import export_plan
from webrnn.engine.streams.states import states_of
from webrnn.formats import read_model
from webrnn.guesses import Guess, first_that_runs
from webrnn.guesses.values import BELOW, LENGTH_OF, NUMBER
from webrnn.ir import DType, Graph, Node, Scan, Value, is_plain, is_scan
from webrnn.ops.rows import ROWS
from webrnn.passes.small_weights import weights_to_be
from webrnn.passes.weight_forms import BYTES, F32, weight_forms
from webrnn.report import optimize
from webrnn.report.text import as_data, scaled

Buffers = list[bytes]
Reply = tuple[dict[str, Any], Buffers]

LEAVING = {
    "hoist_sequences": "computed for all steps at once, before the loop",
    "hoist_invariants": "the same in all steps: computed once, before the loop",
    "sink_outputs": "nothing in the loop needs it: computed for all steps at once, behind it",
    "inline_single_step": "a loop of one step is the step itself",
    "gather_to_sequence": "an element for each step: now a sequence of the loop",
}
"""Passes that make loops smaller, and why they may."""

FORMS = tuple(BYTES)
"""Of weights."""
NODES_SHOWN = 1500
MOST_SAMPLES = 2**14
"""Of a frame of audio."""
REPEATS_SECONDS = 0.05
"""Of timing a run: browsers round their clocks."""
MOST_LETTERS = 40
"""Of the name of an effect."""
LIMITS = webrnn.Limits(seconds=10)
"""Of a run of a model, which may be anybody's."""


class Workbench:
    """The model that is open, and what is being timed."""

    def __init__(self) -> None:
        self.session: webrnn.InferenceSession | None = None
        self.model = b""
        self.fixed: dict[str, Any] = {}
        self.timed: dict[str, tuple[Callable[[], Any], int]] = {}

    def open(self, request: dict[str, Any], buffers: Buffers) -> Reply:
        model, fixed, weights = buffers[0], request.get("fixed", {}), request.get("weights", F32)
        start = time.perf_counter()
        before: Graph = read_model(model, fixed)
        report = optimize(model, fixed=fixed)
        session = webrnn.InferenceSession(model, fixed=fixed, limits=LIMITS, weights=weights)
        seconds = time.perf_counter() - start
        self.session, self.model, self.fixed = session, model, fixed
        left = list(_left_the_loop(report))
        found = states_of(before)
        carry = {} if found.problem else found.carry()
        return {
            "inputs": [_port(item) for item in session.get_inputs()],
            "outputs": [_port(item) for item in session.get_outputs()],
            "states": [list(pair) for pair in carry.items()],
            "unsure": found.problem if found.answer or found.doubts else None,
            "inner_states": [
                {"loop": node.label, "names": [value.name for state in Scan.of(node).states for value in state.body_in]}
                for graph in report.graph.walk()
                for node in graph.nodes
                if is_scan(node)
            ],
            "report": {**as_data(report), "text": str(report), "flops": _flops(report)},
            "before": _graph(before, report.before.nodes, {item["label"] for item in left}),
            "after": _graph(report.graph, report.after.nodes),
            "left": left,
            "audio": session.about.get("audio") or _audio(report.graph, carry),
            "weights": _weights(report.graph, session, weights),
            "backend": session.backend,
            "notes": session.report().splitlines(),
            "seconds": seconds,
        }, []

    def run(self, request: dict[str, Any], buffers: Buffers) -> Reply:
        """The outputs, and the mean time of as many runs as fit. With `steps`, they are steps of one stream: each input
        has its arrays one after the other, and so have the outputs that are not carried."""
        session, steps = self._opened(), request.get("steps", 1)
        if steps > 1:
            names, results, ms = _stepped(session, request["carry"], _arrays(request["feeds"], buffers, steps), steps)
        else:
            feeds = _arrays(request["feeds"], buffers)
            names, results = [item.name for item in session.get_outputs()], session.run(None, feeds)
            ms = _mean_ms(lambda: session.run(None, feeds))
        rows, parts = [], []
        for name, result in zip(names, results, strict=True):
            if not isinstance(result, np.ndarray):
                raise webrnn.UnsupportedOp(f"output {name!r} is no tensor: this page shows tensors only")
            array = np.ascontiguousarray(result)
            rows.append({"name": name, "type": str(array.dtype), "shape": list(array.shape)})
            parts.append(array.tobytes())
        return {"outputs": rows, "ms": ms}, parts

    def effect(self, request: dict[str, Any], buffers: Buffers) -> Reply:
        """The plan for the audio thread of an amp or an effect; the model that is open stays."""
        session = webrnn.InferenceSession(buffers[0], limits=LIMITS)
        if session.about.get("audio", {}).get("kind") != "filter":
            raise webrnn.ModelError("it does not take a sample and give one for it")
        metadata = session.about.get("metadata", {})
        name = metadata.get("name") if isinstance(metadata, dict) else None
        with TemporaryDirectory() as folder:
            file = Path(folder) / "effect.rnn"
            session.export(file)
            title = name if isinstance(name, str) and name.strip() else request["file"]
            return {"title": title[:MOST_LETTERS]}, [file.read_bytes()]

    def guess(self, request: dict[str, Any], buffers: Buffers) -> Reply:
        """Shapes of the inputs with which the model runs, and what each is filled with; if none is found, the most
        plausible ones and what they met. `shapes` are those that are known."""
        session, problem = self._opened(), None
        guesses = session.guesses(shapes=request.get("shapes"))
        try:
            found = first_that_runs(guesses.tries(), lambda feeds: session.run(None, feeds))[0]
        except webrnn.Error as error:
            found, problem = next(guesses.tries()), str(error)
        fills = {value.name: _fill(found, value, value.name in request.get("states", {})) for value in session.inputs}
        return {"shapes": found.shapes, "fills": fills, "problem": problem}, []

    def plan(self, request: dict[str, Any], buffers: Buffers) -> Reply:
        """With its states, where it has some. With `audio` it is one for the audio thread, and says what it takes."""
        session, carry, audio = self._opened(), request.get("carry"), request.get("audio")
        about = {"audio": audio} if audio else None
        ways: list[dict[str, Any]] = [{"carry": carry or None}]
        if not audio:
            ways += [{"carry": carry or None, "shapes": request["shapes"]}, {}, {"shapes": request["shapes"]}]
        with TemporaryDirectory() as folder:
            file = Path(folder) / "model.rnn"
            for way in ways:
                try:
                    session.export(file, about=about, **way)
                    return {}, [file.read_bytes()]
                except webrnn.Error as error:
                    failure = error
        raise failure

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
        once()  # its weights are in the caches again
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


def _arrays(rows: list[dict[str, Any]], buffers: Buffers, steps: int | None = None) -> dict[str, np.ndarray]:
    """With `steps` there are so many arrays of that shape in each buffer."""
    front = [] if steps is None else [steps]
    return {
        row["name"]: np.frombuffer(buffer, np.dtype(row["type"])).reshape([*front, *row["shape"]])
        for row, buffer in zip(rows, buffers, strict=True)
    }


def _fill(guess: Guess, value: Value, is_state: bool) -> dict[str, Any]:
    """How the page fills an input: a word of its own for it, and the number that belongs to it."""
    fill = guess.fills[value.name]
    if is_state:
        return {"fill": "zeros", "why": "a state, as it begins"}
    if fill.kind == LENGTH_OF:
        return {"fill": "length", "number": guess.length, "why": fill.why}
    if fill.kind == NUMBER:
        word = "zeros" if fill.number == 0 else "ones" if fill.number == 1 else "number"
        return {"fill": word, "number": fill.number, "why": fill.why}
    below = fill.below(guess.sizes) if fill.kind == BELOW else None
    return {"fill": "random", "below": below, "why": fill.why}


def _mean_ms(run: Callable[[], Any]) -> float:
    runs, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < REPEATS_SECONDS:
        run()
        runs += 1
    return spent * 1e3 / runs


def _stepped(
    session: webrnn.InferenceSession, carry: dict[str, str], feeds: dict[str, np.ndarray], steps: int
) -> tuple[list[str], list[np.ndarray], float]:
    """Names and results of the outputs that are not carried, and milliseconds of a step."""
    stream = session.stream(carry=carry)
    start = time.perf_counter()
    found = [stream.step({name: array[step] for name, array in feeds.items()}) for step in range(steps)]
    ms = (time.perf_counter() - start) * 1e3 / steps
    return list(stream.output_names), [np.stack(results) for results in zip(*found, strict=True)], ms


def _audio(graph: Graph, carry: dict[str, str]) -> dict[str, Any] | None:
    """How the audio thread could use a model that takes one frame of numbers and gives one, besides its states."""
    fed = [value for value in graph.inputs if value.name not in carry]
    given = [value for value in graph.outputs if value.name not in carry.values()]
    if len(fed) != 1 or len(given) != 1:
        return None
    taken, made = _size(fed[0]), _size(given[0])
    if taken is None or made is None or not 2 <= taken <= MOST_SAMPLES:
        return None
    kind = "filter" if taken == made else "analyser"
    return {"kind": kind, "sample_rate": 16000, "frame": taken, "input": fed[0].name, "output": given[0].name}


def _size(value: Value) -> int | None:
    """How many floats it has, if that is known."""
    sizes = [size for size in value.shape or () if isinstance(size, int)]
    is_known = value.dtype == DType.FLOAT and value.shape is not None and len(sizes) == len(value.shape)
    return prod(sizes) if is_known else None


def _weights(graph: Graph, session: webrnn.InferenceSession, form: str) -> dict[str, Any]:
    """The form that weights have, which nodes keep float32 and why, and how large a plan is: as it is now, and about so
    large with each other form."""
    reports = {each: weights_to_be(graph, weight_forms(each)) for each in FORMS}
    rows = {each: report.rows for each, report in reports.items()}
    saved = {each: sum(4 * row.count - row.bytes for row in rows[each]) for each in FORMS}
    now = _plan_bytes(session)
    sizes = {} if now is None else {each: now + saved[form] - saved[each] for each in FORMS}
    kept = [{"name": row.name, "op": row.op, "reason": row.reason} for row in rows[form] if row.form == F32]
    return {
        "form": form,
        "sizes": sizes,
        "nodes": len(rows[form]),
        "kept": kept if form != F32 else [],
        "bytes": [4 * sum(row.count for row in rows[form]), sum(row.bytes for row in rows[form])],
    }


def _plan_bytes(session: webrnn.InferenceSession) -> int | None:
    try:
        return len(export_plan(session._program, session.inputs, None, None, ()))
    except webrnn.Error:
        return None


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


def _graph(graph: Graph, total: int, leaving: Collection[str] = ()) -> dict[str, Any]:
    """The nodes of a graph in order, loops and branches with their own; at most NODES_SHOWN of them."""
    left = [NODES_SHOWN]

    def rows(inner: Graph) -> list[dict[str, Any]]:
        found = []
        for node in inner.nodes:
            if left[0] <= 0:
                break
            left[0] -= 1
            row: dict[str, Any] = {"op": node.op, "label": node.label, "kind": _category(node)}
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

    nodes = rows(graph)
    return {"nodes": nodes, "total": total, "hidden": max(total - NODES_SHOWN, 0)}


def _category(node: Node) -> str:
    """How the page colours a node."""
    row = ROWS.get((node.domain, node.op))
    if row is None:
        return "arithmetic"
    if "product" in row.traits:
        return "matrix"
    return "cell" if "cell" in row.traits else "shape" if row.flops == "0" else "arithmetic"


_workbench = Workbench()
