"""The recipe's facts are those of the project. And the build where the real pyodide-build, which CI runs, is not: for
another ABI, and with an emcc that is too old for relaxed SIMD."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import webrnn
from pyodide_pkg import core, recipe, wheel

#: What `pyodide build` sets for a build backend, of what the build looks at.
PYODIDE_BUILD = {
    "PYODIDE": "1",
    "PYODIDE_ABI_VERSION": "2026_0",
    "_PYTHON_HOST_PLATFORM": "emscripten_5_0_3_wasm32",
}


def build_backend(source: Path, output: Path, **environment: str) -> Path:
    """The wheel that the build backend makes in this environment, as `pyodide build` calls it."""
    script = f"from hatchling import build; build.build_wheel({str(output)!r})"
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=source, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return next(output.glob("*.whl"))


def contents(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_recipe_is_of_this_version() -> None:
    project = tomllib.loads((core.ROOT / "pyproject.toml").read_text())["project"]
    lines = recipe.RECIPE.read_text()
    assert re.search(r"^  version: (.+)$", lines, re.M)[1] == webrnn.__version__  # type: ignore[index]
    assert re.search(r"^  license: (.+)$", lines, re.M)[1] == project["license"]  # type: ignore[index]


def test_abi_is_that_of_pyodide_build(tmp_path: Path) -> None:
    made = build_backend(core.ROOT, tmp_path, **{**PYODIDE_BUILD, "PYODIDE_ABI_VERSION": "2027_0"})
    assert made.name.endswith("-py3-none-pyemscripten_2027_0_wasm32.whl")


@pytest.mark.skipif(not shutil.which("emcc"), reason="emscripten is not installed and could not be: not covered here")
def test_emcc_compiles_what_it_can(tmp_path: Path) -> None:
    with_emcc = contents(build_backend(core.ROOT, tmp_path, **PYODIDE_BUILD, WEBRNN_TOOLCHAIN="emcc"))
    with_zig = contents(wheel.build(tmp_path / "zig"))
    assert set(with_emcc) == set(with_zig)
    kernels = {name for name in with_zig if "/_kernels/" in name}
    different = {name.rpartition("/")[2] for name in kernels if with_emcc[name] != with_zig[name]}
    assert {"pyodide_scalar.wasm", "pyodide_simd.wasm"} <= different
    assert "kernels.json" not in different
