"""How long imports take inside Pyodide: `python -m pyodide_pkg.import_times [--rounds 5] [--model FILE]`.

Each round is a fresh Pyodide under Node; the least of the rounds is what an idle machine would take.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from pyodide_pkg import core, distribution

INSIDE = """
import json, sys, time
times = {}
def timed(name, action):
    start = time.perf_counter()
    action()
    times[name] = 1000 * (time.perf_counter() - start)
timed("import numpy", lambda: __import__("numpy"))
timed("import webrnn", lambda: __import__("webrnn"))
import webrnn
timed("webrnn.InferenceSession", lambda: webrnn.InferenceSession)
if len(sys.argv) > 1:
    timed("InferenceSession(model)", lambda: webrnn.InferenceSession(sys.argv[1]))
    timed("InferenceSession(model) again", lambda: webrnn.InferenceSession(sys.argv[1]))
print(json.dumps(times))
"""


def measure(rounds: int, model: Path | None) -> dict[str, list[float]]:
    folder = distribution.ensure()
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        script = Path(temporary) / "inside.py"
        script.write_text(INSIDE)
        for _ in range(rounds):
            said = core.run(script, *([model.resolve()] if model else []), folder=folder, packages=["webrnn"])
            for name, milliseconds in json.loads(said.splitlines()[-1]).items():
                found.setdefault(name, []).append(milliseconds)
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m pyodide_pkg.import_times", description=(__doc__ or "").split("\n\n")[1]
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", type=Path, help="also open this model")
    arguments = parser.parse_args(argv)
    for name, times in measure(arguments.rounds, arguments.model).items():
        print(f"{name:<30} {min(times):7.0f} ms at least, {sorted(times)[len(times) // 2]:7.0f} ms in the middle")
    return 0


if __name__ == "__main__":
    sys.exit(main())
