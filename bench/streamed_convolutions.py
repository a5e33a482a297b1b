"""`python -m bench.streamed_convolutions`: what a frame of a streamed stack of convolutions costs.

A TCN (kernel 3, dilations 1 to 128, 64 channels, residual connections), streamed frame by frame, stands beside products
of one row with as many multiply-adds, in turns; beside it, how large its states are. `python -m
bench.streamed_convolutions --dilations 64,64` times another stack.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import perf_counter

import numpy as np

from webrnn.engine.kernels.loading import load
from webrnn.engine.programs.plan_program import PlanProgram
from webrnn.engine.session import InferenceSession
from webrnn.engine.streams.carriers import PlanCarrier
from webrnn.ir import DType, Graph, GraphBuilder, Symbol
from webrnn.passes.pipeline import run_passes
from webrnn.plan.encode import compile_graph

KERNEL = 3


def tcn(channels: int, dilations: Sequence[int]) -> Graph:
    rng = np.random.default_rng(0)
    b = GraphBuilder("tcn")
    y = b.input("x", DType.FLOAT, (1, channels, Symbol("frames")))
    for dilation in dilations:
        weights = rng.standard_normal((channels, channels, KERNEL)) / np.sqrt(KERNEL * channels)
        operands = (b.constant(weights.astype(np.float32)), b.constant(np.zeros(channels, np.float32)))
        made = b.op("Conv", y, *operands, dilations=[dilation], pads=[(KERNEL - 1) * dilation, 0])
        y = b.op("Add", y, b.op("Relu", made))
    b.graph.outputs.append(y)
    return b.graph


def products(channels: int, count: int) -> Graph:
    rng = np.random.default_rng(1)
    b = GraphBuilder("products")
    for _ in range(count):
        weights = rng.standard_normal((KERNEL * channels, channels)).astype(np.float32)
        row = b.input("x", DType.FLOAT, (1, KERNEL * channels))
        b.graph.outputs.append(b.op("MatMul", row, b.constant(weights)))
    run_passes(b.graph)
    return b.graph


def program_of(graph: Graph, backend: str) -> PlanProgram:
    program = PlanProgram(compile_graph(graph), load(backend))
    program.bind(tuple(tuple(int(str(size)) for size in value.shape or ()) for value in graph.inputs))
    return program


def best_times(programs: Sequence[PlanProgram], rounds: int, times: int) -> list[float]:
    """Seconds of a run of each, the best of all rounds."""
    best = [float("inf")] * len(programs)
    for _ in range(rounds):
        for index, program in enumerate(programs):
            start = perf_counter()
            program.repeat(times)
            best[index] = min(best[index], (perf_counter() - start) / times)
    return best


def report(channels: int, dilations: Sequence[int], backend: str, rounds: int) -> str:
    stream = InferenceSession(tcn(channels, dilations), backend=backend).stream(carry="internal")
    stream.step({"x": np.zeros((1, channels, 1), np.float32)})
    carrier, *_ = stream._carriers
    assert isinstance(carrier, PlanCarrier)
    frame, product = best_times(
        [carrier._program, program_of(products(channels, len(dilations)), backend)], rounds, 300
    )
    histories = sum((KERNEL - 1) * dilation for dilation in dilations) * channels * 4
    states = sum(state.nbytes for state in stream.state.values())
    places = {id(place): place.nbytes for at in (0, 1) for place in carrier.states(at)}
    times = f"{frame * 1e6:.2f} | {product * 1e6:.2f} | {frame / product:.2f}"
    return f"| {backend} | {times} | {states / histories:.3f} | {sum(places.values()) / histories:.3f} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.streamed_convolutions", description=__doc__)
    parser.add_argument("--backends", default="native,wasm:relaxed")
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--dilations", default="1,2,4,8,16,32,64,128")
    parser.add_argument("--rounds", type=int, default=150)
    arguments = parser.parse_args()
    dilations = [int(number) for number in arguments.dilations.split(",")]
    print(f"{len(dilations)} layers, {arguments.channels} channels; best times in microseconds\n")
    print("| backend | a frame | its products | ratio | states / histories | their places / histories |")
    print("|---|---|---|---|---|---|")
    for backend in arguments.backends.split(","):
        print(report(arguments.channels, dilations, backend, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
