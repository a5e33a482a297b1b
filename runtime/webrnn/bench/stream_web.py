"""`--stream --browser`: ticks of a stream on the plain VM in Node and in Chromium, and on onnxruntime-web."""

from __future__ import annotations

import base64
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.engine.session import InferenceSession
from webrnn.errors import BackendError, Error

from .case import TOLERANCE
from .rounds import difference
from .runners import flat_results
from .streams import Runner, StreamBench, as_declared
from .web import Arrays, Host, Workshop


@dataclass(frozen=True)
class Written:
    """A stream in the folder that hosts load from."""

    name: str
    """No other has it: browsers keep what they have loaded once."""
    expected: list[np.ndarray]
    """What native gives for the last of all frames."""

    @property
    def plan(self) -> str:
        return f"{self.name}-plan.rnn"


class WebTicks:
    """A stream on an engine of a host; results are checked before anything is timed."""

    def __init__(self, host: Host, engine: str, stream: Written, **options: Any):
        self._host, expected = host, stream.expected
        made = host.ask("prepareStream", engine=engine, model=stream.name, plan=stream.plan, **options)
        self._id = made["id"]
        self.results = [
            np.frombuffer(base64.b64decode(data), other.dtype).reshape(other.shape)
            for data, other in zip(made["results"], expected, strict=True)
        ]
        off = difference(self.results, expected)
        scale = max((float(np.abs(other).max()) for other in expected if other.size), default=1.0)
        if not off <= TOLERANCE * max(scale, 1.0):
            raise BackendError(f"wrong results: off by {off:.1e}")

    def ticks(self, count: int) -> array[float]:
        answer = self._host.ask("ticks", id=self._id, count=count)
        return array("d", base64.b64decode(answer["seconds"]))


def write_stream(workshop: Workshop, bench: StreamBench) -> Written:
    """The plan, the model and the frames."""
    session = InferenceSession(bench.model, fixed=bench.fixed)
    stream = session.stream(bench.carry)
    expected = [flat_results(stream.step(frame)) for frame in bench.frames][-1]
    models = workshop.folder / "models"
    written = Written(f"stream-{len(list(models.glob('stream-*.json')))}", expected)
    is_plan = isinstance(bench.model, str) and bench.model.endswith(".rnn")
    data = Path(bench.model).read_bytes() if isinstance(bench.model, str) else bench.model
    if is_plan:
        (models / written.plan).write_bytes(data)
    else:
        (models / f"{written.name}.onnx").write_bytes(data)
        try:
            session.export(models / written.plan, carry=bench.carry)
        except Error:  # no plan for all sizes
            shapes = {name: feed.shape for name, feed in bench.frames[0].items()}
            session.export(models / written.plan, shapes=shapes, carry=bench.carry)
    arrays = Arrays()
    workshop.write(
        written.name,
        arrays,
        outputs=stream.output_names,
        pairs=bench.pairs,
        frames=[arrays.add(frame) for frame in bench.frames],
        states=arrays.add(bench.states),
        fixed=arrays.add(_fixed(bench)),
    )
    return written


def _fixed(bench: StreamBench) -> dict[str, np.ndarray]:
    """As another runtime is fed them."""
    if not bench.fixed:
        return {}
    inputs = InferenceSession(bench.model).get_inputs()
    return {item.name: as_declared(item, bench.fixed[item.name]) for item in inputs if item.name in bench.fixed}


def add_hosts(bench: StreamBench, workshop: Workshop, hosts: list[Host], has_peer: bool) -> None:
    """Rows of the table for each host. One that cannot run the model is noted."""
    try:
        stream = write_stream(workshop, bench)
    except Error as error:
        bench.notes.append(f"Node and Chromium are not measured: {error}")
        return
    is_plan = isinstance(bench.model, str) and bench.model.endswith(".rnn")
    carry: dict[str, Any] = {"carry": bench.pairs} if is_plan and isinstance(bench.carry, dict) else {}
    for host in hosts:
        rows: list[tuple[str, str, dict[str, Any]]] = [(f"{host.name} stream", "vmStream", carry)]
        if has_peer:
            if bench.carry == "internal" or is_plan:
                bench.notes.append(f"ort-web {host.name}: the states of this model are not inputs that can be fed back")
            else:
                rows.append((f"ort-web {host.name}, by hand", "onnxruntimeWebStream", {}))
        for way, engine, options in rows:
            try:
                made = WebTicks(host, engine, stream, **options)
            except BackendError as error:
                bench.notes.append(f"{way} is not measured: {error}")
                continue
            bench.runners.append(Runner(way, 1, None, made.ticks))
