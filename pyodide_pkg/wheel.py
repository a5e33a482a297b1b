"""Builds webrnn's wheel for Pyodide: `python -m pyodide_pkg.wheel [--output dist]`.

It holds the Python package and the kernels as three side modules; the same sources give the same bytes. The build
itself is that of pyproject.toml (wasm_kernels/hatch_hook.py), which `pyodide build` runs as well.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pyodide_pkg import core

#: What the bytes of the wheel depend on.
INPUTS = ("pyproject.toml", "README.md", "LICENSE", "runtime/webrnn/**/*", "wasm_kernels/*", "pyodide_pkg/pack*.py")
SUFFIXES = (".py", ".json", ".c", ".h", ".toml", ".md", "LICENSE", "py.typed")


def build(output: Path) -> Path:
    """The wheel, in the folder `output`."""
    environment = {**os.environ, "WEBRNN_WHEEL": "pyodide"}
    with tempfile.TemporaryDirectory() as temporary:
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", temporary]
        result = subprocess.run(command, cwd=core.ROOT, env=environment, capture_output=True, text=True)
        if result.returncode:
            raise core.SetupError(f"the wheel for Pyodide was not built:\n{result.stdout}{result.stderr}")
        built = next(Path(temporary).glob("*.whl"))
        output.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(built, output))


def source_files() -> Iterator[Path]:
    for pattern in INPUTS:
        for file in core.ROOT.glob(pattern):
            if file.name.endswith(SUFFIXES) and file.parent.name != "_kernels":
                yield file


def sources_key() -> str:
    """Changes when the wheel's sources do."""
    digest = hashlib.sha256()
    for file in sorted(source_files()):
        name, data = file.relative_to(core.ROOT).as_posix().encode(), file.read_bytes()
        digest.update(b"%d %d " % (len(name), len(data)) + name + data)
    return digest.hexdigest()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pyodide_pkg.wheel", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--output", type=Path, default=core.ROOT / "dist", help="folder of the wheel (default: dist)")
    arguments = parser.parse_args(argv)
    try:
        wheel = build(arguments.output.resolve())
    except core.SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{wheel} ({wheel.stat().st_size / 1000:.0f} KB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
