"""Plans in the words of the commit that runs this, with what goes in and comes out:

    git archive COMMIT | tar -x -C build/then; cd build/then
    PYTHONPATH=runtime:. ../../.venv/bin/python -m wasm_kernels.build --target native
    PYTHONPATH=runtime:. ../../.venv/bin/python ../../tests/plan/old/write.py ../../tests/plan/old/vN

It uses no more of webrnn than the first commits had.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import webrnn

F32, I64, I32, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL
RNG = np.random.default_rng(7)
node = helper.make_node
Ports = list[tuple[str, int, list]]


def floats(*shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) * 0.5).astype(np.float32)


def halves(*shape: int) -> np.ndarray:
    """Exact in 16 bits."""
    return floats(*shape).astype(np.float16).astype(np.float32)


def graph(nodes: list, inputs: Ports, outputs: Ports, constants: dict[str, Any] | None = None) -> onnx.GraphProto:
    info = helper.make_tensor_value_info
    initializers = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    return helper.make_graph(
        nodes, "g", [info(*port) for port in inputs], [info(*port) for port in outputs], initializers
    )


def model(nodes: list, inputs: Ports, outputs: Ports, constants: dict[str, Any]) -> bytes:
    made = helper.make_model(
        graph(nodes, inputs, outputs, constants), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    onnx.checker.check_model(made)
    return made.SerializeToString()


def gru(time: Any, batch: Any) -> bytes:
    return model(
        [node("GRU", ["x", "W", "R", "B", "", "h0"], ["y", "h1"], hidden_size=6, linear_before_reset=1)],
        [("x", F32, [time, batch, 5]), ("h0", F32, [1, batch, 6])],
        [("y", F32, [time, 1, batch, 6]), ("h1", F32, [1, batch, 6])],
        {"W": floats(1, 18, 5), "R": floats(1, 18, 6), "B": floats(1, 36)},
    )


def lstm() -> bytes:
    nodes = [
        node("LSTM", ["x", "W", "R", "B"], ["y", "h1", "c1"], hidden_size=5, direction="bidirectional"),
        node("Transpose", ["y"], ["turned"], perm=[0, 2, 1, 3]),
        node("Reshape", ["turned", "shape"], ["flat"]),
        node("MatMul", ["flat", "P"], ["z"]),
        node("Softmax", ["z"], ["p"], axis=-1),
    ]
    constants = {
        "W": floats(2, 20, 4),
        "R": floats(2, 20, 5),
        "B": floats(2, 40),
        "shape": [0, 0, -1],
        "P": floats(10, 3),
    }
    return model(nodes, [("x", F32, ["t", "n", 4])], [("p", F32, ["t", "n", 3]), ("c1", F32, [2, "n", 5])], constants)


def conv() -> bytes:
    nodes = [
        node("Conv", ["x", "K", "b"], ["a"], kernel_shape=[3], pads=[2, 2], dilations=[2]),
        node("Relu", ["a"], ["r"]),
        node("Conv", ["r", "G"], ["y"], kernel_shape=[2], group=2, strides=[2]),
    ]
    constants = {"K": floats(4, 3, 3), "b": floats(4), "G": floats(4, 2, 2)}
    return model(nodes, [("x", F32, ["n", 3, "t"])], [("y", F32, ["n", 4, "u"])], constants)


def conv2d() -> bytes:
    nodes = [
        node("Conv", ["x", "K", "b"], ["a"], kernel_shape=[3, 2], pads=[1, 0, 1, 1]),
        node("MaxPool", ["a"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
    ]
    constants = {"K": floats(2, 2, 3, 2), "b": floats(2)}
    return model(nodes, [("x", F32, ["n", 2, 8, "w"])], [("y", F32, ["n", 2, 4, "v"])], constants)


def types() -> bytes:
    """Casts, comparisons, integers and booleans."""
    nodes = [
        node("Greater", ["x", "zero"], ["g"]),
        node("Cast", ["g"], ["gi"], to=I64),
        node("Add", ["gi", "k"], ["ki"]),
        node("Cast", ["ki"], ["kf"], to=F32),
        node("Where", ["g", "x", "kf"], ["w"]),
        node("Not", ["g"], ["ng"]),
        node("Exp", ["w"], ["e"]),
        node("Cast", ["w"], ["wi"], to=I32),
        node("Cast", ["ng"], ["nf"], to=F32),
        node("Mul", ["e", "nf"], ["y"]),
    ]
    shape = ["n", 4]
    outputs: Ports = [("y", F32, shape), ("wi", I32, shape), ("ng", BOOL, shape), ("ki", I64, shape)]
    return model(nodes, [("x", F32, shape), ("k", I64, shape)], outputs, {"zero": np.float32(0)})


def loop() -> bytes:
    """A Loop with a condition of its own and a state; what it adds is chosen by an If."""
    body = graph(
        [
            node("Add", ["s", "d"], ["sum"]),
            node("Mul", ["sum", "half"], ["next"]),
            node("ReduceSum", ["next"], ["total"], keepdims=0),
            node("Less", ["total", "limit"], ["go"]),
        ],
        [("i", I64, []), ("c", BOOL, []), ("s", F32, [3])],
        [("go", BOOL, []), ("next", F32, [3])],
    )
    branches = [graph([node(op, ["x"], [op])], [], [(op, F32, [3])]) for op in ("Tanh", "Neg")]
    nodes = [
        node("If", ["flag"], ["d"], then_branch=branches[0], else_branch=branches[1]),
        node("Loop", ["m", "true", "x"], ["last"], body=body),
    ]
    constants = {"half": np.float32(0.5), "limit": np.float32(100), "true": True}
    return model(nodes, [("x", F32, [3]), ("flag", BOOL, []), ("m", I64, [])], [("last", F32, [3])], constants)


def start() -> bytes:
    """A state that starts from other values than zeros."""
    constants = {"W": floats(1, 18, 5), "R": floats(1, 18, 6), "B": floats(1, 36), "h0": floats(1, 1, 6)}
    nodes = [node("GRU", ["x", "W", "R", "B", "", "h0"], ["y"], hidden_size=6, linear_before_reset=1)]
    return model(nodes, [("x", F32, ["t", 1, 5])], [("y", F32, ["t", 1, 1, 6])], constants)


def delay() -> bytes:
    """Convolutions that look ahead."""
    nodes = [
        node("Conv", ["x", "K", "b"], ["a"], kernel_shape=[5], pads=[2, 2]),
        node("Relu", ["a"], ["r"]),
        node("Conv", ["r", "G"], ["y"], kernel_shape=[3], pads=[1, 1]),
    ]
    constants = {"K": floats(4, 2, 5), "b": floats(4), "G": floats(2, 4, 3)}
    return model(nodes, [("x", F32, [1, 2, "t"])], [("y", F32, [1, 2, "t"])], constants)


def half_floats() -> bytes:
    nodes = [
        node("Conv", ["x", "K"], ["c"], kernel_shape=[4], pads=[3, 0]),
        node("Transpose", ["c"], ["ct"], perm=[2, 0, 1]),
        node("GRU", ["ct", "W", "R"], ["y"], hidden_size=12),
    ]
    constants = {"K": halves(8, 8, 4), "W": halves(1, 36, 8), "R": halves(1, 36, 12)}
    return model(nodes, [("x", F32, [1, 8, "t"])], [("y", F32, ["t", 1, 1, 12])], constants)


class Writer:
    def __init__(self, folder: Path):
        self.folder = folder
        self.arrays: dict[str, np.ndarray] = {}

    def run(self, name: str, data: bytes, feeds: dict[str, Any]) -> None:
        session = self._written(name, data)
        feeds = {port: np.asarray(array) for port, array in feeds.items()}
        self._record(name, -1, feeds, session.run(None, feeds))

    def stream(self, name: str, data: bytes, frames: list[np.ndarray], carry: Any, **options: Any) -> None:
        """Raises TypeError where the webrnn of then knows no such option."""
        how = {key: options.pop(key) for key in ("weights",) if key in options}
        session = self._written(name, data, how, carry=carry, **options)
        try:
            stream = session.stream()
        except webrnn.Error:  # version 1 does not say which states are carried
            stream = session.stream(carry=carry)
        for step, frame in enumerate(frames):
            self._record(name, step, {"x": frame}, stream.step({"x": frame}))

    def _written(self, name: str, data: bytes, how: dict[str, Any] | None = None, **options: Any) -> Any:
        file = self.folder / f"{name}.rnn"
        webrnn.InferenceSession(data, backend="native", **(how or {})).export(file, **options)
        print(f"{name}: version {file.read_bytes()[4]}, {file.stat().st_size:,} bytes")
        return webrnn.InferenceSession(file.read_bytes(), backend="native")

    def _record(self, name: str, step: int, feeds: dict[str, np.ndarray], results: list[np.ndarray]) -> None:
        self.arrays |= {f"{name}|{step}|in|{port}": array for port, array in feeds.items()}
        self.arrays |= {f"{name}|{step}|out|{at}": np.asarray(array) for at, array in enumerate(results)}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write = Writer(folder)
    write.run("gru", gru("t", "n"), {"x": floats(7, 2, 5), "h0": floats(1, 2, 6)})
    write.run("lstm", lstm(), {"x": floats(6, 2, 4)})
    write.run("conv", conv(), {"x": floats(2, 3, 13)})
    write.run("conv2d", conv2d(), {"x": floats(1, 2, 8, 10)})
    write.run("types", types(), {"x": floats(3, 4) * 3, "k": np.arange(12).reshape(3, 4)})
    write.run("loop", loop(), {"x": floats(3), "flag": False, "m": 5})
    frames = [floats(1, 1, 5) for _ in range(3)]
    write.stream("stream", gru(1, 1), frames, {"h0": "h1"})
    try:
        write.stream("about", gru(1, 1), frames, {"h0": "h1"}, about={"rate": 16000, "name": "né"})
        write.stream("start", start(), frames, "internal")
        write.stream("small", gru(1, 1), frames, {"h0": "h1"}, weights="int8")
        write.stream("delay", delay(), [floats(1, 2, 4) for _ in range(4)], "internal")
        write.run("halves", half_floats(), {"x": floats(1, 8, 9)})
    except TypeError as error:
        print(f"that is all: {error}")
    np.savez_compressed(folder / "recorded.npz", **write.arrays)  # type: ignore[arg-type]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
