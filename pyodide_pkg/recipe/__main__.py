"""`python -m pyodide_pkg.recipe`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyodide_pkg import core, recipe


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m pyodide_pkg.recipe", description=recipe.__doc__)
    parser.add_argument("--output", type=Path, default=core.ROOT / "build" / "recipes", help="folder of recipes")
    try:
        print(recipe.write(parser.parse_args().output))
    except core.SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
