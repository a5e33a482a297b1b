"""What `webrnn serve` needs of an installation: the build hook puts it into the wheel.

webrnn/_web.tar.xz  the page
webrnn/_pyodide/    the modules that make webrnn's wheel for Pyodide of the installation, and fetch the rest of Pyodide
"""

from __future__ import annotations

from pathlib import Path

from webrnn import packed
from webrnn.web.folders import page_files, page_folder

ROOT = Path(__file__).resolve().parents[2]
PYODIDE_MODULES = (
    "__init__", "core", "distribution", "installed", "packed_modules", "packing", "remote_zip", "sources", "wheel",
)  # fmt: skip


def files(folder: Path = ROOT / "build" / "packaged") -> dict[str, str]:
    """Where each file is, and its place in the wheel. The archive is written to `folder`."""
    from wasm_kernels import build

    page = build.write(folder / packed.PAGE, packed.pack(page_contents()))
    modules = [ROOT / "pyodide_pkg" / f"{name}.py" for name in PYODIDE_MODULES]
    places = {page: page.name, **{file: f"_pyodide/pyodide_pkg/{file.name}" for file in modules}}
    return {str(file): f"webrnn/{place}" for file, place in places.items()}


def page_contents() -> dict[str, bytes]:
    """By their place below the page's folder."""
    return {file.relative_to(page_folder()).as_posix(): file.read_bytes() for file in page_files()}
