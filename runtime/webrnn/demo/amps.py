"""The amps that the page plays: plans of the .nam files that are beside the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from webrnn.engine.session import InferenceSession
from webrnn.web.folders import page_folder

FOLDER = "amp"


def write(folder: Path) -> list[dict[str, Any]]:
    """The plans; returns what the page has to know of each."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_write(file, folder / f"{file.stem}.rnn") for file in sorted((page_folder() / FOLDER).glob("*.nam"))]


def _write(model: Path, plan: Path) -> dict[str, Any]:
    session = InferenceSession(model)
    session.export(plan)
    title = session.about.get("metadata", {}).get("name") or model.stem
    kind = session.about["architecture"]
    return {
        "name": model.stem,
        "title": f"{title}, {kind}",
        "file": f"bundled/{plan.name}",
        "bytes": plan.stat().st_size,
    }
