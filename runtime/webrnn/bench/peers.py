"""Other runtimes in this process, each on one thread: what is installed is timed, what is not is said."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .case import TOLERANCE, Case
from .onnxruntime_c import OnnxruntimeRunner
from .runners import CallRunner, Runner

Make = Callable[[Case], Runner]
IN_PYTHON = "called through its Python API"


def native_peers(tflite: Path | None = None) -> tuple[dict[str, Make], list[str]]:
    """Runners by name, and a line for each runtime that is not there."""
    found: dict[str, Make] = {}
    missing = []
    for name, package, make in (
        ("onnxruntime", "onnxruntime", OnnxruntimeRunner),
        ("tract", "tract", tract_runner),
        ("LiteRT", "ai_edge_litert", partial(litert_runner, folder=tflite)),
    ):
        if find_spec(package) is None:
            missing.append(f"{name} is not installed: pip install {package.replace('_', '-')}")
        elif name == "LiteRT" and tflite is None:
            missing.append("LiteRT takes no ONNX files: --tflite FOLDER says where the models are as .tflite")
        else:
            found[name] = make
    return found, missing


def tract_runner(case: Case) -> Runner:
    """Inputs are tensors of its own that are made before; results are converted only when they are looked at."""
    tract: Any = import_module("tract")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(case.data())
        runnable = tract.onnx().load(str(path)).into_model().into_runnable()
    inputs = [tract.Tensor.from_numpy(np.ascontiguousarray(feed)) for feed in case.feeds.values()]
    return CallRunner("tract", lambda: runnable.run(inputs), IN_PYTHON, lambda output: output.to_numpy())


def litert_runner(case: Case, folder: Path | None) -> Runner:
    """A .tflite file whose outputs have no names gives them in any order: they are found by what they hold."""
    assert folder is not None
    path = folder / f"{case.name}.tflite"
    if not path.exists():
        raise FileNotFoundError(f"there is no {path.name}")
    interpreter: Any = import_module("ai_edge_litert.interpreter").Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()
    names = {detail["name"].removeprefix("serving_default_").partition(":")[0]: detail for detail in details}
    feeds = [(detail["index"], case.feeds[name].reshape(detail["shape"])) for name, detail in names.items()]
    outputs = [detail["index"] for detail in interpreter.get_output_details()]

    def call() -> list[np.ndarray]:
        interpreter.reset_all_variables()
        for index, feed in feeds:
            interpreter.set_tensor(index, feed)
        interpreter.invoke()
        return [interpreter.get_tensor(index) for index in outputs]

    made = call()
    order: list[int | None] = []
    for expected in case.expected:
        off = {
            index: float(np.abs(array.ravel() - expected.ravel()).max())
            for index, array in enumerate(made)
            if array.size == expected.size
        }
        nearest = min(off, key=lambda index: off[index], default=None)
        order.append(nearest if nearest is not None and off[nearest] < TOLERANCE else None)

    def in_order() -> list[np.ndarray]:
        arrays = call()
        pairs = zip(order, case.expected, strict=True)
        return [other if index is None else arrays[index].reshape(other.shape) for index, other in pairs]

    lacking = [name for name, index in zip(case.outputs, order, strict=True) if index is None]
    if len(lacking) == len(order):
        raise ValueError("its results are others")
    return CallRunner("LiteRT", in_order, IN_PYTHON + (f"; it does not give {', '.join(lacking)}" if lacking else ""))
