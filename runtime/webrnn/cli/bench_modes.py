"""What `webrnn bench` does with its options: times of models, a switch on and off, ticks of streams."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from webrnn.bench import ab, compare, html, machine, stream_report, table
from webrnn.bench.benchmark import Benchmark, own_runners
from webrnn.bench.case import SMALL_TOLERANCE, TOLERANCE, Case, from_argument
from webrnn.bench.models import BUILT_IN, streaming_gru
from webrnn.bench.others import Wanted, others
from webrnn.bench.rounds import Effort
from webrnn.bench.runners import backend_runner
from webrnn.bench.streams import StreamBench
from webrnn.engine.kernels.loading import available
from webrnn.engine.programs.backends import fastest_backend
from webrnn.engine.streams.carry import Carry
from webrnn.errors import OptionError
from webrnn.passes.weight_forms import weight_forms

from .options import fixed_inputs, pairs, sizes

SECONDS, STREAM_SECONDS = 3.0, 1.0
AB_MODELS = {
    "inline_single_step": ("gru_128_t1", "gru_256_t1", "dtln_t1", "scan_wlstm_128_t1"),
    "hoist_invariants": ("conditioned_128",),
    None: ("rnn_128", "gru_128", "lstm_128", "gru_256", "scan_wlstm_128", "loop_accum"),
}
"""What a switch is tried on unless models are given."""


def time_models(arguments: argparse.Namespace) -> None:
    old = compare.load(arguments.compare) if arguments.compare else None
    cases = _cases(arguments, tuple(BUILT_IN))
    bench = Benchmark(effort=_effort(arguments))
    forms = _forms(arguments.weights)
    bench.makers.update(_own(arguments.backend, forms))
    wanted = Wanted(
        arguments.browser, arguments.pyodide, arguments.peers, arguments.tflite, arguments.modules, tuple(forms)
    )
    with others(wanted, bench), table.Screen(quiet=_prints_json(arguments)) as screen:
        bench.run(cases, screen.show)
    if not bench.models:
        raise OptionError("; ".join(bench.notes))
    data = bench.as_data()
    if _prints_json(arguments):
        print(json.dumps(data, indent=1))
        return
    about = table.machine_lines(bench.machine, bench.limits)
    print("\n".join(about), end="\n\n")
    print(table.plain(bench.models), end="\n\n")
    print(table.legend(bench.models))
    for line in table.summary(bench.models):
        print(line)
    for note in bench.notes:
        print(f"  {note}")
    if old is not None:
        print(f"\n{compare.text(compare.changes(data, old), old)}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(data, indent=1) + "\n")
    if arguments.html is not None:
        arguments.html.write_text(html.page(data, bench.models, about))


def time_switches(arguments: argparse.Namespace) -> None:
    if arguments.ab == "help":
        print("\n".join(f"{name:<20}{about}" for name, about in ab.ABOUT.items()))
        return
    names = [name for name in arguments.ab.split(",") if name]
    backend = arguments.backend or fastest_backend()
    switches = [ab.switch(name, backend) for name in names]
    found = []
    with machine.one_numpy_thread():
        for each in switches:
            cases = [make() for make in _cases(arguments, AB_MODELS.get(each.name, AB_MODELS[None])).values()]
            found += ab.compare([each], cases, _effort(arguments), _progress)
    data = {"kind": "webrnn bench --ab", "machine": machine.describe(), "rows": [each.as_data() for each in found]}
    if _prints_json(arguments):
        print(json.dumps(data, indent=1))
        return
    print(ab.text(found))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(data, indent=1) + "\n")


def time_streams(arguments: argparse.Namespace) -> None:
    if len(arguments.model) > 1:
        raise OptionError("--stream takes one model")
    old = stream_report.load(arguments.compare) if arguments.compare else None
    depths = _numbers(arguments.depth)
    name = arguments.model[0] if arguments.model else ""
    bench = StreamBench(
        name or streaming_gru(), _carry(arguments.carry), sizes(arguments.size), fixed_inputs(arguments.fixed)
    )
    for backend in [name for name in arguments.backend.split(",") if name] or _stream_backends():
        bench.add_backend(backend, depths)
    if not arguments.no_onnxruntime:
        bench.add_onnxruntime(depths)
    figures = bench.measure(STREAM_SECONDS if arguments.seconds is None else arguments.seconds, _progress)
    data = {
        "format": stream_report.FORMAT,
        "model": name or "built-in GRU",
        "frame_ms": arguments.frame_ms,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "rows": [each.as_data() for each in figures],
    }
    if _prints_json(arguments):
        print(json.dumps(data, indent=1))
        return
    print(stream_report.report(figures, arguments.frame_ms))
    for note in bench.notes:
        print(f"  {note}")
    if old is not None:
        print(f"\n{stream_report.comparison(figures, old)}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(data, indent=1) + "\n")


def _cases(arguments: argparse.Namespace, default: tuple[str, ...]) -> dict[str, Callable[[], Case]]:
    given, fixed = sizes(arguments.size), fixed_inputs(arguments.fixed)
    usual = SMALL_TOLERANCE if arguments.weights else TOLERANCE
    options = {
        "inputs": arguments.inputs,
        "tolerance": usual if arguments.tolerance is None else arguments.tolerance,
    }
    return {text: partial(from_argument, text, given, fixed, **options) for text in arguments.model or default}


def _own(names: str, forms: list[str]) -> dict[str, Any]:
    """Each backend with float32 first, then with each form of weights."""
    chosen = [name for name in names.split(",") if name] or list(own_runners())
    makers: dict[str, Any] = {}
    for backend in chosen:
        makers[backend] = partial(backend_runner, backend=backend)
        makers.update({f"{backend} {form}": partial(makers[backend], weights=form) for form in forms})
    return makers


def _forms(given: list[str]) -> list[str]:
    return [weight_forms(form).default for form in given]


def _effort(arguments: argparse.Namespace) -> Effort:
    return Effort(SECONDS if arguments.seconds is None else arguments.seconds, arguments.rounds)


def _prints_json(arguments: argparse.Namespace) -> bool:
    return arguments.json is not None and str(arguments.json) == "-"


def _progress(line: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{line} ", end="", file=sys.stderr, flush=True)


def _stream_backends() -> list[str]:
    kinds = [spec.partition(":")[0] for spec in available()]
    return [kind for kind in ("native", "wasm", "pyodide") if kind in kinds] or [fastest_backend()]


def _carry(text: str) -> Carry:
    return text if text in ("auto", "internal") else dict(pairs(text.split(",")))


def _numbers(text: str) -> list[int]:
    parts = [part for part in text.split(",") if part]
    if not parts or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise OptionError(f"{text!r} is not a list of numbers")
    return [int(part) for part in parts]
