"""`make bench-models`: real models beside onnxruntime natively, and beside onnxruntime-web in Node and Chromium.

The models are those of tests/models, timed in interleaved rounds on one thread as `webrnn bench --peers --browser` does
it; the last table is README's.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime

from tests.models.fetch import model_path
from tests.models.real_models import CASES, feeds_of
from webrnn.bench import table
from webrnn.bench.benchmark import Benchmark
from webrnn.bench.case import Case, make_case
from webrnn.bench.inputs import Stored, stored_inputs
from webrnn.bench.others import Wanted, others
from webrnn.bench.rounds import Effort, ModelResult
from webrnn.bench.runners import backend_runner

ROUNDS = 30
FURTHER_RUNS = {"moonshine_tiny_dec_if +cache": ("moonshine_tiny_dec_if", 1)}
"""Runs of a model's case that are timed beside its first: this one decodes a token after others."""
COLUMNS = (("native", "onnxruntime"), ("node", "ort-web node"), ("chromium", "ort-web chromium"))


def case_of(name: str, inputs: Path | None = None) -> Case:
    """A model on the inputs of tests/models, or on those of a folder; onnxruntime says what is right."""
    model, run = FURTHER_RUNS.get(name, (name, 0))
    path = str(model_path(model))
    feeds = feeds_of(model)[run] if inputs is None or run else stored_inputs(inputs, model).inputs
    onnxruntime.set_default_logger_severity(4)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    results = [np.asarray(result) for result in session.run(None, feeds)]
    outputs = dict(zip((output.name for output in session.get_outputs()), results, strict=True))
    return make_case(name, path, stored=Stored(feeds, outputs, "onnxruntime"), tolerance=CASES[model].tolerance)


def readme_table(models: Sequence[ModelResult]) -> str:
    """Markdown: for each place our time, and how many times theirs it is; the best models first."""
    pairs = [pair for pair in COLUMNS if any(model.of(pair[0]) is not None for model in models)]
    heads = ["model", *(head for ours, theirs in pairs for head in (f"{ours}, us", f"÷ {theirs.split()[0]}"))]
    rows = [[model.name, *(cell for pair in pairs for cell in _cells(model, *pair))] for model in models]
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(model: ModelResult, ours: str, theirs: str) -> tuple[str, str]:
    mine, other = model.of(ours), model.of(theirs)
    if mine is None or not mine.seconds:
        return "-", "-"
    if other is None or not other.seconds:
        return table.time_text(mine.best), "-"
    return table.time_text(mine.best), table.ratio_text(mine.ratio_to(other).median)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-models", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("names", nargs="*", help=f"default: all, {', '.join((*CASES, *FURTHER_RUNS))}")
    parser.add_argument("--inputs", type=Path, metavar="FOLDER", help="with MODEL.npz or MODEL.io.npz")
    parser.add_argument("--native-only", action="store_true", help="neither Node nor Chromium")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each model (default: 3)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="at least so many (default: 30)")
    parser.add_argument("--modules", type=Path, metavar="FOLDER", help="node_modules with onnxruntime-web")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures, too")
    arguments = parser.parse_args()
    names = arguments.names or [*CASES, *FURTHER_RUNS]
    cases: dict[str, Callable[[], Case]] = {name: partial(case_of, name, arguments.inputs) for name in names}
    bench = Benchmark(effort=Effort(arguments.seconds, arguments.rounds))
    bench.makers["native"] = partial(backend_runner, backend="native")
    wanted = Wanted(browser=not arguments.native_only, peers=True, modules=arguments.modules)
    with others(wanted, bench), table.Screen() as screen:
        bench.run(cases, screen.show)
    print("\n".join(table.machine_lines(bench.machine, bench.limits)), end="\n\n")
    print(table.plain(bench.models), end="\n\n")
    print("\n".join([table.legend(bench.models), *table.summary(bench.models)]))
    print("".join(f"  {note}\n" for note in bench.notes))
    print(readme_table(bench.models))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(bench.as_data(), indent=1) + "\n")


if __name__ == "__main__":
    main()
