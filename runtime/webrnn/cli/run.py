"""`webrnn run model.onnx --input x=file.npy`."""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.engine.limits import Limits
from webrnn.engine.random_feeds import random_input
from webrnn.engine.session import InferenceSession
from webrnn.tables import table

from .options import (
    add_model_options,
    add_weight_options,
    fixed_inputs,
    loaded,
    number_or_auto,
    pairs,
    pass_names,
    weight_arguments,
)
from .options import sizes as size_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="path of an ONNX file")
    parser.add_argument(
        "--input", action="append", default=[], metavar="NAME=FILE.npy", help="an input; others are random"
    )
    parser.add_argument(
        "--size", action="append", default=[], metavar="NAME=N", help="size of a named axis (default 1)"
    )
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--threads", type=number_or_auto, default=1, metavar="N", help="of the backend native, or auto")
    add_model_options(parser)
    add_weight_options(parser)
    parser.add_argument("--steps", type=int, metavar="N", help="most steps of all loops together (default 10^9)")
    parser.add_argument("--seconds", type=float, metavar="S", help="longest time of the run (default: any)")
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs")
    parser.add_argument("--output-dir", type=Path, help="write each output to NAME.npy in this folder")


def main(arguments: argparse.Namespace) -> None:
    session = InferenceSession(
        arguments.model,
        backend=arguments.backend,
        disable=pass_names(arguments.disable),
        fixed=fixed_inputs(arguments.fixed),
        **weight_arguments(arguments),
        limits=_limits(arguments.steps, arguments.seconds),
        threads=arguments.threads,
    )
    feeds: dict[str, Any] = {name: loaded(file) for name, file in pairs(arguments.input)}
    sizes = size_options(arguments.size)
    rng = np.random.default_rng(arguments.seed)
    for value in session.inputs:
        if value.name not in feeds:
            feeds[value.name] = random_input(value, sizes, rng)
    started = time.perf_counter()
    results = session.run(None, feeds)
    elapsed = time.perf_counter() - started
    names = [item.name for item in session.get_outputs()]
    print(
        table(
            "outputs",
            [_summary(*pair) for pair in zip(names, results, strict=True)],
            ("name", "type", "shape", "min", "mean", "max"),
        )
    )
    print(f"\n{elapsed * 1e3:.2f} ms")
    if arguments.output_dir is not None:
        arguments.output_dir.mkdir(parents=True, exist_ok=True)
        for name, result in zip(names, results, strict=True):
            np.save(arguments.output_dir / (re.sub(r"[^\w.-]", "_", name) + ".npy"), result)


def _limits(steps: int | None, seconds: float | None) -> Limits:
    """One loop may take as many steps as all together."""
    if steps is None:
        return Limits(seconds=seconds)
    return Limits(loop_steps=steps, run_steps=steps, seconds=seconds)


def _summary(name: str, result: Any) -> tuple[object, ...]:
    if not isinstance(result, np.ndarray):
        return name, type(result).__name__, "", "", "", ""
    if result.dtype.kind not in "fiu" or not result.size:
        return name, result.dtype, list(result.shape), "", "", ""
    low, middle, high = (f"{number:.6g}" for number in (result.min(), result.mean(), result.max()))
    return name, result.dtype, list(result.shape), low, middle, high
