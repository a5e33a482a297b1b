"""Plans that webrnn wrote when each version of plan files was the newest, with what went in and came out then.

    v1    commit 780d7ba, the last one that wrote version 1
    v2    25761bd
    v3    864a611; `halves` is of version 4
    v5    the first commit that has this folder; `halves` is of version 6

A version that comes gets a folder, written by the last commit before it: write.py says how. None is ever written anew.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
FOLDERS = ("v1", "v2", "v3", "v5")
Arrays = dict[str, np.ndarray]


@dataclass
class Recorded:
    file: Path
    steps: list[tuple[Arrays, list[np.ndarray]]] = field(default_factory=list)
    """What was fed and what came out, by step of a stream; one if it is no stream."""
    is_stream: bool = False

    @property
    def carry(self) -> dict[str, str] | None:
        """Version 1 has no states in its files."""
        return {"h0": "h1"} if self.file.parent.name == "v1" else None


@cache
def recorded() -> dict[str, Recorded]:
    """By folder and name."""
    found: dict[str, Recorded] = {}
    for folder in FOLDERS:
        with np.load(HERE / folder / "recorded.npz") as arrays:
            parts: dict[tuple[str, int], dict[str, Arrays]] = defaultdict(lambda: {"in": {}, "out": {}})
            for key in arrays:
                name, step, side, port = key.split("|")
                parts[name, int(step)][side][port] = arrays[key]
        for (name, step), sides in sorted(parts.items()):
            row = found.setdefault(f"{folder}/{name}", Recorded(HERE / folder / f"{name}.rnn"))
            row.is_stream = step >= 0
            row.steps.append((sides["in"], list(sides["out"].values())))
    return found
