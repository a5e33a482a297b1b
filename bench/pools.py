"""`make bench-pools`: ticks of many streams beside onnxruntime, which is batched by hand, in interleaved rounds.

Both run on one thread of one process and keep states for the next tick. onnxruntime gets its arrays of all streams
ready-made and its own state arrays back; a pool gets the same arrays with `submit_many`, or those of each stream with
`submit`. What is printed is the median over rounds, and that of the ratios of each round. Models of a fixed batch are
opened for onnxruntime: sizes of their inputs and outputs become names, nothing else.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import webrnn
from webrnn.bench.models import streaming_gru
from webrnn.models import fetch

SECONDS = 0.02
"""Of one runner in one round, about."""
MANY, EACH, PEER = "submit_many", "submit", "onnxruntime"

MODELS: dict[str, Callable[[], bytes]] = {
    "gru_128": partial(streaming_gru, 64, 128),
    "gru_128_in_128": partial(streaming_gru, 128, 128),
    "gru_256": partial(streaming_gru, 64, 256),
    "gru_256_in_256": partial(streaming_gru, 256, 256),
    "riann": lambda: fetch("riann").read_bytes(),
    "dtln_1": lambda: fetch("dtln_1").read_bytes(),
}


@dataclass
class Case:
    """A model with feeds for n streams; ticks of all of them by name."""

    name: str
    n: int
    runners: dict[str, Callable[[], Any]]
    rounds: dict[str, list[float]]

    def measure(self, count: int) -> None:
        """Another round: seconds of a tick of each runner, so many ticks each."""
        for name, run in self.runners.items():
            started = time.perf_counter()
            for _ in range(count):
                run()
            self.rounds[name].append((time.perf_counter() - started) / count)

    def median(self, name: str) -> float:
        return float(np.median(self.rounds[name]))

    def ratio(self, name: str, other: str) -> float:
        return float(np.median(np.array(self.rounds[name]) / np.array(self.rounds[other])))


def opened(model: bytes, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
    """A model whose inputs and outputs have any number of streams along these axes."""
    import onnx

    proto = onnx.load_from_string(model)
    ports = [*zip(proto.graph.input, inputs, strict=True), *zip(proto.graph.output, outputs, strict=True)]
    for value, axis in ports:
        value.type.tensor_type.shape.dim[axis].dim_param = "streams"
    del proto.graph.value_info[:]
    return proto.SerializeToString()


def make_case(name: str, n: int, with_peer: bool = True) -> Case:
    model = MODELS[name]()
    session = webrnn.InferenceSession(model, backend="native")
    pool = session.pool(n)
    batched, carry = pool._batched, session.stream().carry
    if batched is None:
        raise SystemExit(f"{name}: {pool.reason}")
    rng = np.random.default_rng(0)
    feeds, states = {}, {}
    for value, axis in zip(session.inputs, batched.inputs, strict=True):
        shape = [dim if isinstance(dim, int) else 1 for dim in value.shape or ()]
        shape[axis] = n
        if value.name in carry:
            states[value.name] = np.zeros(shape, np.float32)
        else:
            feeds[value.name] = rng.standard_normal(shape).astype(np.float32)
    handles, axes = pool.open_many(n), dict(zip([v.name for v in session.inputs], batched.inputs, strict=True))
    single = session.pool(n)
    singles = [single.open() for _ in range(n)]
    each = [{name: array.take([i], axes[name]) for name, array in feeds.items()} for i in range(n)]

    def tick_many() -> list[np.ndarray]:
        pool.submit_many(handles, feeds)
        return pool.tick_many().arrays

    def tick_each() -> Any:
        for handle, fed in zip(singles, each, strict=True):
            single.submit(handle, fed)
        return single.tick()

    runners: dict[str, Callable[[], Any]] = {MANY: tick_many, EACH: tick_each}
    if with_peer:
        runners[PEER] = _by_hand(opened(model, batched.inputs, batched.outputs), feeds, states, carry)
        theirs, ours = runners[PEER](), iter(tick_many())
        for value, axis in zip(session.outputs, batched.outputs, strict=True):
            if value.name not in carry.values():
                expected = np.moveaxis(theirs[value.name], axis, 0).reshape(n, -1)
                np.testing.assert_allclose(next(ours).reshape(n, -1), expected, rtol=1e-3, atol=1e-4)
    for run in runners.values():
        run()
    return Case(name, n, runners, {name: [] for name in runners})


def _by_hand(
    model: bytes, feeds: dict[str, np.ndarray], states: dict[str, np.ndarray], carry: dict[str, str]
) -> Callable[[], dict[str, Any]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    arguments = {**feeds, **states}
    carried = [(before, names.index(after)) for before, after in carry.items()]

    def tick() -> dict[str, Any]:
        results = session.run(None, arguments)
        for before, number in carried:
            arguments[before] = results[number]
        return dict(zip(names, results, strict=True))

    return tick


def measure(cases: Sequence[Case], rounds: int) -> None:
    counts = []
    for case in cases:
        case.measure(1)
        counts.append(max(1, int(SECONDS / case.rounds[MANY][-1])))
        case.rounds = {name: [] for name in case.runners}
    for number in range(rounds):
        for case, count in zip(cases, counts, strict=True):
            case.measure(count)
        print(f"\rround {number + 1} of {rounds}", end="", file=sys.stderr, flush=True)
    print("\r" + " " * 24 + "\r", end="", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--streams", nargs="+", type=int, default=[64, 256])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument(
        "--alone", action="store_true", help="without onnxruntime: what a stream costs in pools of sizes"
    )
    options = parser.parse_args(arguments)
    print("ms a tick; ratios to onnxruntime batched by hand" if not options.alone else "us a stream")
    for name in options.models:
        cases = [make_case(name, n, not options.alone) for n in options.streams]
        measure(cases, options.rounds)
        for case in cases:
            if options.alone:
                each = "  ".join(f"{way} {1e6 * case.median(way) / case.n:7.3f}" for way in case.runners)
                print(f"{name:15} {case.n:5}  {each}", flush=True)
            else:
                times = "  ".join(f"{way} {1e3 * case.median(way):8.3f}" for way in case.runners)
                ratios = "  ".join(f"{way} {case.ratio(way, PEER):.2f}" for way in (MANY, EACH))
                print(f"{name:15} {case.n:5}  {times}  | {ratios}", flush=True)


if __name__ == "__main__":
    main()
