"""Pools of streams that the JavaScript host is held to: what Python's own pools give, bit for bit."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.engine.stream_models import stateful
from tests.engine.streams.timed_models import Averages
from tests.models.fetch import model_path
from webrnn.engine.session import InferenceSession
from webrnn.engine.streams.pool import StreamPool

from .webrnn_cases import determinants, encoded, started

EXPORTED = Path(__file__).parents[1] / "along_time" / "exported"
MAX_STREAMS = 6
STRIDED = Averages(width=5, left=1, right=3, stride=2, axis=2)
CAUSAL = Averages(left=2, right=0, total=True)

Carry = Mapping[str, str] | str


def sessions(backend: str) -> dict[str, tuple[InferenceSession, Carry]]:
    def of(model: Any, carry: Carry) -> tuple[InferenceSession, Carry]:
        data = model if isinstance(model, bytes) else model.SerializeToString()
        return InferenceSession(data, backend=backend), carry

    return {
        "gru": of(stateful("GRU", hidden=20), "auto"),
        "gru_of_one_step": of(stateful("GRU", steps=1, batch=1), "auto"),
        "lstm": of(stateful("LSTM", hidden=20), "auto"),
        "started": of(started(np.random.default_rng(12)), "internal"),
        "riann": of(model_path("riann").read_bytes(), "auto"),
        "strided": (STRIDED.session(backend), STRIDED.carry),
        "causal": (CAUSAL.session(backend), CAUSAL.carry),
        "tcn": of((EXPORTED / "tcn.script.onnx").read_bytes(), "internal"),
        "crn": of((EXPORTED / "crn.dynamo.onnx").read_bytes(), "internal"),
    }


def write(folder: Path, backend: str = "wasm:relaxed") -> None:
    """pool_<name>.rnn, and .json: what is done with a pool, and what that gives."""
    names = []
    for name, (session, carry) in sessions(backend).items():
        path = folder / f"pool_{name}.rnn"
        session.export(path, carry=carry, pool=True)
        pool = session.pool(MAX_STREAMS, carry)
        events = list(_events(session, pool, session.stream(carry).output_names, carry))
        assert pool.batched, pool.reason
        path.with_suffix(".json").write_text(json.dumps(events))
        names.append(name)
    gru, carry = sessions(backend)["gru"]
    gru.export(folder / "pool_plain.rnn", carry=carry)
    (folder / "pool_plain.json").write_text((folder / "pool_gru.json").read_text())
    rare = InferenceSession(determinants().SerializeToString(), backend=backend)
    rare.export(folder / "determinants_pool.rnn", carry={}, pool=True)
    (folder / "pools.json").write_text(json.dumps([*names, "plain"]))


def _events(session: InferenceSession, pool: StreamPool, outputs: list[str], carry: Carry) -> Any:
    """Streams that come, go, wait and end; handles are numbers that count from 0 in both languages."""
    chance, rng = random.Random(5), np.random.default_rng(5)
    timing = session.stream(carry).timing
    is_open: list[int] = []
    for tick in range(24):
        if len(is_open) < MAX_STREAMS and (tick < 3 or chance.random() < 0.3):
            is_open.append(pool.open())
            yield {"open": is_open[-1]}
        if len(is_open) > 3 and chance.random() < 0.15:
            handle = is_open.pop(chance.randrange(len(is_open)))
            pool.close(handle)
            yield {"close": handle}
        chosen = [handle for handle in is_open if tick % 3 or chance.random() < 0.6]
        feeds = {handle: _feeds(session, timing, chance.choice((1, 1, 1, 2)), rng, carry) for handle in chosen}
        for handle, feed in feeds.items():
            pool.submit(handle, feed)
        results = pool.tick()
        yield {
            "feeds": [[handle, encoded(feed)] for handle, feed in feeds.items()],
            "results": [[handle, _named(outputs, results[handle])] for handle in feeds],
            "states": [[handle, encoded(pool.state(handle))] for handle in is_open],
        }
        if timing is not None and chosen and tick % 5 == 4:
            yield {"flush": chosen[0], "results": _named(outputs, pool.flush(chosen[0]))}


def _named(outputs: list[str], arrays: list[np.ndarray]) -> dict[str, Any]:
    return encoded(dict(zip(outputs, arrays, strict=True)))


def _feeds(
    session: InferenceSession, timing: Any, length: int, rng: np.random.Generator, carry: Carry
) -> dict[str, np.ndarray]:
    """So many steps or strides of one stream."""
    carried = session.stream(carry).carry
    feeds = {}
    for value in session.inputs:
        if value.name in carried:
            continue
        names = ("steps", "time", "sequence")
        sizes = [n if isinstance(n, int) else length if str(n) in names else 1 for n in value.shape or ()]
        if timing is not None and value.name in timing.inputs:
            sizes[timing.inputs[value.name]] = length * timing.stride
        feeds[value.name] = rng.standard_normal(sizes).astype(np.float32)
    return feeds
