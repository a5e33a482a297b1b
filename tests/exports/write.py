"""Write the exports of one framework, with inputs and what framework and onnxruntime give for them.

`python -m tests.exports.write torch` (or keras) runs in an environment that has the framework. Each model is a folder
below build/exports/models: model.onnx, runs.npz and about.json, which says why there is no model where there is none.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import multiprocessing
import multiprocessing.connection
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from .table import EXPORTED, OTHERS, STREAMED_STEPS, Architecture
from .versions import VERSIONS

ROOT = Path(__file__).resolve().parents[2] / "build" / "exports" / "models"
Arrays = dict[str, np.ndarray]


def architectures(framework: str) -> Iterator[Architecture]:
    package = f"{__package__}.{framework}_models"
    for name in importlib.import_module(package).FAMILIES:
        yield from importlib.import_module(f"{package}.{name}").family.architectures


def write(
    architecture: Architecture, exporter: str, framework: Any, folder: Path, crashed: frozenset[str] = frozenset()
) -> list[str]:
    """Write one export and its versions but for those that `crashed`. What was written, or why not, a line each."""
    name = f"{architecture.name}.{exporter}"
    module = framework.make(architecture)
    runs = [architecture.feeds(EXPORTED, 1), architecture.feeds(OTHERS if architecture.is_open else EXPORTED, 2)]
    own_results = [framework.run(architecture, module, feeds) for feeds in runs]
    steps = [architecture.feeds(EXPORTED, 3 + index) for index in range(STREAMED_STEPS if architecture.states else 0)]
    target = _empty(folder / name)
    about: dict[str, Any] = {"family": architecture.family, "states": dict(architecture.states), "tolerance": 1e-4}

    def finish(target: Path, about: dict[str, Any]) -> str:
        said = _run_in_onnxruntime(target, runs, steps, own_results, architecture.outputs, about)
        problem = about["onnxruntime_refuses"]
        if problem and not about["results"] and "NOT_IMPLEMENTED" not in problem:
            about["not_exportable"] = f"onnxruntime refuses the file: {problem}"
        (target / "about.json").write_text(json.dumps(about, indent=1))
        return f"{target.name}: {said}"

    try:
        framework.export(architecture, exporter, module, runs[0], str(target / "model.onnx"))
    except Exception as error:  # whatever an exporter raises is the reason why there is no model
        reason = _reason(error)
        (target / "about.json").write_text(json.dumps({**about, "not_exportable": reason}, indent=1))
        return [f"{name}: not exportable: {reason[:120]}"]
    said = [finish(target, about)]
    for version in [each for each in architecture.versions if each not in crashed]:
        made = _empty(folder / f"{name}.{version}")
        convert, tolerance = VERSIONS[version]
        try:
            convert(target / "model.onnx", made / "model.onnx", runs)
        except Exception as error:  # as above
            reason = _reason(error)
            (made / "about.json").write_text(json.dumps({**about, "not_exportable": reason}, indent=1))
            said.append(f"{made.name}: not convertible: {reason[:120]}")
        else:
            said.append(finish(made, {**about, "tolerance": tolerance}))
    return said


def _reason(error: Exception) -> str:
    """The first line of the error that began it: exporters wrap them in pages of advice."""
    while error.__cause__ is not None:
        error = error.__cause__  # type: ignore[assignment]
    return " ".join(f"{type(error).__name__}: {str(error).strip()}".partition("\n")[0].split())[:300]


def _empty(folder: Path) -> Path:
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    return folder


def _run_in_onnxruntime(
    target: Path,
    runs: list[Arrays],
    steps: list[Arrays],
    own: list[list[np.ndarray]],
    named: Sequence[str],
    about: dict[str, Any],
) -> str:
    """Write runs.npz and complete `about`. What there is to say about onnxruntime's results."""
    kept: Arrays = {}
    problem = ""
    try:
        session = onnxruntime.InferenceSession(target / "model.onnx")
        names = [each.name for each in session.get_inputs()]
        kinds = {each.name: each.type for each in session.get_inputs()}
    except Exception as error:  # onnxruntime has many kinds, and none of them public
        session, names, kinds, problem = None, list(runs[0]), {}, str(error)
    outputs = [each.name for each in session.get_outputs()] if session else []
    if outputs and len(outputs) == len(named):  # tf2onnx has names of its own
        renamed = dict(zip(named, outputs, strict=True))
        about["states"] = {name: renamed.get(output, output) for name, output in about["states"].items()}
    about["outputs"] = outputs
    said = []
    for index, (feeds, mine) in enumerate(zip(runs, own, strict=True)):
        given = {name: _as_declared(feeds[name], kinds.get(name, "")) for name in names}
        kept.update({f"{index}/in/{name}": array for name, array in given.items()})
        kept.update({f"{index}/own/{position}": array for position, array in enumerate(mine)})
        try:
            results = session.run(None, given) if session else []
        except Exception as error:  # as above
            problem, results = str(error), []
        kept.update({f"{index}/out/{position}": array for position, array in enumerate(results)})
        said.append(_distance(mine, results))
    for index, feeds in enumerate(steps):
        kept.update({f"step{index}/{name}": _as_declared(feeds[name], kinds.get(name, "")) for name in names})
    about["onnxruntime_differs_by"] = said
    about["results"] = any("/out/" in name for name in kept)
    about["onnxruntime_refuses"] = " ".join(problem.split())[:300]
    np.savez_compressed(target / "runs.npz", **kept)
    return f"onnxruntime {problem[:120]}" if problem else f"differs by {said}"


def _as_declared(array: np.ndarray, kind: str) -> np.ndarray:
    wanted = {"tensor(float16)": np.float16, "tensor(int32)": np.int32, "tensor(float)": np.float32}.get(kind)
    return array if wanted is None else array.astype(wanted)


def _distance(mine: list[np.ndarray], results: list[np.ndarray]) -> str:
    worst = 0.0
    for a, b in zip(mine, results, strict=False):
        if a.shape != b.shape:
            return f"shape {a.shape} {b.shape}"
        difference = np.abs(a.astype(np.float64) - b.astype(np.float64))
        worst = max(worst, float(difference.max(initial=0)))
    return f"{worst:.1e}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("framework", choices=["torch", "keras"])
    parser.add_argument("--only", default="", help="only architectures whose names contain this")
    parser.add_argument("--exporter", help="only what this one exports")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--output", type=Path, default=ROOT)
    arguments = parser.parse_args()
    framework = importlib.import_module(f"{__package__}.in_{arguments.framework}")
    todo: list[tuple[Architecture, str]] = [
        (each, exporter)
        for each in architectures(arguments.framework)
        for exporter in each.exporters
        if arguments.only in f"{each.family}/{each.name}" and arguments.exporter in (None, exporter)
    ]
    framework.warm_up()
    work = [(architecture, exporter, framework, arguments.output, frozenset[str]()) for architecture, exporter in todo]
    for index, (seconds, lines) in enumerate(_in_processes(work, arguments.jobs or 1)):
        print(f"[{index + 1}/{len(todo)}] {seconds:.1f} s  {lines[0]}", flush=True)
        for line in lines[1:]:
            print(f"    {line}", flush=True)


Work = tuple[Architecture, str, Any, Path, frozenset[str]]


def _in_processes(work: list[Work], jobs: int) -> Iterator[tuple[float, list[str]]]:
    """A process for each model: exporters keep things from one to the next, and then fail where alone they would not;
    and onnxruntime may crash."""
    context = multiprocessing.get_context("fork")
    left, running = work[::-1], []
    while left or running:
        while left and len(running) < jobs:
            item = left.pop()
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_write_one, args=(item, sender))
            process.start()
            sender.close()
            running.append((item, process, receiver, time.monotonic()))
        multiprocessing.connection.wait([receiver for _, _, receiver, _ in running])
        for entry in [entry for entry in running if entry[2].poll()]:
            running.remove(entry)
            item, process, receiver, start = entry
            try:
                yield time.monotonic() - start, receiver.recv()
            except EOFError:
                left += _after_a_crash(item)
            process.join()


def _after_a_crash(item: Work) -> list[Work]:
    """Note what crashed; what is still to do."""
    architecture, exporter, framework, folder, crashed = item
    name = f"{architecture.name}.{exporter}"
    for version in ("", *architecture.versions):
        made = folder / f"{name}.{version}".rstrip(".")
        if made.exists() and not (made / "about.json").exists():
            reason = "onnxruntime ends the process that runs it"
            (made / "about.json").write_text(json.dumps({"not_exportable": reason, "states": {}}))
            return [(architecture, exporter, framework, folder, crashed | {version})] if version else []
    raise RuntimeError(f"the process that exports {name} ended")


def _write_one(item: Work, sender: Any) -> None:
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        for stream in (1, 2):  # what C++ says, too
            os.dup2(nowhere.fileno(), stream)
        sender.send(write(*item))


if __name__ == "__main__":
    main()
