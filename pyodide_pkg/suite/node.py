"""The tests inside Pyodide under Node."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyodide_pkg import core, distribution

from . import bundle
from .results import Results


def run(arguments: Sequence[str], quiet: bool = True, wheel: Path | None = None) -> Results:
    """Run pytest there with these arguments: files and folders below /suite/tests, and options.

    It runs on `wheel`, or on the one that zig makes of the sources as they are.
    """
    with tempfile.TemporaryDirectory() as temporary:
        archive, found = Path(temporary, "bundle.zip"), Path(temporary, "results.json")
        archive.write_bytes(bundle.make())
        script = Path(__file__).with_name("node.mjs")
        folder = distribution.of_wheel(wheel, Path(temporary, "pyodide")) if wheel else distribution.ensure()
        command = [core.node(), script, folder, archive, found, *arguments]
        result = subprocess.run([str(part) for part in command], capture_output=quiet, text=True)
        if not found.exists():
            raise RuntimeError(f"the tests did not come to an end inside Pyodide:\n{result.stdout}{result.stderr}")
        return Results.of(found.read_text())
