"""`webrnn run model.onnx --input x=file.npy`."""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.engine.limits import Limits
from webrnn.engine.session import InferenceSession
from webrnn.guesses import Guess, first_that_runs
from webrnn.tables import table

from .options import (
    add_input_option,
    add_model_options,
    add_seed_option,
    add_size_options,
    add_weight_options,
    fixed_inputs,
    given_inputs,
    guesses_for,
    number_or_auto,
    pass_names,
    weight_arguments,
)
from .output import add_json_option, show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="path of an ONNX file, or of a plan")
    add_input_option(parser)
    add_size_options(parser)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--threads", type=number_or_auto, default=1, metavar="N", help="of the backend native, or auto")
    add_model_options(parser)
    add_weight_options(parser)
    parser.add_argument("--steps", type=int, metavar="N", help="most steps of all loops together (default 10^9)")
    parser.add_argument("--seconds", type=float, metavar="S", help="longest time of the run (default: any)")
    add_seed_option(parser)
    parser.add_argument("--output-dir", type=Path, help="write each output to NAME.npy in this folder")
    add_json_option(parser)


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
    tries = guesses_for(session, arguments, given_inputs(session, arguments.input)).tries()

    def timed(feeds: dict[str, Any]) -> tuple[list[Any], float]:
        started = time.perf_counter()
        return session.run(None, feeds), time.perf_counter() - started

    guess, _, (results, elapsed) = first_that_runs(tries, timed, arguments.seed)
    names = [item.name for item in session.get_outputs()]
    rows = [_summary(*pair) for pair in zip(names, results, strict=True)]
    data = {
        "model": str(arguments.model),
        "backend": session.backend,
        **guess.as_data(),
        "outputs": [dict(zip(_COLUMNS, row, strict=True)) for row in rows],
        "ms": elapsed * 1e3,
    }
    show(arguments, data, lambda: "\n\n".join([*_inputs(guess), _outputs(rows), f"{elapsed * 1e3:.2f} ms"]))
    if arguments.output_dir is not None:
        arguments.output_dir.mkdir(parents=True, exist_ok=True)
        for name, result in zip(names, results, strict=True):
            np.save(arguments.output_dir / (re.sub(r"[^\w.-]", "_", name) + ".npy"), result)


_COLUMNS = ("name", "type", "shape", "min", "mean", "max")


def _inputs(guess: Guess) -> list[str]:
    """What was made up, and how to say it otherwise."""
    rows = guess.rows()
    if all(row.values == "given" for row in rows):
        return []
    hint = f"\n  other sizes: {guess.options}" if guess.options else ""
    return [table("inputs", rows, ("name", "shape", "values", "why")) + hint]


def _outputs(rows: list[tuple[Any, ...]]) -> str:
    def text(cell: Any) -> Any:
        return "" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else cell

    return table("outputs", [[text(cell) for cell in row] for row in rows], _COLUMNS)


def _limits(steps: int | None, seconds: float | None) -> Limits:
    """One loop may take as many steps as all together."""
    if steps is None:
        return Limits(seconds=seconds)
    return Limits(loop_steps=steps, run_steps=steps, seconds=seconds)


def _summary(name: str, result: Any) -> tuple[Any, ...]:
    if not isinstance(result, np.ndarray):
        return name, type(result).__name__, None, None, None, None
    shape = list(result.shape)
    if result.dtype.kind not in "fiu" or not result.size:
        return name, str(result.dtype), shape, None, None, None
    return name, str(result.dtype), shape, *(float(number) for number in (result.min(), result.mean(), result.max()))
