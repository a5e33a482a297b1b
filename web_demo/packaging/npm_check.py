"""`python -m web_demo.packaging.npm_check`: publint and Are The Types Wrong on the packed npm package. Both are fetched
from npm, below build/, the first time."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from pyodide_pkg.core import node

from . import npm_package

TOOLS = ("publint@0.3.25", "@arethetypeswrong/cli@0.18.5")
FOLDER = npm_package.ROOT / "build" / "npm-check-1"
"""Another number for other tools."""


def installed() -> Path:
    """The folder of the tools' commands."""
    commands = FOLDER / "node_modules" / ".bin"
    if not (commands / "attw").exists():
        npm = str(Path(node()).with_name("npm"))
        options = ["--loglevel=error", "--no-audit", "--no-fund", "--prefix", str(FOLDER)]
        subprocess.run([npm, "install", *options, *TOOLS], check=True, env=environment())
    return commands


def environment() -> dict[str, str]:
    """With Node on the path."""
    return {**os.environ, "PATH": f"{Path(node()).parent}{os.pathsep}{os.environ['PATH']}"}


def by_address() -> list[str]:
    """What is exported to be loaded by its address: scripts of threads and modules of kernels, which have no types."""
    exports = npm_package.description()["exports"]
    return [name for name, target in exports.items() if isinstance(target, str) and not name.endswith(".json")]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m web_demo.packaging.npm_check", description=__doc__)
    parser.add_argument("tarball", nargs="?", type=Path, help="the packed package (default: it is packed anew)")
    tarball = parser.parse_args(argv).tarball or npm_package.pack(npm_package.write(npm_package.OUTPUT / "webrnn"))
    commands = installed()
    checks = (
        [str(commands / "publint"), "--strict", str(tarball.resolve())],
        # There is no CommonJS: `require` is out of question.
        [str(commands / "attw"), str(tarball.resolve()), "--profile", "esm-only", "--format", "ascii",
         "--exclude-entrypoints", *(name.removeprefix("./") for name in by_address())],
    )  # fmt: skip
    failed = [check[0] for check in checks if subprocess.run(check, env=environment(), check=False).returncode]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
