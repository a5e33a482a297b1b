"""Inputs of a model, and what comes out for them, from .npz files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from webrnn.errors import OptionError

INPUT, OUTPUT = "in__", "out__"
"""Before the names in a file that has both. In a file without them all arrays are inputs."""
ENDINGS = (".npz", ".io.npz")


@dataclass(frozen=True)
class Stored:
    """What a file holds, by the names of a model's inputs and outputs."""

    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray] = field(default_factory=dict)
    source: str = "the file"
    """Whose the outputs are."""


def stored_inputs(place: Path, model: str) -> Stored:
    """Those of a model: `place` is a file, or a folder with MODEL.npz or MODEL.io.npz."""
    if not place.is_dir():
        return _read(place)
    files = [place / f"{model}{ending}" for ending in ENDINGS]
    found = next((file for file in files if file.exists()), None)
    if found is None:
        raise OptionError(f"{str(place)!r} has no {' and no '.join(file.name for file in files)}")
    return _read(found)


def _read(file: Path) -> Stored:
    try:
        with np.load(file, allow_pickle=False) as data:
            arrays = {name: data[name] for name in data.files}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise OptionError(f"{str(file)!r} is no .npz file of arrays: {error}") from None
    if not any(name.startswith(INPUT) for name in arrays):
        return Stored(arrays)
    inputs, outputs = (
        {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
        for start in (INPUT, OUTPUT)
    )
    return Stored(inputs, outputs)
