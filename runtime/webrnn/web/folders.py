"""The page's files and the host's, where they are and which of them belong together.

The build of the wheel imports this without numpy: it imports nothing of webrnn that needs more than Python.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Collection
from functools import cache
from pathlib import Path

import webrnn
from webrnn import packed

PACKAGE = Path(webrnn.__file__).resolve().parent
CHECKOUT = PACKAGE.parents[1]
HOST = "host"
"""The folder of what runs plans and audio, within the page's."""
SUFFIXES = (".html", ".css", ".js", ".py", ".nam")
IMPORT = re.compile(r'^(import|export) \{([^}]*)\} from "\./([\w.]+)";\n', re.M)
"""The form in which modules of one folder import each other, or export what is another's."""


def page_folder() -> Path:
    """The page's own files: in the checkout, or unpacked from what an installation has, until the process ends."""
    archive = PACKAGE / packed.PAGE
    return _unpacked(archive) if archive.exists() else CHECKOUT / "web_demo"


@cache
def _unpacked(archive: Path) -> Path:
    folder, process = Path(tempfile.mkdtemp(prefix="webrnn-")), os.getpid()

    def remove() -> None:
        if os.getpid() == process:  # a child leaves it to its parent
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    for name, data in packed.unpack(archive).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def page_files() -> list[Path]:
    """All files that are served, below `page_folder()`: packages and the site of the docs have folders of their own."""
    folder = page_folder()
    files = [file for file in folder.rglob("*") if file.suffix in SUFFIXES and file.is_file()]
    return [file for file in files if not {"packaging", "site", "__pycache__"} & {*file.relative_to(folder).parts}]


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
    from webrnn.engine.kernels.loading import FOLDER, module_bytes
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
        (folder / name).write_bytes(module_bytes(FOLDER, name))
