"""Build hook: `pip install .` compiles the kernels into the wheel, an editable install into the tree.

Under `pyodide build`, or with WEBRNN_WHEEL=pyodide set, the wheel is the one for Pyodide: side modules instead of
native and standalone ones. WEBRNN_TOOLCHAIN=emcc compiles with emcc what it can, the rest with zig.
WEBRNN_SYSTEM=macos-arm64 (a row of systems.py) makes the wheel of another system: `make wheels` makes all of them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

if TYPE_CHECKING:
    from wasm_kernels.systems import System

#: The ABI of Pyodide 314; `pyodide build` tells its own.
PYODIDE_ABI = "2026_0"


class KernelBuildHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        sys.path[:0] = [self.root, str(Path(self.root) / "runtime")]
        files = self._pyodide_files() if _is_for_pyodide() else self._files()
        build_data["artifacts"] = []
        build_data["force_include"] = {str(file): f"webrnn/_kernels/{_place(file)}" for file in files}
        if not _is_for_pyodide() and version != "editable":
            from web_demo.packaging import packaged

            build_data["force_include"] |= packaged.files()
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_pyodide_tag() if _is_for_pyodide() else _system().wheel_tag}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self.target_name != "wheel":
            return
        if _is_for_pyodide():
            from pyodide_pkg import packing

            packing.pack(Path(artifact_path))
        elif version != "editable":
            from wasm_kernels import compressing

            compressing.compress(Path(artifact_path))

    def _files(self) -> list[Path]:
        from wasm_kernels import build, systems, toolchains
        from wasm_kernels.terminal import also_on_terminal

        system, say = _system(), also_on_terminal(self.app.display_info)
        say(f"compiling the kernels for {system.name}, some minutes the first time; a wheel of a release has them")
        tool = toolchains.find("zig")
        output = build.OUTPUT if system == systems.here() else build.ROOT / "build" / "wheels" / system.name
        return build.packaged(tool, output, system, say)

    def _pyodide_files(self) -> list[Path]:
        from wasm_kernels import build, toolchains

        tool = toolchains.find(os.environ.get("WEBRNN_TOOLCHAIN", "zig"))
        output = build.OUTPUT if tool.name == "zig" else build.ROOT / "build" / tool.name
        files = []
        for name in build.GROUPS["pyodide"]:
            target = build.TARGETS[name]
            able = tool if tool.can_build(target.platform, target.variant) else toolchains.find("zig")
            files.append(build.build(target, able, output, say=self.app.display_info))
        return [*files, build.write_bindings(build.ROOT / "build" / "pyodide-wheel", native=False)]


def _place(file: Path) -> str:
    """Profiling builds have the names of the others, in a folder of their own."""
    return f"profile/{file.name}" if file.parent.name == "profile" else file.name


def _is_for_pyodide() -> bool:
    return os.environ.get("WEBRNN_WHEEL") == "pyodide" or "PYODIDE" in os.environ


def _pyodide_tag() -> str:
    return f"pyemscripten_{os.environ.get('PYODIDE_ABI_VERSION', PYODIDE_ABI)}_wasm32"


def _system() -> System:
    """The one that the wheel is for. An editable install is for this one."""
    from wasm_kernels import systems

    name = os.environ.get("WEBRNN_SYSTEM")
    if name and name not in systems.SYSTEMS:
        raise ValueError(f"WEBRNN_SYSTEM={name} is none of {', '.join(systems.SYSTEMS)}")
    return systems.SYSTEMS[name] if name else systems.here()
