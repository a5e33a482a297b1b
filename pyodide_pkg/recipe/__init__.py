"""webrnn as a recipe of pyodide-build: `python -m pyodide_pkg.recipe [--output build/recipes]`.

Writes webrnn/meta.yaml and, beside it, the source distribution that it builds.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pyodide_pkg import core

RECIPE = Path(__file__).with_name("meta.yaml")


def write(output: Path) -> Path:
    """The folder of the recipe, below `output`; an older one is replaced."""
    folder = output / "webrnn"
    with tempfile.TemporaryDirectory() as temporary:
        command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", temporary]
        result = subprocess.run(command, cwd=core.ROOT, capture_output=True, text=True)
        if result.returncode:
            raise core.SetupError(f"the source distribution was not made:\n{result.stdout}{result.stderr}")
        core.unpack(next(Path(temporary).glob("*.tar.gz")), Path(temporary))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.move(next(path for path in Path(temporary).iterdir() if path.is_dir()), folder / "source")
    shutil.copyfile(RECIPE, folder / "meta.yaml")
    return folder
