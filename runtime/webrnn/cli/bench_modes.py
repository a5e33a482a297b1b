"""What `webrnn bench` does with its options: times of models, and a switch on and off."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from webrnn.bench import ab, compare, html, machine, table
from webrnn.bench.benchmark import Benchmark, own_runners
from webrnn.bench.case import SMALL_TOLERANCE, TOLERANCE, Case, from_argument, is_built_in, model_of, require_sizes
from webrnn.bench.models import BUILT_IN
from webrnn.bench.others import Wanted, others
from webrnn.bench.rounds import FEWEST_ROUNDS, Effort
from webrnn.bench.runners import backend_runner
from webrnn.engine.programs.backends import fastest_backend
from webrnn.engine.session import InferenceSession
from webrnn.errors import OptionError
from webrnn.passes.weight_forms import weight_forms

from .bench_options import AB, TIMES, measured_with, names, require_files
from .options import fixed_inputs, input_shapes, sizes
from .output import prints_json, to_json, write_text

SECONDS, ROUNDS = 3.0, FEWEST_ROUNDS
"""For each model, and at least."""
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
    bench.makers.update(_own(names("--backend", arguments.backend), forms))
    wanted = Wanted(
        arguments.browser, arguments.pyodide, arguments.peers, arguments.tflite, arguments.modules, tuple(forms)
    )
    with others(wanted, bench), table.Screen(quiet=prints_json(arguments)) as screen:
        bench.run(cases, screen.show)
    if not bench.models:
        raise OptionError("; ".join(bench.notes))
    data = bench.as_data() | _measured_with(arguments, TIMES)
    if prints_json(arguments):
        print(to_json(data))
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
        write_text(arguments.json, to_json(data) + "\n")
    if arguments.html is not None:
        write_text(arguments.html, html.page(data, bench.models, about))


def list_switches() -> None:
    print("\n".join(f"{name:<20}{about}" for name, about in ab.ABOUT.items()))


def switches_of(arguments: argparse.Namespace) -> list[ab.Switch]:
    backends = names("--backend", arguments.backend)
    if len(backends) > 1:
        raise OptionError(f"--backend: --ab takes one backend, not {len(backends)}")
    return [ab.switch(name, *(backends or [fastest_backend()])) for name in names("--ab", arguments.ab)]


def time_switches(arguments: argparse.Namespace) -> None:
    switches = switches_of(arguments)
    found = []
    with machine.one_numpy_thread():
        for each in switches:
            cases = [make() for make in _cases(arguments, AB_MODELS.get(each.name, AB_MODELS[None])).values()]
            found += ab.compare([each], cases, _effort(arguments), progress)
    data = {
        "kind": "webrnn bench --ab",
        "machine": machine.describe(),
        "rows": [each.as_data() for each in found],
        **_measured_with(arguments, AB),
    }
    write_or_print(arguments, data, lambda: print(ab.text(found)))


def _measured_with(arguments: argparse.Namespace, mode: str) -> dict[str, Any]:
    return measured_with(arguments, mode, seconds=SECONDS, rounds=ROUNDS)


def write_or_print(arguments: argparse.Namespace, data: dict[str, Any], show: Callable[[], None]) -> None:
    """`show` prints what people read; with `--json` the figures are printed instead."""
    if prints_json(arguments):
        print(to_json(data))
        return
    show()
    if arguments.json is not None:
        write_text(arguments.json, to_json(data) + "\n")


def _cases(arguments: argparse.Namespace, default: tuple[str, ...]) -> dict[str, Callable[[], Case]]:
    given, fixed = sizes(arguments.size), fixed_inputs(arguments.fixed)
    files = [text for text in arguments.model if not is_built_in(text)]
    require_files(arguments, files)
    if len(files) == 1 and given:
        require_sizes(InferenceSession(model_of(files[0])[1], fixed=fixed).inputs, given)
    usual = SMALL_TOLERANCE if arguments.weights else TOLERANCE
    options = {
        "inputs": arguments.inputs,
        "tolerance": usual if arguments.tolerance is None else arguments.tolerance,
        "shapes": input_shapes(arguments.shape),
    }
    return {text: partial(from_argument, text, given, fixed, **options) for text in arguments.model or default}


def _own(backends: list[str], forms: list[str]) -> dict[str, Any]:
    """Each backend with float32 first, then with each form of weights."""
    chosen = backends or list(own_runners())
    makers: dict[str, Any] = {}
    for backend in chosen:
        makers[backend] = partial(backend_runner, backend=backend)
        makers.update({f"{backend} {form}": partial(makers[backend], weights=form) for form in forms})
    return makers


def _forms(given: list[str]) -> list[str]:
    return [weight_forms(form).default for form in given]


def _effort(arguments: argparse.Namespace) -> Effort:
    seconds = SECONDS if arguments.seconds is None else arguments.seconds
    return Effort(seconds, arguments.rounds or ROUNDS)


def progress(line: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{line} ", end="", file=sys.stderr, flush=True)
