"""What the VM counts while it is profiled: for each instruction and each of its parts, how often and for how long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LAP_KINDS = 3
"""The instruction itself, its first part and its second (profile.h)."""
ROW = 2 * LAP_KINDS
"""Words of a row: a count for each, then the ticks."""


@dataclass(frozen=True, slots=True)
class Counters:
    """A row for each word of the code; those at which an instruction starts are used."""

    rows: np.ndarray

    def count(self, word: int, kind: int = 0) -> int:
        return int(self.rows[word, kind])

    def ticks(self, word: int, kind: int = 0) -> int:
        return int(self.rows[word, LAP_KINDS + kind])

    @property
    def total_ticks(self) -> int:
        return int(self.rows[:, LAP_KINDS:].sum())

    @property
    def laps(self) -> int:
        return int(self.rows[:, :LAP_KINDS].sum())
