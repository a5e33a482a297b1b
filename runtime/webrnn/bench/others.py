"""Runners outside of this package or process, as far as they are installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webrnn.errors import Error

from .benchmark import Benchmark
from .peers import native_peers

if TYPE_CHECKING:
    from .web import Host, Workshop

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


def _add_web(wanted: Wanted, bench: Benchmark, stack: ExitStack) -> None:
    from .web import ChromiumHost, NodeHost, Workshop

    modules = modules_folder(wanted.modules) if wanted.peers else None
    if wanted.peers and modules is None:
        bench.notes.append(
            "onnxruntime-web is not installed: `make peers` in a checkout, or --modules FOLDER/node_modules"
        )
    pyodide = _or_note(bench, "Pyodide", pyodide_folder) if wanted.pyodide else None
    try:
        workshop = Workshop(pyodide, modules)
    except Error as error:
        bench.notes.append(f"Node and Chromium are not measured: {error}")
        return
    stack.callback(workshop.close)
    engines = bench.machine.setdefault("engines", {})
    for name, start in (("node", NodeHost), ("chromium", ChromiumHost)):
        host = _or_note(bench, name, partial(_started, start, workshop, stack))
        if host is None:
            continue
        about = host.ask("about")
        engines[name] = about["name"]
        if not about["isolated"]:
            bench.notes.append(f"{name} rounds its clock: the page is not isolated")
        bench.makers.update(web_makers(host, workshop, wanted, pyodide is not None, modules is not None))


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


def _or_note(bench: Benchmark, what: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (Error, OSError) as error:
        bench.notes.append(f"{what} is not measured: {error}")
        return None
