"""Compares results with those of Neural Amp Modeler's package: `make nam`.

    python -m tests.formats.nam_compare FOLDER

For each NAME.nam there is NAME.npz with x and y: nam_files.py writes them. A stream gives the bits of the whole run.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from webrnn.tables import table

from .whole_and_parts import run_both

TOLERANCE = 1e-5


def main(folder: Path) -> int:
    rows, failed = [], False
    for file in sorted(folder.glob("*.nam")):
        recorded = np.load(file.with_suffix(".npz"))
        x, y = recorded["x"], recorded["y"]
        got = run_both(file.read_bytes(), x)
        difference = float(np.abs(got - y).max())
        failed |= not difference <= TOLERANCE
        rows.append((file.stem, len(x), f"{np.abs(y).max():.3g}", f"{difference:.1e}"))
    print(table("beside neural-amp-modeler", rows, ("model", "samples", "largest result", "difference")))
    print(f"\nall within {TOLERANCE}" if rows and not failed else f"\nFAILED: not all within {TOLERANCE}")
    return int(failed or not rows)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
