"""`make bench-passes`: how long the passes take on the real models, and which of them longest."""

from __future__ import annotations

import argparse
from pathlib import Path

from webrnn.models import MODELS, fetch
from webrnn.report import Report, optimize
from webrnn.tables import table

CACHE = Path(__file__).parents[1] / ".cache" / "models"


def main() -> None:
    parser = argparse.ArgumentParser(description="Times of the passes on the real models.")
    parser.add_argument("models", nargs="*", help="paths of ONNX files; without any, the models of the tests")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    paths = [Path(path) for path in options.models] or [fetch(name, CACHE) for name in sorted(MODELS)]
    rows = []
    for path in paths:
        best = min((optimize(path) for _ in range(options.rounds)), key=lambda report: report.seconds)
        slowest = sorted(best.steps, key=lambda step: -step.seconds)[:3]
        names = ", ".join(f"{step.name} {step.seconds * 1e3:.1f}" for step in slowest)
        rows.append((path.stem, best.before.nodes, best.after.nodes, best.rounds, _milliseconds(best), names))
    print(table("passes", rows, ("model", "nodes", "then", "rounds", "ms", "of that")))


def _milliseconds(report: Report) -> str:
    return f"{report.seconds * 1e3:.1f}"


if __name__ == "__main__":
    main()
