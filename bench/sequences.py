"""`python -m bench.sequences`: whole-sequence instructions against the generic loop, by hidden size.

Both run the same kernels and give the same bits. Rounds are interleaved in one process, natively and under wasmtime
where asked for; onnxruntime (one thread) stands beside them. Ratios are medians over rounds of the ratio in a round.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from tests.plan.recurrent_models import recurrent
from webrnn.engine.kernels import load
from webrnn.engine.plan_program import PlanProgram
from webrnn.onnx.reader import read_model
from webrnn.passes import run_passes
from webrnn.plan.encode import encode
from webrnn.plan.lowering import lower

SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
STEPS = 100


def plan(model: bytes, backend: str, fused: bool) -> PlanProgram:
    graph = read_model(model)
    run_passes(graph)
    options = frozenset() if fused else frozenset({"fused_sequences"})
    return PlanProgram(encode(lower(graph, options)), load(backend))


def peer(model: bytes, x: np.ndarray) -> Callable[[], object]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options)
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    for output in session.get_outputs():
        binding.bind_output(output.name)
    return lambda: session.run_with_iobinding(binding)


def seconds(call: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def measure(op: str, hidden: int, backend: str, rounds: int) -> str:
    model = recurrent(op, hidden, hidden, ["Y", "Y_h"])
    x = np.random.default_rng(1).standard_normal((STEPS, 1, hidden)).astype(np.float32)
    fused, loop = plan(model, backend, True), plan(model, backend, False)
    same = all(np.array_equal(a, b) for a, b in zip(fused.run([x]), loop.run([x]), strict=True))
    calls = {"fused": fused.execute, "loop": loop.execute, "ort": peer(model, x)}
    repeats = max(1, int(2e-3 / seconds(calls["fused"], 3)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(seconds(call, repeats))
    best = {name: min(values) * 1e6 for name, values in times.items()}
    to_loop = statistics.median(a / b for a, b in zip(times["fused"], times["loop"], strict=True))
    to_peer = statistics.median(a / b for a, b in zip(times["fused"], times["ort"], strict=True))
    return (
        f"| {op} {hidden} | {best['fused']:.1f} | {best['loop']:.1f} | {best['ort']:.1f} | {to_loop:.2f} "
        f"| {to_peer:.2f} | {'yes' if same else 'NO'} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sequences", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--backend", default="native")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--ops", default="RNN,GRU,LSTM")
    arguments = parser.parse_args()
    print(f"{STEPS} steps, batch 1, {arguments.backend}, {arguments.rounds} rounds; best times in microseconds\n")
    print("| model | fused | loop | onnxruntime | fused / loop | fused / onnxruntime | same bits |")
    print("|---|---|---|---|---|---|---|")
    for op in arguments.ops.split(","):
        for hidden in SIZES:
            print(measure(op, hidden, arguments.backend, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
