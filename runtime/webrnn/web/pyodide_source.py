"""Where the page's Python comes from."""

from __future__ import annotations

import sys
from pathlib import Path

from webrnn.errors import Error

from .site import CHECKOUT


class NoPyodide(Error):
    """Pyodide cannot be set up here."""


def from_checkout() -> Path:
    """The distribution that the checkout assembles: downloads are kept below .cache."""
    if not (CHECKOUT / "pyodide_pkg" / "distribution.py").exists():
        raise NoPyodide("an installed webrnn has no Pyodide of its own: name a folder with --pyodide")
    if str(CHECKOUT) not in sys.path:
        sys.path.insert(0, str(CHECKOUT))
    from pyodide_pkg import core, distribution

    try:
        return distribution.ensure()
    except core.SetupError as error:
        raise NoPyodide(str(error)) from error
