"""`make bench-threads`: what threads gain, beside onnxruntime with as many.

Each model runs with one thread and with several, on both runtimes, in interleaved rounds; the results of ours are
compared bit for bit. The machine has to be idle.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import onnxruntime

import webrnn
from tests.models.fetch import model_path
from tests.models.real_models import CASES, feeds_of
from webrnn.bench.models import BUILT_IN, streaming_gru
from webrnn.bench.onnx_file import GraphFile
from webrnn.guesses import random_input

ROUNDS, SECONDS = 20, 0.02
REST = 0.05
"""Before each turn: threads of other runtimes go on waiting for work for a while, on a processor that others need."""
POOL = 256
Run = Callable[[], Any]
Feeds = Mapping[str, np.ndarray]


def runs_of_model(model: str | bytes, feeds: Feeds | None, threads: int, peer: bool) -> dict[str, Run]:
    """A way to run it for each runtime and number of threads."""
    ours = {n: webrnn.InferenceSession(model, backend="native", threads=n) for n in (1, threads)}
    if feeds is None:
        rng = np.random.default_rng(0)
        feeds = {value.name: random_input(value, {}, rng) for value in ours[1].inputs}
    runs: dict[str, Run] = {f"webrnn {n}": partial(session.run, None, feeds) for n, session in ours.items()}
    if peer:
        for n in (1, threads):
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = n, 1, 4
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            runs[f"onnxruntime {n}"] = partial(session.run, None, feeds)
    return runs


def runs_of_pool(threads: int, hidden: int = 128, streams: int = POOL) -> dict[str, Run]:
    """Ticks of a pool of GRUs."""
    frames = np.random.default_rng(0).standard_normal((1, streams, hidden)).astype(np.float32)
    runs: dict[str, Run] = {}
    for n in (1, threads):
        pool = webrnn.InferenceSession(streaming_gru(hidden, hidden), backend="native", threads=n).pool(streams)
        handles = pool.open_many(streams)

        def tick(pool: Any = pool, handles: Any = handles) -> list[Any]:
            pool.submit_many(handles, {"x": frames})
            return pool.tick_many().arrays

        runs[f"webrnn {n}"] = tick
    return runs


def both_directions(op: str, hidden: int, batch: int, steps: int) -> bytes:
    """x [steps, batch, hidden] through a bidirectional layer."""
    graph, rng, gates = GraphFile("both"), np.random.default_rng(5), {"GRU": 3, "LSTM": 4}[op] * hidden
    for name, shape in (("W", (2, gates, hidden)), ("R", (2, gates, hidden)), ("B", (2, 2 * gates))):
        graph.constant(name, rng.uniform(-0.1, 0.1, shape).astype(np.float32))
    reset = {"linear_before_reset": 1} if op == "GRU" else {}
    graph.node(op, ["x", "W", "R", "B"], ["y"], hidden_size=hidden, direction="bidirectional", **reset)
    return graph.model({"x": [steps, batch, hidden]}, {"y": [steps, 2, batch, hidden]})


def branches(hidden: int, batch: int, steps: int) -> bytes:
    """Two GRUs that do not depend on each other."""
    graph, rng = GraphFile("branches"), np.random.default_rng(5)
    for name in "ab":
        for weights in "WR":
            graph.constant(weights + name, rng.uniform(-0.1, 0.1, (1, 3 * hidden, hidden)).astype(np.float32))
        graph.node("GRU", [f"x{name}", f"W{name}", f"R{name}"], [f"y{name}"], hidden_size=hidden, linear_before_reset=1)
    graph.node("Concat", ["ya", "yb"], ["y"], axis=3)
    return graph.model({f"x{name}": [steps, batch, hidden] for name in "ab"}, {"y": [steps, 1, batch, 2 * hidden]})


def cases(threads: int, peer: bool) -> dict[str, Callable[[], dict[str, Run]]]:
    nsnet2 = {"input": np.random.default_rng(0).standard_normal((1, 100, 161)).astype(np.float32)}
    made: dict[str, Callable[[], dict[str, Run]]] = {
        "nsnet2, 100 frames": lambda: runs_of_model(str(model_path("nsnet2_16k")), nsnet2, threads, peer),
        "bilstm_128, batch 8": lambda: runs_of_model(both_directions("LSTM", 128, 8, 50), None, threads, peer),
        "bilstm_128, batch 1": lambda: runs_of_model(both_directions("LSTM", 128, 1, 50), None, threads, peer),
        "bigru_128, batch 1": lambda: runs_of_model(both_directions("GRU", 128, 1, 100), None, threads, peer),
        "two gru_128, batch 1": lambda: runs_of_model(branches(128, 1, 100), None, threads, peer),
        f"tick of {POOL} GRU-128": lambda: runs_of_pool(threads),
    }
    for name in CASES:
        made[name] = partial(_real, name, threads, peer)
    for name, make in BUILT_IN.items():
        made[name] = partial(_built_in, make, threads, peer)
    return made


def _real(name: str, threads: int, peer: bool) -> dict[str, Run]:
    return runs_of_model(str(model_path(name)), feeds_of(name)[0], threads, peer)


def _built_in(make: Callable[[], bytes], threads: int, peer: bool) -> dict[str, Run]:
    return runs_of_model(make(), None, threads, peer)


def measure(runs: Mapping[str, Run], rounds: int) -> dict[str, list[float]]:
    """Seconds of a run in each round, in which all have their turn, each in a loop of its own."""
    counts = {}
    for name, run in runs.items():
        for _ in range(3):
            run()
        started = time.perf_counter()
        run()
        counts[name] = max(1, int(SECONDS / (time.perf_counter() - started)))
    found: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds):
        for name in list(runs)[:: 1 if number % 2 else -1]:
            run, count = runs[name], counts[name]
            time.sleep(REST)
            run()
            started = time.perf_counter()
            for _ in range(count):
                run()
            found[name].append((time.perf_counter() - started) / count)
    return found


def ratio(found: Mapping[str, list[float]], a: str, b: str) -> float:
    return statistics.median(x / y for x, y in zip(found[a], found[b], strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-threads", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("names", nargs="*", help="models whose name contains one of these (default: all)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--no-onnxruntime", action="store_true")
    arguments = parser.parse_args()
    n = arguments.threads
    print(f"{'model':<24}{'1 thread, us':>14}{f'{n} threads':>12}{'gain':>8}{'onnxruntime':>14}{'÷ theirs':>10}  bits")
    for name, make in cases(n, not arguments.no_onnxruntime).items():
        if arguments.names and not any(part in name for part in arguments.names):
            continue
        runs = make()
        one, several = f"webrnn {1}", f"webrnn {n}"
        same = all(
            np.asarray(a).tobytes() == np.asarray(b).tobytes()
            for a, b in zip(runs[one](), runs[several](), strict=True)
        )
        found = measure(runs, arguments.rounds)
        best = {key: min(times) * 1e6 for key, times in found.items()}
        theirs = ["-", "-"]
        if f"onnxruntime {n}" in found:
            theirs = [
                f"{ratio(found, 'onnxruntime 1', f'onnxruntime {n}'):.2f}",
                f"{ratio(found, several, f'onnxruntime {n}'):.2f}",
            ]
        gain = ratio(found, one, several)
        print(
            f"{name:<24}{best[one]:>14.1f}{best[several]:>12.1f}{gain:>8.2f}{theirs[0]:>14}{theirs[1]:>10}"
            f"  {'same' if same else 'DIFFERENT'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
