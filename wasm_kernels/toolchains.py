"""Compilers that can build the kernels: how each is found, named and called.

zig    the default: clang and wasm-ld inside the `ziglang` wheel, pinned in pyproject.toml; builds everything
emcc   Emscripten, whatever version is on PATH; builds the wasm and Pyodide modules
clang  clang and wasm-ld on PATH; builds the native library and the standalone wasm modules
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore

#: relaxed_madd as a builtin for all engines appeared in LLVM 17; older compilers emit a draft opcode or none at all
RELAXED_SIMD_LLVM = 17


_PROCESSORS = BoundedSemaphore(os.cpu_count() or 1)


class ToolchainError(Exception):
    """A toolchain is missing, or cannot build what was asked; the message is one line for the user."""


@dataclass(frozen=True)
class Toolchain:
    name: str
    compiler: tuple[str, ...]
    wasm_linker: tuple[str, ...]
    version: str
    llvm: int

    def run(self, command: list[str], work: Path) -> None:
        """Waits for a processor first."""
        environment = {**os.environ, "ZIG_LOCAL_CACHE_DIR": str(work / "zig"), "SOURCE_DATE_EPOCH": "0"}
        with _PROCESSORS:
            result = subprocess.run(command, capture_output=True, text=True, env=environment)
        if result.returncode:
            raise ToolchainError(
                f"{self.name} failed: {' '.join(command)[:400]}\n{(result.stdout + result.stderr)[:4000]}"
            )

    def require(self, platform: str, variant: str) -> None:
        """Raises where this toolchain cannot build `platform` ("native", "wasm", "pyodide") in `variant`."""
        if platform == "native" and self.name == "emcc":
            raise ToolchainError("emcc builds WebAssembly only: build `native` with --toolchain zig or clang")
        if platform == "pyodide" and self.name == "clang":
            raise ToolchainError("plain clang has no Emscripten target: build `pyodide` with --toolchain zig or emcc")
        if variant == "relaxed" and self.llvm < RELAXED_SIMD_LLVM:
            raise ToolchainError(
                f"{self.name} {self.version} (LLVM {self.llvm}) is too old for relaxed SIMD, which needs LLVM "
                f"{RELAXED_SIMD_LLVM}: build `{platform}-relaxed` with --toolchain zig"
            )

    def can_build(self, platform: str, variant: str) -> bool:
        try:
            self.require(platform, variant)
        except ToolchainError:
            return False
        return True


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _zig() -> Toolchain:
    if importlib.util.find_spec("ziglang") is None:
        raise ToolchainError("zig is missing: pip install ziglang (the version pinned in pyproject.toml)")
    zig = (sys.executable, "-m", "ziglang")
    llvm = re.search(r"clang version (\d+)", _output(*zig, "cc", "--version"))
    return Toolchain(
        "zig", (*zig, "cc"), (*zig, "wasm-ld"), importlib.metadata.version("ziglang"), int(llvm[1]) if llvm else 0
    )


def _emcc() -> Toolchain:
    emcc = shutil.which("emcc")
    if not emcc:
        raise ToolchainError("emcc is not on PATH: apt-get install emscripten, or activate an emsdk")
    version, llvm = emcc_versions(subprocess.run([emcc, "-v"], capture_output=True, text=True).stderr)
    return Toolchain("emcc", (emcc,), (emcc,), version, llvm)


def emcc_versions(said: str) -> tuple[str, int]:
    """Of Emscripten and of its LLVM, from what `emcc -v` says; 0 if it does not."""
    version = re.search(r"^emcc \(.*\) (\d+\.\d+\.\d+)", said, re.M)
    llvm = re.search(r"clang version (\d+)", said)
    return version[1] if version else "unknown", int(llvm[1]) if llvm else 0


def _clang() -> Toolchain:
    names = ["clang", *(f"clang-{n}" for n in range(30, 12, -1))]
    clang = next(filter(None, map(shutil.which, names)), None)
    if not clang:
        raise ToolchainError("clang is not on PATH")
    version = re.search(r"version (\d+)\.[\d.]+", _output(clang, "--version"))
    if not version:
        raise ToolchainError(f"{clang} does not say its version")
    linker = shutil.which(f"wasm-ld-{version[1]}") or shutil.which("wasm-ld")
    if not linker:
        raise ToolchainError(f"wasm-ld is not on PATH: install lld-{version[1]}")
    return Toolchain("clang", (clang,), (linker,), version[0].removeprefix("version "), int(version[1]))


_FINDERS = {"zig": _zig, "emcc": _emcc, "clang": _clang}
NAMES = tuple(_FINDERS)


def find(name: str) -> Toolchain:
    return _FINDERS[name]()
