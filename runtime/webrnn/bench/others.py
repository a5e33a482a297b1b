"""Runners outside of this package or process, as far as they are installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webrnn.errors import Error

from .benchmark import Benchmark
from .peers import native_peers
from .streams import StreamBench

if TYPE_CHECKING:
    from .web import Host, Workshop

ROUGH_CLOCK = 2.0
"""Microseconds: steps of a clock that are worth a note."""
PEER_FILE = Path("onnxruntime-web") / "dist" / "ort.wasm.min.mjs"


@dataclass(frozen=True)
class Wanted:
    """What is asked for."""

    browser: bool = False
    pyodide: bool = False
    peers: bool = False
    tflite: Path | None = None
    """The folder with models for LiteRT."""
    modules: Path | None = None
    """node_modules with onnxruntime-web."""
    forms: tuple[str, ...] = ()
    """Of small weights, beside float32."""


@contextmanager
def others(wanted: Wanted, bench: Benchmark) -> Iterator[None]:
    """Adds runners to a benchmark; engines that they need run until the end of the block."""
    with ExitStack() as stack:
        if wanted.peers:
            found, missing = native_peers(wanted.tflite)
            bench.makers.update(found)
            bench.notes += missing
        if wanted.browser or wanted.pyodide:
            _add_web(wanted, bench, stack)
        yield


@dataclass
class Hosts:
    """Engines that run, and what they can load."""

    workshop: Workshop
    running: list[Host] = field(default_factory=list)
    has_pyodide: bool = False
    has_peer: bool = False
    engines: dict[str, str] = field(default_factory=dict)
    """What they say they are, by name."""
    clock_steps: dict[str, float] = field(default_factory=dict)
    """Microseconds by which their clocks go, by name."""


def start_hosts(wanted: Wanted, notes: list[str], stack: ExitStack) -> Hosts | None:
    """Node and Chromium, as far as they are there; they run until the end of `stack`."""
    from .web import ChromiumHost, NodeHost, Workshop

    modules = modules_folder(wanted.modules) if wanted.peers else None
    if wanted.peers and modules is None:
        notes.append("onnxruntime-web is not installed: `make peers` in a checkout, or --modules FOLDER/node_modules")
    pyodide = _or_note(notes, "Pyodide", pyodide_folder) if wanted.pyodide else None
    try:
        workshop = Workshop(pyodide, modules)
    except Error as error:
        notes.append(f"Node and Chromium are not measured: {error}")
        return None
    stack.callback(workshop.close)
    found = Hosts(workshop, has_pyodide=pyodide is not None, has_peer=modules is not None)
    for name, start in (("node", NodeHost), ("chromium", ChromiumHost)):
        host = _or_note(notes, name, partial(_started, start, workshop, stack))
        if host is None:
            continue
        about = host.ask("about")
        found.engines[name] = about["name"]
        found.clock_steps[name] = 1e3 * about["clockStepMs"]
        if not about["isolated"]:
            notes.append(f"{name} rounds its clock: the page is not isolated")
        found.running.append(host)
    return found


def _add_web(wanted: Wanted, bench: Benchmark, stack: ExitStack) -> None:
    hosts = start_hosts(wanted, bench.notes, stack)
    if hosts is None:
        return
    bench.machine.setdefault("engines", {}).update(hosts.engines)
    for host in hosts.running:
        bench.makers.update(web_makers(host, hosts.workshop, wanted, hosts.has_pyodide, hosts.has_peer))


@contextmanager
def stream_hosts(wanted: Wanted, bench: StreamBench) -> Iterator[dict[str, str]]:
    """Adds ticks on the hosts to a bench of streams; gives the engines."""
    from .stream_web import add_hosts

    with ExitStack() as stack:
        hosts = start_hosts(wanted, bench.notes, stack) if wanted.browser else None
        if hosts is not None:
            add_hosts(bench, hosts.workshop, hosts.running, hosts.has_peer)
            bench.notes += [
                f"{name}: its clock goes in steps of {step:.0f} µs, and so do its percentiles; ms/tick is a mean"
                for name, step in hosts.clock_steps.items()
                if step > ROUGH_CLOCK
            ]
        yield hosts.engines if hosts is not None else {}


def web_makers(host: Host, workshop: Workshop, wanted: Wanted, has_pyodide: bool, has_peer: bool) -> dict[str, Any]:
    """The runners of a host, by name."""
    from .web import WebRunner

    rows: list[tuple[str, dict[str, Any]]] = []
    if wanted.browser or wanted.pyodide:
        rows.append((host.name, {"engine": "vm"}))
        rows += [(f"{host.name} {form}", {"engine": "vm", "weights": form}) for form in wanted.forms]
    if has_pyodide:
        rows.append((f"pyodide {host.name}", {"engine": "inPython", "backend": "pyodide"}))
        rows.append((f"numpy {host.name}", {"engine": "inPython", "backend": "numpy"}))
    if has_peer:
        rows.append((f"ort-web {host.name}", {"engine": "onnxruntimeWeb"}))
    return {
        name: lambda case, name=name, options=options: WebRunner(name, case, host, workshop, **options)
        for name, options in rows
    }


def _started(start: Callable[[Any], Any], workshop: Any, stack: ExitStack) -> Any:
    host = start(workshop)
    stack.callback(host.close)
    return host


def pyodide_folder() -> Path:
    """Pyodide with numpy and webrnn, put together if need be."""
    from webrnn.web.pyodide_source import ensure

    return ensure()


def modules_folder(given: Path | None = None) -> Path | None:
    """Where onnxruntime-web is: what was given, or node_modules here or in the checkout's build folder."""
    from webrnn.web.folders import CHECKOUT

    places = [given] if given else [Path("node_modules"), CHECKOUT / "build" / "peers" / "node_modules"]
    return next((place.resolve() for place in places if (place / PEER_FILE).exists()), None)


def _or_note(notes: list[str], what: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (Error, OSError) as error:
        notes.append(f"{what} is not measured: {error}")
        return None
