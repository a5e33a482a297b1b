"""The page's files and the host's, where they are and which of them belong together.

The build of the wheel imports this without numpy: it imports nothing of webrnn that needs more than Python.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection
from pathlib import Path

import webrnn

PACKAGE = Path(webrnn.__file__).resolve().parent
CHECKOUT = PACKAGE.parents[1]
HOST = "host"
"""The folder of what runs plans and audio, within the page's."""
SUFFIXES = (".html", ".css", ".js", ".py", ".nam")
IMPORT = re.compile(r'^(import|export) \{([^}]*)\} from "\./([\w.]+)";\n', re.M)
"""The form in which modules of one folder import each other, or export what is another's."""


def page_folder() -> Path:
    """The page's own files: in an installation, or else in the checkout."""
    packaged = PACKAGE / "_web"
    return packaged if packaged.exists() else CHECKOUT / "web_demo"


def page_files() -> list[Path]:
    """All files that are served, below `page_folder()`: what only packages need is in a folder of its own."""
    folder = page_folder()
    files = [file for file in folder.rglob("*") if file.suffix in SUFFIXES and file.is_file()]
    return [file for file in files if not {"packaging", "__pycache__"} & {*file.relative_to(folder).parts}]


def modules(folder: Path, entry: str, without: Collection[str] = ()) -> list[str]:
    """The module `entry` and those of its folder that it imports, each behind the ones that it needs itself."""
    found: list[str] = []

    def collect(name: str) -> None:
        for _, _, module in IMPORT.findall((folder / name).read_text()):
            if module not in found and module not in without:
                collect(module)
        found.append(name)

    collect(entry)
    return found


def write_host(folder: Path) -> None:
    """The modules that run plans and audio, with the builds of the VM beside them, where they look for those."""
    from webrnn.engine.kernels.loading import FOLDER, module_file
    from webrnn.engine.kernels.wasm import FILES
    from webrnn.errors import BackendError

    source = page_folder() / HOST
    if not source.exists():
        raise BackendError(
            "webrnn.js is missing: Node and Chromium need a checkout, or an installation with its web files"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for file in source.glob("*.js"):
        shutil.copyfile(file, folder / file.name)
    for name in FILES:
        shutil.copyfile(module_file(FOLDER, name), folder / name)
