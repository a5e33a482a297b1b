"""`python -m bench.sequences`: whole-sequence instructions against the generic loop, by hidden size.

Both run the same kernels and give the same bits; onnxruntime stands beside them. All are timed as `webrnn bench` does.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from webrnn.bench.case import make_case
from webrnn.bench.models import sequence
from webrnn.bench.onnxruntime_c import OnnxruntimeRunner
from webrnn.bench.rounds import Effort, measure, prepare
from webrnn.bench.runners import backend_runner

SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
STEPS = 100


def row(op: str, hidden: int, backend: str, rounds: int) -> str:
    case = make_case(f"{op} {hidden}", sequence(op, hidden, STEPS, seed=0))
    own = partial(backend_runner, backend=backend)
    makers: dict[str, Any] = {
        "fused": own,
        "loop": partial(own, disable=["fused_sequences"]),
        "onnxruntime": OnnxruntimeRunner,
    }
    model, live = prepare(case, makers, None)
    measure(live, Effort(0.0, rounds, rarest=1))
    fused, loop, peer = model.results
    times = [f"{result.best * 1e6:.1f}" for result in model.results]
    ratios = [f"{fused.ratio_to(other).median:.2f}" for other in (loop, peer)]
    return f"| {' | '.join([case.name, *times, *ratios, 'yes' if loop.same_bits else 'NO'])} |"


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
            print(row(op, hidden, arguments.backend, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
