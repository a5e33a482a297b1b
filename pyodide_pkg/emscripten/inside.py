"""Runs inside Pyodide, on the installed wheel: prints a digest of the results of each model on each build, as JSON.

argv: the checkout, then models.
"""

import json
import sys
from pathlib import Path

from webrnn.engine.kernels import loading as kernels

checkout, *models = sys.argv[1:]
sys.path.insert(0, checkout)
from pyodide_pkg.suite.bits import digest  # noqa: E402

print(
    json.dumps(
        {
            f"{Path(model).stem} {weights} {build}": digest(Path(model).stem, Path(model), build, weights)
            for build in kernels.available()
            for model in models
            for weights in ("f32", "int8")
        }
    )
)
