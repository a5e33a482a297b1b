"""`python -m pyodide_pkg.suite [tests/engine ...]`: the project's tests inside Pyodide under Node."""

from __future__ import annotations

import argparse
import sys

from . import node


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pyodide_pkg.suite", description="The tests inside Pyodide.")
    parser.add_argument("tests", nargs="*", default=["tests"], help="files, folders, ids of tests (default: all)")
    arguments = parser.parse_args(argv)
    tests = [f"/suite/{test}" for test in arguments.tests]
    results = node.run(tests, quiet=False)
    print(results)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
