"""The JavaScript host of the kernels in Node."""

from __future__ import annotations

import subprocess
from pathlib import Path

from pyodide_pkg import core


def node(*arguments: str, command: str | None = None) -> str:
    done = subprocess.run(
        [command or core.node(), *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kernels_js(demo: Path) -> None:
    script = Path(__file__).with_name("kernels.test.mjs")
    assert "# fail 0" in node("--test-reporter=tap", str(script), f"{demo.as_uri()}/")
