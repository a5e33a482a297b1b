"""A stand-in for the cross-build environment that pyodide-build downloads: what a build without Python's C API needs.

Its versions are found, not written down: those of Pyodide in its own lock file, that of Emscripten by asking emcc.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyodide_pkg.core import SetupError
from wasm_kernels import toolchains

#: What a wheel for Pyodide is tagged with and its C sources are compiled for.
TRIPLET = "wasm32-emscripten"
SYSCONFIG = f"_sysconfigdata__emscripten_{TRIPLET}"


@dataclass(frozen=True)
class Versions:
    pyodide: str
    python: str
    """Of Pyodide, "3.14.0"; pyodide-build runs on another one of the same minor version."""
    abi: str
    emscripten: str
    """Of the compiler that is there, which need not be the one that Pyodide itself was made with."""

    @property
    def minor(self) -> str:
        return ".".join(self.python.split(".")[:2])


def python_of(pyodide: str) -> str:
    """Pyodide 314.0.3 has Python 3.14."""
    if not re.fullmatch(r"3\d\d\.\d+\.\d+", pyodide):
        raise SetupError(f"Pyodide {pyodide} does not say its Python: versions since 314.0.0 do")
    return f"3.{pyodide[1:3]}"


def versions(pyodide: str, info: dict[str, Any], emcc_says: str, own_abi: str) -> Versions:
    """From Pyodide's version, the `info` of its lock file and what `emcc -v` says. Raises what does not fit, also to
    the ABI of our wheels."""
    missing = [name for name in ("python", "abi_version") if not isinstance(info.get(name), str)]
    if missing:
        raise SetupError(f"the lock file of Pyodide {pyodide} has no {' and no '.join(missing)} in its info")
    found = Versions(pyodide, info["python"], info["abi_version"], toolchains.emcc_versions(emcc_says)[0])
    if found.minor != python_of(pyodide):
        raise SetupError(
            f"Pyodide {pyodide} has Python {found.python} in its lock file, its version says {python_of(pyodide)}"
        )
    if found.abi != own_abi:
        raise SetupError(
            f"Pyodide {pyodide} has the ABI {found.abi}, webrnn's wheels are for {own_abi}: "
            "change PYODIDE_ABI in wasm_kernels/hatch_hook.py"
        )
    return found


def require_emcc(emcc_says: str) -> None:
    """Raises if this emcc cannot build all side modules."""
    version, llvm = toolchains.emcc_versions(emcc_says)
    if not llvm:
        raise SetupError(f"`emcc -v` does not say its versions, but:\n{emcc_says.strip()[:400]}")
    try:
        toolchains.Toolchain("emcc", (), (), version, llvm).require("pyodide", "relaxed")
    except toolchains.ToolchainError as error:
        raise SetupError(str(error)) from None


def write(folder: Path, found: Versions) -> None:
    """The folder that PYODIDE_ROOT names. pyodide-build knows it by its name, pyodide-root."""
    install = f"cpython/installs/python-{found.python}"
    sysconfig = folder / install / "sysconfigdata" / f"{SYSCONFIG}.py"
    for made in (sysconfig.parent, folder / "dist", folder / install / f"include/python{found.minor}"):
        made.mkdir(parents=True, exist_ok=True)
    (folder / f"packages/.artifacts/lib/python{found.minor}/site-packages").mkdir(parents=True, exist_ok=True)
    (folder.parent / "requirements.txt").write_text("")
    (folder / "dist" / "pyodide-lock.json").write_text(json.dumps(lock(found), indent=1))
    (folder / "Makefile.envs").write_text(makefile(found, install))
    sysconfig.write_text(f"build_time_vars = {sysconfig_variables(found)!r}\n")


def lock(found: Versions) -> dict[str, Any]:
    info = {
        "abi_version": found.abi,
        "arch": "wasm32",
        "platform": f"emscripten_{found.emscripten.replace('.', '_')}",
        "python": found.python,
        "version": found.pyodide,
    }
    return {"info": info, "packages": {}}


def makefile(found: Versions, install: str) -> str:
    """pyodide-build asks its target .output_vars for the settings of a build."""
    major, minor, micro = found.python.split(".")
    settings = {
        "PYODIDE_VERSION": found.pyodide,
        "PYODIDE_ABI_VERSION": found.abi,
        "PYODIDE_EMSCRIPTEN_VERSION": found.emscripten,
        "PYVERSION": found.python,
        "PYMAJOR": major,
        "PYMINOR": minor,
        "PYMICRO": micro,
        "PLATFORM_TRIPLET": TRIPLET,
        "SYSCONFIG_NAME": SYSCONFIG,
        "CPYTHONINSTALL": f"$(PYODIDE_ROOT)/{install}",
        "TARGETINSTALLDIR": f"$(PYODIDE_ROOT)/{install}",
        "PYTHONINCLUDE": f"$(PYODIDE_ROOT)/{install}/include/python{found.minor}",
        "HOSTINSTALLDIR": "$(PYODIDE_ROOT)/packages/.artifacts",
        "HOSTSITEPACKAGES": f"$(PYODIDE_ROOT)/packages/.artifacts/lib/python{found.minor}/site-packages",
        "CFLAGS_BASE": "-fPIC",
        "CXXFLAGS_BASE": "-fPIC",
        "LDFLAGS_BASE": "-sWASM_BIGINT",
        "SIDE_MODULE_CFLAGS": "-fPIC",
        "SIDE_MODULE_CXXFLAGS": "-fPIC",
        "SIDE_MODULE_LDFLAGS": "-sSIDE_MODULE=2 -sWASM_BIGINT",
    }
    lines = [f"export {name} = {value}" for name, value in settings.items()]
    return "\n".join([*lines, ".output_vars:", "\t@env", ""])


def sysconfig_variables(found: Versions) -> dict[str, str | int]:
    """What Python's sysconfig says of the Python that a wheel is for."""
    name = f"cpython-{found.minor.replace('.', '')}-{TRIPLET}"
    return {
        "SOABI": name,
        "EXT_SUFFIX": f".{name}.so",
        "SHLIB_SUFFIX": ".so",
        "MULTIARCH": TRIPLET,
        "MACHDEP": "emscripten",
        "HOST_GNU_TYPE": "wasm32-unknown-emscripten",
        "VERSION": found.minor,
        "LDVERSION": found.minor,
        "Py_DEBUG": 0,
        "prefix": "/usr",
        "exec_prefix": "/usr",
        "CC": "cc",
        "CXX": "c++",
        "AR": "emar",
        "LDSHARED": "cc -shared",
        "CCSHARED": "-fPIC",
        **dict.fromkeys(("CFLAGS", "LDFLAGS", "PY_CFLAGS", "PY_LDFLAGS", "INCLUDEPY"), ""),
    }
