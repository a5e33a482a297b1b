"""What `webrnn serve` needs of an installation: the build hook puts it into the wheel.

webrnn/_web.tar.xz  the page; its scripts are without comments, as those of the npm package are
webrnn/_pyodide/    the modules that make webrnn's wheel for Pyodide of the installation, and fetch the rest of Pyodide
"""

from __future__ import annotations

from pathlib import Path

from webrnn import packed
from webrnn.web.folders import IMPORT, page_files, page_folder

from .smaller import smaller

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
    return {file.relative_to(page_folder()).as_posix(): _content(file) for file in page_files()}


def _content(file: Path) -> bytes:
    data = file.read_bytes()
    return script(data.decode()).encode() if file.suffix == ".js" else data


def script(text: str) -> str:
    """A module with as many lines, smaller. What it imports from beside it is written as before, since an installation
    finds modules by that; one with a text that goes over several lines stays as it is."""
    if any(line.count("`") % 2 for line in text.splitlines()):
        return text
    parts, start = [], 0
    for found in IMPORT.finditer(text):
        parts += [smaller(text[start : found.start()]), found[0]]
        start = found.end()
    return "".join([*parts, smaller(text[start:])])
