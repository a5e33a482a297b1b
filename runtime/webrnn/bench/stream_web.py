"""`--stream --browser`: ticks of a stream on the plain VM in Node and in Chromium, and on onnxruntime-web."""

from __future__ import annotations

import base64
from array import array
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

NAME, PLAN = "stream", "stream-plan.rnn"
"""Of what is written to the folder that hosts load from."""


class WebTicks:
    """A stream on an engine of a host; results are checked before anything is timed."""

    def __init__(self, host: Host, engine: str, expected: list[np.ndarray], **options: Any):
        self._host = host
        made = host.ask("prepareStream", engine=engine, model=NAME, **options)
        self._id = made["id"]
        self.engine = made["engine"]
        results = [
            np.frombuffer(base64.b64decode(data), other.dtype).reshape(other.shape)
            for data, other in zip(made["results"], expected, strict=True)
        ]
        off = difference(results, expected)
        scale = max((float(np.abs(other).max()) for other in expected if other.size), default=1.0)
        if not off <= TOLERANCE * max(scale, 1.0):
            raise BackendError(f"wrong results: off by {off:.1e}")

    def ticks(self, count: int) -> array[float]:
        answer = self._host.ask("ticks", id=self._id, count=count)
        return array("d", base64.b64decode(answer["seconds"]))


def write_stream(workshop: Workshop, bench: StreamBench) -> list[np.ndarray]:
    """The plan, the model and the frames; returns what native gives for the last of all frames."""
    session = InferenceSession(bench.model, fixed=bench.fixed)
    stream = session.stream(bench.carry)
    expected = [flat_results(stream.step(frame)) for frame in bench.frames][-1]
    models = workshop.folder / "models"
    is_plan = isinstance(bench.model, str) and bench.model.endswith(".rnn")
    data = Path(bench.model).read_bytes() if isinstance(bench.model, str) else bench.model
    if is_plan:
        (models / PLAN).write_bytes(data)
    else:
        (models / f"{NAME}.onnx").write_bytes(data)
        try:
            session.export(models / PLAN, carry=bench.carry)
        except Error:  # no plan for all sizes
            shapes = {name: feed.shape for name, feed in bench.frames[0].items()}
            session.export(models / PLAN, shapes=shapes, carry=bench.carry)
    arrays = Arrays()
    workshop.write(
        NAME,
        arrays,
        outputs=stream.output_names,
        pairs=bench.pairs,
        frames=[arrays.add(frame) for frame in bench.frames],
        states=arrays.add(bench.states),
        fixed=arrays.add(_fixed(bench)),
    )
    return expected


def _fixed(bench: StreamBench) -> dict[str, np.ndarray]:
    """As another runtime is fed them."""
    if not bench.fixed:
        return {}
    inputs = InferenceSession(bench.model).get_inputs()
    return {item.name: as_declared(item, bench.fixed[item.name]) for item in inputs if item.name in bench.fixed}


def add_hosts(bench: StreamBench, workshop: Workshop, hosts: list[Host], has_peer: bool) -> None:
    """Rows of the table for each host. One that cannot run the model is noted."""
    try:
        expected = write_stream(workshop, bench)
    except Error as error:
        bench.notes.append(f"Node and Chromium are not measured: {error}")
        return
    is_plan = isinstance(bench.model, str) and bench.model.endswith(".rnn")
    carry = {"carry": bench.pairs} if is_plan and isinstance(bench.carry, dict) else {}
    for host in hosts:
        rows = [(f"{host.name} stream", "vmStream", {"plan": PLAN, **carry})]
        if has_peer:
            if bench.carry == "internal" or is_plan:
                bench.notes.append(f"ort-web {host.name}: the states of this model are not inputs that can be fed back")
            else:
                rows.append((f"ort-web {host.name}, by hand", "onnxruntimeWebStream", {}))
        for way, engine, options in rows:
            try:
                made = WebTicks(host, engine, expected, **options)
            except BackendError as error:
                bench.notes.append(f"{way} is not measured: {error}")
                continue
            bench.runners.append(Runner(way, 1, None, made.ticks))
