"""`webrnn bench --against`, `--stream --against` and `--stream --ab`: two sides in turn, and what their ratio says."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.bench import machine, pair_report, stream_ab
from webrnn.bench.against import OTHER, THIS, Against, Job, Paired, place_of
from webrnn.bench.case import feeds_of, is_built_in, model_of, require_sizes
from webrnn.bench.inputs import stored_inputs
from webrnn.bench.models import BUILT_IN
from webrnn.bench.pairs import FEWEST_ROUNDS, PairEffort
from webrnn.engine.programs.backends import fastest_backend
from webrnn.engine.session import InferenceSession
from webrnn.errors import Error, OptionError

from . import bench_streams
from .bench_modes import progress, switches_of, write_or_print
from .bench_options import AGAINST, OF_STREAMS, STREAM_AB, STREAM_AGAINST, measured_with, names, require_files
from .options import fixed_inputs, input_shapes, sizes

SECONDS, ROUNDS = 3.0, FEWEST_ROUNDS
"""For each pair, and at least."""


def time_revisions(arguments: argparse.Namespace) -> None:
    against = _against(arguments)
    with tempfile.TemporaryDirectory(prefix="webrnn-bench-") as folder:
        jobs, failed = _whole_runs(arguments, Path(folder))
        found = against.run(jobs, _effort(arguments), progress) + failed
    _report(arguments, AGAINST, against, found)


def time_stream_revisions(arguments: argparse.Namespace) -> None:
    against = _against(arguments)
    depths, carry = bench_streams.depths_of(arguments), bench_streams.carry_of(arguments)
    bench = bench_streams.stream_bench(arguments)
    name = bench_streams.model_name(arguments)
    backends = names("--backend", arguments.backend) or [fastest_backend()]
    with tempfile.TemporaryDirectory(prefix="webrnn-bench-") as folder:
        failed: list[Paired] = []
        jobs: list[Job] = []
        try:
            bench.prepare(backends[0])
        except OptionError:
            raise
        except Error as error:
            failed = [_failed(Job(name, "stream", 1, {}), error)]
        else:
            how = _how(Path(folder), "stream", bench.model, bench.frames, bench.fixed)
            for backend in backends:
                shared = {**how, "backend": backend, "carry": carry}
                jobs.append(Job(name, f"{backend} stream", 1, shared))
                jobs += [Job(name, f"{backend} pool", depth, {**shared, "depth": depth}) for depth in depths]
        found = against.run(jobs, _effort(arguments), progress) + failed
    _report(arguments, STREAM_AGAINST, against, found)


def time_stream_switches(arguments: argparse.Namespace) -> None:
    switches, depths = switches_of(arguments), bench_streams.depths_of(arguments)
    with machine.one_numpy_thread():
        effort = _effort(arguments)
        found = stream_ab.compare(switches, lambda: bench_streams.stream_bench(arguments), depths, effort, progress)
    data = {
        "kind": "webrnn bench --stream --ab",
        "model": bench_streams.model_name(arguments),
        "machine": machine.describe(),
        "rows": [each.as_data() for each in found],
        **_measured_with(arguments, STREAM_AB),
    }
    write_or_print(arguments, data, lambda: print(pair_report.switches(found, switches)))


def _against(arguments: argparse.Namespace) -> Against:
    against = Against(place_of(arguments.against))
    against.find_out()
    return against


def _effort(arguments: argparse.Namespace) -> PairEffort:
    return PairEffort(SECONDS if arguments.seconds is None else arguments.seconds, arguments.rounds or ROUNDS)


def _measured_with(arguments: argparse.Namespace, mode: str) -> dict[str, Any]:
    of_streams = {"depth": bench_streams.DEPTHS, "carry": bench_streams.CARRY} if mode in OF_STREAMS else {}
    return measured_with(arguments, mode, seconds=SECONDS, rounds=ROUNDS, **of_streams)


def _whole_runs(arguments: argparse.Namespace, folder: Path) -> tuple[list[Job], list[Paired]]:
    """And those whose inputs cannot be made up, since this revision does not read the model."""
    given, fixed = sizes(arguments.size), fixed_inputs(arguments.fixed)
    files = [text for text in arguments.model if not is_built_in(text)]
    require_files(arguments, files)
    models = [model_of(text) for text in arguments.model or BUILT_IN]
    jobs: list[Job] = []
    failed: list[Paired] = []
    for number, (name, model) in enumerate(models):
        is_file = isinstance(model, str)
        own_fixed = fixed if is_file else {}
        try:
            if is_file and len(files) == 1:
                require_sizes(InferenceSession(model, fixed=fixed).inputs, given)
            stored = stored_inputs(arguments.inputs, name) if is_file and arguments.inputs is not None else None
            shapes = input_shapes(arguments.shape) if is_file else {}
            feeds = feeds_of(model, given if is_file else None, own_fixed, stored, shapes=shapes)
        except OptionError:
            raise
        except Error as error:
            failed.append(_failed(Job(name, "run", 1, {}), error))
            continue
        how = _how(folder, str(number), model, [feeds], own_fixed)
        for backend in names("--backend", arguments.backend) or [fastest_backend()]:
            jobs.append(Job(name, backend, 1, {**how, "backend": backend}))
    return jobs, failed


def _failed(job: Job, error: Error) -> Paired:
    return Paired(job, failures={THIS: f"{type(error).__name__}: {error}"})


def _how(
    folder: Path, stem: str, model: str | bytes, frames: Sequence[dict[str, np.ndarray]], fixed: dict[str, Any]
) -> dict[str, Any]:
    """What a worker takes, written to files; of `fixed` what JSON has."""
    path = Path(model).resolve() if isinstance(model, str) else folder / f"{stem}.onnx"
    if isinstance(model, bytes):
        path.write_bytes(model)
    feeds = folder / f"{stem}.npz"
    arrays: dict[str, Any] = {
        f"{number}:{name}": feed for number, frame in enumerate(frames) for name, feed in frame.items()
    }
    np.savez(feeds, **arrays)
    plain = {name: np.asarray(value).tolist() for name, value in fixed.items()}
    return {"model": str(path), "feeds": str(feeds), "fixed": plain}


def _report(arguments: argparse.Namespace, mode: str, against: Against, found: list[Paired]) -> None:
    data = {
        "kind": f"webrnn bench {mode}",
        "machine": machine.describe(),
        "rows": [each.as_data() for each in found],
        "notes": against.notes,
        "against": {"path": arguments.against, "revision": against.revisions[OTHER].as_data()},
        **_measured_with(arguments, mode),
    }
    write_or_print(arguments, data, lambda: print(pair_report.revisions(found, against, arguments.against)))
