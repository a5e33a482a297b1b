"""Build hook: `pip install .` compiles the kernels into the wheel, an editable install into the tree.

Under `pyodide build`, or with WEBRNN_WHEEL=pyodide set, the wheel is the one for Pyodide: side modules instead of
native and standalone ones. WEBRNN_TOOLCHAIN=emcc compiles with emcc what it can, the rest with zig.
"""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: The ABI of Pyodide 314; `pyodide build` tells its own.
PYODIDE_ABI = "2026_0"


class KernelBuildHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        sys.path.insert(0, self.root)
        files = self._pyodide_files() if _is_for_pyodide() else self._files()
        build_data["artifacts"] = []
        build_data["force_include"] = {str(file): f"webrnn/_kernels/{_place(file)}" for file in files}
        if not _is_for_pyodide() and version != "editable":
            sys.path.insert(0, str(Path(self.root) / "runtime"))
            from web_demo.packaging import packaged

            build_data["force_include"] |= packaged.files()
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_pyodide_tag() if _is_for_pyodide() else _platform_tag()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self.target_name == "wheel" and _is_for_pyodide():
            from pyodide_pkg import packing

            packing.pack(Path(artifact_path))

    def _files(self) -> list[Path]:
        from wasm_kernels import build, toolchains

        tool = toolchains.find("zig")
        files = [build.build(build.TARGETS[name], tool, say=self.app.display_info) for name in build.GROUPS["default"]]
        profiling = build.build_profile(build.GROUPS["default"], tool, say=self.app.display_info)
        return [*files, build.write_bindings(), *profiling]

    def _pyodide_files(self) -> list[Path]:
        from wasm_kernels import build, toolchains

        zig = toolchains.find("zig")
        tool = toolchains.find(os.environ.get("WEBRNN_TOOLCHAIN", "zig"))
        output = build.OUTPUT if tool.name == "zig" else build.ROOT / "build" / tool.name
        files = []
        for name in build.GROUPS["pyodide"]:
            target = build.TARGETS[name]
            able = tool if tool.can_build(target.platform, target.variant) else zig
            files.append(build.build(target, able, output, say=self.app.display_info))
        return [*files, build.write_bindings(build.ROOT / "build" / "pyodide-wheel", native=False)]


def _place(file: Path) -> str:
    """Profiling builds have the names of the others, in a folder of their own."""
    return f"profile/{file.name}" if file.parent.name == "profile" else file.name


def _is_for_pyodide() -> bool:
    return os.environ.get("WEBRNN_WHEEL") == "pyodide" or "PYODIDE" in os.environ


def _pyodide_tag() -> str:
    return f"pyemscripten_{os.environ.get('PYODIDE_ABI_VERSION', PYODIDE_ABI)}_wasm32"


def _platform_tag() -> str:
    """The library needs nothing of libc but memcpy, memmove and memset: one Linux wheel serves glibc and musl."""
    if platform.system() == "Linux":
        machine = platform.machine()
        return f"manylinux2014_{machine}.manylinux_2_17_{machine}.musllinux_1_1_{machine}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
