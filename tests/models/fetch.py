"""The models of `webrnn.models` for tests: fetched once into .cache/models of the checkout."""

from __future__ import annotations

from pathlib import Path

from webrnn.models import MODELS, Unavailable, fetch

__all__ = ["CACHE", "MODELS", "Unavailable", "model_path", "speech_path"]

CACHE = Path(__file__).parents[2] / ".cache" / "models"


def model_path(name: str) -> Path:
    """Where a model is, after fetching it if need be."""
    return fetch(name, CACHE)


def speech_path() -> Path:
    return fetch("speech", CACHE)
