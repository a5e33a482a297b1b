"""The wheel is accepted by a real Pyodide's loadPackage and micropip, and refused where it is not the right one."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pyodide_pkg import core, distribution
from tests.pyodide_pkg.plain_server import serving

SCRIPT = Path(__file__).with_name("install_wheel.mjs")


@pytest.fixture(scope="module")
def folder() -> Path:
    return distribution.ensure()


def own_wheel(folder: Path) -> Path:
    return next(folder.glob("webrnn-*.whl"))


def install(folder: Path, way: str, wheels: list[Path]) -> list[dict[str, Any]]:
    """What came of each wheel; they are served from one folder."""
    with serving(wheels[0].parent) as address:
        command = [core.node(), SCRIPT, folder, way, *(f"{address}/{wheel.name}" for wheel in wheels)]
        result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout.splitlines()[-1])


def test_load_package_takes_its_address(folder: Path) -> None:
    (outcome,) = install(folder, "loadPackage", [own_wheel(folder)])
    assert outcome == {"found": [own_wheel(folder).name.split("-")[1], "2.4.3"], "said": []}


def test_micropip_takes_it_with_numpy_and_refuses_another_abi(folder: Path, tmp_path: Path) -> None:
    wheel = Path(shutil.copy(own_wheel(folder), tmp_path))
    other = Path(shutil.copy(wheel, tmp_path / wheel.name.replace("2026_0", "2027_0")))
    refused, taken = install(folder, "micropip", [other, wheel])
    assert "2027" in refused["error"]
    assert taken["found"] == [wheel.name.split("-")[1], "2.4.3"]
