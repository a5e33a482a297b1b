"""What came out of a run of the tests inside Pyodide."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Results:
    status: int
    outcomes: dict[str, int]
    skips: dict[str, int]
    """How many tests, or files, were left out for each reason."""
    failures: list[dict[str, str]]
    seconds: dict[str, float]
    """By file, the longest first."""

    @staticmethod
    def of(text: str) -> Results:
        return Results(**json.loads(text))

    @property
    def passed(self) -> int:
        return self.outcomes.get("passed", 0)

    def __str__(self) -> str:
        lines = [f"FAILED {failure['id']}\n{_indented(failure['text'])}" for failure in self.failures]
        lines += [f"left out, {count}: {reason}" for reason, count in self.skips.items()]
        lines += [f"{seconds:6.1f} s {path}" for path, seconds in list(self.seconds.items())[:10]]
        lines.append(", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.items()) or "no tests")
        return "\n".join(lines)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines()[-25:])
