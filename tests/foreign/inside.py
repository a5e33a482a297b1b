"""Runs inside the Python of another processor: prints a digest of each built-in benchmark model on each build."""

from __future__ import annotations

import json
import sys

from pyodide_pkg.suite.bits import digest
from webrnn.bench.models import BUILT_IN, FURTHER
from webrnn.engine.kernels import loading as kernels


def digests() -> dict[str, dict[str, str]]:
    """By build and model."""
    models = {name: make() for name, make in (BUILT_IN | FURTHER).items()}
    found: dict[str, dict[str, str]] = {}
    for spec in kernels.available():
        if spec.startswith("native:") and "avx512" not in spec:
            found[spec] = {name: digest(name, model, spec) for name, model in models.items()}
    return found


if __name__ == "__main__":
    json.dump(digests(), sys.stdout)
