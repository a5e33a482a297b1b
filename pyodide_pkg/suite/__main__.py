"""`python -m pyodide_pkg.suite [--wheel FILE] [tests/engine ...]`: the project's tests inside Pyodide under Node."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyodide_pkg import core

from . import node


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pyodide_pkg.suite", description="The tests inside Pyodide.")
    parser.add_argument("tests", nargs="*", default=["tests"], help="files, folders, ids of tests (default: all)")
    parser.add_argument("--wheel", type=Path, help="the wheel of webrnn to run on (default: zig makes one)")
    arguments = parser.parse_args(argv)
    tests = [f"/suite/{test}" for test in arguments.tests]
    try:
        results = node.run(tests, quiet=False, wheel=arguments.wheel)
    except core.SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(results)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
