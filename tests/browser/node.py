"""Node, as tests run it."""

from __future__ import annotations

import subprocess

from pyodide_pkg import core


def node(*arguments: str, command: str | None = None) -> str:
    done = subprocess.run(
        [command or core.node(), *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
