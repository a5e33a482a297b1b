"""The stand-in for Pyodide's cross-build environment: versions that fit, those that do not, and the files."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from pyodide_lock import PyodideLockSpec

from pyodide_pkg import core, distribution
from pyodide_pkg.emscripten import stand_in
from wasm_kernels.hatch_hook import PYODIDE_ABI
from wasm_kernels.toolchains import emcc_versions


def emcc(version: str, clang: str) -> str:
    name = "emcc (Emscripten gcc/clang-like replacement + linker emulating GNU ld)"
    return f"{name} {version} ()\nDebian clang version {clang} (14)\nTarget: wasm32-unknown-emscripten\n"


NEW = emcc("6.0.5", "21.1.8")
INFO = {"python": "3.14.0", "abi_version": "2026_0", "platform": "emscripten_5_0_3"}


def test_versions_of_emcc() -> None:
    assert emcc_versions(NEW) == ("6.0.5", 21)
    assert emcc_versions(emcc("3.1.6", "14.0.6")) == ("3.1.6", 14)
    emsdk = "emcc (Emscripten gcc/clang-like replacement) 4.0.9-git (3ee6d3b)\nclang version 22.0.0git (https://x y)\n"
    assert emcc_versions(emsdk) == ("4.0.9", 22)
    assert emcc_versions("command not found") == ("unknown", 0)


def test_they_fit_with_the_pyodide_that_is_used() -> None:
    info = json.loads((core.ensure() / distribution.LOCK).read_text())["info"]
    found = stand_in.versions(core.VERSION, info, NEW, PYODIDE_ABI)
    assert found.minor == stand_in.python_of(core.VERSION)
    assert found.abi == PYODIDE_ABI


def test_a_newer_emscripten_fits() -> None:
    said = emcc("7.10.2", "24.1.0")
    stand_in.require_emcc(said)
    lock = stand_in.lock(stand_in.versions("314.0.3", INFO, said, "2026_0"))
    assert lock["info"]["platform"] == "emscripten_7_10_2"


@pytest.mark.parametrize(
    ("pyodide", "info", "abi", "told"),
    [
        ("315.0.0", INFO, "2026_0", "Pyodide 315.0.0 has Python 3.14.0 in its lock file, its version says 3.15"),
        ("0.29.0", INFO, "2026_0", "Pyodide 0.29.0 does not say its Python"),
        ("314.1.0", {**INFO, "abi_version": "2027_0"}, "2026_0", "has the ABI 2027_0, webrnn's wheels are for 2026_0"),
        ("314.0.3", {"python": "3.14.0"}, "2026_0", "the lock file of Pyodide 314.0.3 has no abi_version"),
        ("314.0.3", {}, "2026_0", "has no python and no abi_version"),
    ],
)
def test_a_pyodide_that_does_not_fit(pyodide: str, info: dict[str, str], abi: str, told: str) -> None:
    with pytest.raises(core.SetupError, match=told):
        stand_in.versions(pyodide, info, NEW, abi)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (emcc("3.1.6", "14.0.6"), r"emcc 3.1.6 \(LLVM 14\) is too old for relaxed SIMD"),
        ("/usr/bin/env: 'python3': No such file\n", "`emcc -v` does not say its versions, but:\n/usr/bin/env"),
    ],
)
def test_an_emcc_that_does_not_fit(said: str, told: str) -> None:
    with pytest.raises(core.SetupError, match=told):
        stand_in.require_emcc(said)


def test_files(tmp_path: Path) -> None:
    folder = tmp_path / "xbuildenv" / "pyodide-root"
    stand_in.write(folder, stand_in.versions("314.0.3", INFO, NEW, "2026_0"))
    lock = PyodideLockSpec.from_json(folder / "dist" / distribution.LOCK)
    assert (lock.info.platform, lock.info.python, lock.info.abi_version) == ("emscripten_6_0_5", "3.14.0", "2026_0")

    make = ["make", "--no-print-directory", "-f", str(folder / "Makefile.envs"), ".output_vars"]
    environment = {**os.environ, "PYODIDE_ROOT": str(folder)}
    said = subprocess.run(make, env=environment, capture_output=True, text=True, check=True).stdout
    settings = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
    assert settings["PYODIDE_EMSCRIPTEN_VERSION"] == "6.0.5"
    assert (settings["PYMAJOR"], settings["PYMINOR"], settings["PYMICRO"]) == ("3", "14", "0")
    for name in ("TARGETINSTALLDIR", "PYTHONINCLUDE", "HOSTINSTALLDIR", "HOSTSITEPACKAGES"):
        assert Path(settings[name]).is_dir()

    module: dict[str, dict[str, str]] = {}
    exec(Path(settings["TARGETINSTALLDIR"], "sysconfigdata", f"{settings['SYSCONFIG_NAME']}.py").read_text(), module)
    assert module["build_time_vars"]["EXT_SUFFIX"] == ".cpython-314-wasm32-emscripten.so"
