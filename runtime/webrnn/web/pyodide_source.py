"""Where the page's Python comes from: assembled by the checkout, or from what an installation brings and fetches."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from webrnn.errors import Error
from webrnn.models import default_folder as models_folder

from .folders import CHECKOUT, PACKAGE

BROUGHT = PACKAGE / "_pyodide"
"""In an installation: the package that makes webrnn's wheel for Pyodide and fetches the rest."""


class NoPyodide(Error):
    """Pyodide cannot be set up here."""


def ensure() -> Path:
    """A folder with Pyodide, numpy and webrnn; what is downloaded is kept, and shown by a progress bar."""
    return _from(BROUGHT, _assembled) if BROUGHT.exists() else from_checkout()


def from_checkout() -> Path:
    """The distribution that the checkout assembles from its sources as they are."""

    def assembled() -> Path:
        from pyodide_pkg import distribution

        return distribution.ensure()

    return _from(CHECKOUT, assembled)


def _from(home: Path, assemble: Callable[[], Path]) -> Path:
    """With the `pyodide_pkg` that is in `home`."""
    if not (home / "pyodide_pkg").exists():
        raise NoPyodide("this webrnn was built without its wheel for Pyodide: name a folder with --pyodide")
    if str(home) not in sys.path:
        sys.path.insert(0, str(home))
    try:
        from pyodide_pkg import core

        try:
            return assemble()
        except core.SetupError as error:
            raise NoPyodide(str(error)) from error
    except ImportError as error:
        raise NoPyodide(f"{error.name} is missing: pip install 'webrnn[serve]'") from error


def _assembled() -> Path:
    """As `distribution.ensure`, with a wheel of what is installed."""
    from pyodide_pkg import core, distribution, installed

    cache = models_folder().parent
    base = core.ensure(cache)
    packages = distribution.fetch_packages(base / distribution.LOCK, cache / f"pyodide-{core.VERSION}-packages")
    folder = cache / f"pyodide-{core.VERSION}-dist"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in [*(base / name for name in distribution.CORE_FILES), *packages]:
        shutil.copyfile(file, folder / file.name)
    own_wheel = installed.write_wheel(PACKAGE, folder)
    distribution.write_lock(base / distribution.LOCK, own_wheel, folder / distribution.LOCK)
    return folder
