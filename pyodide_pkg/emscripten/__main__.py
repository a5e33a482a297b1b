"""`python -m pyodide_pkg.emscripten [--short] [--where-possible]`: what `make pyodide-build` does."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

from pyodide_pkg import core, distribution
from pyodide_pkg.suite import node
from pyodide_pkg.suite.parts import PARTS

from . import builds, compare, debian

STARTED = time.monotonic()


def run(short: bool) -> None:
    with core.only_one(builds.HOME):
        root, versions = builds.prepare()
        _say(f"emcc {versions.emscripten} and Python {versions.minor}, for Pyodide {versions.pyodide}")
        wheel = builds.build(root)
        _say(f"pyodide build: {wheel.relative_to(core.ROOT)} ({wheel.stat().st_size / 1000:.0f} KB)")
        compare.require_other_modules(wheel, next(distribution.ensure().glob("webrnn-*.whl")))
        if not short:
            compare.require_same(builds.build_recipes(root), wheel)
            _say("pyodide build-recipes: the same files, and a lock file that names them")
        _say(compare.require_same_bits(wheel, with_real_models=not short))
        for part in () if short else PARTS:
            _say(f"the suite inside Pyodide, {part}: {_run_suite(part, wheel)} tests passed")


def _run_suite(part: str, wheel: Path) -> int:
    folders, at_least = PARTS[part]
    results = node.run([f"/suite/{folder}" for folder in folders], wheel=wheel)
    if results.status or results.failures or results.passed < at_least:
        raise core.SetupError(f"the suite fails on {wheel}:\n{results}")
    return results.passed


def _say(text: str) -> None:
    print(f"{time.monotonic() - STARTED:5.0f} s  {text}", flush=True)


def _not_covered(reason: str, is_allowed: bool) -> int:
    print(f"not covered here: the wheel by pyodide-build, because {reason}", file=sys.stderr)
    return 0 if is_allowed else 1


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m pyodide_pkg.emscripten", description="The wheel by pyodide-build and emcc, beside zig's."
    )
    parser.add_argument("--short", action="store_true", help="without build-recipes, real models and the suite")
    parser.add_argument("--where-possible", action="store_true",
                        help="no error where no Debian can be set up, or Debian lacks a package today")  # fmt: skip
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # an exception, so that what was started is ended too
    if reason := debian.obstacle():
        return _not_covered(reason, arguments.where_possible)
    try:
        run(arguments.short)
    except debian.Unavailable as error:
        return _not_covered(str(error), arguments.where_possible)
    except core.SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
