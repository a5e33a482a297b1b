"""`python -m tests.counts.baseline`: counts against the committed ones; `--write` commits to those of now."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("baseline.json")
SIZE_TOLERANCE = 0.01
"""Of the modules: compilers and compressors differ a little. All other numbers are exact."""
HINT = "If this is meant, run `make baseline` and commit tests/counts/baseline.json with the reason."


def load() -> dict[str, Any]:
    return json.loads(FILE.read_text())


def differences(old: Any, new: Any, tolerance: float = 0.0, path: str = "") -> list[str]:
    """A line for each number that is another one.

    >>> differences({"gru": {"executed": {"all": 4, "copy": 1}}}, {"gru": {"executed": {"all": 6}}})
    ['gru executed all: 4 -> 6, worse by 50.0%', 'gru executed copy: 1 -> none, better']
    """
    return list(_differences(old, new, tolerance, path))


def _differences(old: Any, new: Any, tolerance: float, path: str) -> Iterator[str]:
    if isinstance(old, dict) or isinstance(new, dict):
        before, after = ({} if each is None else each for each in (old, new))
        for name in dict.fromkeys((*before, *after)):
            yield from _differences(before.get(name), after.get(name), tolerance, f"{path} {name}".strip())
    elif old is None or new is None:
        word = "worse" if old is None else "better"
        yield f"{path}: {'none' if old is None else f'{old:,}'} -> {'none' if new is None else f'{new:,}'}, {word}"
    elif abs(new - old) > tolerance * old:
        by = f" by {abs(new - old) / old:.1%}" if old else ""
        yield f"{path}: {old:,} -> {new:,}, {'worse' if new > old else 'better'}{by}"


def main(argv: list[str] | None = None) -> int:
    from . import measure

    parser = argparse.ArgumentParser(prog="python -m tests.counts.baseline", description=(__doc__ or "").strip())
    parser.add_argument("--write", action="store_true", help=f"write {FILE.name}")
    arguments = parser.parse_args(argv)
    now, old = measure.everything(), load() if FILE.exists() else {}
    found = differences(old.get("models"), now["models"])
    found += differences(old.get("modules"), now["modules"], SIZE_TOLERANCE)
    print("\n".join(found) or "as in the baseline")
    if arguments.write:
        FILE.write_text(json.dumps(now, indent=1) + "\n")
        return 0
    if found:
        print(HINT)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
