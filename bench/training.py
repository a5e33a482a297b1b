"""Forward and backward of a GRU and an LSTM against PyTorch, and in V8: `make bench-training`.

A layer with 128 units and an input of 128, over 50 steps, in batches of 1 and 32, on one thread: the results, and the
gradients of the input, the first states and all weights. Rounds take turns, so that both see the same machine; the
figures are medians of ratios of one round. Times are those of the processor: what waits for others does not count.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from onnx import TensorProto, helper

import webrnn
from pyodide_pkg.core import node
from webrnn.engine.kernels.loading import FOLDER
from webrnn.engine.kernels.wasm import TRAINING, VARIANTS, file_name
from webrnn.tables import table

ROOT = Path(__file__).parents[1]
TORCH_HOME = ROOT / "build" / "torch-env"
"""An environment with PyTorch, which `make bench-training` makes."""
REQUIREMENTS = ("torch==2.13.0", "numpy==2.4.6")
STEPS, WIDTH = 50, 128
GATES = {"GRU": 3, "LSTM": 4}


def arrays(op: str, batch: int, seed: int = 0) -> dict[str, np.ndarray]:
    """The operands of the layer by the names that ONNX has, and `d`, the gradient of its results."""
    rng, gates = np.random.default_rng(seed), GATES[op] * WIDTH
    scale = WIDTH**-0.5
    found = {
        "X": rng.standard_normal((STEPS, batch, WIDTH)),
        "W": rng.uniform(-scale, scale, (1, gates, WIDTH)),
        "R": rng.uniform(-scale, scale, (1, gates, WIDTH)),
        "B": rng.uniform(-scale, scale, (1, 2 * gates)),
        "initial_h": rng.standard_normal((1, batch, WIDTH)),
        "d": rng.standard_normal((STEPS, 1, batch, WIDTH)),
    }
    if op == "LSTM":
        found["initial_c"] = rng.standard_normal((1, batch, WIDTH))
    return {name: array.astype(np.float32) for name, array in found.items()}


def model(op: str, operands: dict[str, np.ndarray]) -> bytes:
    """The layer, and as its loss the sum of its results times `d`: then `d` is their gradient."""
    names = ["X", "W", "R", "B", "", "initial_h", *(["initial_c"] if op == "LSTM" else [])]
    layer = helper.make_node(op, names, ["Y"], hidden_size=WIDTH)
    if op == "GRU":
        layer.attribute.append(helper.make_attribute("linear_before_reset", 1))
    nodes = [
        layer,
        helper.make_node("Mul", ["Y", "d"], ["weighed"]),
        helper.make_node("ReduceSum", ["weighed"], ["loss"], keepdims=0),
    ]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, each.shape) for name, each in operands.items()]
    outputs = [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])]
    graph = helper.make_graph(nodes, "layer", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10).SerializeToString()


def session(op: str, operands: dict[str, np.ndarray], backend: str) -> webrnn.InferenceSession:
    wanted = [name for name in operands if name != "d"]
    graph = webrnn.gradient(model(op, operands), loss="loss", wrt=wanted)
    return webrnn.InferenceSession(graph, backend=backend)


def ours(op: str, batch: int, backend: str) -> Callable[[], float]:
    """A function that runs it once and says how many seconds it took."""
    operands = arrays(op, batch)
    made = session(op, operands, backend)

    def run() -> float:
        start = time.process_time()
        made.run(None, operands)
        return time.process_time() - start

    return run


class Node:
    """The same plan in Node, with the module that pages load for plans that learn."""

    def __init__(self, op: str, batch: int, folder: Path):
        operands = arrays(op, batch)
        plan = folder / f"{op}_{batch}.rnn"
        session(op, operands, "native").export(plan)
        script = Path(__file__).with_name("training.mjs")
        command = [node(), str(script), (ROOT / "web_demo" / "host").as_uri() + "/", module_uri(), str(plan)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, repeat: int) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(repeat, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline()) / 1e3

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def module_uri() -> str:
    return (FOLDER / file_name(f"{VARIANTS[0]}{TRAINING}")).as_uri()


class Torch:
    """PyTorch in a process of its own, which runs a layer when it is told to."""

    SCRIPT = """
import sys, time, torch
torch.set_num_threads(1)
layers = {}
for line in sys.stdin:
    op, batch, steps, width, repeat = line.split()
    if (op, batch) not in layers:
        layer = getattr(torch.nn, op)(int(width), int(width))
        x = torch.randn(int(steps), int(batch), int(width), requires_grad=True)
        states = [torch.randn(1, int(batch), int(width), requires_grad=True) for _ in range(1 + (op == "LSTM"))]
        layers[op, batch] = layer, x, states, torch.randn(int(steps), int(batch), int(width))
    layer, x, states, d = layers[op, batch]
    best = []
    for _ in range(int(repeat)):
        for tensor in (x, *states, *layer.parameters()):
            tensor.grad = None
        start = time.process_time()
        y, _ = layer(x, states[0] if op == "GRU" else tuple(states))
        y.backward(d)
        best.append(time.process_time() - start)
    print(min(best), flush=True)
"""

    def __init__(self) -> None:
        python = str(TORCH_HOME / "bin" / "python")
        self._process = subprocess.Popen(
            [python, "-c", self.SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def seconds(self, op: str, batch: int, repeat: int) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(op, batch, STEPS, WIDTH, repeat, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def setup() -> None:
    """Make the environment, if it is not there."""
    if not (TORCH_HOME / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", str(TORCH_HOME)], check=True)
        subprocess.run([str(TORCH_HOME / "bin" / "pip"), "install", "--quiet", *REQUIREMENTS], check=True)
        (TORCH_HOME / "ready").touch()


def measure(op: str, batch: int, backend: str, torch: Torch, rounds: int, repeat: int) -> list[list[float]]:
    """Seconds of ours, of PyTorch's and of Node's, the best of some runs in each round."""
    run = ours(op, batch, backend)
    with TemporaryDirectory() as folder:
        in_node = Node(op, batch, Path(folder))
        turns = (
            lambda count: min(run() for _ in range(count)),
            lambda count: torch.seconds(op, batch, count),
            in_node.seconds,
        )
        for turn in turns:
            turn(20)  # engines compile meanwhile
        found = [[turn(repeat) for turn in turns] for _ in range(rounds)]
        in_node.close()
    return found


def middle(ratios: Sequence[float]) -> str:
    """The median, and where the middle half lies."""
    ordered = sorted(ratios)
    quarter = len(ordered) // 4
    return f"{statistics.median(ordered):.2f} ({ordered[quarter]:.2f} to {ordered[-1 - quarter]:.2f})"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.training", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--backend", default="native")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args(arguments)
    setup()
    torch, rows = Torch(), []
    for op in GATES:
        for batch in (1, 32):
            found = measure(op, batch, options.backend, torch, options.rounds, options.repeat)
            times = [f"{statistics.median(column) * 1e3:.2f}" for column in zip(*found, strict=True)]
            against_torch = middle([mine / theirs for mine, theirs, _ in found])
            rows.append(
                [f"{op}-{WIDTH}, batch {batch}", *times, against_torch, middle([v8 / mine for mine, _, v8 in found])]
            )
    torch.close()
    title = f"forward + backward, {STEPS} steps, one thread, ms; ratios with their middle half"
    columns = ["", options.backend, "PyTorch", "Node", f"{options.backend} / PyTorch", f"Node / {options.backend}"]
    print(table(title, rows, columns))
    return 0


if __name__ == "__main__":
    sys.exit(main())
