"""What `webrnn serve` needs of an installation: the build hook puts it into the wheel.

webrnn/_web/        the page
webrnn/_pyodide/    webrnn's wheel for Pyodide, and the modules that fetch the rest of it
"""

from __future__ import annotations

from pathlib import Path

from webrnn.web.folders import page_files

ROOT = Path(__file__).resolve().parents[2]
PYODIDE_MODULES = ("__init__", "core", "distribution", "remote_zip", "sources", "wheel")


def files() -> dict[str, str]:
    """Where each file is, and its place in the wheel. The wheel for Pyodide is built for it."""
    from pyodide_pkg import wheel

    page = {file: f"_web/{file.relative_to(ROOT / 'web_demo').as_posix()}" for file in page_files()}
    modules = [ROOT / "pyodide_pkg" / f"{name}.py" for name in PYODIDE_MODULES]
    fetching = {file: f"_pyodide/pyodide_pkg/{file.name}" for file in modules}
    built = wheel.build(ROOT / "build" / "packaged")
    places = {**page, **fetching, built: f"_pyodide/{built.name}"}
    return {str(file): f"webrnn/{place}" for file, place in places.items()}
