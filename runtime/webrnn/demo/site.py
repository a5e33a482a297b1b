"""The folder of static files that the page is served from: any web server will do.

index.html, page/ ...   the page, as it is in web_demo/ of the repository and in webrnn/_web.tar.xz of an installation
host/                   what runs plans and audio, and the VM with its kernels as WebAssembly
site.json               what of the following there is, and for whom the page is
bundled/                models to try, and a recording
timings/models/         benchmark models, their plans, inputs and results; timings.json: how long they take natively
pyodide/                Python for the browser, with numpy and webrnn
onnxruntime-web/        where it is installed, for comparison
"""

from __future__ import annotations

import json
import shutil
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import webrnn
from webrnn.errors import Error, OptionError
from webrnn.web.folders import CHECKOUT, HOST, modules, page_files, page_folder, write_host

from . import amps, bundled, learning, listening, native_timings

PEER_FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")

MARK = ".webrnn-demo"
"""A file that says whose the folder is."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Sources:
    """Where parts of the page come from that are optional; None leaves one out."""

    pyodide: Callable[[], Path] | None = None
    """Gives a folder with Pyodide, numpy and webrnn, and fetches it if need be."""
    peer: Path | None = None
    """The `dist` folder of onnxruntime-web."""
    rounds: int = native_timings.ROUNDS
    """Of timing the benchmark models natively; 0 leaves them out."""
    has_bundled: bool = True
    """Whether the models to try are fetched."""


def default_folder() -> Path:
    """Where the site is put together."""
    if (CHECKOUT / "web_demo" / "index.html").exists():
        return CHECKOUT / "build" / "demo"
    from webrnn.models import default_folder as models_folder

    return models_folder().parent / "demo"


def write(folder: Path, sources: Sources, say: Say = print) -> None:
    """Put the site together, from scratch: what an earlier site left in the folder goes."""
    is_ours = folder == default_folder() or (folder / MARK).exists()
    if folder.exists() and any(folder.iterdir()) and not is_ours:
        raise OptionError(f"{folder} has other files in it: choose an empty folder, or one that does not exist")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARK).touch()
    write_page(folder)
    description: dict[str, Any] = {
        "version": webrnn.__version__,
        "runtime_bytes": _runtime_bytes(folder / HOST),
        "processor": native_timings.processor() if sources.rounds else None,
        "has_timings": bool(sources.rounds),
    }
    description["bundled"], description["listen"] = [], None
    if sources.has_bundled:
        description["bundled"] = _or_say(say, "models to try", lambda: bundled.write(folder / "bundled", say)) or []
        description["listen"] = _or_say(say, "audio", lambda: listening.write(folder / "bundled", say))
    description["amps"] = _or_say(say, "an amp", lambda: amps.write(folder / "bundled")) or []
    description["learn"] = _or_say(say, "a network that learns", lambda: learning.write(folder / "bundled"))
    if description["learn"]:
        description["learn"]["runtime_bytes"] = _runtime_bytes(folder / HOST, "training")
    if sources.rounds:
        native_timings.write(folder / "timings", say, sources.rounds)
    description["pyodide"] = None
    if sources.pyodide is not None:
        description["pyodide"] = _or_say(say, "Python in the page", lambda: _copy_pyodide(sources.pyodide, folder, say))
    description["peer"] = None
    if sources.peer is not None:
        description["peer"] = _copy_peer(sources.peer, folder / "onnxruntime-web", say)
    (folder / "site.json").write_text(json.dumps(description, indent=1))


def write_page(folder: Path) -> None:
    """The page and the wasm modules alone."""
    write_host(folder / HOST)
    for file in page_files():
        target = folder / file.relative_to(page_folder())
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)


def _or_say(say: Say, what: str, make: Callable[[], Any]) -> Any:
    """The page works without this part; then it says so."""
    try:
        return make()
    except (Error, OSError) as error:
        say(f"the page goes without {what}: {error}")
        return None


def _copy_pyodide(source: Callable[[], Path] | None, folder: Path, say: Say) -> dict[str, Any]:
    assert source is not None
    start = time.perf_counter()
    found = source()
    target = folder / "pyodide"
    shutil.copytree(found, target, ignore=shutil.ignore_patterns("*.map", "*.ts", "*.html", "README.md"))
    loaded = [
        file for file in target.iterdir() if file.suffix in (".wasm", ".zip", ".whl") and "micropip" not in file.name
    ]
    total = sum(file.stat().st_size for file in loaded)
    say(f"Pyodide: {total / 2**20:.1f} MB ({time.perf_counter() - start:.1f} s)")
    return {"bytes": total}


def _copy_peer(source: Path, target: Path, say: Say) -> dict[str, Any] | None:
    missing = [name for name in PEER_FILES if not (source / name).exists()]
    if missing:
        say(f"the page goes without onnxruntime-web: {source} has no {missing[0]}")
        return None
    target.mkdir()
    for name in PEER_FILES:
        shutil.copyfile(source / name, target / name)
    package = source.parent / "package.json"
    return {"version": json.loads(package.read_text())["version"] if package.exists() else ""}


def _runtime_bytes(host: Path, module: str = "core") -> int:
    """What a page has to load to run plans, as a server would send it."""
    names = [*modules(host, "webrnn.js"), f"wasm_relaxed_{module}.wasm"]
    return sum(len(zlib.compress((host / name).read_bytes(), 9)) for name in names)
